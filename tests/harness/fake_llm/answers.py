"""What the fake model says: one deterministic answer for each role, read from its prompt."""

import json
import re
from collections.abc import Callable
from typing import Any

from playbooks.document.text import find_ids

Messages = list[dict[str, str]]
ROLE = re.compile(r"ACE (\w+) prompt \S+")
BULLET = re.compile(r"^\[([a-z]{2,8}-\d{5,7})\] (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^BEGIN DATA (\w+)\n(.*?)\n^END DATA \1$", re.MULTILINE | re.DOTALL)
PAIR = re.compile(r"^(P\d+)\n\[[^\]]+\] (.*)\n\[[^\]]+\] (.*)$", re.MULTILINE)
FILLING = {"a", "an", "the", "always", "please", "first", "of", "in", "and", "should", "you"}
VOTES = re.compile(r" \(helpful \d+, harmful \d+\)$")
TAGS = {"success": "helpful", "failure": "harmful", "partial": "neutral"}
CLARIFIED = " Check the result against the task before answering."


def role_of(messages: Messages) -> str:
    """`reflector`, `curator` or `generator`: the first line of the system message says it."""
    match = ROLE.match(messages[0]["content"])
    return match.group(1) if match else ""


def answer(messages: Messages) -> dict[str, Any]:
    """The answer of the role that is asked."""
    roles: dict[str, Callable[[str], dict[str, Any]]] = {
        "reflector": reflection,
        "curator": curation,
        "generator": generation,
        "judge": judgement,
    }
    return roles[role_of(messages)](messages[1]["content"])


def reflection(prompt: str) -> dict[str, Any]:
    """Cited bullets tagged by status; the lesson of a `lesson:` note, or one on a failure."""
    status = _line(prompt, "Status")
    cited = find_ids(_line(prompt, "Cited bullets"))
    task, _trace, notes, *_ = (block[1] for block in BLOCK.findall(prompt))
    lesson = re.search(r"lesson:\s*(.+)", notes, re.IGNORECASE)
    insight = lesson.group(1).strip() if lesson else ""
    if status == "failure" and not insight:
        insight = f"Work out each step before answering a task like: {' '.join(task.split())[-90:]}"
    clarify = f"Clarify {cited[0]}." if status == "failure" and cited else ""
    return {
        "reasoning": f"The task ended in {status}.",
        "error_identification": "The answer was wrong." if status == "failure" else "",
        "root_cause_analysis": "A step was left out." if status == "failure" else "",
        "correct_approach": clarify,
        "key_insight": insight,
        "bullet_tags": [{"id": key, "tag": TAGS[status]} for key in cited],
        "evidence": " ".join(notes.split())[:80],
    }


def curation(prompt: str) -> dict[str, Any]:
    """ADD for each new insight, UPDATE for each bullet that a correct approach names."""
    shown = prompt.partition("END BULLETS")[0] if "BEGIN BULLETS" in prompt else prompt
    bullets = dict(BULLET.findall(shown.partition("# Statistics")[0]))
    operations: dict[str, dict[str, Any]] = {}
    for number, (_mark, block) in enumerate(BLOCK.findall(prompt), start=1):
        written, label = json.loads(block), f"O{number}"
        if written["key_insight"]:
            add = _operation("ADD", section="STRATEGIES & INSIGHTS", content=written["key_insight"])
            operations.setdefault(f"ADD {written['key_insight']}", add)["outcome_ids"] += [label]
        for key in find_ids(written["correct_approach"]):
            if key in bullets and CLARIFIED not in bullets[key]:
                update = _operation("UPDATE", id=key, content=bullets[key] + CLARIFIED)
                operations.setdefault(f"UPDATE {key}", update)["outcome_ids"] += [label]
    return {"reasoning": "The batch's lessons.", "operations": list(operations.values())}


def judgement(prompt: str) -> dict[str, Any]:
    """Two bullets are the same when they differ in filling words only; the longer one stays."""
    verdicts = []
    for label, *lines in PAIR.findall(prompt):
        first, second = (VOTES.sub("", line) for line in lines)
        words = [set(re.findall(r"\w+", text.lower())) - FILLING for text in (first, second)]
        same = words[0] == words[1]
        content = max(first, second, key=len) if same else ""
        verdicts.append({"pair": label, "same": same, "content": content, "reason": "By words."})
    return {"reasoning": "Compared word by word.", "verdicts": verdicts}


def generation(prompt: str) -> dict[str, Any]:
    """The first bullet is cited; the answer is the last number of the task."""
    cited = BULLET.findall(prompt.partition("END PLAYBOOK")[0])[:1]
    numbers = re.findall(r"-?\d+(?:\.\d+)?", prompt.rpartition("# Task")[2])
    return {
        "reasoning": "The last number of the task.",
        "final_answer": numbers[-1] if numbers else "unknown",
        "bullet_ids": [key for key, _content in cited],
    }


def spoken(messages: Messages) -> list[str]:
    """A streamed answer: it cites the first bullet that the system message shows, if any."""
    system = messages[0]["content"] if messages[0]["role"] == "system" else ""
    shown = BULLET.findall(system)[:1]
    asked = " ".join(messages[-1]["content"].split())[-60:]
    advice = [f" I follow [{key}]: {content}" for key, content in shown]
    return ["You asked: ", asked, *(advice or [" I was given no playbook."])]


def _operation(kind: str, **fields: str) -> dict[str, Any]:
    empty = {"section": "", "id": "", "ids": [], "content": "", "outcome_ids": []}
    return {"type": kind, **empty, "reason": "The reflections say so.", **fields}


def _line(prompt: str, name: str) -> str:
    match = re.search(rf"^{name}: (.*)$", prompt.partition("END PLAYBOOK")[2], re.MULTILINE)
    return match.group(1) if match else ""

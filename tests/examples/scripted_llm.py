"""Two models of fixed rules for the todo agent, behind a server that speaks chat completions.

The agent's model knows how to use its tools and nothing of what this user wants: it follows a rule
only where a bullet in its system message carries it, and names that bullet. The Reflector works out
such a rule from the report in its prompt: what was asked, what was called, what the check found.

By hand: `python -m tests.examples.scripted_llm --port 9000`, for the agent and for the platform.
"""

import argparse
import json
import re
import threading
from datetime import date, timedelta
from typing import Any

from tests.harness.fake_llm.answers import BLOCK, BULLET, Messages, reflection, role_of
from tests.harness.fake_llm.model import FakeLLM

# What a bullet has to say for the model to follow it.
RULES = {
    "iso": re.compile(r"due date.*YYYY-MM-DD"),
    "weekend": re.compile(r"weekend.*Friday before"),
    "twin": re.compile(r"before adding.*search", re.IGNORECASE),
    "by_id": re.compile(r"complete.*by its id", re.IGNORECASE),
    "search": re.compile(r"search_todos.*list_todos shows only", re.IGNORECASE),
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DUE = re.compile(r'due is "(.*?)", wanted "(.*?)"')
REVIEWER = "An agent that keeps a todo list did not do what was wanted."


class TodoLLM(FakeLLM):
    """Both models; an answer to the agent is a message, not a JSON text."""

    def answer(self, messages: Messages) -> dict[str, Any]:
        if role_of(messages) == "reflector":
            return reflected(messages[1]["content"])
        if role_of(messages):
            return super().answer(messages)
        if messages[0]["content"].startswith(REVIEWER):
            lesson = lesson_of(messages[1]["content"])
            return {"content": f"Lesson: {lesson}" if lesson else "Nothing to learn here."}
        return next_message(messages)


def reflected(prompt: str) -> dict[str, Any]:
    """As FakeLLM's, but the insight is what the report shows."""
    report = prompt.partition("END PLAYBOOK")[2]
    found = reflection(prompt) | {"key_insight": "", "correct_approach": ""}
    if "Status: failure" in report:
        found["key_insight"] = lesson_of("\n".join(block[1] for block in BLOCK.findall(report)))
    return found


def lesson_of(report: str) -> str:
    """What the next agent should do, from a report of a failure; nothing when it does not show."""
    if due := DUE.search(report):
        return _due_lesson(*due.groups())
    if "which was not wanted" in report and "search_todos(" not in report:
        return "Before adding a todo, search for its title: where an open one is there, add none."
    if "is open, wanted done" in report and "list_todos(" in report:
        return (
            "When everything about a subject is meant, use search_todos; list_todos shows only "
            "the first ones."
        )
    if re.search(r'complete_todo\(\{"todo": "\D', report) and "wanted done" in report:
        return (
            "When a todo is done, find it by search_todos and complete it by its id: several can "
            "share one title."
        )
    return ""


def _due_lesson(found: str, wanted: str) -> str:
    try:
        day = date.fromisoformat(found)
    except ValueError:
        return (
            "Write a due date as YYYY-MM-DD, worked out from today's date, and check its weekday; "
            "never as the words of the user."
        )
    if day.weekday() >= 5 and date.fromisoformat(wanted).weekday() == 4:
        return "When a day falls on a weekend, take the Friday before: nobody works on weekends."
    return ""


def next_message(messages: Messages) -> dict[str, Any]:
    """The tools that the request needs, one after the other; then one sentence."""
    rules = {
        name: key
        for key, text in BULLET.findall(messages[0]["content"])
        for name, rule in RULES.items()
        if rule.search(text)
    }
    asks = "Used: none" in messages[0]["content"]
    results = [json.loads(m["content"]) for m in messages if m["role"] == "tool"]
    calls, used = _plan(messages[1]["content"], rules, results)
    if len(calls) > len(results):
        name, arguments = calls[len(results)]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{len(results)}", "type": "function", "function": function}
        return {"content": None, "tool_calls": [call]}
    cited = ", ".join(f"[{rules[name]}]" for name in used if name in rules) or "none"
    return {"content": f"It is done.\nUsed: {cited}" if asks else "It is done."}


Plan = tuple[list[tuple[str, dict[str, Any]]], list[str]]


def _plan(request: str, rules: dict[str, str], results: list[Any]) -> Plan:
    """All calls as far as they are known by now, and the rules that they follow."""
    today = date.fromisoformat(re.findall(r"Today is \w+, (\S+)\.", request)[0])
    words = request.partition("\n\n")[2]
    if due := re.fullmatch(r'"(.*)" is due (.*)\.', words):
        when, used = _when(due[2], today, rules)
        return [("schedule_todo", {"todo": due[1], "due": when})], used
    if added := re.fullmatch(r'Put "(.*)" on my list\.', words):
        return _add(added[1], rules, results)
    if done := re.fullmatch(r'"(.*)" about (.*) is done\.', words):
        return _complete(done[1], done[2], rules, results)
    subject = re.findall(r"Everything for (.*) is done", words)[0]
    return _sweep(subject, rules, results)


def _when(words: str, today: date, rules: dict[str, str]) -> tuple[str, list[str]]:
    used = []
    if words.startswith("the coming "):
        if "iso" not in rules:
            return words, []
        ahead = (DAYS.index(words.rpartition(" ")[2]) - today.weekday()) % 7 or 7
        words, used = str(today + timedelta(ahead)), ["iso"]
    day = date.fromisoformat(words)
    if "weekend" in rules and day.weekday() >= 5:
        return str(day - timedelta(day.weekday() - 4)), [*used, "weekend"]
    return words, used


def _add(title: str, rules: dict[str, str], results: list[Any]) -> Plan:
    add = ("add_todo", {"title": title})
    if "twin" not in rules:
        return [add], []
    search = ("search_todos", {"query": title})
    return [search] if results and results[0] else [search, add], ["twin"]


def _complete(title: str, matter: str, rules: dict[str, str], results: list[Any]) -> Plan:
    if "by_id" not in rules:
        return [("complete_todo", {"todo": title})], []
    search = ("search_todos", {"query": title})
    meant = [t["id"] for t in (results or [[]])[0] if t["notes"] == f"about {matter}"]
    return [search, *(("complete_todo", {"todo": str(key)}) for key in meant)], ["by_id"]


def _sweep(subject: str, rules: dict[str, str], results: list[Any]) -> Plan:
    can_search = "search" in rules
    look = ("search_todos", {"query": subject}) if can_search else ("list_todos", {})
    seen = (results or [[]])[0]
    rows = seen["todos"] if isinstance(seen, dict) else seen
    meant = [t["id"] for t in rows if t["notes"] == f"for {subject}"]
    calls = [look, *(("complete_todo", {"todo": str(key)}) for key in meant)]
    return calls, ["search"] if can_search else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000)
    with TodoLLM(port=parser.parse_args().port) as llm:
        print(f"export OPENAI_BASE_URL={llm.base_url} OPENAI_API_KEY=fake", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"{llm.count()} calls", flush=True)


if __name__ == "__main__":
    main()

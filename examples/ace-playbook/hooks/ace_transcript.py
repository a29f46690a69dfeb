"""What a session did, from the file that Claude Code or Codex keeps of it.

Neither program promises the form of that file. What is not understood is left out: a report with
less in it is better than none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_TRACE = 6000
MAX_LINE = 200
MAX_FILE = 50 * 1024 * 1024
RUNS = {"Bash", "exec_command", "shell", "local_shell", "shell_command"}
CITED = re.compile(r"\b[a-z]{2,8}-\d{5,7}\b")
# Every part is bounded: a long text without a space must not take longer than a session's end.
SECRET = re.compile(
    r"ace_live_\w+|ace_o[ar]t_[\w-]+|\b(?:sk|pk|rk)[-_][\w-]{8,}|\bgh[pousr]_\w{8,}|\bgithub_pat_\w+"
    r"|\bglpat-[\w-]{8,}|\bhf_\w{8,}|\bAIza[\w-]{8,}|\bAKIA\w{12,}|\bxox[a-z]-[\w-]+"
    r"|\beyJ[\w-]{1,2000}\.[\w-]{1,4000}\.[\w-]+|-----BEGIN[^-]{0,40}KEY(?: BLOCK)?-----[\s\S]*"
    r"|(?<=://)[^\s/:@]{0,100}:[^\s/@]{1,200}(?=@)"
    r"|(?i:\bbearer\s{1,8}|--(?:password|secret|token|api-?key)[ ]"
    r"|(?:password|passwd|secret|token|api_?key)[\w-]{0,64}[\"']?\s{0,8}[=:]\s{0,8})"
    r"(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|\S+)"
)


def mask(text: str) -> str:
    """The text without what looks like a credential."""
    return SECRET.sub("[removed]", text)


@dataclass
class Facts:
    """The facts of a session."""

    client: str = "an agent"
    cited: list[str] = field(default_factory=list)
    commands: list[tuple[str, bool, str]] = field(default_factory=list)
    reported_by_model: bool = False
    broke_off: bool = False

    @property
    def outcome(self) -> str:
        """From the last command, the only witness there is."""
        if self.broke_off or (self.commands and not self.commands[-1][1]):
            return "failure"
        return "success" if self.commands else "partial"

    @property
    def why(self) -> str:
        if self.broke_off:
            return "it broke off with an error."
        if not self.commands:
            return "no command was run, so nothing shows whether it worked."
        return f"its last command {'succeeded' if self.commands[-1][1] else 'failed'}."

    @property
    def trace(self) -> str:
        """The last commands, with the last line of output of a failed one."""
        lines = [
            f"$ {command}" + ("" if good else f"\n  failed: {output}")
            for command, good, output in self.commands
        ]
        return mask("\n".join(lines)[-MAX_TRACE:])


def facts_of(path: str | None, *, since: int = 0) -> Facts:
    """What happened after the first `since` prompts of the user."""
    facts, prompts = Facts(), 0
    open_calls: dict[str, str] = {}
    for entry in entries(path):
        facts.client = "Codex" if "payload" in entry else "Claude Code"
        prompts += is_prompt(entry)
        if since and prompts <= since:
            continue
        facts.broke_off = bool(entry.get("isApiErrorMessage")) or facts.broke_off
        for part in parts_of(entry):
            learn(facts, open_calls, part)
    facts.cited = list(dict.fromkeys(facts.cited))
    return facts


def entries(path: str | None) -> Iterator[dict[str, Any]]:
    """The lines of the file that are objects."""
    file = Path(path) if path else None
    if file is None or not file.is_file() or file.stat().st_size > MAX_FILE:
        return
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and not entry.get("isSidechain"):
                yield entry


def is_prompt(entry: dict[str, Any]) -> bool:
    """True for a message of the user; each program writes it once in this form."""
    if "payload" in entry:
        item = (entry["payload"] or {}).get("item")
        return isinstance(item, dict) and item.get("type") == "UserMessage"
    message = entry.get("message")
    is_text = isinstance(message, dict) and isinstance(message.get("content"), str)
    return is_text and entry.get("type") == "user" and not entry.get("isMeta")


def parts_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Texts of the agent, calls and results, as both programs' models get and give them."""
    payload = entry.get("payload")
    if isinstance(payload, dict) and entry.get("type") == "response_item":
        texts = payload.get("content") if payload.get("role") == "assistant" else None
        return [payload, *(texts if isinstance(texts, list) else [])]
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict)]


def learn(facts: Facts, open_calls: dict[str, str], part: dict[str, Any]) -> None:
    kind, call = part.get("type"), str(part.get("id") or "")
    if kind in {"text", "output_text"}:
        facts.cited += CITED.findall(str(part.get("text", "")))
    elif kind == "tool_use":
        begin(facts, open_calls, call, str(part.get("name")), part.get("input"))
    elif kind == "function_call":
        arguments = part.get("arguments")
        begin(facts, open_calls, str(part.get("call_id")), str(part.get("name")), arguments)
    elif kind == "tool_result":
        end(facts, open_calls, str(part.get("tool_use_id")), not part.get("is_error"), part)
    elif kind == "function_call_output":
        output = json.dumps(part.get("output"))
        end(facts, open_calls, str(part.get("call_id")), succeeded(output), part)


def begin(facts: Facts, open_calls: dict[str, str], call: str, name: str, given: Any) -> None:
    if name.endswith("report_outcome"):
        open_calls[call] = "report_outcome"
    elif name in RUNS:
        try:
            arguments = json.loads(given) if isinstance(given, str) else given
            command = arguments.get("command") or arguments.get("cmd") or ""
        except (ValueError, AttributeError):
            command = ""
        words = command if isinstance(command, str) else " ".join(map(str, command))
        open_calls[call] = " ".join(words.split())[:MAX_LINE]


def end(facts: Facts, open_calls: dict[str, str], call: str, good: bool, part: Any) -> None:
    command = open_calls.pop(call, None)
    if command == "report_outcome":
        facts.reported_by_model = facts.reported_by_model or good
    elif command is not None:
        facts.commands.append((command, good, last_line(part)))


def succeeded(output: str) -> bool:
    """Codex writes the exit code into the text; a refused call of a tool says so itself."""
    code = re.search(r"exited with code (\d+)|\"exit_code\\?\":\s*(\d+)", output)
    if code is not None:
        return int(code[1] or code[2]) == 0
    return not re.search(r'isError\\?":\s*true|"success": false|tool call error', output)


def last_line(part: dict[str, Any]) -> str:
    """The last line of the output: where programs put what went wrong."""
    output = part.get("content", part.get("output", ""))
    text = output if isinstance(output, str) else " ".join(texts_in(output))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:MAX_LINE] if lines else ""


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)

"""What a session did, from the file that Claude Code, Codex or Gemini CLI keeps of it.

No program promises the form of that file. What is not understood is left out: a report with
less in it is better than none.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ace.runners import runs_of

MAX_TRACE = 6000
MAX_LINE = 200
MAX_FILE = 50 * 1024 * 1024
KINDS = ("test", "build", "lint")
RUNS = {
    *("Bash", "PowerShell", "exec_command", "shell", "local_shell", "shell_command"),
    "run_shell_command",
}
EDITS = {"Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "write_file", "replace"}
PROSE = (".md", ".rst", ".txt")
CITED = re.compile(r"\b[a-z]{2,8}-\d{5,7}\b")
MISLED = re.compile(r"\bmisle(?:d|ading)\b|\bharmful\b", re.I)
UNUSED = re.compile(
    r"n[o']t (?:use|apply|help|need|fit|relevant)|\b(?:unused|ignored|irrelevant)\b", re.I
)
UNENDED = re.compile(
    r"running in (?:the )?background with ID|doesn't want to (?:proceed|take)|timed out after"
    r"|[Rr]equest interrupted|permission to use"
)
REFUSED = re.compile(r'isError\\?":\s*true|"success": false|tool call error')
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
    """The facts of a session. `verdicts` is the last run of each kind: None shows nothing."""

    client: str = "an agent"
    cited: list[str] = field(default_factory=list)
    misled: list[str] = field(default_factory=list)
    commands: list[tuple[str, bool, str]] = field(default_factory=list)
    verdicts: dict[str, bool | None] = field(default_factory=dict)
    is_changed: bool = False
    reported_by_model: bool = False
    broke_off: bool = False

    @property
    def outcome(self) -> str:
        """success and failure only where a test, build or lint run shows it, else partial."""
        if not self.is_conclusive:
            return "partial"
        return "failure" if False in self.verdicts.values() else "success"

    @property
    def is_conclusive(self) -> bool:
        """Tests decide over builds, builds over lint; what fails decides over both."""
        strongest = next((kind for kind in KINDS if kind in self.verdicts), "")
        shown = False in self.verdicts.values() or bool(self.verdicts.get(strongest))
        return shown and not self.broke_off

    @property
    def signal(self) -> str:
        return "test" if self.is_conclusive else "self_report"

    @property
    def why(self) -> str:
        if self.broke_off:
            return "it broke off with an error."
        if self.is_conclusive:
            verdict = self.outcome == "success"
            kinds = [kind for kind in KINDS if self.verdicts.get(kind) is verdict]
            return f"its last {kinds[0]} run {'passed' if verdict else 'failed'}."
        if self.is_changed and self.verdicts:
            return "files changed after its last run, so nothing shows whether it worked."
        return "no test, build or lint run shows whether it worked."

    @property
    def trace(self) -> str:
        """The last commands, with the last line of output of a failed one."""
        lines = [
            f"$ {command}" + ("" if good else f"\n  failed: {output}")
            for command, good, output in self.commands
        ]
        return mask("\n".join(lines)[-MAX_TRACE:])

    def hear(self, text: str) -> None:
        """What the agent says of bullets, a sentence at a time."""
        for line in re.split(r"\n|(?<=[.;!?])\s", text):
            ids = CITED.findall(line)
            if MISLED.search(line):
                self.misled += ids
            elif not UNUSED.search(line):
                self.cited += ids

    def see(self, command: str, code: int | None, output: str) -> None:
        """What a command showed; a later run of its kind replaces what an earlier one showed."""
        line = " ".join(command.split())[:MAX_LINE]
        self.commands.append((line, not code, last_line(output)))
        for run in runs_of(command, code, output):
            self.verdicts[run.kind] = run.passed
            self.is_changed = False

    def change(self, path: str) -> None:
        """A file was changed: what runs have shown is of the past."""
        if not path.endswith(PROSE):
            self.verdicts = dict.fromkeys(self.verdicts)
            self.is_changed = True


def facts_of(path: str | None, *, since: int = 0) -> Facts:
    """What happened after the first `since` prompts of the user."""
    facts, prompts = Facts(), 0
    calls = Calls(facts)
    for entry in entries(path):
        facts.client = client_of(entry)
        prompts += is_prompt(entry)
        if since and prompts <= since:
            continue
        facts.broke_off = bool(entry.get("isApiErrorMessage")) or facts.broke_off
        for part in parts_of(entry):
            calls.learn(part)
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


def client_of(entry: dict[str, Any]) -> str:
    """The program whose file has such lines."""
    if "payload" in entry:
        return "Codex"
    is_gemini = {"projectHash", "$set", "content"} & entry.keys()
    return "Gemini CLI" if is_gemini else "Claude Code"


def is_prompt(entry: dict[str, Any]) -> bool:
    """True for a message of the user; each program writes it once in this form."""
    if "payload" in entry:
        item = (entry["payload"] or {}).get("item")
        return isinstance(item, dict) and item.get("type") == "UserMessage"
    if client_of(entry) == "Gemini CLI":
        given = entry.get("content")
        parts = given if entry.get("type") == "user" and isinstance(given, list) else []
        return any(isinstance(part, dict) and "text" in part for part in parts)
    message = entry.get("message")
    is_text = isinstance(message, dict) and isinstance(message.get("content"), str)
    return is_text and entry.get("type") == "user" and not entry.get("isMeta")


def parts_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Texts of the agent, calls and results, as both programs' models get and give them."""
    payload = entry.get("payload")
    if isinstance(payload, dict) and entry.get("type") == "response_item":
        texts = payload.get("content") if payload.get("role") == "assistant" else None
        return [payload, *(texts if isinstance(texts, list) else [])]
    if entry.get("type") == "gemini":
        calls = entry.get("toolCalls") or []
        said = {"type": "text", "text": entry.get("content") or ""}
        return [said, *({**call, "type": "gemini"} for call in calls if isinstance(call, dict))]
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict)]


class Calls:
    """The calls of tools that wait for their results."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.open: dict[str, tuple[str, str]] = {}
        self.background: dict[str, str] = {}

    def learn(self, part: dict[str, Any]) -> None:
        """Take in a text, a call or a result."""
        kind = part.get("type")
        if kind in {"text", "output_text"}:
            self.facts.hear(str(part.get("text", "")))
        elif kind == "tool_use":
            self.begin(str(part.get("id")), str(part.get("name")), part.get("input"))
        elif kind in {"function_call", "custom_tool_call"}:
            given = part.get("arguments", part.get("input"))
            self.begin(str(part.get("call_id")), str(part.get("name")), given)
        elif kind == "tool_result":
            text = text_of(part.get("content"))
            self.end(str(part.get("tool_use_id")), claude_code(part, text), text)
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            text = text_of(part.get("output"))
            self.end(str(part.get("call_id")), codex_code(text), text)

        elif kind == "gemini":
            text, call = text_of(part.get("result")), str(part.get("id"))
            self.begin(call, str(part.get("name")), part.get("args"))
            self.end(call, gemini_code(part, text), text)

    def begin(self, call: str, name: str, given: Any) -> None:
        try:
            arguments = json.loads(given) if isinstance(given, str) else given
        except ValueError:
            arguments = {"patch": given}
        if not isinstance(arguments, dict):
            arguments = {}
        if name.endswith("report_outcome"):
            self.open[call] = ("report", "")
        elif name in EDITS:
            self.open[call] = ("edit", str(arguments.get("file_path") or paths_in(arguments)))
        elif name == "write_stdin":
            command = self.background.get(str(arguments.get("session_id")), "")
            self.open[call] = ("command", command)
        elif name in RUNS:
            self.open[call] = ("command", words_of(arguments))

    def end(self, call: str, code: int | None, output: str) -> None:
        kind, what = self.open.pop(call, ("", ""))
        if kind == "report":
            self.facts.reported_by_model |= not code and not REFUSED.search(output)
        elif kind == "edit" and not code:
            self.facts.change(what)
        elif kind == "command":
            running = re.search(r"running with session ID (\d+)", output)
            if running:
                self.background[running[1]] = what
            self.facts.see(what, code, output)
            if "apply_patch" in what:
                self.facts.change(paths_in(what))


def words_of(arguments: dict[str, Any]) -> str:
    """The command line of a call; Codex may send it as a list of words."""
    command = arguments.get("command") or arguments.get("cmd") or ""
    if not isinstance(command, list):
        return str(command)
    return shlex.join(str(word) for word in command)


def paths_in(patch: Any) -> str:
    """The first file of a patch that is not prose, else the last one."""
    paths = re.findall(r"\*\*\* \w+ File: ([^\n\\\"]+)", "\n".join(texts_in(patch)))
    return next((path for path in paths if not path.endswith(PROSE)), paths[-1] if paths else "")


def claude_code(part: dict[str, Any], text: str) -> int | None:
    """The exit status that Claude Code shows; None where the command did not end."""
    if UNENDED.search(text):
        return None
    code = re.match(r"\s*(?:Error: )?Exit code (\d+)", text)
    return int(code[1]) if code else int(bool(part.get("is_error")))


def gemini_code(part: dict[str, Any], text: str) -> int | None:
    """Gemini CLI writes the exit status into the text unless it is 0."""
    code = re.search(r"^Exit Code: (\d+)", text, re.M)
    if code or part.get("status") == "success":
        return int(code[1]) if code else 0
    return None if part.get("status") == "cancelled" else 1


def codex_code(text: str) -> int | None:
    """Codex writes the exit status into the text; a refused call of a tool has none."""
    code = re.search(r"exited with code (\d+)|\"exit_code\\?\":\s*(\d+)|Exit code: (\d+)", text)
    return int(next(group for group in code.groups() if group)) if code else None


def last_line(output: str) -> str:
    """The last line of the output: where programs put what went wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:MAX_LINE] if lines else ""


def text_of(output: Any) -> str:
    """The output of a tool as text; Codex wraps some of it in JSON."""
    text = output if isinstance(output, str) else "\n".join(texts_in(output))
    if text.startswith("{"):
        try:
            inner = json.loads(text)
        except ValueError:
            return text
        if isinstance(inner, dict) and isinstance(inner.get("output"), str):
            code = (inner.get("metadata") or {}).get("exit_code")
            return str(inner["output"]) + ("" if code is None else f"\nexited with code {code}")
    return text


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)

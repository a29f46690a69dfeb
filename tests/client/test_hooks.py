"""The hooks of the plugin, run as the agent programs run them."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from ace import transcripts
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.factories import make_key, make_playbook

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "client"
SESSION = "0b1c-session"


class Hooks:
    """One user's plugin: where it keeps its notes, and how it is called."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder, self.variables = folder, variables
        self.transcript = folder / "transcript.jsonl"
        self.transcript.touch()

    def run(
        self, event: str, session: str = SESSION, *arguments: str, **given: Any
    ) -> tuple[Any, str]:
        """What the hook says to the program, and what it says on stderr; it never fails."""
        given |= {"session_id": session, "transcript_path": str(self.transcript)}
        done = subprocess.run(
            [sys.executable, str(PLUGIN / "hooks" / "ace_hook.py"), event, *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)}
            | {"CLAUDE_PLUGIN_DATA": str(self.folder), "PYTHONIOENCODING": "cp1252"}
            | self.variables,
            input=json.dumps(given, ensure_ascii=False),
            capture_output=True,
            encoding="utf-8",
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or "null"), done.stderr

    def report(self, *, is_final: bool = True, session: str = SESSION) -> str:
        """What the detached child does, waited for; it takes turns with the detached one."""
        return self.run("report", session, session, *["final"] * is_final)[1]

    def whole_session(self, prompt: str = "Make it green", session: str = SESSION) -> str:
        """Start, one prompt, end; the text on stderr."""
        output = self.run("start", session)[1]
        output += self.run("prompt", session, prompt=prompt)[1]
        return output + self.run("end", session)[1] + self.report(session=session)

    def wrote(self, *entries: Any) -> None:
        """What the agent program has written down of the session."""
        with self.transcript.open("a") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def hooks(live_url: str, alice: User, playbook: Playbook, tmp_path: Path) -> Hooks:
    token = make_key(alice, scopes=["report"])[1]
    return Hooks(tmp_path, ACE_URL=live_url, ACE_API_KEY=token, ACE_PLAYBOOK=playbook.name)


def claude(command: str, *, failed: bool = False, output: str = "") -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": failed, "content": output}
    return [
        {"type": "user", "message": {"role": "user", "content": "Make it green"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]


def says(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}


def codex(command: str, code: int) -> list[dict[str, Any]]:
    call = {"type": "function_call", "call_id": "c", "name": "exec_command"}
    output = {"type": "function_call_output", "call_id": "c"}
    payloads = [
        call | {"arguments": json.dumps({"cmd": command})},
        output | {"output": f"Process exited with code {code}\nOutput:\n3 failed"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
    ]
    return [{"type": "response_item", "payload": payload} for payload in payloads]


def test_the_advice_is_put_before_the_model(hooks: Hooks, playbook: Playbook) -> None:
    answer, output = hooks.run("start")
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert "[str-00001]" in context
    assert str(playbook.pk) in context
    assert (answer["hookSpecificOutput"]["hookEventName"], output) == ("SessionStart", "")


def test_a_long_playbook_is_cut_to_what_the_programs_take(hooks: Hooks, alice: User) -> None:
    text = "## STRATEGIES & INSIGHTS\n" + "".join(
        f"[str-{n:05d}] helpful=0 harmful=0 :: Advice {n}: {'measure it ' * 30}\n"
        for n in range(1, 101)
    )
    hooks.variables["ACE_PLAYBOOK"] = str(make_playbook(alice, name="Long", text=text).pk)
    context = hooks.run("start")[0]["hookSpecificOutput"]["additionalContext"]
    assert 8_000 < len(context) < 10_000
    assert "Did not fit: " in context


def test_the_end_reports_what_the_session_did(hooks: Hooks) -> None:
    hooks.wrote(*claude("make test", failed=True, output="Exit code 2\ncollecting\n3 failed"))
    hooks.wrote(says("I used [str-00001] and [zzz-99999]."))
    assert hooks.whole_session("Make it grün") == ""
    outcome = Outcome.objects.get()
    assert (outcome.status, outcome.signal) == ("failure", "test")
    assert outcome.task_description == "Make it grün"
    assert (outcome.cited_bullets, outcome.version_assumed) == (["str-00001"], False)
    assert outcome.reasoning_trace == "$ make test\n  failed: 3 failed"
    assert "its last test run failed" in outcome.notes
    notes = hooks.folder / "sessions" / f"{SESSION}.json"
    assert (notes.stat().st_mode & 0o777, notes.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert hooks.variables["ACE_API_KEY"] not in notes.read_text()


def test_a_session_that_commits_names_its_commit(hooks: Hooks) -> None:
    git = ["git", "-C", str(hooks.folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    commit = [*git, "commit", "-q", "--allow-empty", "-m", "x"]
    for command in ([*git, "init", "-q"], commit):
        subprocess.run(command, check=True)
    for session in ("reads-only", "commits"):
        hooks.run("start", session, cwd=str(hooks.folder))
        hooks.run("prompt", session, prompt="Make it green")
        if session == "commits":
            subprocess.run(commit, check=True)
        hooks.report(session=session)
        hooks.run("send")
    refs = Outcome.objects.order_by("created_at").values_list("ref", flat=True)
    assert [len(ref) for ref in refs] == [0, 40]


def test_a_turn_with_a_result_is_reported_at_once(hooks: Hooks) -> None:
    hooks.run("start")
    hooks.run("prompt", prompt="What is this?")
    hooks.wrote({"type": "user", "message": {"role": "user", "content": "What is this?"}})
    hooks.report(is_final=False)
    assert not Outcome.objects.exists()
    hooks.run("prompt", prompt="Make it green")
    hooks.wrote(*claude("pytest", output="12 passed in 1.02s"))
    hooks.run("stop", last_assistant_message="[str-00001] helped.")
    hooks.report(is_final=False)
    hooks.run("prompt", prompt="Thanks")
    hooks.wrote({"type": "user", "message": {"role": "user", "content": "Thanks"}})
    hooks.run("end")
    hooks.report()
    thanks, first = Outcome.objects.order_by("-created_at")
    assert (first.task_description, first.status) == ("What is this? / Make it green", "success")
    assert (first.signal, first.cited_bullets) == ("test", ["str-00001"])
    assert (thanks.task_description, thanks.status, thanks.signal) == (
        "Thanks",
        "partial",
        "self_report",
    )


def test_a_slow_server_holds_up_no_hook(
    hooks: Hooks, live_url: str, slow_proxy: Callable[[str], str]
) -> None:
    """Claude Code cancels a hook at the end of a session after about a second."""
    hooks.run("start")
    hooks.run("prompt", prompt="Make it green")
    hooks.variables["ACE_URL"] = slow_proxy(live_url)
    began = time.monotonic()
    assert hooks.run("end")[1] == ""
    assert time.monotonic() - began < 1
    assert not Outcome.objects.exists()
    limit = time.monotonic() + 30
    while not Outcome.objects.exists():
        assert time.monotonic() < limit


def facts(tmp_path: Path, *entries: Any) -> Any:
    """What the plugin makes of a transcript with these lines."""
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return transcripts.facts_of(str(path))


def test_the_transcript_of_codex_is_understood_too(tmp_path: Path) -> None:
    found = facts(tmp_path, *codex("make lint", 0), *codex("make test", 1))
    assert (found.client, found.outcome) == ("Codex", "failure")
    assert found.trace == "$ make lint\n$ make test\n  failed: 3 failed"


@pytest.mark.parametrize(
    ("output", "outcome"), [("OK", "success"), ("FAILED (failures=1)\nExit Code: 1", "failure")]
)
def test_the_transcript_of_gemini_cli_is_understood_too(
    tmp_path: Path, output: str, outcome: str
) -> None:
    call: dict[str, Any] = {"id": "c", "name": "run_shell_command", "status": "success"}
    call |= {"args": {"command": "python3 -m unittest"}}
    call |= {"result": [{"functionResponse": {"response": {"output": f"Output: .\n{output}"}}}]}
    lines = [
        {"sessionId": "s", "projectHash": "p"},
        {"$set": {"messages": []}},
        {"type": "user", "content": [{"text": "Make it green"}]},
        {"type": "gemini", "content": "", "toolCalls": [call]},
        {"type": "user", "content": [{"functionResponse": {}}]},
        {"type": "gemini", "content": "I used [str-00001]."},
    ]
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    facts = transcripts.facts_of(str(path))
    assert (facts.client, facts.outcome, facts.signal) == ("Gemini CLI", outcome, "test")
    assert facts.cited == ["str-00001"]
    assert transcripts.facts_of(str(path), since=1).verdicts == {}


def test_an_unknown_transcript_makes_a_thin_report(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_text('{"a": 1}\nnot json\n[]\n')
    for given in (str(path), str(tmp_path / "missing"), None):
        found = transcripts.facts_of(given)
        assert (found.outcome, found.trace, found.cited) == ("partial", "", [])


def edits(path: str) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "e", "name": "Edit", "input": {"file_path": path}}
    done = {"type": "tool_result", "tool_use_id": "e", "content": "done"}
    return [{"message": {"content": [part]}} for part in (call, done)]


BAD = claude("make test", failed=True, output="Exit code 2\n1 failed in 0.10s")
GOOD = claude("pytest -q", output="12 passed in 1.02s")
LINT_BAD = claude("ruff check .", failed=True, output="Exit code 1\nFound 2 errors.")
OTHER, EMPTY_GREP = claude("git --version"), claude("grep -rn zzz .", failed=True)
# what was run, the outcome, its signal
TRUTHS: list[tuple[str, list[dict[str, Any]], str, str]] = [
    ("tests fail", BAD, "failure", "test"),
    ("tests pass", GOOD, "success", "test"),
    ("fail, then pass", BAD + GOOD, "success", "test"),
    ("pass, then fail", GOOD + BAD, "failure", "test"),
    ("no tests", OTHER, "partial", "self_report"),
    ("nothing at all", [], "partial", "self_report"),
    ("a failing test, then git", BAD + OTHER, "failure", "test"),
    ("passing tests, then an empty grep", GOOD + EMPTY_GREP, "success", "test"),
    ("lint fails after passing tests", GOOD + LINT_BAD, "failure", "test"),
    ("code changed after the tests", GOOD + edits("a.py"), "partial", "self_report"),
    ("prose changed after the tests", GOOD + edits("README.md"), "success", "test"),
    ("a fix that was not run", BAD + edits("a.py"), "partial", "self_report"),
    ("it broke off", GOOD + [{"isApiErrorMessage": True}], "partial", "self_report"),
    ("in the background", claude("pytest", output="Command running in background with ID: 1"),
     "partial", "self_report"),
    ("refused", claude("pytest", failed=True, output="The user doesn't want to proceed"),
     "partial", "self_report"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "entries", "outcome", "signal"), TRUTHS)
def test_the_reported_outcome_is_the_truth(
    tmp_path: Path, name: str, entries: list[Any], outcome: str, signal: str
) -> None:
    found = facts(tmp_path, *entries)
    assert (found.outcome, found.signal) == (outcome, signal), name


def test_a_bullet_that_misled_or_was_not_used_is_no_helpful_one(tmp_path: Path) -> None:
    found = facts(
        tmp_path,
        says("I used [str-00001].\nMisled by [str-00002].\nI did not use [str-00003]."),
    )
    assert (found.cited, found.misled) == (["str-00001"], ["str-00002"])


def test_a_run_of_codex_that_goes_on_is_judged_when_it_ends(tmp_path: Path) -> None:
    def calls(name: str, arguments: Any, output: str) -> list[dict[str, Any]]:
        call = {"type": "function_call", "call_id": "c", "name": name}
        parts = [
            call | {"arguments": json.dumps(arguments)},
            {"type": "function_call_output", "call_id": "c", "output": output},
        ]
        return [{"type": "response_item", "payload": part} for part in parts]

    begun = calls("exec_command", {"cmd": "pytest"}, "Process running with session ID 7\nOutput:\n")
    assert facts(tmp_path, *begun).outcome == "partial"
    ended = calls("write_stdin", {"session_id": 7}, "Process exited with code 1\nOutput:\n1 failed")
    assert facts(tmp_path, *begun, *ended).outcome == "failure"


def test_only_what_is_new_counts_in_a_continued_session(tmp_path: Path) -> None:
    facts(tmp_path, *claude("make a", failed=True), *claude("make b", failed=False))
    found = transcripts.facts_of(str(tmp_path / "transcript.jsonl"), since=1)
    assert found.trace == "$ make b"


def test_a_report_by_the_model_itself_is_seen(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "r", "name": "mcp__ace__report_outcome", "input": {}}
    done = {"type": "tool_result", "tool_use_id": "r", "content": "recorded"}
    entries = [{"message": {"content": [part]}} for part in (call, done)]
    assert facts(tmp_path, *entries).reported_by_model
    refused = {"message": {"content": [done | {"is_error": True}]}}
    assert not facts(tmp_path, entries[0], refused).reported_by_model


def test_credentials_are_left_out(tmp_path: Path) -> None:
    secrets = ["sk-ant-0123456789abcdef", "ghp_0123456789abcdefghij", "hunter2hunter2"]
    commands = [
        f"curl -H 'Authorization: Bearer {secrets[0]}' x",
        f"git push https://{secrets[1]}@host",
        f"DB_PASSWORD={secrets[2]} make",
    ]
    trace = facts(tmp_path, *(e for c in commands for e in claude(c, failed=True, output=c))).trace
    assert not [secret for secret in secrets if secret in trace], trace
    assert "make" in trace


def test_one_session_is_one_row_and_its_continuation_another(hooks: Hooks) -> None:
    hooks.whole_session()
    hooks.report()
    assert Outcome.objects.count() == 1
    hooks.whole_session("Now the docs")
    assert {row.task_description for row in Outcome.objects.all()} == {
        "Make it green",
        "Now the docs",
    }


def test_a_report_that_could_not_be_sent_is_sent_later(hooks: Hooks) -> None:
    hooks.run("start")
    hooks.run("prompt", prompt="Make it green")
    there = hooks.variables["ACE_URL"]
    hooks.variables["ACE_URL"] = "http://127.0.0.1:9"
    assert hooks.report().count("\n") == 1
    hooks.variables["ACE_URL"] = there
    hooks.run("send")
    assert Outcome.objects.get().task_description == "Make it green"


@pytest.fixture
def silent_server() -> Iterator[str]:
    """It takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_never_answers_costs_seconds(tmp_path: Path, silent_server: str) -> None:
    hooks = Hooks(tmp_path, ACE_URL=silent_server, ACE_API_KEY="k" * 30, ACE_PLAYBOOK="x")
    started = time.monotonic()
    _, output = hooks.run("start")
    assert time.monotonic() - started < 6
    assert output == "ace: timed out\n"


WRONG = [
    ({"ACE_API_KEY": ""}, "set ACE_API_KEY"),
    ({"ACE_PLAYBOOK": ""}, "set ACE_PLAYBOOK"),
    ({"ACE_PLAYBOOK": "Nobody’s"}, "No playbook found with this name"),
    ({"ACE_API_KEY": "k" * 40}, "This API key or token is invalid"),
    ({"ACE_URL": "file:///etc/passwd"}, "must begin with https://"),
]


def test_what_is_wrong_is_one_line_and_no_failure(hooks: Hooks) -> None:
    right = hooks.variables
    for variables, says_what in WRONG:
        hooks.variables = right | variables
        answer, output = hooks.run("start")
        assert (answer, output.count("\n")) == (None, 1)
        assert says_what in output
        assert "k" * 40 not in output


def test_the_manifests_agree() -> None:
    read = {
        path.parent.name: json.loads(path.read_text()) for path in PLUGIN.glob(".*/plugin.json")
    }
    one, other = read[".claude-plugin"], read[".codex-plugin"]
    assert {one[name] == other[name] for name in ("name", "version", "description")} == {True}
    catalogues = (ROOT / ".claude-plugin", ROOT / ".agents" / "plugins")
    for folder in catalogues:
        catalogue = json.loads((folder / "marketplace.json").read_text())
        assert (catalogue["name"], catalogue["plugins"][0]["name"]) == ("ace-platform", one["name"])
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    # Codex allows the end of a session 3 s.
    assert all(h["timeout"] <= 8 for groups in hooks.values() for g in groups for h in g["hooks"])
    assert hooks["SessionEnd"][0]["hooks"][0]["timeout"] <= 3


@pytest.mark.parametrize(
    "text",
    [
        *("FOO_TOKEN='s3cret words'", "deploy --token s3cret", "postgres://bob:s3cret@db/x"),
        *("ace_oat_s3cret", "glpat-s3cretxxxx", '{"api_key": "s3cret"}', "Bearer s3cret"),
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\ns3cret",
    ],
)
def test_no_secret_of_a_command_is_reported(text: str) -> None:
    assert "s3cret" not in transcripts.mask(text)


@pytest.mark.parametrize("part", ["a-", "token", "-eyJ", "x://a:", "sk-", "'token=", " -----BEGIN"])
def test_no_text_keeps_a_session_from_ending(part: str) -> None:
    """A quadratic pattern took 16 s for 30,000 characters; a hook has 2 s."""
    began = time.process_time()
    transcripts.mask(part * (30_000 // len(part)))
    assert time.process_time() - began < 0.5

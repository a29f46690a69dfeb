"""The tasks of the real programs; each takes a new user and returns one line about its result."""

import json
import os
import sys
import threading
import time
from pathlib import Path

from mcp_bridge.clients import BY_SLUG
from tests.clients.mock_model import (
    UNITTEST,
    Call,
    Json,
    MockModel,
    Say,
    Step,
    serve_model,
    structured,
    texts_in,
)
from tests.clients.platform_client import Site
from tests.clients.programs import Person, Ran, install_sdks

ROOT = Path(__file__).parents[2]
ADVICE = ["Read the failing test before the code.", "Run the linter before the tests."]
TASK = "Make the build green"
CONNECTED = {"claude-code": "✔ Connected", "gemini-cli": "Connected", "opencode": "connected"}


def connects(site: Site, person: Person, slug: str) -> str:
    """The documented snippet is enough, and leaves the key in no file of the program."""
    person.follow_the_docs(slug, f"{site.url}/mcp")
    ran = person.run(*BY_SLUG[slug].verify.split())
    assert ran.code == 0, ran
    assert CONNECTED[slug] in ran.out + ran.err, ran
    assert not person.files_with(site.key), person.files_with(site.key)
    return f"`{BY_SLUG[slug].verify}` says {CONNECTED[slug]!r}; the key is in no file"


def gemini_hooks_tell_the_truth(site: Site, person: Person, truth: str) -> str:
    """`ace connect` alone: the hooks of Gemini CLI read before the model and report after it."""
    names, outcome, signal = TRUTHS[truth]
    tests = [name.removeprefix("test_") for name in names]
    playbook = site.make_playbook(f"Gemini CLI, {truth}", ADVICE)
    python = sys.executable
    person.variables |= {"ACE_URL": site.url, "PYTHONPATH": str(ROOT / "client/src")}
    settings = person.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    connect = ["connect", "--key", site.key, "--playbook", playbook, "--yes"]
    ran = person.run(python, "-m", "ace", *connect)
    assert "Gemini CLI" in ran.out, ran
    (person.work / "good.py").write_text(UNITTEST.format("True"))
    (person.work / "bad.py").write_text(UNITTEST.format("False"))
    runs = [Call("run_shell_command", {"command": f"python3 -m unittest {t}"}) for t in tests]
    with serve_model([*runs, Say("I used [str-00001].")]) as model:
        person.variables |= {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "mock"}
        ran = person.run("gemini", "-p", TASK, "-m", "gemini-2.5-flash", "--yolo")
    assert ran.code == 0, (ran, model.seen)
    assert ADVICE[0] in model.everything_read(), (ran, model.seen[:1])
    rows = wait_for_rows(site, playbook)
    found = [(row["outcome"], row["signal"], row["bullet_ids"]) for row in rows]
    assert found == [(outcome, signal, ["str-00001"])], (rows, ran)
    assert (rows[0]["task_description"], "Gemini CLI" in rows[0]["notes"]) == (TASK, True), rows
    return f"advice before the first word of the model; one report: {outcome}, {signal}"


def adapter_learns(site: Site, person: Person, sdk: str) -> str:
    """The real package with a scripted model: advice before the run, two outcomes after it."""
    playbook = site.make_playbook(f"Adapter of {sdk}", ADVICE)
    person.variables |= {"ACE_URL": site.url, "ACE_PLAYBOOK": playbook, "IS_SANDBOX": "1"}
    person.variables["PYTHONPATH"] = f"{ROOT / 'client/src'}{os.pathsep}{ROOT}"
    python = install_sdks(person.bin.parents[1] / "sdks")
    ran = person.run(str(python), "-m", "tests.clients.sdk_sessions", sdk)
    assert ran.code == 0, ran
    assert ADVICE[0] in ran.out, ran
    assert "Be brief." in ran.out, ran
    rows = site.outcomes(playbook)
    truth = "test" if sdk == "claude_agent" else "ground_truth"
    seen = [(r["outcome"], r["bullet_ids"], r["version_assumed"]) for r in rows]
    assert seen[-1] == ("success", ["str-00001"], False), rows
    assert len(rows) == 2, rows
    signals = {row["signal"] for row in rows}
    assert truth in signals, rows
    return f"advice in the instructions, two runs reported, evidence {', '.join(sorted(signals))}"


def bridge_connects(site: Site, person: Person) -> str:
    """mcp-remote, as the docs start it for programs that take local servers only."""
    asked: list[Json] = [
        {"method": "initialize", "id": 1, "params": hello("claude-ai", "2025-06-18")},
        {"method": "notifications/initialized"},
        {"method": "tools/list", "id": 2},
    ]
    given = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in asked)
    snippet = json.loads(BY_SLUG["claude-desktop"].snippets["key"].fill(f"{site.url}/mcp"))
    _yes, package, *arguments = snippet["mcpServers"]["ace"]["args"]
    ran = person.run("sh", "-c", '(cat; sleep 10) | "$@"', "-", package, *arguments, given=given)
    assert '"report_outcome"' in ran.out, ran
    return "initialize and tools/list through mcp-remote"


def hello(name: str, revision: str) -> Json:
    info = {"name": name, "version": "1"}
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}


def session(site: Site, person: Person, slug: str) -> str:
    """list → get → report, then the same report again: one row, with its bullets and version."""
    playbook = site.make_playbook(f"Session of {slug}", ADVICE)
    person.follow_the_docs(slug, f"{site.url}/mcp")

    def report(results: list[str]) -> Json:
        return {
            "playbook_id": playbook,
            "task_description": TASK,
            "outcome": "success",
            "bullet_ids": ["str-00002"],
            "serving_id": structured(results[1])["serving_id"],
            "idempotency_key": f"session-{slug}",
        }

    script: list[Step] = [
        Call("list_playbooks", {}),
        Call("get_playbook", {"playbook_id": playbook}),
        Call("report_outcome", report),
        Call("report_outcome", report),
        Say("Done."),
    ]
    model, ran = run_agent(person, slug, script)
    assert ran.code == 0, ran
    rows = site.outcomes(playbook)
    assert len(rows) == 1, (rows, ran)
    row = rows[0]
    assert (row["bullet_ids"], row["version"], row["version_assumed"]) == (["str-00002"], 1, False)
    assert ADVICE[1] in model.everything_read()
    return f"one row by {row['client']}: cites str-00002, version 1, the repetition added none"


def run_agent(person: Person, slug: str, script: list[Step]) -> tuple[MockModel, Ran]:
    """A whole session with a model that plays the script."""
    with serve_model(script) as model:
        if slug == "claude-code":
            person.variables |= {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-mock"}
            tools = "Bash,mcp__ace,mcp__plugin_ace-playbook_ace"
            return model, person.run("claude", "-p", TASK, "--allowedTools", tools)
        person.variables |= {"MOCK_KEY": "mock"}
        provider = (
            f'{{name="mock",base_url="{model.url}/v1",wire_api="responses",env_key="MOCK_KEY"}}'
        )
        settings = ['model="mock"', 'model_provider="mock"', f"model_providers.mock={provider}"]
        options = [part for setting in settings for part in ("-c", setting)]
        trust = ["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]
        trust += ["--skip-git-repo-check"]
        return model, person.run("codex", "exec", *trust, *options, TASK)


def long_playbook_arrives(site: Site, person: Person) -> str:
    """60,000 characters of advice reach the model of Claude Code whole, not as a file."""
    words = "Say what you measured, how, and against which baseline; keep the raw figures. "
    advice = [f"Advice {number}: {words * 6}"[:480] for number in range(128)]
    playbook = site.make_playbook("Long", advice)
    size = len(site.ask("GET", f"/playbooks/{playbook}")["content"])
    assert size >= 60_000, size
    person.follow_the_docs("claude-code", f"{site.url}/mcp")
    script: list[Step] = [Call("get_playbook", {"playbook_id": playbook}), Say("Read.")]
    model, ran = run_agent(person, "claude-code", script)
    assert ran.code == 0, ran
    whole = model.everything_read()
    missing = [line for line in advice if line.strip() not in whole]
    assert not missing, (len(missing), ran)
    return f"{size:,} characters in {len(advice)} bullets, every one in what the model got"


def install_plugin(person: Person, slug: str) -> None:
    """As client/README.md says it."""
    program = "claude" if slug == "claude-code" else "codex"
    steps = [
        ("plugin", "marketplace", "add", str(ROOT)),
        ("plugin", "install" if program == "claude" else "add", "ace-playbook@ace-platform"),
    ]
    if program == "claude":
        steps.insert(0, ("plugin", "validate", "--strict", str(ROOT / "client")))
    for step in steps:
        ran = person.run(program, *step)
        assert ran.code == 0, (step, ran)


TRUTHS = {
    "tests fail": (["test_bad"], "failure", "test"),
    "tests pass": (["test_good"], "success", "test"),
    "tests fail, then pass": (["test_bad", "test_good"], "success", "test"),
    "no tests": ([], "partial", "self_report"),
}


def plugin_tells_the_truth(site: Site, person: Person, slug: str, truth: str) -> str:
    """The model knows nothing of playbooks: the hooks read before it and report after it."""
    tests, outcome, signal = TRUTHS[truth]
    name = f"{slug}, {truth}"
    playbook = site.make_playbook(name, ADVICE)
    person.variables |= {"ACE_URL": site.url, "ACE_PLAYBOOK": name.upper()}
    install_plugin(person, slug)
    (person.work / "bad.py").write_text(UNITTEST.format("False"))
    (person.work / "good.py").write_text(UNITTEST.format("True"))
    shell, argument = ("Bash", "command") if slug == "claude-code" else ("exec_command", "cmd")
    runs = [f"python3 -m unittest {test.removeprefix('test_')}" for test in tests]
    commands = [*runs, "git --version", "grep -rn nowhere-to-be-found ."]
    script: list[Step] = [Call(shell, {argument: command}) for command in commands]
    model, ran = run_agent(person, slug, [*script, Say("I used [str-00001].")])
    assert ran.code == 0, ran
    assert ADVICE[0] in "\n".join(texts_in(model.seen[0])), model.seen[0]
    rows = wait_for_rows(site, playbook)
    assert len(rows) == 1, (rows, ran)
    row = rows[0]
    seen = (row["task_description"], row["bullet_ids"], row["version_assumed"])
    assert seen == (TASK, ["str-00001"], False), row
    assert (row["outcome"], row["signal"]) == (outcome, signal), row
    assert "git --version" in row["reasoning_trace"], row
    return f"advice before the first word of the model; one report: {outcome}, {signal}"


def wait_for_rows(site: Site, playbook: str) -> list[Json]:
    """The outcomes, once the hooks' child has sent them: nobody waits for it."""
    limit = time.monotonic() + 20
    while not (rows := site.outcomes(playbook)) and time.monotonic() < limit:
        time.sleep(0.1)
    return rows


def plugin_survives_a_dead_server(site: Site, person: Person, slug: str) -> str:
    """Nothing listens at ACE_URL: the session ends as it would without the plugin."""
    person.variables |= {"ACE_URL": "http://127.0.0.1:9", "ACE_PLAYBOOK": "Any"}
    install_plugin(person, slug)
    started = time.monotonic()
    _, ran = run_agent(person, slug, [Say("All done.")])
    assert ran.code == 0, ran
    assert "All done." in ran.out, ran
    return f"exit code 0 after {time.monotonic() - started:.1f} s, the answer is there"


def page_flips(site: Site, person: Person) -> str:
    """A revoked key, then a good one: the page of the owner says both, within 3 s of the call."""
    site.log_in()
    person.follow_the_docs("claude-code", f"{site.url}/mcp")
    bad, good = site.make_key("lost"), site.make_key("laptop")
    site.revoke_key(bad)
    shown = f"with the key “{bad.name}”. This key is revoked"
    late = [round(watched(site, person, bad.token, shown), 2)]
    shown = f"with the key “{good.name}”"
    late.append(round(watched(site, person, good.token, shown), 2))
    return f"refused and why, then connected: {late} s after the program had ended"


def watched(site: Site, person: Person, token: str, expected: str) -> float:
    """Seconds from the end of a program's first call (its own end) to the page that says so."""
    person.variables["ACE_API_KEY"] = token
    assert expected not in site.arrivals()
    ended: list[float] = []

    def list_servers() -> None:
        person.run("claude", "mcp", "list")
        ended.append(time.monotonic())

    thread = threading.Thread(target=list_servers)
    thread.start()
    limit = time.monotonic() + 30
    while expected not in (shown := site.arrivals()):
        assert time.monotonic() < limit, shown
    flipped = time.monotonic()
    thread.join()
    assert flipped - ended[0] < 1, shown  # the page itself asks every 2 s
    return max(0.0, flipped - ended[0])

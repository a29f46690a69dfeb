"""The todo agent by itself: what it asks the model, what it takes from advice, what it reports."""

import ast
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.examples.conftest import StubPlatform
from tests.examples.scripted_llm import TodoLLM
from todo_agent import __main__ as program
from todo_agent.ace import AceError, Evolution, Playbook, Reading, Triggered, cited, make_report
from todo_agent.agent import INSTRUCTIONS, MOST_CALLS, Run, run_agent
from todo_agent.playing import Player
from todo_agent.tasks import KINDS, make_tasks
from todo_agent.todos import TodoStore
from todo_agent.tools import TOOLS, call_tool

EXAMPLES = Path(__file__).parents[2] / "examples"
OURS = {"todo_agent", "openai", "httpx2", "mcp", "ace_client"}
RULES = {
    "add": "Before adding a todo, search for its title: where an open one is there, add none.",
    "schedule": "Write a due date as YYYY-MM-DD.",
    "weekend": "When a day falls on a weekend, take the Friday before.",
    "complete": "Find a todo by search_todos and complete it by its id.",
    "sweep": "For all about a subject use search_todos; list_todos shows only the first ones.",
}


def advice(kinds: list[str]) -> str:
    numbered = [f"[str-{number:05}] {RULES[kind]}" for number, kind in enumerate(kinds, start=1)]
    return "\n".join(["## STRATEGIES & INSIGHTS", *numbered])


def failed_kinds(player: Player, playbook: Playbook | None) -> set[str]:
    played = [player.play(task, playbook) for task in make_tasks(5, seed=3)]
    return {row.kind for row in played if not row.passed}


def test_without_advice_every_kind_goes_wrong_and_with_all_of_it_none(player: Player) -> None:
    assert failed_kinds(player, None) == set(KINDS)
    assert failed_kinds(player, Playbook(StubPlatform(), "blanked")) == set(KINDS)
    assert failed_kinds(player, Playbook(StubPlatform(advice(list(RULES))), "p")) == set()


@pytest.mark.parametrize("missing", RULES)
def test_without_one_bullet_its_own_kind_goes_wrong_again(player: Player, missing: str) -> None:
    platform = StubPlatform(advice([kind for kind in RULES if kind != missing]))
    assert failed_kinds(player, Playbook(platform, "p")) == {missing}


def unaided(client: OpenAI, request: str, store: TodoStore) -> None:
    """An agent that never heard of ACE."""
    messages: list[Any] = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": request},
    ]
    while True:
        completion = client.chat.completions.create(
            model="scripted", messages=messages, tools=TOOLS
        )
        message = completion.choices[0].message
        if not message.tool_calls:
            return
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            assert call.type == "function"
            result = call_tool(store, call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def run_program(monkeypatch: pytest.MonkeyPatch, llm: TodoLLM, *arguments: str, **env: str) -> None:
    """The command in this process, as `python -m todo_agent` starts it."""
    for name, value in {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": llm.base_url, **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["todo_agent", *arguments, "--model", "scripted"])
    program.main()


def test_with_ace_off_the_model_is_asked_byte_for_byte_what_it_would_be_asked_without_us(
    llm: TodoLLM, client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    for task in make_tasks(20, seed=1):
        with closing(TodoStore(start=task.start)) as store:
            unaided(client, task.request, store)
    without = [(call.raw, without_host(call.headers)) for call in llm.requests]
    llm.requests.clear()
    ace = {"ACE_URL": "http://127.0.0.1:9", "ACE_API_KEY": "ace_live_x", "ACE_PLAYBOOK": "p"}
    run_program(monkeypatch, llm, "play", "--ace", "off", "--tasks", "20", "--seed", "1", **ace)
    assert [(call.raw, without_host(call.headers)) for call in llm.requests] == without
    assert len(without) > 40


def without_host(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "host"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_the_examples_import_nothing_of_the_platform() -> None:
    files = [*EXAMPLES.glob("todo_agent/*.py"), *EXAMPLES.glob("python_client/*.py")]
    used = {name.partition(".")[0] for path in files for name in imported(path)}
    assert used - set(sys.stdlib_module_names) <= OURS
    assert len(files) > 8


def test_the_agent_itself_knows_nothing_of_ace() -> None:
    for name in ("agent", "tools", "todos", "tasks"):
        used = imported(EXAMPLES / "todo_agent" / f"{name}.py")
        ours = {module for module in used if module.startswith("todo_agent")}
        assert ours <= {"todo_agent.todos", "todo_agent.tools"}, name


def test_a_report_names_the_advice_that_the_answer_names_if_it_was_there() -> None:
    reading = Reading("p", 1, "s", "[str-00001] a\n[mis-00002] b")
    run = Run(answer="Done.\nUsed: [mis-00002], [mis-00002], [str-00009]")
    assert cited(run, reading) == ["mis-00002"]


def test_a_report_keeps_the_platforms_limits_in_bytes() -> None:
    run = Run(answer="é" * 9_000, calls=["ü" * 9_000])
    report = make_report(
        request="ä" * 5_000, run=run, reading=Reading("p", 1, "s", ""),
        outcome="failure", notes="ß" * 3_000, signal="test", key="k",
    )  # fmt: skip
    assert len(report.task_description.encode()) <= 4_000
    assert 9_990 < len(report.reasoning_trace.encode()) <= 10_000
    assert len(report.notes.encode()) <= 2_000
    assert "[cut]" in report.reasoning_trace


def test_a_report_says_what_the_check_found_and_what_was_called(player: Player) -> None:
    platform = StubPlatform(advice(["schedule"]))
    task = make_tasks(3, seed=3)[2]
    played = player.play(task, Playbook(platform, "p"), key="k1")
    (report,) = platform.reports
    assert (report.outcome, report.signal) == ("failure", "test")
    assert (report.serving_id, report.idempotency_key) == ("serving", "k1")
    assert report.task_description == task.request
    assert played.differences[0] in report.notes
    assert report.reasoning_trace.startswith("schedule_todo(")


def test_a_failed_task_is_reviewed_only_when_asked_for(player: Player) -> None:
    platform, task = StubPlatform(), make_tasks(1, seed=3)[0]
    player.play(task, Playbook(platform, "p"))
    Player(player.client, "scripted", review=True).play(task, Playbook(platform, "p"))
    assert "Lesson: " not in platform.reports[0].notes
    assert "\nLesson: Before adding a todo" in platform.reports[1].notes


def test_a_model_that_never_ends_is_stopped(llm: TodoLLM, client: OpenAI) -> None:
    function = {"name": "list_todos", "arguments": "{}"}
    call = {"id": "c", "type": "function", "function": function}
    llm.say("", *[{"content": None, "tool_calls": [call]}] * MOST_CALLS)
    with closing(TodoStore()) as store:
        run = run_agent(client=client, model="m", store=store, request="Today is Monday, x.")
    assert run.answer == f"Stopped after {MOST_CALLS} calls of the model."
    assert len(run.calls) == MOST_CALLS


class Slow(StubPlatform):
    """One evolution runs already; then ours, which is asked for twice before it ends."""

    def __init__(self, end: str = "completed") -> None:
        super().__init__()
        self.states = ["completed", "running", end]
        self.triggers = [Triggered("running", False), Triggered("ours", True)]

    def trigger_evolution(self, playbook_id: str) -> Triggered:
        return self.triggers.pop(0)

    def evolution(self, job_id: str) -> Evolution:
        return Evolution(self.states.pop(0), 1, "the reason")


def test_evolving_waits_for_an_evolution_that_took_every_report() -> None:
    platform, pauses = Slow(), list[float]()
    Playbook(platform, "p", pause=pauses.append).evolve()
    assert (platform.triggers, platform.states, pauses) == ([], [], [1])


def test_an_evolution_that_fails_says_why() -> None:
    with pytest.raises(AceError, match="An evolution is failed: the reason"):
        Playbook(Slow("failed"), "p", pause=lambda _seconds: None).evolve()

"""How a long conversation becomes a trace of a bounded size."""

from evolution.models import SessionMessage
from evolution.sessions.recording import make_trace, task_of


def chat(count: int, size: int = 100) -> list[SessionMessage]:
    return [SessionMessage(role="user", content="The task")] + [
        SessionMessage(role="assistant", content=f"step {number} {'x' * size}")
        for number in range(count)
    ]


def test_a_short_conversation_is_taken_whole_without_the_system_message() -> None:
    lines = [SessionMessage(role="system", content="The playbook"), *chat(1, 1)]
    assert make_trace(lines, limit=1000) == "user: The task\n\nassistant: step 0 x"


def test_tool_calls_and_their_results_are_in_the_trace() -> None:
    call = {"id": "1", "name": "add", "arguments": '{"title": "Milk"}'}
    lines = [
        SessionMessage(role="assistant", content="", tool_calls=[call]),
        SessionMessage(role="tool", content="done", tool_name="add"),
    ]
    trace = make_trace(lines, limit=1000)
    assert trace == 'assistant calls add({"title": "Milk"})\n\ntool add: done'


def test_of_a_long_one_the_task_and_the_end_are_kept() -> None:
    trace = make_trace(chat(500), limit=2_000)
    assert len(trace.encode()) <= 2_000
    assert trace.startswith("user: The task\n\n[… 48")
    assert "step 499" in trace
    assert "step 100 " not in trace


def test_the_limit_is_of_bytes_and_no_letter_is_cut_in_two() -> None:
    trace = make_trace([SessionMessage(role="user", content="€" * 5_000)], limit=1_000)
    assert 990 < len(trace.encode()) <= 1_000


def test_the_task_is_the_first_thing_that_the_user_said() -> None:
    assert task_of(chat(3), limit=100) == "The task"
    assert task_of([], limit=100) == ""

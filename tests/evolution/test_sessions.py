"""What a session stores, refuses and becomes."""

import pytest
from django.conf import LazySettings

from accounts.keys.key_format import mint
from accounts.models import User
from accounts.services.personal_data import delete_account, personal_rows
from core.errors import Conflict, Invalid, NotFound, RateLimited, TooLarge
from core.models import AuditEntry
from core.security.scopes import Principal
from evolution.models import AgentSession, Outcome, SessionMessage
from evolution.outcomes.reporting import RecordedOutcome
from evolution.sessions.recording import (
    SessionReport,
    add_messages,
    close_session,
    delete_session,
    open_session,
)
from evolution.sessions.validation import NewMessage
from playbooks.models import Playbook
from playbooks.services.reading import read_playbook
from playbooks.services.settings import archive_playbook
from tests.factories import add_bullet, make_playbook, make_session

CHAT = (("system", "Use the playbook."), ("user", "Fix the build"), ("assistant", "[str-00001]"))


def close(session: AgentSession, by: User, **report: object) -> RecordedOutcome:
    told = SessionReport(**({"outcome": "success"} | report))  # type: ignore[arg-type]  # a bag of keyword arguments
    made = close_session(session=session, by=Principal.of(by), report=told)
    assert made is not None
    return made


def test_a_session_keeps_the_version_that_it_began_with(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook)
    add_bullet(playbook)
    outcome = close(session, alice, task_description="Fix it").outcome
    assert outcome is not None
    assert (outcome.version.number, outcome.version_assumed) == (1, False)


def test_an_old_version_is_opened_by_number_or_by_its_serving(
    playbook: Playbook, alice: User
) -> None:
    by = Principal.of(alice)
    reading = read_playbook(playbook=playbook, by=by)
    add_bullet(playbook)
    by_number = open_session(by=by, playbook=playbook, version=1)
    by_serving = open_session(by=by, playbook=playbook, serving_id=reading.serving_id)
    assert by_number.version == by_serving.version != playbook.current_version


def test_messages_stand_in_the_order_in_which_they_came(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook, *CHAT)
    add_messages(session=session, messages=[NewMessage("user", "And now?")])
    said = session.messages.values_list("position", "role")
    assert list(said) == [(0, "system"), (1, "user"), (2, "assistant"), (3, "user")]
    assert session.title == "Fix the build"


def test_an_answer_cites_the_bullets_that_its_text_names(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook, ("assistant", "By [mis-00003], not by [str-00099]."))
    assert session.messages.get().cited_bullets == ["mis-00003"]


def test_what_the_version_does_not_hold_cannot_be_cited(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook)
    with pytest.raises(Invalid, match="no str-00099"):
        add_messages(session=session, messages=[NewMessage("assistant", bullet_ids=["str-00099"])])
    assert session.messages.count() == 0


def test_credentials_are_blanked_in_texts_and_in_arguments(alice: User) -> None:
    key = mint().token
    call = {"id": "call_1", "name": "deploy", "arguments": f'{{"key": "{key}"}}'}
    session = make_session(alice, None, title=f"with {key}")
    add_messages(session=session, messages=[NewMessage("assistant", key, tool_calls=[call])])
    row = session.messages.get()
    assert key not in f"{session.title} {row.content} {row.tool_calls}"
    assert "[API key removed]" in row.tool_calls[0]["arguments"]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (NewMessage("oracle", "x"), "role"),
        (NewMessage("user", "a\x00b"), "content"),
        (NewMessage("user", "\ud800"), "content"),
        (NewMessage("user", "x", tokens=-1), "tokens"),
    ],
    ids=["role", "nul", "surrogate", "tokens"],
)
def test_what_is_no_message_is_refused_by_its_field(
    alice: User, message: NewMessage, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        add_messages(session=make_session(alice), messages=[message])
    assert list(refused.value.fields) == [field]


@pytest.mark.parametrize(
    "limit", ["MAX_SESSION_MESSAGES", "MAX_SESSION_BYTES", "MAX_MESSAGE_BYTES"]
)
def test_a_session_has_an_end(alice: User, settings: LazySettings, limit: str) -> None:
    setattr(settings, limit, 2)
    session = make_session(alice, None, ("user", "a"), ("user", "b"))
    with pytest.raises(TooLarge):
        add_messages(session=session, messages=[NewMessage("user", "abc")])
    assert SessionMessage.objects.count() == 2


def test_a_closed_session_takes_no_more_messages(alice: User) -> None:
    session = make_session(alice)
    close_session(session=session, by=Principal.of(alice))
    with pytest.raises(Conflict, match="closed"):
        add_messages(session=session, messages=[NewMessage("user", "One more")])


def test_closing_with_a_report_makes_an_outcome_of_the_messages(
    playbook: Playbook, alice: User
) -> None:
    session = make_session(alice, playbook, *CHAT)
    outcome = close(session, alice, notes="lesson: run the linter first").outcome
    assert outcome is not None
    assert outcome.task_description == "Fix the build"
    assert outcome.reasoning_trace == "user: Fix the build\n\nassistant: [str-00001]"
    assert (outcome.cited_bullets, outcome.agent_session) == (["str-00001"], session)


def test_closing_twice_with_one_report_makes_one_outcome(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook, *CHAT)
    first, again = close(session, alice), close(session, alice)
    assert (again.is_new, again.outcome) == (False, first.outcome)
    with pytest.raises(Conflict, match="already been reported"):
        close(session, alice, outcome="failure")


def test_a_report_may_follow_after_closing(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook, *CHAT)
    close_session(session=session, by=Principal.of(alice))
    assert close(session, alice).outcome == Outcome.objects.get()


def test_without_a_playbook_nothing_learns(alice: User) -> None:
    with pytest.raises(Conflict, match="no playbook"):
        close(make_session(alice, None, *CHAT[:2]), alice)


def test_a_starter_is_tried_and_never_taught(alice: User, db: None) -> None:
    starter = Playbook.objects.starters().first()
    starter = starter or Playbook.objects.create(name="A starter", source="starter")
    with pytest.raises(NotFound, match="clone a starter"):
        close(AgentSession.objects.create(user=alice, playbook=starter), alice)


def test_with_ace_off_the_version_of_the_report_is_assumed(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook, *CHAT[1:2], ace_enabled=False)
    outcome = close(session, alice).outcome
    assert outcome is not None
    assert outcome.version_assumed is True


def test_an_archived_playbook_opens_no_session_and_learns_from_none(
    playbook: Playbook, alice: User
) -> None:
    session = make_session(alice, playbook, *CHAT)
    archive_playbook(playbook=playbook, by=Principal.of(alice))
    with pytest.raises(Conflict, match="archived"):
        close(session, alice)
    playbook.refresh_from_db()
    with pytest.raises(Conflict, match="archived"):
        make_session(alice, playbook)
    assert AgentSession.objects.get().is_open


def test_a_serving_of_another_playbook_is_refused(playbook: Playbook, alice: User) -> None:
    other = make_playbook(alice, name="Another")
    reading = read_playbook(playbook=other, by=Principal.of(alice))
    with pytest.raises(Invalid):
        make_session(alice, playbook, serving_id=reading.serving_id)


def test_sessions_are_limited_by_the_hour(alice: User, settings: LazySettings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"open_session": "1/h"}
    make_session(alice)
    with pytest.raises(RateLimited):
        make_session(alice)


def test_deleting_keeps_the_outcome_and_says_so_in_the_log(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook, *CHAT)
    close(session, alice)
    delete_session(session=session, by=Principal.of(alice))
    assert (SessionMessage.objects.count(), Outcome.objects.count()) == (0, 1)
    assert AuditEntry.objects.filter(action="delete_session", owner_id=alice.pk).count() == 1


def test_a_session_is_in_the_export_and_goes_with_the_account(
    playbook: Playbook, alice: User, charlie: User
) -> None:
    kept = make_session(charlie, None, *CHAT[1:2])
    close(make_session(alice, playbook, *CHAT), alice)
    rows = {rows.model: list(rows) for rows in personal_rows(alice)}
    assert [len(rows[model]) for model in (AgentSession, SessionMessage)] == [1, 3]
    delete_account(user=alice)
    assert [row.pk for row in AgentSession.objects.all()] == [kept.pk]
    assert SessionMessage.objects.count() == 1

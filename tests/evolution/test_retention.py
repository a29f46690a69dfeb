"""Traces go after their time; what they taught stays."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.keys.jwt_tokens import issue_tokens
from accounts.models import RefreshToken, User
from accounts.services.cleanup import delete_expired_rows
from core.models import IdempotentResponse
from evolution.models import AgentSession, Outcome, SessionMessage
from evolution.outcomes.retention import blank_old_traces, blank_old_transcripts, purge_if_due
from playbooks.models import Playbook
from tests.factories import make_outcome, make_session

pytestmark = pytest.mark.postgres

LONG_AGO = timezone.now() - timedelta(days=181)


@pytest.fixture
def outcomes(playbook: Playbook, alice: User) -> dict[str, Outcome]:
    """One of each kind, all of them with a trace and a note."""
    texts = {"reasoning_trace": "the trace", "notes": "the note"}
    kinds = ("used long ago", "used today", "waiting", "set aside long ago")
    made = {kind: make_outcome(playbook, alice, **texts) for kind in kinds}
    change: dict[str, dict[str, Any]] = {
        "used long ago": {"processed_at": LONG_AGO},
        "used today": {"processed_at": timezone.now()},
        "waiting": {"created_at": LONG_AGO},
        "set aside long ago": {"set_aside_reason": "no answer", "updated_at": LONG_AGO},
    }
    for kind, fields in change.items():
        Outcome.objects.filter(pk=made[kind].pk).update(**fields)
    return made


def kept(outcomes: dict[str, Outcome]) -> list[str]:
    """The kinds whose trace and note are still there."""
    rows = {kind: Outcome.objects.get(pk=row.pk) for kind, row in outcomes.items()}
    return [kind for kind, row in rows.items() if row.reasoning_trace and row.notes]


def test_only_what_was_used_long_ago_is_blanked(outcomes: dict[str, Outcome]) -> None:
    assert blank_old_traces() == 2
    assert kept(outcomes) == ["used today", "waiting"]
    assert Outcome.objects.count() == 4


def test_nothing_is_blanked_where_the_operator_keeps_all(
    outcomes: dict[str, Outcome], settings: Settings
) -> None:
    settings.TRACE_RETENTION_DAYS = 0
    assert blank_old_traces() == 0
    assert len(kept(outcomes)) == 4


def test_the_worker_purges_once_an_hour(outcomes: dict[str, Outcome]) -> None:
    purge_if_due()
    Outcome.objects.update(reasoning_trace="again", processed_at=LONG_AGO)
    purge_if_due()
    assert Outcome.objects.filter(reasoning_trace="again").count() == 4


def test_answers_and_sign_ins_that_are_over_go(alice: User) -> None:
    issue_tokens(user=alice)
    IdempotentResponse.objects.create(user=alice, key="k", request_hash="h")
    assert delete_expired_rows() == 0
    RefreshToken.objects.update(expires_at=LONG_AGO)
    IdempotentResponse.objects.update(created_at=LONG_AGO)
    assert delete_expired_rows() == 2


def test_transcripts_go_after_their_time_and_the_chain_stays(
    playbook: Playbook, alice: User
) -> None:
    said = (("user", "the task"), ("assistant", "by [str-00001]"))
    old, idle, young = (make_session(alice, playbook, *said) for _ in range(3))
    AgentSession.objects.filter(pk=old.pk).update(closed_at=LONG_AGO)
    AgentSession.objects.filter(pk=idle.pk).update(updated_at=LONG_AGO)
    assert (blank_old_transcripts(), blank_old_transcripts()) == (2, 0)
    for gone in (old, idle):
        gone.refresh_from_db()
        assert (gone.title, gone.is_open, gone.blanked_at is None) == ("", False, False)
    kept = SessionMessage.objects.exclude(content="")
    assert set(kept.values_list("session_id", flat=True)) == {young.pk}
    assert old.messages.last().cited_bullets == ["str-00001"]  # type: ignore[union-attr]  # there is one


def test_transcripts_stay_where_the_operator_keeps_all(alice: User, settings: Settings) -> None:
    settings.TRACE_RETENTION_DAYS = 0
    AgentSession.objects.filter(pk=make_session(alice).pk).update(closed_at=LONG_AGO)
    assert blank_old_transcripts() == 0

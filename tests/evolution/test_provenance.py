"""From what was said to the bullet that it taught, and back."""

import pytest

from accounts.models import User
from billing.models import UsageRecord
from billing.usage.aggregation import sum_usage
from core.security.scopes import Principal
from evolution.evidence.provenance import contributing_sessions, session_provenance
from playbooks.models import Bullet, Playbook
from tests.evolution.session_data import LESSON, close_taught_session
from tests.factories import make_playbook, make_session

pytestmark = pytest.mark.postgres


def test_a_session_leads_to_the_bullet_that_it_taught(playbook: Playbook, alice: User) -> None:
    chain = session_provenance(close_taught_session(playbook, alice))
    assert chain.job is not None
    assert (chain.version, chain.job.status) == (chain.job.to_version, "completed")
    added = [delta for delta in chain.edits if delta.type == "ADD"]
    assert [delta.after["content"] for delta in added if delta.after] == [LESSON]


def test_the_reflectors_and_the_curators_words_are_linked_not_copied(
    playbook: Playbook, alice: User
) -> None:
    session = close_taught_session(playbook, alice)
    chain = session_provenance(session)
    assert chain.outcome is not None
    assert chain.reflection == chain.outcome.reflection_data != {}
    roles = set(session.messages.values_list("role", flat=True))
    assert not roles & {"reflector", "curator"}


def test_a_bullet_leads_back_to_the_session_that_taught_it(playbook: Playbook, alice: User) -> None:
    session = close_taught_session(playbook, alice)
    bullet = Bullet.objects.get(playbook=playbook, content=LESSON)
    by = Principal.of(alice)
    (found,) = contributing_sessions(playbook=playbook, bullet_id=bullet.public_id, by=by)
    assert (found.session, found.outcome, found.taught) == (session, session.outcome, True)


def test_a_bullet_leads_back_to_the_message_that_cites_it(playbook: Playbook, alice: User) -> None:
    close_taught_session(playbook, alice)
    by = Principal.of(alice)
    (found,) = contributing_sessions(playbook=playbook, bullet_id="str-00001", by=by)
    assert found.taught is False
    assert found.citations == [(2, 1)]


def test_others_and_keys_of_other_playbooks_see_no_session(
    playbook: Playbook, alice: User, charlie: User, staff: User
) -> None:
    close_taught_session(playbook, alice)
    other = make_playbook(alice, name="Other")
    narrow = Principal(alice, frozenset(), playbook_ids=frozenset({other.pk}))
    for by in (Principal.of(charlie), Principal.of(staff), narrow):
        assert contributing_sessions(playbook=playbook, bullet_id="str-00001", by=by) == []


def test_a_session_without_a_report_leads_nowhere(playbook: Playbook, alice: User) -> None:
    chain = session_provenance(make_session(alice, playbook))
    assert (chain.outcome, chain.job, chain.version, chain.edits) == (None, None, None, [])


def test_the_cost_of_a_session_is_that_of_its_calls(playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook)
    row = {"user": alice, "step": "generate", "attempt": 1, "operation": "generate"}
    for price in ("0.25", None):
        UsageRecord.objects.create(
            **row, session_id=session.pk, status="answered", cost_usd=price, total_tokens=5
        )
    UsageRecord.objects.create(**row, cost_usd="9", total_tokens=9)
    cost = sum_usage(session_id=session.pk)
    assert (cost.calls, cost.total_tokens) == (2, 10)
    assert (f"{cost.known_cost_usd:.2f}", cost.unpriced_calls) == ("0.25", 1)

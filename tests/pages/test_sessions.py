"""Pages of agents' sessions: what they say, and what can be done there."""

from django.test import Client
from django.utils import timezone

from accounts.models import User
from billing.models import UsageRecord
from evolution.models import AgentSession, Outcome
from evolution.sessions.recording import add_messages
from evolution.sessions.validation import NewMessage
from playbooks.models import Playbook
from tests.factories import make_session
from tests.harness.sample_account import World

SAID = (("user", "Fix the build"), ("assistant", "By [str-00001] it is green."))


def test_a_person_reports_how_a_session_ended(
    owner: Client, playbook: Playbook, alice: User
) -> None:
    session = make_session(alice, playbook, *SAID)
    form = {"outcome": "success", "notes": "lesson: Ask.", "signal": "human"}
    page = owner.post(f"{session.get_absolute_url()}/close", form, follow=True).content.decode()
    outcome = Outcome.objects.get()
    assert "1 pending for the next evolution" in page
    assert outcome.get_absolute_url() in page
    assert (outcome.signal, outcome.cited_bullets) == ("human", ["str-00001"])


def test_a_report_that_is_refused_says_why(owner: Client, playbook: Playbook, alice: User) -> None:
    session = make_session(alice, playbook, *SAID)
    answer = owner.post(f"{session.get_absolute_url()}/close", {"notes": "x", "signal": "human"})
    assert answer.status_code == 422
    assert AgentSession.objects.get().is_open


def test_without_a_playbook_no_report_is_offered(owner: Client, world: World) -> None:
    page = owner.get(world.chat.get_absolute_url()).content.decode()
    assert "Report outcome" not in page
    assert "without a playbook" in page


def test_a_session_is_deleted_after_a_question(owner: Client, alice: User) -> None:
    path = f"{make_session(alice).get_absolute_url()}/delete"
    assert "Delete this session?" in owner.get(path).content.decode()
    assert AgentSession.objects.count() == 1
    assert owner.post(path)["Location"] == "/sessions"
    assert AgentSession.objects.count() == 0


def test_a_stranger_neither_reports_nor_deletes(
    stranger: Client, admin_page: Client, playbook: Playbook, alice: User
) -> None:
    path = make_session(alice, playbook, *SAID).get_absolute_url()
    for client in (stranger, admin_page):
        for verb in ("close", "delete"):
            sent = {"outcome": "success", "signal": "human"}
            assert client.post(f"{path}/{verb}", sent).status_code == 404
    assert AgentSession.objects.get().is_open


def test_a_long_session_is_shown_in_parts_and_what_followed_on_the_last(
    owner: Client, playbook: Playbook, alice: User
) -> None:
    session = make_session(alice, playbook, *[("user", f"line {n}") for n in range(100)])
    path = session.get_absolute_url()
    first = owner.get(path).content.decode()
    assert first.count("<article") == 100
    assert "Page 1 of" not in first
    AgentSession.objects.filter(pk=session.pk).update(message_count=101)
    session.messages.create(position=100, role="assistant", content="the last line")
    assert "Page 1 of 2" in owner.get(path).content.decode()
    assert "the last line" in owner.get(f"{path}?page=2").content.decode()


def test_an_outcome_and_its_session_link_to_each_other(owner: Client, world: World) -> None:
    session, outcome = world.session.get_absolute_url(), world.outcome.get_absolute_url()
    assert f'href="{session}"' in owner.get(outcome).content.decode()
    assert f'href="{outcome}"' in owner.get(session).content.decode()


def test_a_bullet_loads_its_sessions_as_a_part(owner: Client, world: World) -> None:
    path = f"{world.playbook.get_absolute_url()}/bullets/str-00001/sessions"
    part = owner.get(path, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert f"{world.session.get_absolute_url()}?page=1#m4" in part


def test_a_session_without_a_question_is_reported_with_the_task_in_words(
    owner: Client, playbook: Playbook, alice: User
) -> None:
    address = f"{make_session(alice, playbook).get_absolute_url()}/close"
    form = {"outcome": "failure", "signal": "human"}
    refused = owner.post(address, form).content.decode()
    assert 'id="id_task_description_error"' in refused
    owner.post(address, form | {"task_description": "Fix the build"})
    assert Outcome.objects.get().task_description == "Fix the build"


def test_a_cost_below_a_hundredth_of_a_cent_is_not_shown_as_nothing(
    owner: Client, alice: User
) -> None:
    session = make_session(alice)
    row = {"user": alice, "step": "generate", "attempt": 1, "operation": "generate"}
    UsageRecord.objects.create(
        **row, session_id=session.pk, status="answered", cost_usd="0.000030", total_tokens=5
    )
    assert "$0.000030" in owner.get(session.get_absolute_url()).content.decode()


def test_a_session_whose_texts_are_gone_is_not_offered_to_be_reported(
    owner: Client, playbook: Playbook, alice: User
) -> None:
    session = make_session(alice, playbook, *SAID)
    address = session.get_absolute_url()
    assert "Report outcome" in owner.get(address).content.decode()
    AgentSession.objects.update(blanked_at=timezone.now())
    assert "Report outcome" not in owner.get(address).content.decode()


def test_what_a_tool_was_called_with_can_be_read_to_its_end(owner: Client, alice: User) -> None:
    call = {"id": "1", "name": "write", "arguments": f"{'x' * 5000}the end"}
    session = make_session(alice)
    add_messages(session=session, messages=[NewMessage("assistant", tool_calls=[call])])
    assert "the end" in owner.get(session.get_absolute_url()).content.decode()


def test_only_ratings_that_were_counted_are_shown_as_votes(owner: Client, world: World) -> None:
    outcome = world.outcome
    outcome.reflection_data["bullet_tags"].append({"id": "str-00999", "tag": "helpful"})
    outcome.save()
    for page in (world.session, outcome):
        html = owner.get(page.get_absolute_url()).content.decode()
        assert html.count("(not counted)") == 1 and "<dt>Votes</dt>" not in html

"""The playground's pages: what can be chosen, and what is shown."""

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from accounts.models import User
from billing.models import UsageRecord
from core.security.scopes import Principal
from evolution.models import AgentSession, Outcome
from evolution.playground import chat_lifecycle
from evolution.sessions.recording import add_messages
from evolution.sessions.validation import NewMessage
from playbooks.models import Playbook
from playbooks.services import creation as playbooks
from playbooks.services.settings import archive_playbook
from playbooks.starters.loader import load_starters
from tests.evolution.playground.test_chat_turn import ask
from tests.factories import make_playbook, make_user
from tests.harness.fake_llm.model import FakeLLM

START = "/playground"


@pytest.fixture
def owner(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def test_a_chat_starts_under_the_version_that_the_link_names(
    owner: Client, playbook: Playbook, llm: FakeLLM
) -> None:
    page = owner.get(f"{START}?playbook={playbook.pk}&version=1").content.decode()
    assert '<option value="1" selected>Version 1 (current)</option>' in page
    form = {"playbook": playbook.pk, "version": "1", "against": "bare", "model": "gpt-4o-mini"}
    made = owner.post(START, form)
    right, left = AgentSession.objects.order_by("ace_enabled")
    assert made["Location"] == reverse("evolution:playground_chat", args=[left.pk])
    assert left.pair_id == right.pair_id is not None
    assert (left.source, left.ace_enabled, right.ace_enabled) == ("playground", True, False)


def test_a_version_that_does_not_exist_is_refused(
    owner: Client, playbook: Playbook, llm: FakeLLM
) -> None:
    form = {"playbook": playbook.pk, "version": "7", "model": "gpt-4o-mini"}
    assert owner.post(START, form).status_code == 422
    assert not AgentSession.objects.exists()


def test_the_playbook_of_another_cannot_be_chosen(
    client: Client, playbook: Playbook, llm: FakeLLM
) -> None:
    charlie = make_user("charlie@example.org")
    make_playbook(charlie, name="His own")
    client.force_login(charlie)
    assert playbook.name not in client.get(f"{START}?playbook={playbook.pk}").content.decode()
    form = {"playbook": playbook.pk, "version": "1", "model": "gpt-4o-mini"}
    assert client.post(START, form).status_code == 404
    assert not AgentSession.objects.exists()


def test_a_playbook_archived_meanwhile_is_not_replaced_by_another(
    owner: Client, playbook: Playbook, alice: User, llm: FakeLLM
) -> None:
    make_playbook(alice, name="Another")
    archive_playbook(playbook=playbook, by=Principal.of(alice))
    form = {"playbook": playbook.pk, "version": "1", "model": "gpt-4o-mini"}
    answer = owner.post(START, form)
    assert (answer.status_code, "is archived" in answer.content.decode()) == (409, True)
    assert not AgentSession.objects.exists()


def test_a_version_without_bullets_is_not_called_a_chat_without_a_playbook(
    owner: Client, alice: User, llm: FakeLLM
) -> None:
    by = Principal.of(alice)
    empty = playbooks.create_playbook(by=by, name="Empty")
    chat = chat_lifecycle.open_chat(by=by, playbook=empty, model="gpt-4o-mini", bare=True)
    page = owner.get(f"{START}/{chat.pk}").content.decode()
    assert "Version 1 has no bullets yet" in page
    assert page.count("Without the playbook the model gets no instructions") == 1


def test_a_starter_can_be_asked_and_does_not_learn(owner: Client, llm: FakeLLM) -> None:
    load_starters()
    starter = Playbook.objects.starters().order_by("name")[0]
    owner.post(START, {"playbook": starter.pk, "version": "1", "model": "gpt-4o-mini"})
    chat = AgentSession.objects.get()
    ask(chat)
    page = owner.get(f"{START}/{chat.pk}").content.decode()
    assert "Starters don’t learn" in page
    assert owner.post(f"{START}/{chat.pk}/rate", {"outcome": "success"}).status_code == 404
    assert not Outcome.objects.exists()


def test_a_stored_answer_shows_what_it_cites_and_costs(
    owner: Client, chat: AgentSession, llm: FakeLLM
) -> None:
    llm.tell("Read [str-00001] ", "and [str-99999].")
    ask(chat)
    html = owner.get(f"{START}/{chat.pk}").content.decode()
    assert f'<a class="cite" href="#{chat.pk}-str-00001">str-00001</a>' in html
    assert "Not in this version: str-99999" in html
    assert f'<li id="{chat.pk}-str-00001" data-bullet="str-00001" class="cited">' in html
    assert "tokens, $0.0000" in html


def test_a_chat_and_its_session_lead_to_each_other(owner: Client, chat: AgentSession) -> None:
    page, session = f"{START}/{chat.pk}", chat.get_absolute_url()
    assert f'href="{session}"' in owner.get(page).content.decode()
    assert f'href="{page}"' in owner.get(session).content.decode()


def test_an_unknown_price_is_said(
    owner: Client, chat: AgentSession, llm: FakeLLM, settings: LazySettings
) -> None:
    settings.ACE_GENERATOR_MODEL = "own-model"
    AgentSession.objects.update(model="own-model")
    ask(AgentSession.objects.get())
    assert UsageRecord.objects.get().cost_usd is None
    assert "cost unknown" in owner.get(f"{START}/{chat.pk}").content.decode()


def test_a_script_gets_the_reason_of_a_refusal(
    owner: Client, chat: AgentSession, settings: LazySettings
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"ask_playground": "0/h"}
    refused = owner.post(f"{START}/{chat.pk}/stream", {"question": "Why?"})
    assert (refused.status_code, refused["Retry-After"].isdigit()) == (429, True)
    assert "Over the limit" in refused.json()["message"]


def test_nobody_is_sent_to_the_login_first(client: Client, chat: AgentSession) -> None:
    for part in ("stream", "rate"):
        response = client.post(f"{START}/{chat.pk}/{part}", {"question": "Why?"})
        assert response.status_code == 302
        assert response["Location"].startswith("/login?next=")


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({}, "Choose a rating."),
        ({"outcome": "splendid"}, "Choose a rating."),
        ({"outcome": "success", "notes": "n" * 3000}, "at most 2048 are allowed"),
        ({"outcome": "success"}, "There is no answer to rate yet."),
    ],
    ids=["nothing", "unknown", "too-long", "too-early"],
)
def test_a_judgement_that_is_refused_says_why(
    owner: Client, chat: AgentSession, form: dict[str, str], why: str
) -> None:
    if why != "There is no answer to rate yet.":
        add_messages(session=chat, messages=[NewMessage("assistant", "So.")])
    page = owner.post(f"{START}/{chat.pk}/rate", form)
    assert (page.status_code, why in page.content.decode()) == (422, True)
    assert AgentSession.objects.get().is_open


def test_beside_a_judged_side_it_is_said_who_still_answers(
    owner: Client, playbook: Playbook, alice: User, llm: FakeLLM
) -> None:
    by = Principal.of(alice)
    chat = chat_lifecycle.open_chat(by=by, playbook=playbook, model="gpt-4o-mini", bare=True)
    note = "only “Without the playbook” answers now"
    ask(*chat_lifecycle.chat_sessions(alice, chat.pk))
    assert note not in owner.get(f"{START}/{chat.pk}").content.decode()
    judged = owner.post(f"{START}/{chat.pk}/rate", {"outcome": "success"}, follow=True)
    assert note in judged.content.decode()


def test_a_long_chat_opens_with_its_latest_messages(
    owner: Client, chat: AgentSession, alice: User
) -> None:
    said = [NewMessage("user" if n % 2 else "assistant", f"line {n}.") for n in range(1, 101)]
    for _ in range(2):
        add_messages(session=chat, messages=said)
    page = owner.get(f"{START}/{chat.pk}").content.decode()
    assert page.count("line 7.") == page.count("line 8.") == 1
    assert "Earlier messages are in" in page

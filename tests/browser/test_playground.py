"""Chats in a browser: answers that arrive piece by piece, their bullets, and thumbs."""

from collections.abc import Iterator

import pytest
from django.conf import LazySettings, settings
from django.test import Client
from playwright.sync_api import BrowserContext, Page, expect

from accounts.models import User
from billing.models import UsageRecord
from core.security.scopes import Principal
from evolution.models import AgentSession, Outcome
from evolution.playground.chat_lifecycle import open_chat
from playbooks.models import Playbook
from tests.factories import make_playbook
from tests.harness.browser_page import BrowserPage
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.live_server import live_url as live_url
from tests.harness.waiting import wait_until

PIECES = ("Read it ", "first ", "[str-00001], ", "and [str-99999].")


@pytest.fixture
def llm(settings: LazySettings) -> Iterator[FakeLLM]:
    with FakeLLM() as fake:
        settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "sk-operator"
        settings.OPENAI_BASE_URL = fake.base_url
        yield fake


@pytest.fixture
def watch(page: Page, live_url: str) -> Iterator[BrowserPage]:
    """At uvicorn and the ASGI application, with its compression."""
    watching = BrowserPage(page, live_url)
    yield watching
    assert not watching.faults, "\n".join(watching.faults)


@pytest.fixture
def playbook(alice: User, context: BrowserContext, live_url: str) -> Playbook:
    """Of alice, who is logged in."""
    enter(context, live_url, alice)
    return make_playbook(alice)


def enter(context: BrowserContext, url: str, user: User) -> None:
    client = Client()
    client.force_login(user)
    cookie = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": url}])


def test_an_answer_is_painted_piece_by_piece(
    watch: BrowserPage, playbook: Playbook, llm: FakeLLM
) -> None:
    page, drip = watch.page, llm.drip()
    llm.tell(*PIECES)
    watch.open(f"/playground?playbook={playbook.pk}")
    page.get_by_role("button", name="Start chat").click()
    write(page, "Why is it red?")
    watch.look("empty-chat")
    page.get_by_role("button", name="Send").click()
    answer = page.locator(".answer")
    for count in range(1, 4):
        drip.let(1)
        expect(answer).to_have_text("".join(PIECES[:count]).strip())
    watch.look_each("answer-under-way")
    drip.free()
    expect(page.get_by_text("Not in this version: str-99999")).to_be_visible()
    expect(page.locator("[data-bullet=str-00001]")).to_have_class("cited")
    expect(page.locator("[data-bullet=str-00002]")).not_to_have_class("cited")
    watch.look_each("answered")


def test_two_sides_answer_side_by_side_and_one_of_them_is_judged(
    watch: BrowserPage, playbook: Playbook, llm: FakeLLM
) -> None:
    page = watch.page
    watch.open(f"/playground?playbook={playbook.pk}", axe=False)
    page.get_by_label("Side by side with").select_option("bare")
    page.get_by_role("button", name="Start chat").click()
    write(page, "Why is it red?")
    page.keyboard.press("Enter")
    expect(page.get_by_text("I was given no playbook")).to_be_visible()
    expect(page.get_by_text("I follow [str-00001]")).to_be_visible()
    watch.look_each("two-sides")
    page.get_by_label("What made the difference").fill("lesson: Ask for the log first.")
    page.get_by_role("button", name="Good").click()
    expect(page.get_by_role("link", name="View outcome")).to_be_visible()
    # Without motion: the toast that says so would still be fading in.
    watch.look_each("one-side-judged", [("light", 1280)])
    row = Outcome.objects.get()
    assert (row.status, row.signal, row.cited_bullets) == ("success", "human", ["str-00001"])
    assert (row.version.number, row.version_assumed) == (1, False)
    assert "Why is it red?" in row.reasoning_trace
    assert row.agent_session.source == AgentSession.Source.PLAYGROUND


def test_leaving_ends_the_call(watch: BrowserPage, playbook: Playbook, llm: FakeLLM) -> None:
    page, drip = watch.page, llm.drip()
    llm.tell(*PIECES)
    watch.open(f"/playground/{start(playbook)}", axe=False)
    write(page, "Why is it red?")
    page.get_by_role("button", name="Send").click()
    drip.let(2)
    expect(page.locator(".answer")).to_have_text("Read it first")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    wait_until(lambda: UsageRecord.objects.filter(metadata__error="cancelled").exists())
    wait_until(lambda: AgentSession.objects.get().message_count == 2)
    record = UsageRecord.objects.get()
    assert record.estimated and record.completion_tokens > 0
    page.reload()
    expect(page.get_by_text("Stopped before the end.")).to_be_visible()


def test_a_fault_gives_the_question_back(
    watch: BrowserPage, playbook: Playbook, llm: FakeLLM
) -> None:
    page = watch.page
    llm.fail("chat", status=401)
    watch.open(f"/playground/{start(playbook)}", axe=False)
    write(page, "Why is it red?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_have_text(
        "The provider rejected the API key. Set a valid one."
    )
    expect(page.get_by_label("Your question")).to_have_value("Why is it red?")
    watch.look("refused-by-the-provider")


def test_hostile_answers_stay_text(watch: BrowserPage, playbook: Playbook, llm: FakeLLM) -> None:
    page, hostile = watch.page, '<img src=x onerror="document.title=1"><b>bold</b>'
    llm.tell("Look: ", hostile)
    watch.open(f"/playground/{start(playbook)}", axe=False)
    write(page, hostile)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".answer")).to_contain_text(f"Look: {hostile}")
    expect(page.locator(".question")).to_contain_text(hostile)
    assert page.locator(".log img, .log b").count() == 0


def test_without_a_model_the_page_says_so(watch: BrowserPage, playbook: Playbook) -> None:
    watch.open("/playground")
    expect(watch.page.get_by_role("link", name="Add LLM key")).to_be_visible()
    watch.look("no-model")


def write(page: Page, question: str) -> None:
    """The question is in the field, and the script is there to send it."""
    expect(page.locator("form[data-playground=ready]")).to_be_visible()
    page.get_by_label("Your question").fill(question)


def start(playbook: Playbook) -> str:
    """The id of an open chat under the playbook."""
    assert playbook.owner is not None
    by = Principal.of(playbook.owner)
    return str(open_chat(by=by, playbook=playbook, model=settings.ACE_GENERATOR_MODEL).pk)

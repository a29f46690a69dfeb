"""The first steps: ticked off by what really happened, and gone when they are done."""

from collections.abc import Callable
from uuid import uuid4

from django.test import Client
from django.utils import timezone

from accounts.models import ApiKey, User
from evolution.models import EvolutionJob, Outcome
from mcp_bridge.models import ClientActivity
from playbooks.models import Playbook, Version
from playbooks.starters.loader import load_starters
from tests.factories import make_key, make_outcome, make_playbook

HTMX = {"HX-Request": "true"}


def steps(client: Client) -> str:
    state: str = client.get("/start").context["state"]
    return state


def make_job(user: User) -> None:
    EvolutionJob.objects.create(playbook=user.playbooks.get(), trigger="manual", status="completed")


def go_through(user: User) -> list[Callable[[], object]]:
    return [
        lambda: make_playbook(user),
        lambda: make_key(user),
        lambda: ApiKey.objects.update(last_used_at=timezone.now()),
        lambda: make_outcome(user.playbooks.get(), user),
        lambda: make_job(user),
    ]


def test_each_step_is_ticked_off_by_what_happened(owner: Client, alice: User) -> None:
    seen = [steps(owner)]
    for happen in go_through(alice):
        happen()
        seen.append(steps(owner))
    assert seen == ["-----", "x----", "xx---", "xxx--", "xxxx-", "xxxxx"]


def test_what_strangers_do_ticks_nothing_off(owner: Client, charlie: User) -> None:
    for happen in go_through(charlie):
        happen()
    assert steps(owner) == "-----"


def test_a_login_in_the_browser_stands_for_a_key(owner: Client, alice: User) -> None:
    now = timezone.now()
    ClientActivity.objects.create(user=alice, credential="login", accepted_at=now, seen_at=now)
    assert steps(owner) == "-xx--"


def test_a_refused_agent_is_not_connected(owner: Client, alice: User) -> None:
    now = timezone.now()
    ClientActivity.objects.create(user=alice, credential="login", refused_at=now, seen_at=now)
    assert steps(owner) == "-----"


def test_a_poll_without_news_is_empty_and_one_with_news_is_the_list(
    owner: Client, alice: User
) -> None:
    assert owner.get("/start?seen=-----", headers=HTMX).status_code == 204
    make_playbook(alice)
    part = owner.get("/start?seen=-----", headers=HTMX).content.decode()
    assert part.lstrip().startswith('<div id="live"')
    assert "seen=x----" in part


def test_when_all_is_done_the_page_asks_no_more_and_home_leads_on(
    owner: Client, alice: User
) -> None:
    for happen in go_through(alice):
        happen()
    page = owner.get("/start").content.decode()
    assert "All done: the first evolution has run" in page
    assert '<div id="live" class="stack">' in page
    assert owner.get("/")["Location"] == "/overview"


def test_at_the_end_it_leads_to_what_was_learned(owner: Client, alice: User) -> None:
    for happen in go_through(alice):
        happen()
    made = alice.playbooks.get().current_version
    assert made is not None
    made.number, made.reason, made.pk = made.number + 1, "evolution", uuid4()
    Version.objects.bulk_create([made])
    page = owner.get("/start").content.decode()
    assert f'/versions/{made.number}/diff">See what it learned' in page


def test_putting_it_away_is_kept_and_takes_it_from_the_menu(owner: Client, alice: User) -> None:
    assert 'href="/start"' in owner.get("/playbooks").content.decode()
    owner.post("/start/dismiss")
    alice.refresh_from_db()
    assert alice.settings["start"] == "dismissed"
    assert 'href="/start"' not in owner.get("/playbooks").content.decode()
    assert owner.get("/start").status_code == 200


def test_putting_it_away_takes_a_form(owner: Client, client: Client) -> None:
    assert owner.get("/start/dismiss").status_code == 405
    assert client.post("/start/dismiss")["Location"].startswith("/login")


def test_a_starter_is_cloned_and_a_key_made_from_the_list(owner: Client, alice: User) -> None:
    load_starters()
    starter = owner.get("/start").context["starters"][0]
    cloned = owner.post(f"/playbooks/{starter.pk}/clone", {"from": "start"})
    assert cloned["Location"] == "/start"
    sent = {"name": "my agent", "scopes": ["read", "write"], "days": "90"}
    assert owner.post("/keys", sent).status_code == 201
    assert steps(owner) == "xx---"


def test_the_snippets_name_the_variable_and_hold_no_key(owner: Client, alice: User) -> None:
    make_playbook(alice)
    key, token = make_key(alice)
    page = owner.get("/start").content.decode()
    assert "ACE_API_KEY" in page
    assert "http://testserver/mcp" in page
    assert token not in page and key.prefix not in page


def test_the_page_costs_the_same_however_much_there_is(
    owner: Client, alice: User, django_assert_num_queries: Callable[..., object]
) -> None:
    for number in range(3):
        make_outcome(make_playbook(alice, name=f"{number}"), alice)
    make_key(alice)
    assert (Playbook.objects.count(), Outcome.objects.count()) == (3, 3)
    # session, user, inbox, checklist, playbook
    with django_assert_num_queries(5):  # type: ignore[attr-defined]
        owner.get("/start")


def test_a_poll_after_the_session_has_ended_reloads_the_page(client: Client, db: None) -> None:
    answer = client.get("/start?seen=-----", headers=HTMX)
    assert (answer.status_code, answer["HX-Refresh"]) == (204, "true")
    assert client.get("/start").status_code == 302


def test_the_automatic_way_comes_first_and_a_lost_key_is_replaced(
    owner: Client, alice: User
) -> None:
    make_playbook(alice)
    make_key(alice)
    page = owner.get("/start").content.decode()
    assert page.index("ace connect --url http://testserver") < page.index("claude mcp add")
    lost = page.index("A secret is shown only once.")
    form = page.rindex("<form", 0, lost)
    assert 'action="/keys"' in page[form:lost]
    assert '<button class="small">Create a new key' in page[lost:]
    other = owner.get("/connect").content.decode()
    assert other.index(">Automatically</h2>") < other.index("<h2>Manually</h2>")

"""Staff's actions: the services do them, and the page says how many rows changed."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import ApiKey, User
from evolution.models import EvolutionJob
from tests.factories import make_key
from tests.harness.page_urls import ADMIN_MODELS
from tests.harness.sample_account import World


def run(admin_page: Client, model: str, action: str, *rows: object, **fields: str) -> str:
    """Do the action on the rows; the page that comes after."""
    sent = {"action": action, "_selected_action": [str(row.pk) for row in rows]}  # type: ignore[attr-defined]  # every row has a pk
    sent |= fields
    answer = admin_page.post(reverse(f"admin:{model}_changelist"), sent, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_staff_revokes_keys(admin_page: Client, alice: User) -> None:
    key, _ = make_key(alice)
    asked = run(admin_page, "accounts_apikey", "revoke", key)
    assert "Requests with these keys will be rejected" in asked
    assert ApiKey.objects.get().state == "active"
    done = run(admin_page, "accounts_apikey", "revoke", key, apply="Revoke", reason="leaked")
    assert "1 key revoked." in done
    assert ApiKey.objects.get().revoked_reason == "By staff: leaked"


def test_staff_retries_what_can_be_retried_and_sees_the_rest(
    admin_page: Client, world: World
) -> None:
    page = run(admin_page, "evolution_evolutionjob", "retry", world.failed, world.done)
    assert "1 evolution queued again" in page
    assert "only a failed or cancelled one can be retried" in page
    assert EvolutionJob.objects.get(pk=world.failed.pk).status == "queued"


def test_staff_cancels_evolutions(admin_page: Client, world: World) -> None:
    page = run(admin_page, "evolution_evolutionjob", "cancel", world.queued)
    assert "1 evolution cancelled" in page


def test_staff_archives_and_restores(admin_page: Client, world: World) -> None:
    rows = world.playbook, world.archived
    assert "1 playbook archived" in run(admin_page, "playbooks_playbook", "archive", *rows)
    assert "2 playbooks restored" in run(admin_page, "playbooks_playbook", "restore", *rows)


def test_machine_written_rows_cannot_be_changed(admin_page: Client, world: World) -> None:
    for row, name in ((world.outcome, "outcome"), (world.done, "evolutionjob")):
        model = f"evolution_{name}"
        page = admin_page.get(reverse(f"admin:{model}_change", args=[row.pk])).content.decode()
        assert 'name="_save"' not in page
        assert admin_page.get(reverse(f"admin:{model}_add")).status_code == 403


def test_a_key_page_shows_no_digest(admin_page: Client, alice: User) -> None:
    key, _ = make_key(alice)
    page = admin_page.get(reverse("admin:accounts_apikey_change", args=[key.pk])).content.decode()
    assert key.digest not in page


def test_staff_adds_a_person_by_e_mail(admin_page: Client) -> None:
    password = "a long and unusual phrase"
    sent = {"email": "New@Example.org", "usable_password": "true"}
    sent |= {"password1": password, "password2": password}
    admin_page.post(reverse("admin:accounts_user_add"), sent)
    assert User.objects.get(email="new@example.org").check_password(password)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_search_box_answers(admin_page: Client, world: World, step: int) -> None:
    """Each to one of the words, in turn; at night to all."""
    searched = ("alice", "nonsense", str(world.playbook.pk))
    for number, name in enumerate(ADMIN_MODELS):
        for words in searched[number % step :: step]:
            assert admin_page.get(f"/admin/{name}/?q={words}").status_code == 200, (name, words)

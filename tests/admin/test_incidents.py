"""Whatever goes wrong, staff can deal with it from the admin; nobody else can."""

from datetime import timedelta

from django.test import Client
from django.utils import timezone

from accounts.models import User
from config.admin_site.dashboard import ALERT, OK, provider_tile
from config.observability.metrics_collectors import collect_metrics
from core.models import AuditEntry
from evolution.models import EvolutionJob, Outcome, ProviderCircuit
from playbooks.models import Playbook
from tests.factories import make_key, make_outcome
from tests.harness.admin_client import AdminClient, is_denied, refresh
from tests.harness.rest_client import Rest
from tests.harness.sample_account import World


def test_a_provider_that_was_mended_is_called_at_once(desk: AdminClient, world: World) -> None:
    later = timezone.now() + timedelta(hours=1)
    line = ProviderCircuit.objects.create(
        key="k", label="api.example", code="key_refused", open_until=later
    )
    EvolutionJob.objects.filter(pk=world.queued.pk).update(wait_key="k")
    assert "The provider is down." in desk.rows("evolution_evolutionjob", state="waiting")
    assert "1 provider circuit is reset." in desk.act("reset_circuits", line)
    assert refresh(line).open_until is None
    assert refresh(world.queued).next_attempt_at is None


def test_a_users_wrong_key_is_no_alarm_for_staff(desk: AdminClient) -> None:
    later = timezone.now() + timedelta(hours=1)
    ProviderCircuit.objects.create(key="u", label="u", is_user_key=True, open_until=later)
    ProviderCircuit.objects.create(key="p", label="past", pause=30, open_until=timezone.now())
    tile = provider_tile(timezone.now())
    assert (tile.value, tile.note, tile.tone) == ("0", "and 1 of users' own keys", OK)
    ProviderCircuit.objects.create(key="o", label="operator's", open_until=later)
    tile = provider_tile(timezone.now())
    assert (tile.value, tile.tone) == ("1", ALERT)
    found = [s for f in collect_metrics() for s in f.samples if "circuit_open" in s.name]
    assert sorted(s.labels["key"] for s in found) == ["operator", "user"]
    assert "operator&#x27;s" in desk.rows("evolution_providercircuit", state="open")


def test_a_stuck_job_is_found_cancelled_and_tried_again(desk: AdminClient, world: World) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    stuck = EvolutionJob.objects.filter(pk=world.queued.pk)
    stuck.update(status="running", lease_expires_at=long_ago, next_attempt_at=None)
    assert str(stuck[0].pk) in desk.rows("evolution_evolutionjob", state="stuck")
    assert "1 evolution cancelled." in desk.act("cancel", stuck[0])
    assert "1 evolution queued again." in desk.act("retry", stuck[0])
    assert stuck[0].status == "queued"


def test_a_lost_key_is_revoked_with_a_reason(desk: AdminClient, alice: User) -> None:
    key, token = make_key(alice)
    page = desk.act("revoke", key, apply="Revoke", reason="found in a repository")
    assert "1 key revoked." in page
    assert Rest(token).get("/playbooks").status_code == 401
    assert refresh(key).revoked_reason == "By staff: found in a repository"
    assert AuditEntry.objects.get(action="revoke_api_key").actor == "staff@example.org"


def test_an_abusive_user_is_shut_out_and_let_in_again(
    desk: AdminClient, owner: Client, alice: User
) -> None:
    _, token = make_key(alice)
    access = Rest.of(alice)
    assert "1 user disabled." in desk.act("disable", alice, apply="Disable", reason="sends spam")
    assert owner.get("/playbooks").status_code == 302
    assert {Rest(token).get("/playbooks").status_code, access.get("/auth/me").status_code} == {401}
    assert "1 user enabled." in desk.act("enable", alice)
    assert Rest(token).get("/playbooks").status_code == 200
    assert access.get("/auth/me").status_code == 401


def test_a_bad_version_is_rolled_back_after_a_look(desk: AdminClient, world: World) -> None:
    first = world.playbook.versions.get(number=1)
    assert "mis-00003 is restored" in desk.act("roll_back", first)
    assert refresh(world.playbook).current_version.number == 3
    done = desk.act("roll_back", first, apply="Roll back")
    assert "Version 4 of Fixing tests has the bullets of version 1." in done
    assert "mis-00003" in refresh(world.playbook).current_version.text


def test_an_outcome_that_failed_too_often_is_redriven(desk: AdminClient, world: World) -> None:
    outcome = make_outcome(world.playbook, world.owner)
    Outcome.objects.filter(pk=outcome.pk).update(set_aside_reason="refused")
    assert str(outcome.pk) in desk.rows("evolution_outcome", state="set_aside")
    assert "1 outcome is pending again." in desk.act("redrive", outcome)
    assert refresh(outcome).set_aside_reason == ""


def test_what_a_bad_outcome_taught_is_taken_back_after_a_look(
    desk: AdminClient, world: World
) -> None:
    version = refresh(world.playbook).current_version.number
    preview = desk.act("take_back", world.outcome)
    assert "votes removed: 1" in preview
    assert refresh(world.playbook).current_version.number == version
    done = desk.act("take_back", world.outcome, apply="Revert")
    assert "retired " in done
    assert refresh(world.playbook).current_version.number == version + 1


def test_an_unusable_evolution_list_stays_read_only(desk: AdminClient, world: World) -> None:
    page = desk.row(world.failed)
    assert "The provider rejected the API key." in page
    assert 'name="_save"' not in page


def test_owner_and_stranger_get_no_further(owner: Client, stranger: Client, world: World) -> None:
    one, starter = world.playbook.pk, world.starter.pk
    addresses = [
        "/admin/",
        "/admin/operations/",
        f"/admin/playbooks/playbook/{one}/change/",
        f"/admin/playbooks/playbook/{starter}/edit/",
        *(f"/admin/evolution/{model}/" for model in ("evolutionjob", "outcome", "providerline")),
        *(f"/admin/accounts/{model}/export/" for model in ("user", "auditentry")),
    ]
    assert is_denied(owner, *addresses)
    assert is_denied(stranger, *addresses)
    assert Playbook.objects.get(pk=one).current_version == world.playbook.current_version


def test_the_services_say_why_they_refuse(desk: AdminClient, world: World) -> None:
    assert "already completed" in desk.act("cancel", world.done)
    assert "No outcome here is set aside" in desk.act("redrive", world.failed)
    assert "in progress" in desk.act("redrive", world.queued)

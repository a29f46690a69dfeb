"""Incidents are opened once, mailed once, and closed when the fault has been gone for a while."""

from datetime import timedelta

import pytest
from django.core import mail
from django.core.cache import cache
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User, WebhookDelivery, WebhookEndpoint
from billing.models import StripeEvent, UsageRecord
from evolution.models import EvolutionJob, Incident, ProviderCircuit
from evolution.worker.sweep import find_faults, keep_house, watch_incidents
from tests.factories import make_playbook
from tests.harness.trials import harm, on_trial

Kind = Incident.Kind


def watch() -> int:
    cache.delete("watch_incidents")
    return watch_incidents()


def open_circuit() -> ProviderCircuit:
    later = timezone.now() + timedelta(minutes=5)
    return ProviderCircuit.objects.create(
        key="k", label="api.example", code="provider_down", open_until=later
    )


def test_a_fault_is_mailed_once_and_closed_after_a_while(staff: User, alice: User) -> None:
    circuit = open_circuit()
    assert (watch(), watch()) == (1, 0)
    incident = Incident.objects.get()
    assert (incident.kind, incident.closed_at) == (Kind.PROVIDER_DOWN, None)
    assert [message.to for message in mail.outbox] == [[staff.email]]
    assert "api.example are paused: provider_down" in mail.outbox[0].body
    circuit.delete()
    watch()
    assert Incident.objects.get().closed_at is None
    Incident.objects.update(last_seen_at=timezone.now() - timedelta(minutes=16))
    watch()
    assert Incident.objects.get().closed_at is not None
    open_circuit()
    assert watch() == 1
    assert Incident.objects.count() == 2


def test_it_looks_once_a_minute(staff: User) -> None:
    open_circuit()
    assert (watch(), watch_incidents()) == (1, 0)


def test_a_users_own_key_and_a_calm_platform_are_no_incident(staff: User) -> None:
    ProviderCircuit.objects.create(
        key="u", is_user_key=True, open_until=timezone.now() + timedelta(hours=1)
    )
    assert watch() == 0


def test_failed_and_rejected_webhooks_are_an_incident_each(db: None) -> None:
    for number, result in enumerate(("failed", "failed", "rejected", "processed", "ignored")):
        StripeEvent.objects.create(event_id=f"evt_{number}", result=result)
    assert [(fault.kind, fault.text) for fault in find_faults(timezone.now())] == [
        (Kind.WEBHOOKS_FAILED, "Stripe's events within a day: 2 failed; Stripe sends it again."),
        (Kind.WEBHOOKS_FAILED, "Stripe's events within a day: 1 rejected: bad signature."),
    ]


def test_a_jump_of_spending_goes_to_a_superusers_webhook_too(
    staff: User, alice: User, settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://ace.example"
    WebhookEndpoint.objects.create(user=staff, url="https://hooks.example/ace")
    now = timezone.now()
    for back, cost in ((1, "2.10"), (0, "0.90")):
        call = {"step": "curate", "operation": "curate", "status": "answered", "model": "m"}
        UsageRecord.objects.create(
            **call, user=alice, attempt=1, cost_usd=cost, created_at=now - timedelta(days=back)
        )
    assert watch() == 0  # three times the mean of the week, but under a dollar
    UsageRecord.objects.filter(cost_usd="0.90").update(cost_usd="1.20")
    assert watch() == 1
    told = WebhookDelivery.objects.get()
    assert (told.event, told.endpoint.user) == ("incident.opened", staff)
    assert told.message["data"]["kind"] == Kind.SPEND_JUMPED
    incident = f"/admin/evolution/incident/{Incident.objects.get().pk}/change/"
    assert told.message["data"]["link"] == f"https://ace.example{incident}"
    assert "$1.20 was spent" in mail.outbox[0].body


def test_a_version_that_was_taken_back_is_an_incident(staff: User, alice: User) -> None:
    playbook = on_trial(alice)
    assert watch() == 0
    trial = harm(playbook, alice)
    cache.delete("watch_incidents")
    assert keep_house()["incidents"] == 1
    incident = Incident.objects.get()
    assert (incident.kind, incident.key) == (Kind.VERSION_TAKEN_BACK, str(trial.pk))
    (told,) = [message for message in mail.outbox if message.to == [staff.email]]
    assert f"playbook {playbook.pk} was reverted" in told.body


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"status": "failed", "error_code": "poison"}, Kind.EVOLUTIONS_FAILED),
        ({"status": "queued"}, Kind.QUEUE_OLD),
        ({"status": "running"}, Kind.JOBS_STUCK),
    ],
)
def test_each_fault_of_a_job_is_found(fields: dict[str, str], kind: str, alice: User) -> None:
    job = EvolutionJob.objects.create(playbook=make_playbook(alice), trigger="manual")
    now = timezone.now()
    late = now - timedelta(minutes=20)
    when = {"completed_at": now} if "error_code" in fields else {"created_at": late}
    when |= {"lease_expires_at": late - timedelta(hours=1)} if kind == Kind.JOBS_STUCK else {}
    EvolutionJob.objects.filter(pk=job.pk).update(**fields, **when)
    assert [fault.kind for fault in find_faults(now)] == [kind]

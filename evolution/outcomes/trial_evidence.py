"""Reports as evidence of a trial, and the traffic that a trial needs."""

from django.conf import settings
from django.db.models import BooleanField, CharField, Exists, ExpressionWrapper, Q

from core.clock import database_now
from core.sql.compiled_queries import CompiledQuery, Param, uuid_param
from evolution.models import Outcome
from playbooks.models import Playbook, Trial
from playbooks.trials.lifecycle import MAX_AGE, count_outcome, recount_outcomes

UNIT = Param("unit", CharField())
RUNNING_TRIAL = CompiledQuery(
    lambda: Trial.objects.filter(pk=uuid_param("trial"), status="running").annotate(
        is_counted=ExpressionWrapper(
            Q(Exists(Outcome.objects.filter(trial=uuid_param("trial"), unit=UNIT))), BooleanField()
        )
    )
)


def count_in_trial(report: Outcome, playbook: Playbook) -> None:
    """Count an unsaved report in the trial that it was served by, in at most two queries more.

    In the report's transaction, with the playbook locked. Nothing counts after the end of the
    trial, and one reading counts once; such a report is no evidence.
    """
    if report.trial_id is None:
        return
    trial = RUNNING_TRIAL.first(trial=report.trial_id, unit=report.unit)
    if trial is None or trial.is_counted:  # type: ignore[attr-defined]  # annotated
        report.trial, report.unit, report.arm = None, "", ""
        return
    count_outcome(
        trial,
        playbook=playbook,
        arm=report.arm,
        success=report.status == Outcome.Status.SUCCESS,
        client=report.client,
    )
    report.trial_position = trial.tally.tasks


def recount_in_trial(outcome: Outcome, playbook: Playbook) -> None:
    """Count the arms of the outcome's trial anew while it runs: each task once, as corrected."""
    trial = outcome.trial
    if trial is None or not trial.is_running:
        return
    rows = Outcome.objects.filter(trial=trial).order_by("trial_position")
    counted = rows.values_list("arm", "status", "client")
    outcomes = [(arm, status == Outcome.Status.SUCCESS, client) for arm, status, client in counted]
    recount_outcomes(trial, playbook=playbook, outcomes=outcomes)


def recent_tasks(playbook: Playbook, *, most: int) -> int:
    """Outcomes of the time that a trial lasts at most that say what they read; up to `most`."""
    recent = Outcome.objects.filter(
        playbook=playbook,
        version_assumed=False,
        job__training=None,
        created_at__gte=database_now() - MAX_AGE,
    )
    return len(recent.values_list("pk", flat=True)[:most])


def has_traffic(playbook: Playbook) -> bool:
    """Whether there are enough recent tasks for a trial to find something."""
    least: int = settings.TRIAL_MIN_TRAFFIC
    return recent_tasks(playbook, most=least) == least

"""After a campaign: let the work end, then look whether anything was lost or happened twice."""

import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models import Count, F, Max

from billing.models import UsageRecord
from core.clock import database_now
from core.errors import AceError
from evolution.jobs.lifecycle import trigger_evolution
from evolution.jobs.verification import Problem, verify_database
from evolution.models import EvolutionJob, Outcome
from evolution.worker import sweep
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook, Vote
from tests.harness.fault_injection.world import CITED, owner

DRAIN_SECONDS = 120.0
PAUSE = threading.Event()


@dataclass
class Verdict:
    """What was counted, and what must not be there."""

    figures: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def check(self, holds: bool, sentence: str) -> None:
        if not holds:
            self.wrong.append(sentence)


def drain() -> bool:
    """Run until no job is active and no outcome waits; False when that does not happen."""
    until = time.monotonic() + DRAIN_SECONDS
    while time.monotonic() < until:
        sweep.sweep()
        now = database_now()
        active = EvolutionJob.objects.active()
        for job in active.filter(status="queued"):
            EvolutionJob.objects.filter(pk=job.pk, next_attempt_at__gt=now).update(
                next_attempt_at=None
            )
            run_evolution(str(job.pk))
        waiting = Outcome.objects.pending().values_list("playbook", flat=True).distinct()
        for playbook in Playbook.objects.filter(pk__in=waiting):
            try:
                trigger_evolution(playbook=playbook, by=owner())
            except AceError:
                continue
        if not active.exists() and not Outcome.objects.pending().exists():
            return True
        if active.filter(status="running").exists():
            PAUSE.wait(0.2)
    return False


def judge(log: Path, served: dict[str, int] | None) -> Verdict:
    """The verdict on everything that the log and the database say."""
    verdict = Verdict()
    lines = log.read_text().splitlines() if log.exists() else []
    verdict.check(drain(), "work does not come to an end: a job or an outcome is stuck")
    _judge_log(verdict, lines)
    _judge_outcomes(verdict, lines)
    problems = [each for each in verify_database() if isinstance(each, Problem)]
    found = Counter(problem.code for problem in problems)
    verdict.figures["problems of verify"] = sum(found.values())
    verdict.check(not problems, f"verify: {dict(found)}: {[p.sentence for p in problems[:3]]}")
    if served is not None:
        _judge_calls(verdict, lines, served)
    return verdict


def _judge_log(verdict: Verdict, lines: list[str]) -> None:
    late = [float(line.split()[1]) for line in lines if line.startswith("takeover ")]
    stale = sum(line == "resumed STALE" for line in lines)
    errors = [line for line in lines if line.startswith("error ")]
    reached = {_point(line) for line in lines} - {""}
    missed = Counter(line[7:] for line in lines if line.startswith("missed "))
    verdict.figures |= {
        "kills": sum(line.startswith("kill ") for line in lines),
        "pauses": sum(line.startswith("pause ") for line in lines),
        "missed": missed.total(),
        "never reached": {name: n for name, n in missed.items() if name not in reached},
        "points reached": len(reached),
        "resumed": dict(Counter(line[8:] for line in lines if line.startswith("resumed "))),
        "retried": dict(Counter(line[6:] for line in lines if line.startswith("retry "))),
        "healthy runs": dict(Counter(line[8:] for line in lines if line.startswith("healthy "))),
        "takeovers": len(late),
        "latest takeover after the lease, s": max(late, default=0),
    }
    verdict.check(not stale, f"{stale} workers published after they had lost their job")
    verdict.check(max(late, default=0) <= 10, "a takeover came more than 10 s after the lease")
    verdict.check(not errors, f"{len(errors)} children failed: {errors[:1]}")


def _point(line: str) -> str:
    match = re.match(r"(?:kill \d+ \d+|pause) (.+)", line)
    return match.group(1) if match else ""


def _judge_outcomes(verdict: Verdict, lines: list[str]) -> None:
    acked = {line.split()[1] for line in lines if line.startswith("ack ")}
    stored = {str(pk) for pk in Outcome.objects.values_list("pk", flat=True)}
    processed = Outcome.objects.exclude(processed_at=None)
    votes = Vote.objects.filter(bullet__public_id=CITED, source="reflector")
    # The task names the key: this finds out whatever became of the key itself.
    twice = Outcome.objects.values("playbook", "task_description").annotate(n=Count("pk"))
    verdict.figures |= {
        "outcomes": len(stored),
        "acknowledged": len(acked),
        "processed": processed.count(),
        "votes": votes.count(),
        "versions": sum(p.versions.count() for p in Playbook.objects.all()),
    }
    verdict.check(acked <= stored, f"{len(acked - stored)} acknowledged outcomes are not stored")
    verdict.check(processed.count() == len(stored), "an outcome was lost: it is not processed")
    verdict.check(not twice.filter(n__gt=1).exists(), "one idempotency key made two outcomes")
    # Each success cites the same bullet, so each processed outcome is one vote and one count.
    verdict.check(votes.count() == processed.count(), "votes and processed outcomes differ")
    for playbook in Playbook.objects.all():
        bullet = playbook.bullets.get(public_id=CITED)
        mine = processed.filter(playbook=playbook).count()
        verdict.check(
            bullet.helpful == 2 + mine, f"{playbook}: {bullet.helpful - 2} votes, {mine} outcomes"
        )
        newest = playbook.versions.aggregate(n=Count("pk"), last=Max("number"))
        verdict.check(newest["n"] == newest["last"], f"{playbook}: versions are not consecutive")


def _judge_calls(verdict: Verdict, lines: list[str], served: dict[str, int]) -> None:
    """Metered are the calls that were made, and those that were killed at the door."""
    kills = [line.split(" ", 3) for line in lines if line.startswith("kill ")]
    rows = UsageRecord.objects.exclude(operation="judge")
    steps = rows.values("job_id", "step").distinct().count()
    retried = sum(line.startswith("retry ") for line in lines)
    unsent = sum(int(at_the_door) for _, _, at_the_door, _ in kills)
    between = sum(int(under_way) > 0 for _, under_way, *_ in kills)
    under_way = sum(int(under_way) for _, under_way, *_ in kills)
    calls = served.get("reflector", 0) + served.get("curator", 0)
    extra = rows.count() - steps
    again = rows.filter(operation="curate").values("job_id").annotate(n=Count("pk"))
    recurated = sum(row["n"] - 1 for row in again if row["n"] > 1)
    verdict.figures |= {
        "calls served": calls,
        "calls metered": rows.count(),
        "on record and not sent when killed": unsent,
        "kills between a request and its checkpoint": between,
        "calls under way at those": under_way,
        "extra calls": extra,
        "of these, curations": recurated,
        "evolutions retried from the start": retried,
    }
    verdict.check(calls <= rows.count(), "a call was served that is not metered")
    verdict.check(rows.count() - calls <= unsent, "a call is metered that was never made")
    # A retried evolution binds anew: its curation is another question. And a machine so busy that
    # a healthy worker loses its lease pays twice for what that one was at: then it is not judged.
    starved = sum(line.startswith(("healthy overtaken", "healthy no database")) for line in lines)
    verdict.figures["healthy workers that lost their lease"] = starved
    verdict.check(
        starved > 0 or extra <= between + retried,
        f"{extra} extra calls, {between} kills could cause",
    )
    verdict.check(
        starved > 0 or extra <= under_way + retried,
        f"{extra} extra calls, {under_way} were under way when their process was killed",
    )
    verdict.figures["unpriced or open"] = rows.filter(status="started").count()
    doubled = rows.values("job_id", "step").annotate(n=Count("pk"), last=Max("attempt"))
    verdict.check(not doubled.exclude(n=F("last")).exists(), "attempts have gaps")

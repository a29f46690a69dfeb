"""A provider that is down for a minute: every report is taken, and all is learned soon after."""

import threading
import time

from tests.harness.fake_llm.model import ALWAYS
from tests.harness.fault_injection import runner
from tests.harness.fault_injection.agents import Reporters, Rest, platform_with_model, timed

PLAYBOOKS, PER_SECOND = 20, 20
OUTAGE, WITHIN = 60.0, 120.0


def run(options: runner.Options) -> int:
    outage = float(options.count or OUTAGE)
    with platform_with_model() as (platform, llm):
        rest = Rest(platform)
        playbooks = [rest.make_playbook(f"Outage {number}") for number in range(PLAYBOOKS)]
        for role in ("reflector", "curator", "judge"):
            llm.fail(role, status=503, times=ALWAYS)
        with Reporters(platform, playbooks, per_second=PER_SECOND) as reporters:
            began = time.monotonic()
            threading.Event().wait(outage)
            rate = len(reporters.acknowledged) / (time.monotonic() - began)
        during = llm.count()
        with llm.lock:
            llm._faults.clear()
        drained = timed(lambda: rest.is_drained(playbooks), seconds=10 * WITHIN)
        calls = llm.count()
    figures = {
        "reports acknowledged": len(reporters.acknowledged),
        "reports a second": round(rate, 1),
        "slowest report, s": round(reporters.slowest, 2),
        "reports not answered 2xx at the first try": reporters.first_tries_refused,
        "calls during the outage": during,
        "calls in all": calls,
        "seconds until all was learned": drained,
    }
    wrong = [] if drained <= WITHIN else [f"drained after {drained} s"]
    if reporters.first_tries_refused:
        wrong.append("a report was refused")
    if rate < 0.9 * PER_SECOND:
        wrong.append(f"this machine managed only {rate:.1f} reports a second")
    return runner.report(options, figures, wrong)

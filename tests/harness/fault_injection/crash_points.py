"""The crash points, and how a test's child is made to stop at one.

Nothing in the product knows of them: a child replaces a function by one that stops the process
before or after the call. `kind` says what the child has to do to come there.
"""

import importlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Condition = Callable[..., bool]


@dataclass(frozen=True)
class Point:
    """`target` is `module:function` or `module:Class.method`; `when` is before or after it.

    `in_transaction`: a paused child holds locks, which the database ends after 5 s.
    """

    name: str
    kind: str
    target: str
    when: str = "after"
    condition: Condition | None = None
    in_transaction: bool = False

    def find(self) -> tuple[Any, str]:
        """What holds the function, and its name."""
        module, _, path = self.target.partition(":")
        owner: Any = importlib.import_module(module)
        *classes, name = path.split(".")
        for each in classes:
            owner = getattr(owner, each)
        return owner, name


def _operation(name: str) -> Condition:
    """Of a call that carries an operation, in its first or second argument."""

    def holds(*args: Any, **kwargs: Any) -> bool:
        for each in args:
            each = getattr(each, "call", each)
            if getattr(each, "operation", "") == name:
                return True
        return False

    return holds


def _pointer(playbook: Any, *args: Any, update_fields: Any = (), **kwargs: Any) -> bool:
    return "current_version" in (update_fields or ())


def _points(kind: str, in_transaction: bool, rows: dict[str, tuple[str, str]]) -> list[Point]:
    return [
        Point(f"{kind}: {name}", kind.split(" ")[0], target, when, None, in_transaction)
        for name, (target, when) in rows.items()
    ]


def _calls(operation: str) -> list[Point]:
    """Around one call of a model."""
    said, ledger = _operation(operation), "evolution.worker.usage_ledger"
    wire = "evolution.engine.providers.openai:OpenAILLM._call"
    rows = {
        "before its row in the ledger": (f"{ledger}:admit", "before"),
        "reserved, before the request": (f"{ledger}:admit", "after"),
        "at the request": (wire, "before"),
        "after the response": (wire, "after"),
        "before it is settled": (f"{ledger}:finish_call", "before"),
        "settled": (f"{ledger}:finish_call", "after"),
    }
    return [
        Point(f"{operation}: {name}", "work", target, when, said)
        for name, (target, when) in rows.items()
    ]


SAVED = "playbooks.models.playbooks:Playbook.save"
WORKER, PUBLISH = "evolution.worker", "evolution.worker.publication"
CLAIMS, KEPT = "evolution.worker.claims", "evolution.worker.checkpoints"
POINTS: list[Point] = [
    *_points("report", False, {
        "before insert": ("evolution.outcomes.reporting:_store_report", "before"),
        "after commit": ("evolution.outcomes.reporting:_store_report", "after"),
    }),
    *_points("report", True, {
        "after insert": ("evolution.outcomes.reporting:trigger_if_due", "before"),
        "job made, before commit": ("evolution.outcomes.reporting:trigger_if_due", "after"),
        "notified": ("evolution.jobs.triggers:notify_worker", "after"),
    }),
    *_points("work", False, {
        "before the claim": (f"{WORKER}.tasks:claim_job", "before"),
        "claimed": (f"{WORKER}.tasks:_run", "before"),
        "before the first reflection": (f"{WORKER}.engine_run:evolve", "before"),
        "before a reflection's checkpoint": (f"{KEPT}:StoredCheckpoints.save_reflection", "before"),
        "after a reflection's checkpoint": (f"{KEPT}:StoredCheckpoints.save_reflection", "after"),
        "before the curation's checkpoint": (f"{KEPT}:StoredCheckpoints.save_curation", "before"),
        "after the curation's checkpoint": (f"{KEPT}:StoredCheckpoints.save_curation", "after"),
        "before publish": (f"{WORKER}.tasks:publish", "before"),
        "after commit of publish": (f"{WORKER}.tasks:publish", "after"),
        "after ack": (f"{WORKER}.tasks:_run", "after"),
    }),
    *_points("work", True, {
        "in the claim": (f"{CLAIMS}:_due", "after"),
        "before bind": (f"{CLAIMS}:_bind", "before"),
        "in bind": (f"{CLAIMS}:set_hash", "before"),
        "after bind": (f"{CLAIMS}:_bind", "after"),
        "claim written": (f"{CLAIMS}:_take", "after"),
        "in a reflection's checkpoint": ("evolution.models.jobs:Reflection.save", "after"),
        "publish locked": (f"{PUBLISH}:publish_deltas", "before"),
        "after the version row": ("playbooks.models.versions:Version.save", "after"),
        "deltas written": (f"{PUBLISH}:publish_deltas", "after"),
        "outcomes settled": (f"{PUBLISH}:settle_outcomes", "after"),
        "before commit of publish": (f"{PUBLISH}:trigger_if_due", "after"),
    }),
    Point("work: after the pointer", "work", SAVED, "after", _pointer, True),
    *_calls("reflect"),
    *_calls("curate"),
    *_points("wait", True, {"job put back": ("evolution.models.jobs:EvolutionJob.wait", "after")}),
    *_points("wait", False, {"after commit": (f"{WORKER}.tasks:requeue_after_error", "after")}),
    *_points("fail", True, {
        "outcomes released": ("evolution.models.jobs:EvolutionJob.release_outcomes", "after"),
    }),
    *_points("fail", False, {"after commit": (f"{WORKER}.tasks:fail_job", "after")}),
    *_points("sweep", True, {
        "in a rescue": (f"{WORKER}.sweep:rescue_job", "before"),
        "job put back": (f"{WORKER}.sweep:rescue_job", "after"),
        "notified": (f"{WORKER}.sweep:notify_worker", "after"),
    }),
    *_points("sweep", False, {"after a rescue": (f"{WORKER}.sweep:_resume_locked", "after")}),
    *_points("cancel", True, {
        "fence raised": ("evolution.models.jobs:EvolutionJob.cancel", "after"),
        "outcomes released": ("evolution.models.jobs:EvolutionJob.release_outcomes", "after"),
    }),
    *_points("cancel", False, {
        "after commit": ("evolution.jobs.lifecycle:cancel_evolution", "after"),
    }),
    *_points("redrive", True, {
        "queued again": ("evolution.models.jobs:EvolutionJob.requeue", "after"),
        "notified": ("evolution.jobs.lifecycle:notify_worker", "after"),
    }),
    *_points("rollback", True, {
        "after the version row": ("playbooks.models.versions:Version.save", "after"),
    }),
    Point("rollback: after the pointer", "rollback", SAVED, "after", _pointer, True),
    *_points("purge", False, {
        "traces blanked": ("evolution.outcomes.retention:blank_old_traces", "after"),
        "rows gone": ("evolution.outcomes.retention:delete_expired_rows", "after"),
    }),
    *_points("rollback", False, {
        "after commit": ("playbooks.services.rollback:rollback_playbook", "after"),
    }),
]  # fmt: skip
# Neighbours are alike: each half has points of every family. `make test` kills at a sixteenth
# on PostgreSQL; `make nightly` at all points on both databases.
SHARES = {
    "even": POINTS[::2],
    "odd": POINTS[1::2],
    "ninth": POINTS[8::16],
}

# Between the report that finds harm and the version that undoes it; not in the campaign, whose
# playbooks have no trials, but in tests/reliability/test_killed_revert.py.
REVERT_POINTS = [
    *_points("report", True, {
        "harm found": ("evolution.outcomes.cases:count_outcomes", "after"),
    }),
    *_points("report", False, {
        "harm committed": ("evolution.outcomes.reporting:_store_report", "after"),
    }),
    *_points("sweep", False, {
        "before the restoring version": (f"{WORKER}.sweep:settle_revert", "before"),
        "restoring version committed": (f"{WORKER}.sweep:send_inbox_emails", "before"),
    }),
    *_points("sweep", True, {
        "restoring version's row": ("playbooks.models.versions:Version.save", "after"),
        "trial ended": ("playbooks.services.trials:end_trial", "after"),
    }),
]  # fmt: skip

# While a version waits for its check: an agent answers cases, or the sweep ends the wait.
GATE_POINTS = [
    *_points("report", True, {
        "case claimed": ("evolution.outcomes.cases:_claim", "after"),
        "answer recorded": ("evolution.outcomes.reporting:record_answer", "after"),
        "check decided": ("evolution.outcomes.cases:begin_trial", "after"),
    }),
    *_points("report", False, {
        "answer committed": ("evolution.outcomes.reporting:_store_report", "after"),
    }),
    *_points("sweep", True, {
        "begun without its check": (f"{WORKER}.sweep:begin_unchecked", "after"),
    }),
]  # fmt: skip


class UnderWay:
    """Calls of this process, by step: not in a checkpoint yet; on record and not sent yet.

    A reflection is asked for while the one before it is stored, so a kill at any point of a worker
    may meet another call at the door: on SQLite it often does, where a checkpoint waits for the
    very transaction that puts the next call on record.
    """

    def __init__(self) -> None:
        self._steps: set[str] = set()
        self._door: set[str] = set()
        self._lock = threading.Lock()
        self._here = threading.local()

    def count(self) -> int:
        return len(self._steps)

    def at_the_door(self) -> int:
        return len(self._door)

    def watch(self) -> None:
        """Follow the ledger, the wire and the checkpoints of this process."""
        ledger: Any = importlib.import_module("evolution.worker.usage_ledger")
        wire: Any = importlib.import_module("evolution.engine.providers.openai").OpenAILLM
        stream: Any = importlib.import_module("core.http.deadlines").DeadlineStream
        kept = importlib.import_module("evolution.worker.checkpoints").StoredCheckpoints
        ledger.admit = self._admitting(ledger.admit)
        wire._call = self._calling(wire._call)
        stream.read = self._reading(stream.read)
        for name in ("save_reflection", "save_curation"):
            setattr(kept, name, self._forgetting(getattr(kept, name), name))

    def _admitting(self, admit: Any) -> Any:
        def admitted(call: Any) -> Any:
            with self._lock:
                self._steps.add(call.step)
                self._door.add(call.step)
            try:
                return admit(call)
            except BaseException:
                with self._lock:
                    self._door.discard(call.step)
                raise

        return admitted

    def _calling(self, inner: Any) -> Any:
        def called(llm: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            self._here.step = request.step
            try:
                return inner(llm, request, *args, **kwargs)
            finally:
                with self._lock:
                    self._door.discard(request.step)

        return called

    def _reading(self, inner: Any) -> Any:
        """Who reads has sent everything: the model gets it, whatever becomes of this process."""

        def read(stream: Any, *args: Any, **kwargs: Any) -> bytes:
            with self._lock:
                self._door.discard(getattr(self._here, "step", ""))
            found: bytes = inner(stream, *args, **kwargs)
            return found

        return read

    def _forgetting(self, save: Any, name: str) -> Any:
        def saved(this: Any, *args: Any) -> Any:
            found = save(this, *args)
            with self._lock:
                self._steps.discard(f"reflect:{args[0]}" if name == "save_reflection" else "curate")
            return found

        return saved


def arm(point: Point, stop: Callable[[], None]) -> None:
    """`stop` is called the first time that this process comes to the point."""
    owner, name = point.find()
    inner, once = getattr(owner, name), threading.Lock()

    def stopping(*args: Any, **kwargs: Any) -> Any:
        here = point.condition is None or point.condition(*args, **kwargs)
        if here and point.when == "before" and once.acquire(blocking=False):
            stop()
        found = inner(*args, **kwargs)
        if here and point.when == "after" and once.acquire(blocking=False):
            stop()
        return found

    setattr(owner, name, stopping)


def note(line: str) -> None:
    """A line in the campaign's log; one write, so that no kill splits it."""
    log = os.open(os.environ["ACE_FAULTS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, f"{line}\n".encode())
    os.close(log)

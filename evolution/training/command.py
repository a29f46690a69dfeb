"""The base of both training commands: options, the run around an adapter, and its summary."""

import _thread
import hashlib
import json
import signal
import threading
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from billing.pricing.usage_pricing import price_in_usd
from core.errors import AceError, Invalid
from core.security.scopes import Principal
from evolution.engine.adaptation.adapters import (
    OfflineAdapter,
    OfflineResult,
    OnlineAdapter,
    OnlineResult,
)
from evolution.engine.adaptation.datasets import DatasetError
from evolution.engine.adaptation.solver import MAX_STEPS, ActingSolver, LLMSolver, ProgramAgent
from evolution.engine.cost_budget import Budget
from evolution.engine.environments import (
    Environment,
    Program,
    Sample,
    WorldEnvironment,
    environment_for,
    without_labels,
)
from evolution.engine.llm import LLMError
from evolution.engine.prompts import load_prompt
from evolution.engine.retry import Wait
from evolution.jobs.lifecycle import reset_circuits
from evolution.training import runs
from evolution.training.learner import StoredPlaybook
from evolution.training.progress import ProgressDisplay, logs_in, write_line
from evolution.training.runs import StoredSteps, Training, run_usage
from evolution.worker.credentials import credential_for
from evolution.worker.engine_run import choose_engine, connect_llm
from evolution.worker.usage_ledger import Payer, UsageLedger
from playbooks.management.lookups import playbook_named
from playbooks.models import Playbook, Version

STOPPED, COST_STOPPED = 1, 3
"""Exit codes of a run that can be resumed."""
DAY = 86_400.0
RESUME = "The run is saved: run the same command with --resume to continue."
ENVIRONMENTS = (
    "what checks the answers: `auto` (by the targets), `answer`, `exact`, `number`, `list`, "
    "`call:package.module:function`, `run:program arguments` (no shell; JSON on stdin), or "
    "`world:package.module:Class` for an agent to act in"
)
PROMPTS = ("generator", "reflector", "curator", "judge", "repair")


class TrainingCommand(BaseCommand):
    """A command reads its options in `prepare` and makes its adapter; the rest is here."""

    kind: str
    judges: dict[str, Any]
    datasets: tuple[str, ...] = ("dataset",)
    repeated: tuple[str, ...] = (
        *("environment", "withhold_ground_truth", "rounds", "agent", "max_steps"),
    )
    """Options that a resumed run must repeat, beside the data sets."""

    def prepare(self, options: dict[str, Any]) -> None:
        """Read and check everything before anything is written; raises CommandError."""
        raise NotImplementedError

    def adapter(self, **parts: Any) -> OfflineAdapter | OnlineAdapter:
        raise NotImplementedError

    def plan(self) -> dict[str, Any]:
        """The plan that --dry-run prints."""
        raise NotImplementedError

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--dataset", required=True, type=Path, help="JSON Lines: context/question and target")
        add("--playbook", required=True, help="its ID or name")
        add("--rounds", type=positive, default=1, help="maximum attempts per sample (1)")
        add("--environment", default="auto", help=ENVIRONMENTS)
        add("--environment-seconds", type=seconds, default=10, help="time limit for `run:` (10)")
        add("--agent", default="", help="`run:program arguments` that answers the tasks")
        add("--agent-seconds", type=seconds, default=600, help="time limit of --agent (600)")
        add("--max-steps", type=positive, default=MAX_STEPS, help="actions in a world (30)")
        add(
            "--withhold-ground-truth",
            action="store_true",
            help="learn from checks and traces, never from labels",
        )
        add("--json", action="store_true", help="print each step and the summary as a line of JSON")
        add("--resume", action="store_true", help="continue the last unfinished run")
        add("--max-cost-usd", type=dollars, help="stop before a call that could exceed this")
        add(
            "--dry-run",
            action="store_true",
            help="check everything; call no model and write nothing",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            own = Playbook.objects.exclude(owner=None)
            self.playbook = playbook_named(options["playbook"], own)
            runs.refuse_untrainable(self.playbook)
            self.given = options
            self.prepare(options)
            self.solver = solver_for(options, self.judges["environment"])
            if options["dry_run"]:
                plan: dict[str, Any] = {"dry_run": True, "playbook_id": str(self.playbook.pk)}
                plan |= self.plan()
                plan["most_calls"]["generate"] *= calls_an_answer(options)
                self.stdout.write(json.dumps(plan, indent=None if options["json"] else 2))
                return
            if settings.ACE_ENGINE != "openai":
                raise CommandError(
                    "Training needs a model: set OPENAI_API_KEY and ACE_ENGINE=openai."
                )
            if options["max_cost_usd"] is not None:
                refuse_unpriced()
            training = self._training(resume=options["resume"])
        except (AceError, DatasetError, ValueError) as error:
            raise CommandError(str(error)) from None
        self._run(training, options)

    def _training(self, *, resume: bool) -> Training:
        config = {name: fingerprint(self.given[name]) for name in self.datasets}
        config |= {name: self.given[name] for name in self.repeated} | role_config()
        if resume:
            return runs.resume_training(playbook=self.playbook, kind=self.kind, config=config)
        assert self.playbook.owner is not None  # noqa: S101 - refuse_untrainable has looked
        by = Principal.of(self.playbook.owner)
        return runs.begin_training(playbook=self.playbook, by=by, kind=self.kind, config=config)

    def _run(self, training: Training, options: dict[str, Any]) -> None:
        """Run the adapter; whatever stops it, the run can be resumed."""
        stopping = threading.Event()
        screen: Any = self.stderr._out  # the wrapper ends each write with a new line
        lines: Any = self.stdout if options["json"] else None
        display = ProgressDisplay(screen, lambda: run_usage(training), lines)
        limit = options["max_cost_usd"]
        try:
            with (
                logs_in(settings.DATA_DIR / "training.log"),
                interruptible(stopping),
                display,
                adapter_parts(training, self.solver, limit=limit, wait=stopping.wait) as parts,
            ):
                adapted = self.adapter(**parts, observe=display).run()
        except (LLMError, AceError) as error:
            runs.stop_training(training=training, reason=error.message)
            code = COST_STOPPED if error.code == "cost_limit" else STOPPED
            raise CommandError(f"{error.message} {RESUME}", returncode=code) from None
        except KeyboardInterrupt:
            runs.stop_training(training=training, reason="stopped by hand")
            raise CommandError(
                "Stopped. Run the same command with --resume to continue.", returncode=130
            ) from None
        try:
            self._finish(training, adapted)
        except AceError as error:
            raise CommandError(error.message) from None

    def _finish(self, training: Training, adapted: OfflineResult | OnlineResult) -> None:
        summary = adapted.as_dict() | self._context(training, adapted)
        version = Version.objects.get(playbook=self.playbook, number=int(adapted.kept.label))
        runs.complete_training(training=training, version=version, summary=summary)
        if self.given["json"]:
            write_line(self.stdout, "summary", **summary)
        else:
            self.stdout.write(summary_table(summary))

    def _context(self, training: Training, adapted: OfflineResult | OnlineResult) -> dict[str, Any]:
        first = Version.objects.get(pk=training.from_version_id).number
        return {
            "run": str(training.run_id),
            "playbook_id": str(self.playbook.pk),
            "versions": {"from": first, "to": int(adapted.kept.label)},
            "usage": run_usage(training).as_dict(),
        } | best_of(adapted)

    def environments(self, options: dict[str, Any], samples: Sequence[Sample]) -> dict[str, Any]:
        """What scores, and what is learnt from when that must not know the labels."""
        seconds = options["environment_seconds"]
        scores = environment_for(options["environment"], samples, seconds=seconds)
        if not options["withhold_ground_truth"]:
            return {"environment": scores}
        return {"environment": scores, "judge": without_labels(scores)}


def solver_for(options: dict[str, Any], scores: Environment) -> Callable[..., LLMSolver]:
    """Who does the tasks: an agent's program, a model that acts, or one that answers."""
    if options["agent"]:
        line = options["agent"].removeprefix("run:")
        program = Program.at(line, seconds=options["agent_seconds"])
        return partial(ProgramAgent, program=program)
    if isinstance(scores, WorldEnvironment):
        return partial(ActingSolver, make=scores.make, steps=options["max_steps"])
    return LLMSolver


def best_of(adapted: OfflineResult | OnlineResult) -> dict[str, Any]:
    """Which version the accuracy is of, and whether the current one reads the same.

    It does not when somebody else has published meanwhile: nobody's version is rolled back.
    """
    if isinstance(adapted, OnlineResult):
        return {}
    best = adapted.after.snapshot
    return {"best_kept": best.view_hash == adapted.kept.view_hash, "best_version": int(best.label)}


def calls_an_answer(options: dict[str, Any]) -> int:
    """How often the model is asked for an answer: by an agent of one's own never."""
    if options["agent"]:
        return 0
    steps: int = options["max_steps"]
    return steps if options["environment"].startswith("world:") else 1


def needs_targets(options: dict[str, Any]) -> bool:
    """A check, a world or an agent may know what is right by itself."""
    own = ("call:", "run:", "world:")
    return not options["agent"] and not options["environment"].startswith(own)


def fingerprint(path: Path | None) -> dict[str, str] | None:
    """Name and hash of a data set, so that a resumed run reads the same."""
    if path is None:
        return None
    return {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def amount(kind: Callable[[str], Any], fits: Callable[[Any], bool]) -> Callable[[str], Any]:
    """A parser of an option's number; `nan` fits nothing."""

    def parse(text: str) -> Any:
        try:
            found = kind(text)
        except InvalidOperation:
            raise ValueError(text) from None
        if not fits(found):
            raise ValueError(text)
        return found

    parse.__name__ = "amount"  # argparse names it in its error
    return parse


positive = amount(int, lambda number: number >= 1)
dollars = amount(Decimal, lambda number: number.is_finite() and number > 0)
share = amount(float, lambda number: 0 <= number < 1)
seconds = amount(float, lambda number: 0 < number <= DAY)


def summary_table(summary: dict[str, Any]) -> str:
    """The summary as a small table for people."""
    usage, counts = summary["usage"], summary["operations"]
    lines = [("calls", f"{usage['calls']:,} ({usage['failed_calls']} failed)")]
    lines += [("tokens", f"{usage['tokens']:,}"), ("cost US$", usage["cost_usd"] or "not known")]
    lines += [("version", f"{summary['versions']['from']} → {summary['versions']['to']}")]
    lines += [("bullets", f"{summary['playbook']['bullets']}")]
    lines += [("operations", ", ".join(f"{name} {n}" for name, n in counts.items() if n) or "none")]
    for split in ("validation", "test"):
        if found := summary.get(split):
            change = f"{found['before']:.1%} → {found['after']:.1%} of {found['samples']} samples"
            lines.append((split, change))
    if summary.get("best_kept") is False:
        best = f"the validated version {summary['best_version']} is not the current one"
        lines.append(("not kept", best))
    if "accuracy" in summary and summary["accuracy"] is not None:
        lines.append(("accuracy", f"{summary['accuracy']:.1%} of {summary['samples']} samples"))
    return "\n".join(f"{name:>12}  {value}" for name, value in lines)


@contextmanager
def interruptible(stopping: threading.Event) -> Iterator[None]:
    """Ctrl-C inside sets `stopping` and raises KeyboardInterrupt; what it did before is restored.

    Without `stopping`, threads in a long pause would have to be waited for to its end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        # Not set here: the interrupted code may hold the event's lock, or that of `threading`.
        _thread.start_new_thread(stopping.set, ())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def role_models() -> dict[str, str]:
    """The model of each role."""
    return {
        "generator": settings.ACE_GENERATOR_MODEL,
        "reflector": settings.ACE_REFLECTOR_MODEL,
        "curator": settings.ACE_CURATOR_MODEL,
    }


def role_config() -> dict[str, Any]:
    """The settings that change answers: a run is resumed only with the same ones."""
    return {
        "models": role_models(),
        "prompts": {name: load_prompt(name).label for name in PROMPTS},
    } | ({"options": settings.ACE_MODEL_OPTIONS} if settings.ACE_MODEL_OPTIONS else {})


def refuse_unpriced() -> None:
    """Raise Invalid when a limit on cost could not be held."""
    models = set(role_models().values())
    unknown = sorted(model for model in models if price_in_usd(model, 1, 1) is None)
    if unknown:
        raise Invalid(
            f"No price is known for {', '.join(unknown)}, so a cost limit can’t be enforced. "
            "Add a price override in the admin (0 for a model of your own), use a model with a "
            "known price, or leave --max-cost-usd out."
        )


class TrainingLedger(UsageLedger):
    """Waits for a slot as long as it takes: on a slow server each call comes to its turn."""

    def queue_seconds(self) -> float:
        return DAY


@contextmanager
def adapter_parts(
    training: Training, solver: Callable[..., LLMSolver], *, limit: Decimal | None, wait: Wait
) -> Iterator[dict[str, Any]]:
    """What both adapters work with, for this run; the ledger's connection is closed at the end."""
    budget = None
    if limit is not None:
        budget = Budget(limit=limit, price=price_in_usd, spent=run_usage(training).cost)
    # A person who starts a training has fixed a refusal, or wants to see it again.
    credential = credential_for(training.owner_id)
    models = (credential.circuit_key_of_model(model) for model in role_models().values())
    reset_circuits(keys=[credential.circuit_key, *models], by=None)
    steps = StoredSteps(training)
    # In the ledger its calls carry the id of the run in place of a job's.
    payer = Payer(training.owner_id, training.playbook_id, training.run_id)
    with TrainingLedger(payer, budget, on_plan=False) as ledger:
        yield {
            "solver": solver(
                connect_llm(ledger), settings.ACE_GENERATOR_MODEL, choose_engine(ledger)
            ),
            "learner": StoredPlaybook(training, steps, budget=budget, wait=wait),
            "checkpoints": steps,
            "wait": wait,
        }

"""Removing what some outcomes taught from the current playbook."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import Q

from core.audit import record
from core.security.scopes import Principal
from playbooks.document.state import (
    RETIRED,
    BulletState,
    Snapshot,
    State,
    recount_active,
    visible_fields,
)
from playbooks.document.state_diff import change_state
from playbooks.document.text import normal_text, number_of
from playbooks.models import Delta, Playbook, Version, Vote
from playbooks.services.loading import load_state, require_editable
from playbooks.services.publishing import publish
from playbooks.services.trials import lock_to_publish


@dataclass(frozen=True)
class OutcomeRemoval:
    """What was (or, in a dry run, would be) removed; `version` is None when nothing was.

    `retired` and `changed` are bullet ids; `kept` also came from other outcomes.
    """

    version: Version | None
    retired: list[str]
    changed: list[str]
    kept: list[str]
    votes: int


def remove_outcomes(
    *,
    playbook: Playbook,
    by: Principal,
    outcome_ids: Collection[str],
    source: str = "",
    include_mixed: bool = False,
    dry_run: bool = False,
) -> OutcomeRemoval:
    """The playbook reads as if machines had never learned from these outcomes; a new version.

    With `source`, as if that key or app had never edited it either.

    Bullets that only they taught are retired, texts that only they changed read as before, their
    votes are deleted. What other outcomes taught as well stays unless `include_mixed`; what a
    person wrote or approved always stays. Raises Conflict for an archived playbook and a starter.
    """
    with transaction.atomic():
        lock_to_publish(playbook)
        require_editable(playbook)
        loaded, taken = load_state(playbook), frozenset(outcome_ids)
        # Left out here and not by the database: a preview of 10,000 outcomes would pay for it.
        state, dropped = _without_votes(loaded.state, taken, source)
        past = HistoryWithoutOutcomes(state, taken, source, include_mixed)
        wanted = past.wanted(_steps(playbook))
        result = change_state(state, wanted, reason="Its source was removed.")
        version = None
        if dry_run:
            # Nothing is written: for hundreds of bullets that alone would take seconds.
            transaction.set_rollback(True)
        else:
            votes = Vote.objects.filter(bullet__playbook=playbook)
            votes.filter(Q(outcome_id__in=outcome_ids) | Q(source=source or None)).delete()
            playbook.save(update_fields=["updated_at"])  # also where no version follows
            now, reason = replace(loaded, state=state), Version.Reason.ROLLBACK
            version = publish(playbook, now, result, reason=reason, author=by).version
            record(action="remove_outcomes", by=by, subject=playbook, owner=playbook.owner_id)
    changes = [r for r in result.applied if visible_fields(r.before) != visible_fields(r.after)]
    retired = [r.bullet_id for r in changes if visible_fields(r.after)["status"] == RETIRED]
    return OutcomeRemoval(
        version=version,
        retired=retired,
        changed=[r.bullet_id for r in changes if r.bullet_id not in retired],
        kept=sorted(past.kept, key=number_of),
        votes=dropped,
    )


def _without_votes(state: State, outcomes: frozenset[str], source: str) -> tuple[State, int]:
    """The state without the votes of these outcomes and this source, and how many those were."""
    found, dropped = dict(state.bullets), 0
    for name, bullet in state.bullets.items():
        votes = {
            (outcome, voter): tag
            for (outcome, voter), tag in bullet.votes.items()
            if outcome not in outcomes and voter != (source or None)
        }
        dropped += len(bullet.votes) - len(votes)
        found[name] = replace(bullet, votes=votes)
    return replace(state, bullets=found), dropped


def _steps(playbook: Playbook) -> Iterator[Any]:
    """Every operation that changed more than counters, oldest first.

    Tags are left out: there are many, and the votes themselves are gone already. Plain values:
    thousands of rows as objects would take a second.
    """
    rows = playbook.deltas.applied().exclude(version=None).exclude(type=Delta.Type.TAG)
    columns = ("bullet_public_id", "before", "after", "outcome_ids", "job_id", "source")
    ordered = rows.order_by("version__number", "index").values_list(*columns, named=True)
    return ordered.iterator()


class HistoryWithoutOutcomes:
    """Replays the deltas without those of some outcomes and of one key or app, if given.

    The result is each bullet as it would be now.
    """

    def __init__(
        self, state: State, outcomes: frozenset[str], source: str, include_mixed: bool
    ) -> None:
        self.state, self.outcomes, self.source = state, outcomes, source
        self.include_mixed = include_mixed
        self.fields: dict[str, Snapshot] = {}
        self.kept: set[str] = set()
        self.added_by_them: set[str] = set()  # bullets that only these outcomes brought in

    def _read(self, step: Any) -> None:
        name, before, after = step.bullet_public_id, step.before, step.after
        if after is None:
            return
        if self._is_tainted(step):
            if before is None:
                self.added_by_them.add(name)
                self.fields[name] = visible_fields(after) | {"status": RETIRED, "merged_into": ""}
            return
        changed = {
            key: value
            for key, value in visible_fields(after).items()
            if visible_fields(before)[key] != value
        }
        if before is None or (name in self.added_by_them and "content" in changed):
            # The text comes from others from here on.
            self.added_by_them.discard(name)
            self.fields[name] = visible_fields(after)
        elif name not in self.added_by_them or not _is_machine(step):
            self.fields[name] |= changed

    def _is_tainted(self, step: Any) -> bool:
        """True when the source did it, or a machine because of these outcomes.

        And of no others, unless mixed ones count.
        """
        if step.source and step.source == self.source:
            return True
        taught = frozenset(step.outcome_ids)
        if step.before is None:
            bullet = self.state.bullets.get(step.bullet_public_id)
            taught |= frozenset(bullet.sources if bullet else ())
        if not _is_machine(step) or not taught & self.outcomes:
            return False
        if taught <= self.outcomes or self.include_mixed:
            return True
        self.kept.add(step.bullet_public_id)
        return False

    def wanted(self, steps: Iterable[Any]) -> dict[str, BulletState]:
        """Every bullet as it would be, counters from the votes that are left."""
        for step in steps:
            self._read(step)
        found = {
            name: replace(bullet, **self.fields.get(name, {}))
            for name, bullet in self.state.bullets.items()
        }
        return recount_active(_without_duplicates(found))


def _is_machine(step: Any) -> bool:
    """True for an operation of an evolution, a key or an app."""
    return step.job_id is not None or bool(step.source)


def _without_duplicates(bullets: dict[str, BulletState]) -> dict[str, BulletState]:
    """Of active bullets with the same text the oldest stays, the others are retired."""
    seen: set[str] = set()
    found = dict(bullets)
    for name in sorted(bullets, key=number_of):
        text = normal_text(bullets[name].content)
        if bullets[name].is_active and text in seen:
            found[name] = replace(bullets[name], status=RETIRED)
        elif bullets[name].is_active:
            seen.add(text)
    return found

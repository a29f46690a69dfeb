"""The values of a change: operations and policy go in, records and a result come out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from playbooks.document.review_rule import Review
from playbooks.document.state import UNKNOWN, Snapshot, State

APPLIED, REJECTED, NOOP, HELD = "applied", "rejected", "noop", "held"


@dataclass(frozen=True)
class Operation:
    """One requested change, not judged yet.

    `type`: ADD (section, content), UPDATE (id, content and/or section; `revision` is the one
    that was read), TAG (id, tag; one vote per outcome id, or one without outcome), REMOVE (id,
    reason; DELETE means the same), MERGE (id = survivor, ids = what goes into it, content), and
    for a person PIN (id, tag `on` or `off`) and RESTORE (id of a retired bullet).
    """

    type: str
    section: str = ""
    id: str = ""
    ids: tuple[str, ...] = ()
    content: str = ""
    tag: str = ""
    source: str = ""
    reason: str = ""
    outcome_ids: tuple[str, ...] = ()
    revision: int | None = None


@dataclass(frozen=True)
class Provenance:
    """Where a machine's operations come from: its `model`, and who reported each outcome id.

    `mark` is added to each source where reports of one count as several: by day while nobody else
    reports, by evolution in a training. `checked` outcomes were judged by more than their reporter,
    `self_reported` ones by nobody; `backed` bullets rest on a test or a known answer.
    """

    model: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""
    checked: frozenset[str] = frozenset()
    self_reported: frozenset[str] = frozenset()
    backed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Policy:
    """What an author may do: a machine is held to evidence, pins and budgets; sizes are limits.

    `changed_since_base`: ids whose content, status or section changed after the version that the
    operations were made for. `uses`: outcomes reported for versions that held the bullet.
    `review`: what waits for a person of the texts of a machine, and of a key or app
    (`by_credential`). `max_adds`: new bullets by outcome id. `provenance`: who reported what.
    `may_remove`: False when machines removed enough in a week.
    """

    machine: bool
    by_credential: bool = False
    changed_since_base: frozenset[str] = frozenset()
    max_adds: Mapping[str, int] | None = None
    token_budget: int = 16_000
    max_bytes: int = 100 * 1024
    uses: Mapping[str, int] = field(default_factory=dict)
    review: Review = field(default_factory=Review)
    provenance: Provenance = field(default_factory=Provenance)
    may_remove: bool = True

    def source_of(self, outcome: str | None, source: str) -> str:
        """Who is behind a vote or a text: a person, else the reporter of the outcome."""
        who = source if outcome is None or source.startswith("user:") else ""
        who = who or self.review.sources.get(outcome or "", "")
        return f"{who}{self.provenance.mark}" if who else f"{UNKNOWN}{outcome}"


@dataclass(frozen=True)
class Record:
    """One judged operation on one bullet.

    applied: `before` and `after` are snapshots of the bullet (None: it did not exist).
    rejected, noop, held: `after` is what was proposed, `before` the bullet as it stays.
    """

    index: int
    type: str
    bullet_id: str
    before: Snapshot | None
    after: Snapshot | None
    reason: str
    status: str
    reason_code: str = ""
    outcome_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    state: State
    records: tuple[Record, ...]

    @property
    def applied(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.status == APPLIED)

"""`make engine`: how well the rules engine reads reports, by style, and what it takes for the same.

A lesson is found when every expression of its `all_of` matches one bullet; a second bullet for the
same lesson counts as wrong.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evolution.engine.inputs import OutcomeInput
from evolution.engine.providers.lesson_extraction import lessons
from evolution.engine.providers.rules_engine import RulesEngine
from playbooks.document.similarity import alike_pairs, content_words
from tests.evolution.engine.fakes import PLAYBOOK

DATA = Path(__file__).parents[2] / "data"
REPORTS, UNSEEN = "agent_reports", "agent_reports_unseen"
Row = dict[str, Any]


@dataclass
class ReportScore:
    """Lessons that were found, made up and missed; votes that are right, of all that count."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    votes_right: int = 0
    votes: int = 0

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)

    @property
    def votes_share(self) -> float:
        return self.votes_right / max(1, self.votes)

    def __str__(self) -> str:
        counts = f"{self.right + self.missed} | {self.right} | {self.wrong}"
        return f"{counts} | {self.votes_right} of {self.votes}"

    def take(self, row: Row) -> None:
        wanted = list(row["lessons"])
        for lesson in lessons(row["notes"], row["trace"]):
            match = next((w for w in wanted if _says(lesson.content, w)), None)
            self.right, self.wrong = self.right + bool(match), self.wrong + (not match)
            if match:
                wanted.remove(match)
        self.missed += len(wanted)
        report = (row["outcome"], row["trace"], row["notes"])
        outcome = OutcomeInput("o", "A task.", *report, cited=tuple(row["cited"]))
        tags = {
            t.id: t.tag for t in RulesEngine().reflect(outcome, PLAYBOOK).reflection.bullet_tags
        }
        self.votes += len(tags.keys() | row["votes"].keys())
        self.votes_right += sum(tags.get(key) == tag for key, tag in row["votes"].items())


def _says(content: str, wanted: Row) -> bool:
    return all(re.search(pattern, content, re.IGNORECASE) for pattern in wanted["all_of"])


def read(name: str) -> list[Row]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def halves(rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The half of each style that rules were made with, and the half that was held out."""
    seen: dict[str, int] = defaultdict(int)
    made: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        made[seen[row["style"]] % 2].append(row)
        seen[row["style"]] += 1
    return made


def score(rows: Iterable[Row]) -> ReportScore:
    found = ReportScore()
    for row in rows:
        found.take(row)
    return found


def by_style(rows: Iterable[Row]) -> dict[str, ReportScore]:
    found: dict[str, ReportScore] = defaultdict(ReportScore)
    for row in rows:
        found[row["style"]].take(row)
    return dict(found)


def table() -> Iterator[str]:
    """The rows of the table in docs/RULES_ENGINE.md: styles of both sets together."""
    for style, found in by_style([*read(REPORTS), *read(UNSEEN)]).items():
        yield f"| {style} | {found} |"


def summary() -> Iterator[str]:
    made, held = halves(read(REPORTS))
    for name, rows in (("made with", made), ("held out", held), ("written later", read(UNSEEN))):
        found = score(rows)
        figures = (found.precision, found.recall, found.votes_share)
        yield f"| {name} | {len(rows)} | {' | '.join(f'{share:.2f}' for share in figures)} |"


def main() -> None:
    print("| reports | number | precision | recall | votes |\n|---|---|---|---|---|")
    print("\n".join(summary()))
    print("\n| style | lessons | found | made up | votes right |\n|---|---|---|---|---|")
    print("\n".join(table()))
    pairs = read("bullet_pairs")
    same = [pair for pair in pairs if content_words(pair["a"]) == content_words(pair["b"])]
    asked = [pair for pair in pairs if alike_pairs({"a": pair["a"], "b": pair["b"]})]
    print(f"\n{len(pairs)} pairs of bullets: {len(same)} taken for the same, of them")
    print(f"{sum(not pair['same'] for pair in same)} wrongly; {len(asked)} put before a judge")


if __name__ == "__main__":
    main()

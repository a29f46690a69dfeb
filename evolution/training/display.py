"""The progress of a training on stderr: a bar, and a table row for each scoring."""

import time
from collections.abc import Callable
from typing import TextIO

from evolution.engine.adaptation.protocols import Point, Progress
from evolution.training.runs import RunUsage

BAR = 30
SECONDS_BETWEEN = 0.2
HEADINGS = ("batches", "scored on", "accuracy", "bullets", "tokens", "calls", "cost US$")
WIDTHS = (7, 10, 8, 7, 7, 7, 10)


class ProgressDisplay:
    """An adapter's observer. Where stderr is no terminal only whole lines are written."""

    def __init__(self, stream: TextIO, spent: Callable[[], RunUsage]) -> None:
        self._stream, self._spent = stream, spent
        self._live = stream.isatty()
        self._rows = 0
        self._drawn = 0.0

    def __call__(self, progress: Progress) -> None:
        for point in progress.points[self._rows :]:
            self._row(point)
        if self._live and time.monotonic() - self._drawn > SECONDS_BETWEEN:
            self._drawn = time.monotonic()
            self._stream.write(f"\r\x1b[K{bar(progress)}")
            self._stream.flush()
        if progress.phase == "done":
            self._line(bar(progress))

    def _row(self, point: Point) -> None:
        if self._rows == 0:
            self._line(table_line(HEADINGS))
        self._rows += 1
        spent = self._spent()
        cells = (
            *(str(point.step), point.split, f"{point.accuracy:.1%}"),
            *(str(point.bullets), f"{point.tokens:,}", f"{spent.calls:,}"),
            f"{spent.cost:.4f}" + ("+?" if spent.unpriced else ""),
        )
        self._line(table_line(cells))

    def _line(self, text: str) -> None:
        clear = "\r\x1b[K" if self._live else ""
        self._stream.write(f"{clear}{text}\n")
        self._stream.flush()


def table_line(cells: tuple[str, ...]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))


def bar(progress: Progress) -> str:
    """`[#####.....]  50 %  answering batch e1b2`; answers that were not needed count as done."""
    share = 1.0 if progress.phase == "done" else min(1.0, progress.done / max(1, progress.total))
    full = int(BAR * share)
    return f"[{'#' * full}{'.' * (BAR - full)}] {share:4.0%}  {progress.phase}"

"""Shows a training's progress: a line for each scoring above a live bar, or JSON lines.

Where the screen is no terminal there is no bar. The log goes to a file meanwhile.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from evolution.engine.adaptation.protocols import Point
from evolution.engine.adaptation.protocols import Progress as Run
from evolution.training.runs import RunUsage

COLUMNS = {
    **{"batches": 7, "scored on": 10, "accuracy": 8},
    **{"bullets": 7, "tokens": 7, "calls": 7, "cost US$": 10},
}


class ProgressDisplay:
    """An adapter's observer; with `lines` it writes JSON there and nothing on the screen."""

    def __init__(
        self, screen: TextIO, spent: Callable[[], RunUsage], lines: TextIO | None = None
    ) -> None:
        self._spent, self._lines, self._rows, self._step = spent, lines, 0, 0
        self._console = Console(file=screen, highlight=False, markup=False, soft_wrap=True)
        self._bar = Progress(
            *(BarColumn(), TaskProgressColumn(), TimeElapsedColumn()),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            disable=lines is not None or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("")

    def __enter__(self) -> "ProgressDisplay":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, run: Run) -> None:
        """Show what is new: scorings, a batch that was learnt, how much is answered."""
        if run.phase == "learnt" and run.step > self._step:
            self._step = run.step
            self._write("learnt", step=run.step, answers=run.done, of=run.total, **run.counts)
        for point in run.points[self._rows :]:
            self._rows += 1
            self._write("scored", **vars(point))
            self._print(point)
        total = max(1, run.total)
        done = total if run.phase == "done" else min(run.done, total)
        self._bar.update(self._task, total=total, completed=done, description=run.phase)

    def _write(self, event: str, **fields: Any) -> None:
        if self._lines is not None:
            write_line(self._lines, event, **fields, usage=self._spent().as_dict())

    def _print(self, point: Point) -> None:
        if self._lines is not None:
            return
        if self._rows == 1:
            self._console.print(table_line(*COLUMNS))
        spent = self._spent()
        cost = f"{spent.cost:.4f}" + ("+?" if spent.unpriced else "")
        size = (str(point.bullets), f"≈{point.tokens:,}", f"{spent.calls:,}", cost)
        self._console.print(
            table_line(str(point.step), point.split, f"{point.accuracy:.1%}", *size)
        )


def table_line(*cells: str) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, COLUMNS.values(), strict=True))


def write_line(out: Any, event: str, **fields: Any) -> None:
    """One event as a line of JSON."""
    out.write(json.dumps({"event": event} | fields, ensure_ascii=False) + "\n")
    out.flush()


@contextmanager
def logs_in(path: Path) -> Iterator[None]:
    """Send what would be logged to stderr to the end of this file, if it can be written."""
    try:
        file = path.open("a", encoding="utf-8")
    except OSError:
        yield
        return
    streams = [h for h in logging.getLogger().handlers if isinstance(h, logging.StreamHandler)]
    handlers = [handler for handler in streams if handler.stream is sys.stderr]
    with file:
        for handler in handlers:
            handler.setStream(file)
        try:
            yield
        finally:
            for handler in handlers:
                handler.setStream(sys.stderr)

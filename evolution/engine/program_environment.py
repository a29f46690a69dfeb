"""Runs a checking program: without a shell, with a time limit and a minimal environment."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

from evolution.engine.environments import Feedback, Sample, failed_feedback, feedback_from_json
from evolution.engine.generator import Generation

PASSED_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "VIRTUAL_ENV")
"""Variables that the program sees: none that could carry a key."""
MAX_OUTPUT = 100_000


@dataclass(frozen=True)
class ProgramEnvironment:
    """Runs `command` for each answer, for at most `seconds`.

    The program reads `{"sample": {"id", "task", "context", "target"}, "generation": {…}}` on stdin
    and prints a feedback as JSON: `{"status", "score", "message", "ground_truth"}`. Another exit
    code than 0, a time-out, or anything else on stdout counts the sample as wrong.
    """

    command: Sequence[str]
    seconds: float = 10

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        asked = {
            "sample": asdict(sample.question) | {"target": sample.target},
            "generation": generation.model_dump(),
        }
        try:
            return self._run(json.dumps(asked))
        except subprocess.TimeoutExpired:
            return failed_feedback(f"The check took longer than {self.seconds:g} s.")
        except OSError as error:
            return failed_feedback(f"The check could not be started ({type(error).__name__}).")

    def _run(self, asked: str) -> Feedback:
        # A session of its own: a time-out ends what the program started as well.
        with subprocess.Popen(  # noqa: S603 - the operator's own command line, without a shell
            list(self.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in PASSED_ENVIRONMENT if name in os.environ},
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as program:
            try:
                output, _ = program.communicate(asked, timeout=self.seconds)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
        if program.returncode != 0:
            return failed_feedback(f"The check ended with exit code {program.returncode}.")
        return feedback_from_json(output[:MAX_OUTPUT])

"""Ctrl-C: the run stops at once, even while everybody waits for the provider."""

import os
import signal
import threading
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import CommandError

from evolution.models import TrainingRun
from evolution.training.command import interruptible
from playbooks.models import Playbook
from tests.evolution.training.run_commands import train
from tests.harness.fake_llm.learning import LearningLLM
from tests.harness.fake_llm.model import ALWAYS, Gate


def test_ctrl_c_ends_the_pauses_of_all_threads_and_is_itself_again_afterwards() -> None:
    before, stopping = signal.getsignal(signal.SIGINT), threading.Event()
    with pytest.raises(KeyboardInterrupt), interruptible(stopping):
        signal.raise_signal(signal.SIGINT)
    assert stopping.wait(10)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_stops_a_training_whose_provider_fails(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM, settings: LazySettings
) -> None:
    llm.fail("generator", status=503, retry_after="500", times=ALWAYS)
    gate = llm.hold("generator")
    press = threading.Thread(target=ctrl_c, args=[gate, settings.LLM_CONCURRENCY])
    press.start()
    with pytest.raises(CommandError, match="--resume") as stopped:
        train(blank, world)
    press.join()
    assert stopped.value.returncode == 130
    assert TrainingRun.objects.get().stop_reason == "stopped by hand"


def ctrl_c(gate: Gate, calls: int) -> None:
    """Pressed while that many calls are under way."""
    gate.wait_for(calls)
    os.kill(os.getpid(), signal.SIGINT)
    gate.open()

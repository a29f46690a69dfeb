"""The fake model by hand, as the README of evolution says."""

import re
import subprocess
import sys

from evolution.engine.providers.model import ModelEngine
from evolution.engine.providers.openai import OpenAILLM
from tests.engine.cast import PLAYBOOK, NotedLedger, outcome


def test_it_runs_as_a_command_and_answers() -> None:
    command = [sys.executable, "-m", "tests.fake_llm", "--port", "0", "--fail", "reflector:500:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        said = re.search(r"OPENAI_BASE_URL=(\S+)", server.stdout.readline().decode())
        assert said is not None
        ledger = NotedLedger()
        llm = OpenAILLM(api_key="k", base_url=said.group(1), deadline=20, ledger=ledger)
        engine = ModelEngine(llm, reflector_model="m", curator_model="m", wait=lambda _: None)
        assert engine.reflect(outcome(), PLAYBOOK).tokens > 0
        server.terminate()
    assert [entry.error for entry in ledger.entries] == ["provider_fault", ""]

"""The fake model by hand, as the README of evolution says."""

import re
import subprocess
import sys

from evolution.engine.providers.llm_engine import LLMEngine
from evolution.engine.providers.openai import OpenAILLM
from tests.evolution.engine.fakes import PLAYBOOK, FakeLedger, outcome


def test_it_runs_as_a_command_and_answers() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.harness.fake_llm.model",
        "--port",
        "0",
        "--fail",
        "reflector:500:1",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        printed = re.search(r"OPENAI_BASE_URL=(\S+)", server.stdout.readline().decode())
        assert printed is not None
        ledger = FakeLedger()
        llm = OpenAILLM(api_key="k", base_url=printed.group(1), deadline=20, ledger=ledger)
        engine = LLMEngine(llm, reflector_model="m", curator_model="m", wait=lambda _: None)
        assert engine.reflect(outcome(), PLAYBOOK).tokens > 0
        server.terminate()
    assert [entry.error for entry in ledger.entries] == ["provider_fault", ""]

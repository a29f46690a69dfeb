"""Recorded answers of real models, replayed: what they damaged once, they damage no more."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from evolution.engine import curator
from evolution.engine.generator import generate
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import AnswerError, LLMReply, LLMRequest
from evolution.engine.prompt_text import FULL_LIMITS
from evolution.engine.prompts import load_prompt
from evolution.engine.providers.openai import OpenAILLM
from evolution.engine.reflector import Reflection, reflect, reflection_request
from evolution.engine.structured_output import is_repetitive, read_answer
from playbooks.document.text import parse
from tests.evolution.engine.fakes import EngineHarness, FakeLedger, outcome
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.stub_servers import endpoint
from tests.real_model.cases import CASES, PLAYBOOK, Case
from tests.real_model.replay import Replayed, judge, recorded

# As SmolLM2-135M sent back the forms of the prompts.
ECHOED_REFLECTION = json.dumps(
    {
        "reasoning": "how you came to your findings, step by step, in a few sentences",
        "key_insight": "the advice described above, or empty",
        "bullet_tags": [{"id": "calc-00003", "tag": "helpful"}],
    }
)
ECHOED_CURATION = json.dumps(
    {
        "reasoning": "what the batch teaches as a whole",
        "operations": [
            {"type": "ADD", "section": "one of the playbook's section titles", "content": "x y"},
            {
                "type": "UPDATE",
                "id": "str-00001",
                "content": "the complete new text of the bullet",
                "outcome_ids": ["O1"],
            },
        ],
    }
)


def case(name: str) -> Case:
    return next(one for one in CASES if one.name == name)


@pytest.mark.parametrize(
    ("name", "reply"), [("routine success", ECHOED_REFLECTION), ("a new lesson", ECHOED_CURATION)]
)
def test_an_answer_that_copies_the_form_is_no_answer(name: str, reply: str) -> None:
    with pytest.raises(AnswerError, match="repeats the description of the field"):
        case(name).ask(Replayed([reply]), "small")


def test_an_echo_is_sent_back_and_a_good_answer_then_counts() -> None:
    good = json.dumps({"key_insight": "", "bullet_tags": []})
    found = case("routine success").ask(Replayed([ECHOED_REFLECTION, good]), "small")
    assert found.key_insight == ""


def test_a_tag_can_only_name_a_cited_bullet() -> None:
    def asked(*cited: str) -> dict[str, Any]:
        outcome = OutcomeInput(id="a", task="t", status="failure", cited=cited)
        return reflection_request("m", outcome, PLAYBOOK, FULL_LIMITS).json_schema()

    tag = asked("str-00001", "calc-00003")["$defs"]["BulletTag"]["properties"]["id"]
    assert tag["enum"] == ["str-00001", "calc-00003"]
    assert "bullet_tags" not in asked()["properties"]


def test_a_generator_without_bullets_has_no_list_to_fill(fake: FakeLLM) -> None:
    llm = OpenAILLM(api_key="", base_url=fake.base_url, deadline=20, ledger=FakeLedger())
    for playbook in (PlaybookInput(parse(""), 16_000), PLAYBOOK):
        generate(llm, "small", sample_id="a", task="t", playbook=playbook)
    empty, full = (
        call.body["response_format"]["json_schema"]["schema"]["properties"]
        for call in fake.requests
    )
    assert set(full) - set(empty) == {"bullet_ids"}


@pytest.mark.parametrize(
    ("reply", "insight"),
    [
        ('<think>Perhaps {"key_insight": "no"}?</think>{"key_insight": "Check it."}', "Check it."),
        ('It is {"key_insight": "no"}.\n</think>\n\n{"key_insight": "Check it."}', "Check it."),
        ('{"key_insight": "Drop all up to </think> first."}', "Drop all up to </think> first."),
        ('<think>Perhaps {"key_insight": "no"}?', None),
    ],
)
def test_what_a_model_thinks_aloud_is_no_answer(reply: str, insight: str | None) -> None:
    found = read_answer(reply, Reflection)
    assert (found.key_insight if isinstance(found, Reflection) else None) == insight


def test_a_loop_is_known_from_its_end() -> None:
    looped = '{"operations": [' + '{"type": "ADD", "section": "OTHERS", "content": "again"}, ' * 40
    assert is_repetitive(looped)
    assert not is_repetitive(" ".join(f"word{n}" for n in range(200)))


def test_both_roles_know_the_purpose_and_the_reflector_the_right_answer() -> None:
    asked: list[LLMRequest[Any]] = []

    class Asked(Replayed):
        def complete(self, request: LLMRequest[Any]) -> Any:
            asked.append(request)
            return super().complete(request)

    case("right answer in other days").ask(Asked(['{"key_insight": ""}']), "m")
    case("a new lesson").ask(Asked(['{"operations": []}']), "m")
    reflector, curation = (request.messages[1]["content"] for request in asked)
    for prompt in (reflector, curation):
        assert "Purpose: Short calculations from company reports" in prompt
    assert "The right answer:\nBEGIN DATA" in reflector
    assert reflector.count("[calc-00003]") == 1
    assert "STRATEGIES & INSIGHTS: how to go about" in curation
    assert "unpaid customer accounts" in curation.rpartition("# Reflections")[2]


def test_the_curator_reads_what_rests_on_a_check() -> None:
    lines = curator.statistics(PLAYBOOK, adds=1).splitlines()
    assert "calc-00003 helpful=4 harmful=0 checked" in lines


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for model in recorded() for name in recorded()[model]]
)
def test_recorded_answers_do_no_harm_and_good_ones_stay_good(model: str, name: str) -> None:
    found = judge(case(name), Replayed(recorded()[model][name]), model)
    assert all(found.must.values()), found
    if model == "by hand":
        assert not found.refused and all(found.good.values()), found


@pytest.mark.parametrize(
    ("status", "message"),
    [
        # llama.cpp, as recorded; Ollama, vLLM and LM Studio, as their users' reports quote them.
        (400, "request (9031 tokens) exceeds the available context size (8192 tokens), try"),
        (500, "the input length exceeds the context length"),
        (400, "This model's maximum context length is 8192 tokens."),
        (400, "The number of tokens to keep from the initial prompt is greater"),
        (400, "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"),
        (400, "Trying to keep the first 15857 tokens. The model is loaded with context length of"),
    ],
)
def test_a_full_context_is_known_in_each_servers_words(
    stage: EngineHarness, status: int, message: str
) -> None:
    stage.fake.fail("reflector", status=status, message=message)
    stage.ask("reflector")  # once more with shorter texts
    assert [entry.error for entry in stage.ledger.entries] == ["context_too_long", ""]


def test_options_of_a_role_are_sent_and_bound_its_answer(fake: FakeLLM) -> None:
    options: dict[str, dict[str, Any]]
    options = {"*": {"temperature": 0, "seed": 1}, "reflector": {"max_tokens": 300}}
    options["reflector"]["extra_body"] = {"top_k": 1}
    ledger = FakeLedger()
    llm = OpenAILLM(api_key="", base_url=fake.base_url, deadline=20, ledger=ledger, options=options)
    reflect(llm, "small", outcome(), PLAYBOOK)
    body = fake.requests[0].body
    assert (body["temperature"], body["seed"], body["top_k"]) == (0, 1, 1)
    assert body["max_tokens"] == body["max_completion_tokens"] == 300
    # The same cap would cut the same answer again.
    fake.fail("reflector", "truncated", times=9)
    with pytest.raises(AnswerError, match="its role's cap of 300 tokens"):
        reflect(llm, "small", outcome(), PLAYBOOK)
    assert fake.count() == 2


def test_a_prompt_beyond_the_context_is_shortened_before_it_is_sent(fake: FakeLLM) -> None:
    ledger, options = FakeLedger(), {"*": {"context": 5_000}}
    llm = OpenAILLM(api_key="", base_url=fake.base_url, deadline=20, ledger=ledger, options=options)
    reflect(llm, "small", outcome(trace="step " * 3_000), PLAYBOOK)
    (entry,) = ledger.entries
    assert entry.error == ""
    assert fake.requests[0].body["max_tokens"] < 2_500


def test_a_curator_that_loops_is_not_asked_for_thrice_as_much() -> None:
    looped = '{"operations": [' + '{"type": "ADD", "section": "OTHERS", "content": "again"}, ' * 40

    class Looping(Replayed):
        caps = list[int]()

        def complete(self, request: LLMRequest[Any]) -> LLMReply:
            self.caps.append(request.max_tokens)
            return replace(super().complete(request), finish_reason="length")

    llm = Looping([looped])
    with pytest.raises(AnswerError, match="repeated itself"):
        case("a new lesson").ask(llm, "small")
    assert len(llm.caps) == 1


def completion(text: str, *, sent: int, received: int, reason: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
    return {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}


def ask_server(answer: dict[str, Any]) -> None:
    """The reflector's question about a long trace, to a server that says this."""
    with endpoint(200, answer) as (url, _):
        llm = OpenAILLM(api_key="", base_url=f"{url}/v1", deadline=20, ledger=FakeLedger())
        reflect(llm, "small", outcome(trace="step " * 3_000), PLAYBOOK)


def test_a_stop_far_below_the_cap_is_a_full_context() -> None:
    with pytest.raises(AnswerError) as raised:
        ask_server(completion('{"key_insight": "Ch', sent=4_000, received=90, reason="length"))
    assert raised.value.code == "context_too_long"


def test_a_server_that_read_half_of_the_prompt_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ask_server(completion('{"key_insight": "Check the sign."}', sent=900, received=90))
    assert "small read 900 of about" in caplog.text
    caplog.clear()
    ask_server(completion('{"key_insight": "Check the sign."}', sent=9_000, received=90))
    assert caplog.text == ""


def test_no_prompt_shows_a_bullets_id_that_an_answer_could_copy() -> None:
    for role in ("generator", "reflector", "curator", "judge", "repair"):
        prompt = load_prompt(role)
        assert not re.search(r"[a-z]{2,8}-\d{5}", prompt.system + prompt.template), role

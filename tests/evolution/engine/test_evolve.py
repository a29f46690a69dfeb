"""The method: concurrent reflections, what is kept, what is set aside, what is proposed."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from evolution.engine.curator import Curation
from evolution.engine.evolve import EvolutionResult, evolve
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import AnswerError, CredentialError, TransientError
from evolution.engine.reflector import BulletTag, Reflection, ReflectionResult
from playbooks.document.operations import Operation
from tests.evolution.engine.fakes import PLAYBOOK, EngineHarness, InMemoryCheckpoints, outcome

TEN = [outcome(f"o{number}") for number in range(10)]


class Scripted:
    """A scripted engine; an exception is raised."""

    name = vote_source = config_hash = "scripted"
    prompt_versions: ClassVar[dict[str, str]] = {}

    def __init__(self, curation: Any = None, **reflections: Any) -> None:
        self.reflections = reflections
        self.curation = curation or Curation(operations=[])
        self.asked: list[str] = []

    def reflect(self, outcome: OutcomeInput, playbook: PlaybookInput) -> ReflectionResult:
        self.asked.append(outcome.id)
        answer = self.reflections.get(outcome.id, Reflection(key_insight=""))
        if isinstance(answer, Exception):
            raise answer
        return ReflectionResult(answer, tokens=1)

    def curate(
        self,
        reflections: Mapping[str, Reflection],
        outcomes: Sequence[OutcomeInput],
        playbook: PlaybookInput,
    ) -> Curation:
        self.asked.append("curate")
        if isinstance(self.curation, Exception):
            raise self.curation
        return Curation.model_validate(self.curation)


def run(
    engine: Any,
    outcomes: Sequence[OutcomeInput],
    checkpoints: InMemoryCheckpoints | None = None,
    concurrency: int = 4,
) -> EvolutionResult:
    return evolve(
        engine=engine,
        playbook=PLAYBOOK,
        outcomes=outcomes,
        checkpoints=checkpoints or InMemoryCheckpoints(),
        concurrency=concurrency,
    )


@contextmanager
def answers_after(stage: EngineHarness, calls: int) -> Iterator[None]:
    """The Reflector answers as soon as that many calls are waiting at once."""
    gate = stage.fake.hold("reflector")

    def open_in_time() -> None:
        gate.wait_for(calls)
        gate.open()

    opener = threading.Thread(target=open_in_time)
    opener.start()
    yield
    opener.join()


def test_ten_reflections_take_the_time_of_one(stage: EngineHarness) -> None:
    # None is answered before all ten are under way: one after the other they would wait for ever.
    with answers_after(stage, 10):
        evolved = run(stage.engine, TEN, concurrency=10)
    assert len(evolved.reflections) == stage.fake.count("reflector") == 10


def test_no_more_calls_run_at_once_than_allowed(stage: EngineHarness) -> None:
    gate = stage.fake.hold("reflector")
    thread = threading.Thread(target=run, args=(stage.engine, TEN), kwargs={"concurrency": 3})
    thread.start()
    gate.wait_for(3)
    begun = len(stage.ledger.entries)
    gate.open()
    thread.join()
    assert (begun, stage.fake.count("reflector")) == (3, 10)


def test_checkpoints_are_called_on_the_callers_thread(stage: EngineHarness) -> None:
    checkpoints = InMemoryCheckpoints()
    run(stage.engine, TEN, checkpoints)
    assert checkpoints.threads == {threading.get_ident()}


def test_what_is_stored_is_not_asked_again() -> None:
    engine = Scripted()
    kept = {"o0": Reflection(key_insight="kept"), "elsewhere": Reflection(key_insight="")}
    evolved = run(engine, TEN[:2], InMemoryCheckpoints(kept))
    assert engine.asked == ["o1", "curate"]
    assert list(evolved.reflections) == ["o0", "o1"]
    assert evolved.reflections["o0"].key_insight == "kept"


def test_a_stored_curation_is_not_asked_again() -> None:
    engine = Scripted()
    run(
        engine,
        TEN[:1],
        InMemoryCheckpoints({"o0": Reflection(key_insight="")}, Curation(operations=[])),
    )
    assert engine.asked == []


def test_a_transient_error_is_raised_after_the_calls_under_way_are_stored(
    stage: EngineHarness,
) -> None:
    checkpoints = InMemoryCheckpoints()
    stage.fake.fail("reflector", status=429)
    with answers_after(stage, 3), pytest.raises(TransientError):
        run(stage.engine, TEN[:3], checkpoints, concurrency=3)
    assert len(checkpoints.kept) == 2
    run(stage.engine, TEN[:3], checkpoints)
    assert stage.fake.count("reflector") == 4


def test_after_a_refused_key_no_further_call_begins() -> None:
    engine = Scripted(o0=CredentialError("key_refused", "No."))
    with pytest.raises(CredentialError):
        run(engine, TEN, concurrency=1)
    # The pool's one thread may have taken the next outcome before it heard of the error.
    assert len(engine.asked) <= 2


def test_a_lost_fence_ends_the_job_without_further_calls() -> None:
    class Fenced(InMemoryCheckpoints):
        def save_reflection(self, outcome_id: str, reflection: Reflection, tokens: int) -> None:
            raise ValueError("lost")

    engine = Scripted()
    with pytest.raises(ValueError, match="lost"):
        run(engine, TEN, Fenced(), concurrency=1)
    assert "curate" not in engine.asked


def test_an_outcome_without_an_answer_is_set_aside_and_the_others_go_on(
    stage: EngineHarness,
) -> None:
    stage.fake.fail("reflector", "refusal")
    evolved = run(stage.engine, TEN[:3], concurrency=1)
    assert evolved.set_aside == {"o0": "The model refused to answer."}
    assert list(evolved.reflections) == ["o1", "o2"]
    assert stage.fake.requests[-1].prompt.count("BEGIN DATA") == 2


def test_when_no_outcome_gets_an_answer_the_evolution_fails_with_the_reasons() -> None:
    error = AnswerError("refused", "The model refused to answer.")
    with pytest.raises(AnswerError, match="refused to answer") as raised:
        run(Scripted(o0=error, o1=error), TEN[:2])
    assert raised.value.code == "no_reflection"


def test_a_failed_curation_fails_the_evolution_and_keeps_the_reflections() -> None:
    checkpoints = InMemoryCheckpoints()
    with pytest.raises(AnswerError, match="no"):
        run(Scripted(curation=AnswerError("refused", "no")), TEN[:2], checkpoints)
    assert set(checkpoints.kept) == {"o0", "o1"}


def test_each_known_bullet_gets_one_vote_for_each_outcome() -> None:
    pairs = (("str-00001", "harmful"), ("str-00001", "helpful"), ("str-09999", "helpful"))
    tags = [BulletTag.model_validate({"id": key, "tag": tag}) for key, tag in pairs]
    reflection = Reflection(key_insight="", bullet_tags=tags)
    evolved = run(Scripted(o0=reflection, o1=reflection), TEN[:2])
    assert evolved.operations == [
        Operation("TAG", id="str-00001", tag="helpful", source="scripted", outcome_ids=(key,))
        for key in ("o0", "o1")
    ]


def tagging(*names: str) -> Scripted:
    tags = [BulletTag(id=name, tag="helpful") for name in names]
    return Scripted(o0=Reflection(key_insight="", bullet_tags=tags))


def test_a_bullet_that_the_outcome_does_not_mention_gets_no_vote() -> None:
    assert run(tagging("str-00002"), TEN[:1]).operations == []


def test_a_bullet_that_the_outcome_names_without_citing_it_gets_a_vote() -> None:
    report = outcome("o0", notes="I was misled by [STR-00002].")
    (vote,) = run(tagging("str-00002"), [report]).operations
    assert vote.id == "str-00002"


def test_a_vote_that_the_curator_casts_is_recorded_and_counts_nothing() -> None:
    tag = {"type": "TAG", "id": "str-00001", "outcome_ids": ["o0"]}
    operations = run(Scripted(curation={"operations": [tag]}), TEN[:1]).operations
    assert [op.type for op in operations] == ["CURATOR TAG"]


def test_every_proposed_operation_is_passed_on_for_the_delta_rules_to_judge() -> None:
    proposed = [
        {"type": "create_meta", "content": "x"},
        {"type": "DELETE", "id": "[str-00002]", "reason": "Wrong."},
        {"type": "merge", "id": "str-00001", "ids": ["str-00001", "mis-00003"], "content": "Both."},
    ]
    evolved = run(Scripted(curation={"operations": proposed}), TEN[:1])
    assert [(op.type, op.id, op.ids) for op in evolved.operations] == [
        ("CREATE_META", "", ()),
        ("DELETE", "str-00002", ()),
        ("MERGE", "str-00001", ("mis-00003",)),
    ]


def test_a_real_batch_becomes_votes_an_update_and_an_addition(stage: EngineHarness) -> None:
    batch = [
        outcome("won", notes="lesson: Annualise the deviation before dividing."),
        outcome("lost", "failure", cited=("str-00002",)),
    ]
    evolved = run(stage.engine, batch)
    kinds = [(op.type, op.id, op.tag, op.outcome_ids) for op in evolved.operations]
    assert kinds[:2] == [
        ("TAG", "str-00001", "helpful", ("won",)),
        ("TAG", "str-00002", "harmful", ("lost",)),
    ]
    assert ("UPDATE", "str-00002", "", ("lost",)) in kinds
    assert stage.ledger.tokens == stage.fake.served_tokens


def test_no_operation_at_all_is_a_good_answer() -> None:
    assert run(Scripted(), TEN[:1]).operations == []

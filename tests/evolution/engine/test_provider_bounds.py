"""What HTTP clients do not promise: a total deadline, a size cap, no redirects, a true ledger."""

import gzip
import time

import httpcore2
import httpx2
import pytest

from core.http.deadlines import DeadlineStream
from evolution.engine.llm import AnswerError, CredentialError, TransientError
from evolution.engine.prompt_text import FULL_LIMITS
from evolution.engine.providers.endpoint import Response, retry_after_seconds
from evolution.engine.providers.openai import OpenAILLM
from evolution.engine.reflector import reflection_request
from tests.evolution.engine.fakes import PLAYBOOK, EngineHarness, FakeLedger, outcome
from tests.harness.fake_llm.model import ALWAYS

DEADLINE = 0.4


@pytest.mark.parametrize("kind", ["drip", "hang"])
def test_no_call_outlives_its_deadline(stage: EngineHarness, kind: str) -> None:
    stage.deadline = DEADLINE
    stage.fake.fail("reflector", kind, times=ALWAYS)
    engine, started = stage.engine, time.monotonic()
    with pytest.raises(TransientError, match="in time"):
        engine.reflect(outcome(), PLAYBOOK)
    # Without one it would last as long as the test may; a busy machine takes seconds more.
    assert time.monotonic() - started < 3 * DEADLINE + 10
    assert stage.fake.count() == 3


def test_a_time_out_is_metered_as_an_estimate_and_never_as_nothing(stage: EngineHarness) -> None:
    stage.deadline = 2  # for the answer that follows, too
    stage.fake.fail("reflector", "hang")
    stage.ask("reflector")
    timed_out, answered = stage.ledger.entries
    assert timed_out.error == "timeout"
    assert timed_out.usage and timed_out.usage.estimated and timed_out.usage.total_tokens > 500
    assert answered.usage and not answered.usage.estimated


def test_a_server_that_is_not_there_costs_nothing(stage: EngineHarness) -> None:
    llm = OpenAILLM(api_key="k", base_url="http://127.0.0.1:9/v1", deadline=2, ledger=stage.ledger)
    with pytest.raises(TransientError, match=r"at 127.0.0.1 could not be reached"):
        llm.complete(reflection_request("m", outcome(), PLAYBOOK, FULL_LIMITS))
    assert [entry.usage.total_tokens for entry in stage.ledger.entries if entry.usage] == [0]


def test_an_error_status_costs_nothing(stage: EngineHarness) -> None:
    stage.fake.fail("reflector", status=401)
    with pytest.raises(CredentialError):
        stage.ask("reflector")
    assert stage.ledger.tokens == 0


def test_a_redirect_is_not_followed(stage: EngineHarness) -> None:
    stage.fake.fail("reflector", "redirect", times=ALWAYS)
    with pytest.raises(CredentialError, match="redirects"):
        stage.ask("reflector")
    assert stage.fake.count() == 1


def test_usage_request_id_and_model_come_from_the_response(stage: EngineHarness) -> None:
    stage.ask("reflector")
    (entry,) = stage.ledger.entries
    assert (entry.step, entry.operation, entry.model) == ("reflect:a", "reflect", "small")
    assert entry.request_id == "req-fake"
    assert entry.usage and entry.usage.cached_tokens == entry.usage.prompt_tokens // 4


def test_missing_usage_is_estimated_and_marked(stage: EngineHarness) -> None:
    stage.fake.fail("reflector", "no_usage")
    stage.ask("reflector")
    (entry,) = stage.ledger.entries
    assert entry.usage and entry.usage.estimated and entry.usage.completion_tokens > 0


@pytest.mark.parametrize("url", ["ftp://example.org", "example.org/v1", "http://", "http://[x"])
def test_a_base_url_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(CredentialError, match="base URL"):
        OpenAILLM(api_key="k", base_url=url, deadline=1, ledger=FakeLedger())


def test_a_key_that_fits_no_header_is_refused_at_once() -> None:
    with pytest.raises(CredentialError, match="API key"):
        OpenAILLM(api_key="k\r\nx: y", base_url=None, deadline=1, ledger=FakeLedger())


def test_a_small_reply_that_unpacks_to_a_large_one_is_refused() -> None:
    packed = gzip.compress(b" " * 4_000_000)
    stream = httpx2.ByteStream(packed)
    reply = httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=stream)
    with pytest.raises(AnswerError, match="over 2 MB"):
        Response(reply).body()


def test_after_the_deadline_a_socket_gives_nothing_more() -> None:
    stream = DeadlineStream(httpcore2.NetworkStream(), time.monotonic() - 1)
    with pytest.raises(httpcore2.ReadTimeout):
        stream.read(1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "1e9"}, 86_400),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds

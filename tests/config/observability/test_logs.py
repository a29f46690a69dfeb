"""Logs are JSON under one id from request to model call, and carry nobody's text."""

import io
import json
import logging
import re
import sys
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from config.observability.logging import formatter
from core.http.request_id import request_id
from evolution.models import EvolutionJob
from evolution.worker.tasks import run_evolution
from playbooks.models import Bullet, Playbook
from tests.config.observability.conftest import CANARY, KNOWN
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.rest_client import Rest


def lines(logged: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in logged.getvalue().splitlines()]


@pytest.mark.django_db(transaction=True)
def test_one_id_runs_from_the_request_through_job_and_model_call(
    asked: EvolutionJob, model: FakeLLM, logged: io.StringIO
) -> None:
    before = request_id.get()
    assert run_evolution(str(asked.pk)) == "completed"
    rows = [row for row in lines(logged) if row["logger"] == "evolution.worker.usage_ledger"]
    output = [(row["event"], row["request_id"]) for row in rows]
    assert output[0] == ("evolution claimed", KNOWN)
    assert output.count(("llm call", KNOWN)) == model.count() == 2
    assert output[-1] == ("evolution left", KNOWN)
    assert request_id.get() == before


@pytest.mark.django_db(transaction=True)
def test_a_call_is_logged_with_figures(
    asked: EvolutionJob, model: FakeLLM, logged: io.StringIO
) -> None:
    model.fail("reflector", status=500)
    run_evolution(str(asked.pk))
    calls = [row for row in lines(logged) if row["event"] == "llm call"]
    assert calls[0]["status"] == "provider_fault"
    assert all(row["model"] == "gpt-4o-mini" and row["took_ms"] >= 0 for row in calls)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fault", ["", "status", "not_json", "truncated"])
def test_no_text_of_an_outcome_or_a_playbook_is_logged(
    asked: EvolutionJob, model: FakeLLM, logged: io.StringIO, fault: str
) -> None:
    Bullet.objects.filter(public_id="str-00001").update(content=f"Advice {CANARY}")
    if fault:
        model.fail("reflector", fault, status=500)
    run_evolution(str(asked.pk))
    assert logged.getvalue()
    assert CANARY not in logged.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_job_that_waits_or_fails_is_logged_with_the_id(
    asked: EvolutionJob, model: FakeLLM, logged: io.StringIO
) -> None:
    model.fail("reflector", status=503, times=99)
    run_evolution(str(asked.pk))
    (row,) = [row for row in lines(logged) if " waits: " in row["event"]]
    assert row["request_id"] == KNOWN


def test_a_request_is_one_line_with_route_status_and_time(
    alice: User, charlie: User, staff: User, playbook: Playbook, logged: io.StringIO
) -> None:
    for user, status in ((alice, 200), (charlie, 404), (staff, 404)):
        logged.truncate(logged.seek(0))
        answer = Rest.of(user).get(f"/playbooks/{playbook.pk}")
        (row,) = [row for row in lines(logged) if row["logger"] == "config.web.middleware"]
        assert (row["event"], row["status"]) == ("GET api/v1/playbooks/<uuid:pk>", status)
        assert (row["request_id"], row["took_ms"] >= 0) == (answer["X-Request-ID"], True)
        assert row["user_id"] == str(user.pk)


def test_a_request_line_has_no_token_of_a_link_and_probes_have_none(
    client: Client, db: None, logged: io.StringIO
) -> None:
    for path in ("/healthz", "/verify/secret-of-a-link?code=canary"):
        client.get(path)
    (row,) = [row for row in lines(logged) if row["logger"] == "config.web.middleware"]
    assert (row["event"], row.get("user_id")) == ("GET verify/<str:token>", None)


def logged_error(form: logging.Formatter) -> str:
    """What an unexpected error with somebody's text in it looks like."""
    try:
        try:
            raise KeyError(CANARY)
        except KeyError as error:
            raise ValueError(f"row ({CANARY}) violates a rule") from error
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "it failed", (), None)
        record.exc_info = sys.exc_info()
    return form.format(record)


def test_an_exception_is_its_type_and_its_places() -> None:
    output = json.loads(logged_error(formatter("json", texts=False)))
    assert "ValueError at" in output["exception"]
    assert "< KeyError at" in output["exception"]
    assert CANARY not in json.dumps(output)


def test_our_own_places_are_kept_of_a_long_way_through_a_framework() -> None:
    def fail() -> None:
        json.loads("{", object_hook=None)

    try:
        fail()
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "it failed", (), None)
        record.exc_info = sys.exc_info()
    text = json.loads(formatter("json", texts=False).format(record))["exception"]
    here = r"tests/config/observability/test_logs\.py:\d+"
    assert re.fullmatch(rf"JSONDecodeError at {here}, {here}, \S+/json/decoder\.py:\d+", text)


def test_plain_lines_say_the_same() -> None:
    text = logged_error(formatter("lines", texts=False))
    assert re.search(r"ERROR x \[\S+\] it failed", text)
    assert CANARY not in text


def test_with_debug_the_message_is_shown() -> None:
    assert CANARY in logged_error(formatter("json", texts=True))

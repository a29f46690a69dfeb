"""Responses match the OpenAPI document; `make fuzz` sends 20,000 cases and 30,000 bodies."""

import os
import random
from itertools import islice

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from accounts.models import User
from tests.harness.rest_client import Rest
from tests.harness.rest_fuzzing import mutants, walk
from tests.harness.rest_routes import ROUTES, World, access_token

pytestmark = pytest.mark.postgres

CASES = int(os.environ.get("ACE_FUZZ_CASES", "50"))
BODIES = int(os.environ.get("ACE_FUZZ_BODIES", "100"))
SEED = int(os.environ.get("ACE_FUZZ_SEED", "1"))
WITH_BODY = [route for route in ROUTES if route.body]


@pytest.fixture(autouse=True)
def no_limits(settings: Settings, db: None) -> None:
    """On PostgreSQL none on a silent transaction either: cases are made up for seconds."""
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, "1000000/s")
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")


@pytest.mark.timeout(3600)
def test_every_response_matches_the_document(world: World, alice: User) -> None:
    sent = walk(world, access_token(alice), cases=CASES, first=SEED * 1000)
    print(f"{sent} cases")
    assert sent >= CASES * 0.9


@pytest.mark.timeout(3600)
def test_no_mutated_body_causes_a_5xx(world: World, alice: User) -> None:
    rest, chance, each = (
        Rest(access_token(alice)),
        random.Random(SEED),
        BODIES // len(WITH_BODY) + 1,
    )
    statuses: dict[int, int] = {}
    for route in WITH_BODY:
        for raw in islice(mutants(route.body, chance), each):
            with transaction.atomic():
                answer = rest.send(route.method, world.path(route), raw)
                transaction.set_rollback(True)
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            assert answer.status_code < 500, (str(route), raw[:300])
            if answer.status_code >= 400:
                assert answer.json()["error"]["message"], raw[:300]
    print(f"{sum(statuses.values())} bodies: {statuses}")

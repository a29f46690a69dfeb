"""A worker group is ready for jobs before it forks its workers."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import connections

from evolution.worker import prefork
from evolution.worker.prefork import WORKER_ID_VARIABLE


@pytest.fixture(autouse=True)
def kept() -> Iterator[dict[str, Any]]:
    """The settings of the connection, as they were afterwards."""
    chosen = connections["default"].settings_dict
    before = chosen["CONN_MAX_AGE"]
    chosen["CONN_MAX_AGE"] = 0
    yield chosen
    chosen["CONN_MAX_AGE"] = before


def test_a_worker_keeps_its_connections(
    monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any]
) -> None:
    monkeypatch.setenv(WORKER_ID_VARIABLE, "one")
    apps.get_app_config("evolution").ready()
    assert kept["CONN_MAX_AGE"] == prefork.CONNECTION_MAX_AGE


def test_any_other_process_keeps_to_its_settings(
    monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any]
) -> None:
    monkeypatch.delenv(WORKER_ID_VARIABLE, raising=False)
    apps.get_app_config("evolution").ready()
    assert kept["CONN_MAX_AGE"] == 0

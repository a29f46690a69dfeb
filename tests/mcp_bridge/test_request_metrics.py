"""Request metrics have labels of known methods and tools only."""

import pytest
from django.db import connection
from prometheus_client import REGISTRY
from pytest_django import Settings

from accounts.models import User
from tests.factories import make_key
from tests.harness.mcp_requests import tool
from tests.harness.raw_mcp import REVISIONS, call_rpc

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="no database changes this")


def count(method: str, tool: str, status: str) -> float:
    labels = {"method": method, "tool": tool, "status": status}
    return REGISTRY.get_sample_value("ace_mcp_request_seconds_count", labels) or 0.0


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_refused_call_is_counted_as_one(
    live_url: str, alice: User, settings: Settings, revision: str
) -> None:
    settings.METRICS_TOKEN = "a token of some length"
    key, before = make_key(alice)[1], count("tools/call", "get_playbook", "refused")
    call_rpc(live_url, key, *tool("get_playbook"), revision)
    assert count("tools/call", "get_playbook", "refused") == before + 1


def test_unknown_methods_and_tools_become_no_labels(
    live_url: str, alice: User, settings: Settings
) -> None:
    settings.METRICS_TOKEN = "a token of some length"
    key, before = make_key(alice)[1], count("unknown", "", "error")
    call_rpc(live_url, key, "made/up", {})
    call_rpc(live_url, key, *tool("made_up"))
    assert count("unknown", "", "error") == before + 1
    samples = [sample.labels for metric in REGISTRY.collect() for sample in metric.samples]
    assert not any("made" in value for labels in samples for value in labels.values())

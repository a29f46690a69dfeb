"""The dashboard and the alerts name figures that exist; each alert has its row of advice."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from accounts.models import User
from config.observability.metrics import HTTP_SECONDS, render_metrics
from evolution.models import ProviderCircuit
from mcp_bridge.server import MCP_SECONDS

FOLDER = Path(settings.BASE_DIR) / "docs"
NAME = re.compile(r"\bace_[a-z_]+")


def alerts() -> dict[str, str]:
    """The expression of each alert."""
    groups = yaml.safe_load((FOLDER / "observability" / "alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def queries() -> list[str]:
    board = json.loads((FOLDER / "observability" / "grafana.json").read_text())
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [*shown, *alerts().values()]


@pytest.fixture
def names(staff: User) -> set[str]:
    """Every name of a sample that /metrics knows."""
    HTTP_SECONDS.labels("GET", "pages", "2xx").observe(0)
    MCP_SECONDS.labels("tools/list", "", "ok").observe(0)
    until = timezone.now() + timedelta(minutes=1)
    ProviderCircuit.objects.create(key="x", label="a provider", open_until=until)
    text = render_metrics().decode()
    families = list(text_string_to_metric_families(text))
    totals = {f"{family.name}_total" for family in families if family.type == "counter"}
    return {s.name for family in families for s in family.samples} | totals


def test_every_name_in_a_query_exists(names: set[str]) -> None:
    used = {name for query in queries() for name in NAME.findall(query)}
    assert len(used) > 15
    assert used - names == set()


def test_every_alert_has_documented_advice() -> None:
    output = re.findall(r"^\| (Ace\w+) \|", (FOLDER / "OPERATIONS.md").read_text(), re.MULTILINE)
    assert sorted(output) == sorted(alerts())

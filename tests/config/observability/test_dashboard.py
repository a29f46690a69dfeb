"""The dashboard and the alerts name figures that exist; each alert has its row of advice."""

import json
import re
import shutil
import subprocess
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
RULES = FOLDER / "observability" / "alerts.yml"
# Minutes that are well, with the fault, and well again until an increase over a day is over.
BEFORE, FAULT, AFTER = 180, 90, 1600


def gauge(well: str, fault: str) -> str:
    return f"{well}x{BEFORE} {fault}x{FAULT} {well}x{AFTER}"


def counter(each_minute: float, start: str = "0") -> str:
    return f"{start}x{BEFORE} 0+{each_minute}x{FAULT} {each_minute * FAULT}x{AFTER}"


# What /metrics says before, during and after each fault. A series that begins with the fault has a
# new label: a reason, a model, a route.
FAULTY_SERIES = {
    "AceWorkerSilent": [("ace_worker_heartbeat_age_seconds", gauge("5", "999"))],
    "AceJobsStuck": [('ace_jobs{state="stuck"}', gauge("0", "1"))],
    "AceQueueOld": [("ace_oldest_job_seconds", gauge("0", "700"))],
    "AceProviderClosed": [
        ('ace_provider_circuit_open{key="operator",provider="api.example"}', gauge("_", "1")),
    ],
    "AceServerErrors": [
        ('ace_http_request_seconds_count{route="a",status="5xx"}', counter(10, "_")),
    ],
    "AceSlowAnswers": [
        ('ace_mcp_request_seconds_bucket{le="1",tool="a"}', counter(1)),
        ('ace_mcp_request_seconds_bucket{le="2.5",tool="a"}', counter(2)),
        ('ace_mcp_request_seconds_bucket{le="+Inf",tool="a"}', counter(2)),
    ],
    "AceEvolutionsFail": [
        ('ace_evolutions_total{result="failed",reason=""}', f"0x{AFTER * 2}"),
        ('ace_evolutions_total{result="failed",reason="poison"}', f"_x{BEFORE + 60} 4x{AFTER}"),
    ],
    "AceLeasesExpire": [("ace_lease_expiries_total", counter(1))],
    "AceSpend": [
        ('ace_llm_cost_usd_total{model="a"}', f"0+0.01x{AFTER * 2}"),
        ('ace_llm_cost_usd_total{model="new"}', counter(0.1, "_")),
    ],
    "AceUnpricedCalls": [
        ('ace_llm_unpriced_calls_total{model="a"}', f"0x{AFTER * 2}"),
        ('ace_llm_unpriced_calls_total{model="new"}', f"_x{BEFORE} 1x{FAULT + AFTER}"),
    ],
    "AcePlansUnconfirmed": [("ace_unconfirmed_plans", gauge("0", "1"))],
    "AceMoneyAskedBack": [
        (
            'ace_stripe_events{type="charge.refunded",result="ignored"}',
            f"0x{BEFORE} 0+1x{FAULT} 90x{AFTER}",
        ),
    ],
    "AceHarmfulBullets": [("ace_bullets_harmful", gauge("0", "11"))],
    "AcePendingReviews": [("ace_pending_reviews", gauge("0", "51"))],
}


def alerts() -> dict[str, str]:
    """The expression of each alert."""
    groups = yaml.safe_load((FOLDER / "observability" / "alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def firing(minute: int, *names: str) -> dict[str, object]:
    """What promtool shall find: these alerts, and no other, fire in this minute."""
    labels = [f'{{alertname="{name}"}}' for name in sorted(names)]
    return {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{minute}m",
        "exp_samples": [{"labels": one, "value": 1} for one in labels],
    }


def promtool_test(series: dict[str, str], *checks: dict[str, object]) -> dict[str, object]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given, "promql_expr_test": list(checks)}


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


def test_every_alert_fires_and_clears_in_prometheus(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (on Debian: apt install prometheus)")
    assert sorted([*FAULTY_SERIES, "AceDown"]) == sorted(alerts())
    faults = dict(one for series in FAULTY_SERIES.values() for one in series)
    later = BEFORE + FAULT
    tests = [
        promtool_test(
            {'ace_jobs{state="queue"}': "0x3000"} | faults,
            firing(BEFORE - 1),
            firing(later - 1, *FAULTY_SERIES),
            firing(later + AFTER - 10),
        ),
        promtool_test(
            {'ace_jobs{state="queue"}': "0x20 stale _x18 0x20"},
            *(firing(20), firing(35, "AceDown"), firing(55)),
        ),
    ]
    file = tmp_path / "tests.yml"
    config = {"rule_files": [str(RULES)], "evaluation_interval": "5m", "tests": tests}
    file.write_text(yaml.safe_dump(config))
    ended = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr

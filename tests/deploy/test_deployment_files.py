"""The files of docs/SELF_HOSTING.md agree with the code; linters look where they are installed."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands

from tests.config.test_env_example import variables_documented

ROOT = Path(settings.BASE_DIR)
KUBERNETES = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
UNITS = sorted((ROOT / "deploy/systemd").glob("*"))
FILES = [
    *(ROOT / name for name in ("Dockerfile", "docker-compose.yml", "fly.toml")),
    *KUBERNETES,
    *UNITS,
]
# Read by uvicorn, by the image's command, by libpq.
OTHERS = {"FORWARDED_ALLOW_IPS", "WEB_PROCESSES", "PGPASSFILE", "PYTHONDONTWRITEBYTECODE"}
HARDENED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def documents() -> Iterator[dict[str, Any]]:
    for path in KUBERNETES:
        yield from yaml.safe_load_all(path.read_text())


def containers() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for found in documents():
        if found["kind"] in {"Deployment", "Job"}:
            pod = found["spec"]["template"]["spec"]
            for container in pod["containers"]:
                yield found["metadata"]["name"], pod, container


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_of_ours_that_a_file_names_exists(path: Path) -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", path.read_text()))
    assert named - set(get_commands()) == set()


def test_every_variable_that_a_file_sets_is_one_that_is_read() -> None:
    secret = yaml.safe_load((ROOT / "deploy/kubernetes/secret.example.yaml").read_text())
    config = yaml.safe_load((ROOT / "deploy/kubernetes/config.yaml").read_text())
    fly = tomllib.loads((ROOT / "fly.toml").read_text())
    web = compose()["services"]["web"]
    named = {*secret["stringData"], *config["data"], *fly["env"], *web["environment"]}
    assert named - set(variables_documented()) - OTHERS == set()


def test_every_container_of_kubernetes_runs_without_rights_on_a_tree_it_cannot_change() -> None:
    for name, pod, container in containers():
        assert container["securityContext"] == HARDENED, name
        assert pod["securityContext"]["runAsUser"] == 10001, name
        assert not pod["automountServiceAccountToken"], name


def test_the_platforms_services_of_compose_run_without_rights() -> None:
    ours = [s for s in compose()["services"].values() if s["image"] == "ace-platform"]
    assert len(ours) == 4
    for service in ours:
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_compose_needs_nothing_from_the_operator() -> None:
    required = re.findall(r"\$\{\w+:?\?", (ROOT / "docker-compose.yml").read_text())
    assert not required
    assert not compose()["x-platform"]["env_file"][0]["required"]


def test_the_queue_metric_that_scales_workers_is_one_that_is_served() -> None:
    (scaled,) = (found for found in documents() if found["kind"] == "ScaledObject")
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]
    (metric,) = re.findall(r"\bace_\w+", query)
    assert f'"{metric}"' in (ROOT / "config/observability/metrics_collectors.py").read_text()
    assert scaled["spec"]["minReplicaCount"] >= 1


def test_no_manifest_takes_back_the_number_of_pods_that_scaling_chose() -> None:
    deployments = [found for found in documents() if found["kind"] == "Deployment"]
    assert deployments
    assert not [found for found in deployments if "replicas" in found["spec"]]


def test_a_release_that_fails_or_runs_again_takes_neither_web_nor_worker_down() -> None:
    """`Requires=` would stop both when it runs again, and never start them when it failed."""
    for part in ("web@", "worker"):
        text = (ROOT / f"deploy/systemd/ace-{part}.service").read_text()
        assert "After=ace-release.service\nWants=ace-release.service\n" in text
        assert "Requires=" not in text


def test_the_kustomization_lists_every_manifest_but_the_example() -> None:
    listed = yaml.safe_load((ROOT / "deploy/kubernetes/kustomization.yaml").read_text())
    there = {path.name for path in KUBERNETES} - {"kustomization.yaml", "secret.example.yaml"}
    assert set(listed["resources"]) == there


def test_no_proxy_holds_a_stream_back() -> None:
    assert "proxy_buffering off;" in (ROOT / "deploy/proxy/nginx.conf").read_text()
    assert "flush_interval -1" in (ROOT / "deploy/proxy/Caddyfile").read_text()


def test_the_image_runs_as_nobody_in_particular_and_checks_hashes() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert "--require-hashes" in text
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*config\.observability\.healthcheck", text, re.MULTILINE)


def test_the_image_holds_every_app_and_no_test() -> None:
    kept = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().split()
        if line.startswith("!")
    }
    apps = {path.parent.name for path in ROOT.glob("*/apps.py")}
    assert apps <= kept
    assert not {"tests", ".env", "var"} & kept


def linted(*command: str) -> "subprocess.CompletedProcess[str]":
    """What a linter says; skipped where it is not installed."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    ended = linted("hadolint", "Dockerfile")
    assert (ended.returncode, ended.stdout) == (0, "")


def test_caddy_takes_its_file() -> None:
    ended = linted(
        "caddy", "validate", "--adapter", "caddyfile", "--config", "deploy/proxy/Caddyfile"
    )
    assert ended.returncode == 0, ended.stderr


def test_nginx_takes_its_file(tmp_path: Path) -> None:
    certificate = ("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=ace")
    files = ("-keyout", f"{tmp_path}/privkey.pem", "-out", f"{tmp_path}/fullchain.pem")
    assert linted(*certificate, *files).returncode == 0
    text = (ROOT / "deploy/proxy/nginx.conf").read_text()
    (tmp_path / "ace.conf").write_text(text.replace("/etc/ssl/ace", str(tmp_path)))
    whole = f"events {{}} pid {tmp_path}/pid; http {{ include {tmp_path}/ace.conf; }}"
    (tmp_path / "nginx.conf").write_text(whole)
    ended = linted("nginx", "-t", "-e", "stderr", "-c", f"{tmp_path}/nginx.conf")
    assert ended.returncode == 0, ended.stderr


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        # systemd-analyze looks whether the programs are there.
        text = re.sub(r"/opt/ace/\.venv/bin/\w+", "/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    ended = linted("systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir())))
    assert (ended.returncode, ended.stderr) == (0, "")

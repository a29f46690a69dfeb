"""`ace ci`: a run of GitHub Actions tells how the change of an agent went.

The outcomes that were reported for the commit, pull request or run become ground truth; those of a
commit that a push reverts become failures. Nothing here fails the run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from ace.api import Api, Refused
from ace.settings import NotConfigured, load_settings

REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{40})", re.M)
KNOWN = ("success", "failure")


def run(given: argparse.Namespace) -> None:
    """Correct by each reference of the run; a warning where the server cannot be reached."""
    event = read_event()
    verdicts = {sha: ("failure", f"Reverted in {run_url()}") for sha in reverted(event)}
    if given.status in KNOWN:  # cancelled and skipped say nothing
        notes = f"CI of {os.environ.get('GITHUB_WORKFLOW', 'the change')}: {run_url()}"
        verdicts |= dict.fromkeys(references(event), (given.status, notes))
    corrected: dict[str, str] = {}
    try:
        api = Api(load_settings())
        for ref, (outcome, notes) in verdicts.items():
            corrected |= dict.fromkeys(correct(api, ref, outcome, notes), outcome)
    except (Refused, NotConfigured, OSError) as error:
        print(f"::warning title=ACE::{error}")
    for outcome in KNOWN:
        print(f"{outcome}: {list(corrected.values()).count(outcome)} corrected")


def correct(api: Api, ref: str, outcome: str, notes: str) -> list[str]:
    """The ids of the reference's outcomes; most commits have none."""
    try:
        return [row["id"] for row in api.correct(ref, outcome, notes)]
    except Refused as refused:
        if refused.code == "404":
            return []
        raise


def read_event() -> dict[str, Any]:
    """The event that started the run."""
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    except (KeyError, OSError, ValueError):
        return {}
    return event if isinstance(event, dict) else {}


def references(event: dict[str, Any]) -> list[str]:
    """The commit that was checked (of a pull request its head, not the merge), and its address."""
    pull = event.get("pull_request") or {}
    checked = event.get("workflow_run") or {}
    commit = (pull.get("head") or {}).get("sha") or checked.get("head_sha")
    found = [commit or os.environ.get("GITHUB_SHA", ""), pull.get("html_url", ""), run_url()]
    return [ref for ref in found if ref]


def reverted(event: dict[str, Any]) -> list[str]:
    """The commits that the commits of a push revert."""
    messages = [str(commit.get("message", "")) for commit in event.get("commits") or []]
    return [sha for message in messages for sha in REVERTS.findall(message)]


def run_url() -> str:
    """The address of this run, as it was on the page that a report may name."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, number = (os.environ.get(name, "") for name in names)
    return f"{server}/{repository}/actions/runs/{number}" if number else ""

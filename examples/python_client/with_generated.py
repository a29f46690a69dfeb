"""The whole loop with a client that was generated from /api/schema; README.md says how.

Needs httpx, attrs and python-dateutil, as the generated client does.
"""

import os
import sys
from collections.abc import Iterator
from threading import Event
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from ace_client import AuthenticatedClient, Client
from ace_client.api.auth import create_api_key, log_in
from ace_client.api.evolutions import get_evolution, trigger_evolution
from ace_client.api.outcomes import report_outcome
from ace_client.api.playbooks import clone_playbook, get_playbook, list_playbooks
from ace_client.api.versions import diff_versions, list_versions
from ace_client.models import (
    ApiKeyCreate,
    Error,
    Evolution,
    EvolutionStatus,
    KeyScope,
    Login,
    OutcomeCreate,
    OutcomeSignal,
    OutcomeStatus,
    PlaybookClone,
    Version,
)
from ace_client.types import UNSET, Unset

T = TypeVar("T")
URL = os.environ.get("ACE_URL", "http://127.0.0.1:8000")
ACTIVE = {EvolutionStatus.QUEUED, EvolutionStatus.RUNNING}


def good(answer: T | Error | None) -> T:
    """The answer; a refusal ends the program with its message."""
    if isinstance(answer, Error):
        sys.exit(f"refused: {answer.error.message}")
    if answer is None:
        sys.exit("an answer that the OpenAPI document does not name")
    return answer


def create_key() -> str:
    """Log in, and create a key for the rest of the program."""
    with Client(base_url=URL) as public:
        login = Login(email=os.environ["ACE_EMAIL"], password=os.environ["ACE_PASSWORD"])
        tokens = good(log_in.sync(client=public, body=login))
    with AuthenticatedClient(base_url=URL, token=tokens.access) as person:
        wanted = ApiKeyCreate(name="generated client", scopes=list(KeyScope))
        made: str = good(create_api_key.sync(client=person, body=wanted)).key
        return made


def wait_for(job: Evolution, client: AuthenticatedClient) -> Evolution:
    """The evolution once it is neither queued nor running."""
    while job.status in ACTIVE:
        Event().wait(0.5)
        job = good(get_evolution.sync(job.job_id, client=client))
    return job


def all_versions(client: AuthenticatedClient, playbook: UUID) -> Iterator[Version]:
    """Newest first, page by page: the cursor of the next page stands in its address."""
    cursor: str | Unset = UNSET
    while True:
        page = good(list_versions.sync(playbook, client=client, page_size=1, cursor=cursor))
        yield from page.results
        if page.next_ is None:
            return
        cursor = parse_qs(urlsplit(page.next_).query)["cursor"][0]


def main() -> None:
    with AuthenticatedClient(base_url=URL, token=create_key()) as ace:
        starter = good(list_playbooks.sync(client=ace, include_starters=True)).results[0]
        mine = good(clone_playbook.sync(starter.id, client=ace, body=PlaybookClone(name="Mine"))).id
        advice = good(get_playbook.sync(mine, client=ace))
        for number in range(2):
            outcome = OutcomeCreate(
                task_description="Fix the flaky test",
                outcome=OutcomeStatus.FAILURE,
                notes="Lesson: freeze the clock in every test that compares dates.",
                serving_id=advice.serving_id,
                signal=OutcomeSignal.TEST,
            )
            key = f"flaky-test-{mine}-{number}"
            recorded = good(
                report_outcome.sync(mine, client=ace, body=outcome, idempotency_key=key)
            )
            print(f"{recorded.pending_outcomes} waiting")
        started = good(trigger_evolution.sync(mine, client=ace))
        if started.job_id is not None:  # else nothing was pending
            job = wait_for(good(get_evolution.sync(started.job_id, client=ace)), ace)
            print(f"evolution {job.status}: version {job.from_version} to {job.to_version}")
        versions = list(all_versions(ace, mine))
        print(*(f"version {row.version}: {row.reason}" for row in versions), sep="\n")
        diff = good(diff_versions.sync(mine, versions[0].version, client=ace))
        print(*(f"+ [{line.id}] {line.content}" for line in diff.added), sep="\n")


if __name__ == "__main__":
    main()

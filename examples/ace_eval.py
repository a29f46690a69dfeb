#!/usr/bin/env python3
"""Answer the cases of a playbook with a command of yours, for CI; the standard library only.

    ACE_URL=https://ace.example.org ACE_API_KEY=ace_live_… python ace_eval.py <playbook id> ./agent

While a new version waits for its check, each case is given to the command: the advice and the
question on its standard input; what it prints is the answer. With an empty output its exit code
counts, so your own tests may judge. Which version the advice is of is not told.

Exit code 0: the version may go on trial, or none waits. 1: it was refused. 2: it could not be
checked.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

TIMEOUT = 60


def call(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON of an answer; None for one without content."""
    request = urllib.request.Request(  # noqa: S310 - your own address
        f"{os.environ['ACE_URL'].rstrip('/')}/api/v1{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['ACE_API_KEY']}",
            "Content-Type": "application/json",
        },
        method=method,
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310 - as above
        text = answer.read()
    return json.loads(text) if text else None


def answer_case(playbook: str, case: dict[str, str], command: list[str]) -> None:
    """Run the command on one case and report its answer."""
    asked = f"{case['content']}\n{case['question']}\n"
    done = subprocess.run(  # noqa: S603 - your own command
        command, input=asked, stdout=subprocess.PIPE, text=True, check=False
    )
    report = {
        "task_description": case["question"][:1000],
        "outcome": "failure" if done.returncode else "success",
        "signal": "test",
        "notes": done.stdout.strip()[:2000],
        "serving_id": case["serving_id"],
    }
    call("POST", f"/playbooks/{playbook}/outcomes", report)


def main(playbook: str, *command: str) -> int:
    answered = 0
    while case := call("POST", f"/playbooks/{playbook}/cases/next", {}):
        answer_case(playbook, case, list(command))
        answered += 1
    trials = call("GET", f"/playbooks/{playbook}/trials")["results"]
    newest = trials[0] if trials else {"status": "none", "gate": "", "reason": "", "verdict": None}
    print(f"{answered} cases answered. {newest['gate'] or newest['reason'] or 'No version waits.'}")
    if newest["status"] == "gating":
        return 2
    return int(answered > 0 and newest["verdict"] == "worse")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(print(__doc__) or 2)
    try:
        sys.exit(main(*sys.argv[1:]))
    except (KeyError, OSError, urllib.error.URLError) as error:
        print(f"The check could not be made: {error}", file=sys.stderr)
        sys.exit(2)

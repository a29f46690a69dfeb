"""The platform over REST."""

from dataclasses import asdict
from typing import Any

import httpx2

from todo_agent.ace import AceError, Evolution, Reading, Report, Triggered


class RestPlatform:
    def __init__(self, url: str, key: str) -> None:
        self._http = httpx2.Client(
            base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {key}"}, timeout=30
        )

    def close(self) -> None:
        self._http.close()

    def create_playbook(self, name: str) -> str:
        return str(self._send("POST", "/playbooks", json={"name": name})["id"])

    def read(self, playbook_id: str, max_tokens: int | None) -> Reading:
        limit = {} if max_tokens is None else {"max_tokens": max_tokens}
        answer = self._send("GET", f"/playbooks/{playbook_id}", params=limit)
        return Reading(answer["id"], answer["version"], answer["serving_id"], answer["content"])

    def report(self, playbook_id: str, report: Report) -> str:
        answer = self._send("POST", f"/playbooks/{playbook_id}/outcomes", json=asdict(report))
        return str(answer["outcome_id"])

    def trigger_evolution(self, playbook_id: str) -> Triggered:
        answer = self._send("POST", f"/playbooks/{playbook_id}/evolutions")
        return Triggered(answer["job_id"], answer["is_new"])

    def evolution(self, job_id: str) -> Evolution:
        answer = self._send("GET", f"/evolutions/{job_id}")
        return Evolution(answer["status"], answer["outcomes_processed"], answer["error_message"])

    def _send(self, method: str, path: str, **sent: Any) -> Any:
        try:
            answer = self._http.request(method, path, **sent)
        except httpx2.HTTPError as error:
            raise AceError(f"The platform could not be reached: {error}") from None
        if answer.is_error:
            raise AceError(f"The platform refused ({answer.status_code}): {_sentence(answer)}")
        return answer.json()


def _sentence(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase

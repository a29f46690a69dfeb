"""One task over REST: read the playbook, work, report. Needs httpx2."""

import os

import httpx2

URL = os.environ.get("ACE_URL", "http://127.0.0.1:8000")


def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['ACE_API_KEY']}"}
    with httpx2.Client(base_url=f"{URL}/api/v1", headers=headers, timeout=30) as ace:
        starters = ace.get("/playbooks", params={"include_starters": True}).raise_for_status()
        starter = starters.json()["results"][0]
        mine = ace.post(f"/playbooks/{starter['id']}/clone").raise_for_status().json()
        advice = ace.get(f"/playbooks/{mine['id']}").raise_for_status().json()
        print(advice["content"])  # into your agent's instructions; then let it work
        report = {
            "task_description": "Fix the flaky test",
            "outcome": "failure",
            "notes": "Lesson: freeze the clock in every test that compares dates.",
            "serving_id": advice["serving_id"],
        }
        recorded = (
            ace.post(f"/playbooks/{mine['id']}/outcomes", json=report).raise_for_status().json()
        )
        print(f"{recorded['pending_outcomes']} reports wait for the next evolution")


if __name__ == "__main__":
    main()

"""AppWorld as a world to act in, for `manage.py ace_offline_train` and `ace_online_run`.

    pip install appworld && appworld install && appworld download data
    python -m benchmarks.quality.appworld_world train > train.jsonl
    appworld serve environment --port 8001 &
    APPWORLD_URLS=http://127.0.0.1:8001 manage.py ace_online_run --playbook AppWorld \\
        --dataset train.jsonl --environment world:benchmarks.quality.appworld_world:AppWorldTask

Written for appworld 0.1.3. It freezes the clock of its process and keeps one world there, so each
world lives in a server of its own: as many tasks run at a time as APPWORLD_URLS names servers.
"""

import json
import os
import queue
import re
import sys
from functools import cache
from importlib import import_module
from typing import Any

EXPERIMENT = "ace"
TASK_ID = re.compile(r"AppWorld task (\w+)")
FENCED = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
SEEN = """\
You are in a Python session that keeps its variables; each action is Python code alone, and you see
what it prints. Call an app's API as apis.APP.API(…) and look APIs up there:
  print(apis.api_docs.show_api_descriptions(app_name=…))
  print(apis.api_docs.show_api_doc(app_name=…, api_name=…))
At the end call apis.supervisor.complete_task(), with answer=… if the task is a question.
You act for {supervisor}.
Apps: {apps}
"""


@cache
def free_servers() -> "queue.Queue[str]":
    """The servers of APPWORLD_URLS that have no world now."""
    found: queue.Queue[str] = queue.Queue()
    for url in os.environ["APPWORLD_URLS"].split(","):
        found.put(url.strip())
    return found


class AppWorldTask:
    """One task: `reset` waits for a free server, `close` gives it back."""

    _url: str | None = None
    _world: Any = None

    def reset(self, question: Any) -> str:
        """What the agent sees first; the question's context names the task's id."""
        match = TASK_ID.search(question.context)
        if match is None:
            raise ValueError("The row's context names no AppWorld task.")
        self._url = free_servers().get()
        self._world = import_module("appworld").AppWorld(  # an optional package
            task_id=match[1], experiment_name=EXPERIMENT, remote_environment_url=self._url
        )
        task = self._world.task
        return SEEN.format(supervisor=task.supervisor, apps=json.dumps(task.app_descriptions))

    def step(self, action: str) -> tuple[str, bool]:
        """Run the code; it is over once the agent has called `complete_task`."""
        fenced = FENCED.search(action)
        output = self._world.execute(fenced[1] if fenced else action)
        return output, self._world.task_completed()

    def score(self) -> dict[str, Any]:
        """The share of the task's tests that hold; what they ask for is told as its right answer.

        So a run that withholds ground truth learns the verdict, and nothing of the tests.
        """
        tests = self._world.evaluate()
        status = "success" if tests.success else "partial" if tests.pass_count else "failure"
        missed = [f"not met: {failure['requirement']}" for failure in tests.failures]
        return {
            "status": status,
            "score": tests.pass_count / tests.num_tests,
            "message": f"{tests.pass_count} of {tests.num_tests} tests of the task pass.",
            "ground_truth": "\n".join(missed) or "All tests pass.",
        }

    def close(self) -> None:
        """Give the server back, however the attempt ended."""
        if self._url is None:
            return
        try:
            if self._world is not None:
                self._world.close()
        finally:
            free_servers().put(self._url)
            self._url = None


def write_rows(split: str, out: Any) -> None:
    """A data set of AppWorld's tasks: train, dev, test_normal or test_challenge."""
    load = import_module("appworld.task").Task.load
    for name in import_module("appworld").load_task_ids(split):
        text = load(task_id=name, load_ground_truth=False).instruction
        out.write(json.dumps({"context": f"AppWorld task {name}", "question": text}) + "\n")


if __name__ == "__main__":
    write_rows(sys.argv[1], sys.stdout)

"""Real agent programs against a running platform: `make clients`, or `python -m tests.clients`.

Needs npm and its registry (or ACE_CLIENTS_DIR with the programs installed by an earlier run).
Arguments choose scenarios by a part of their name.
"""

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
django.setup()

from tests.clients import scenarios as s  # noqa: E402 - needs the settings
from tests.clients.platform_client import KEY, Site  # noqa: E402
from tests.clients.programs import Person, install, new_person, versions  # noqa: E402
from tests.harness.platform_process import running_platform  # noqa: E402

Scenario = Callable[[Site, Person], str]


def every_scenario() -> dict[str, Scenario]:
    """By name; each gets a person of its own."""
    found: dict[str, Scenario] = {
        f"connects: {slug}": partial(s.connects, slug=slug) for slug in s.CONNECTED
    }
    found["connects: mcp-remote"] = s.bridge_connects
    for slug in ("claude-code", "codex"):
        found[f"session: {slug}"] = partial(s.session, slug=slug)
        for truth in s.TRUTHS:
            name = f"plugin, {truth}: {slug}"
            found[name] = partial(s.plugin_tells_the_truth, slug=slug, truth=truth)
        found[f"plugin, server away: {slug}"] = partial(s.plugin_survives_a_dead_server, slug=slug)
    for truth in s.TRUTHS:
        found[f"hooks, {truth}: gemini-cli"] = partial(s.gemini_hooks_tell_the_truth, truth=truth)
    for sdk in ("openai_agents", "claude_agent", "langgraph", "pydantic_ai"):
        found[f"adapter: {sdk}"] = partial(s.adapter_learns, sdk=sdk)
    found["60,000 characters: claude-code"] = s.long_playbook_arrives
    found["connect page: claude-code"] = s.page_flips
    return found


def play(scenario: Scenario, site: Site, programs: Path) -> tuple[bool, str]:
    """Whether it went well, and what was seen or what went wrong."""
    try:
        with new_person(programs, ACE_API_KEY=site.key) as person:
            return True, scenario(site, person)
    except Exception:  # noqa: BLE001 - one failed scenario must not hide the others
        return False, traceback.format_exc()


def main(wanted: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="ace-programs-", ignore_cleanup_errors=True) as fresh:
        programs = install(Path(os.environ.get("ACE_CLIENTS_DIR") or fresh))
        print("programs:", ", ".join(f"{name} {version}" for name, version in versions().items()))
        failed = 0
        with running_platform(KEY) as platform:
            for name, scenario in every_scenario().items():
                if wanted and not any(part in name for part in wanted):
                    continue
                start = time.monotonic()
                good, message = play(scenario, Site(platform.url), programs)
                failed += not good
                word = "ok    " if good else "FAILED"
                print(f"{word} {name} ({time.monotonic() - start:.0f} s): {message}", flush=True)
    print("all passed" if not failed else f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

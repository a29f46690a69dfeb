"""What grows with its data: each list, page and call at N rows beside N/100, in one process.

Five pairs, alike but for one count: outcomes of a playbook, playbooks of an account, bullets,
versions, API keys. Rows beyond the first are copied by the database, past the services.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any
from uuid import UUID

import django
from django.core.management import call_command
from django.db import connection, models
from django.test import Client

django.setup()

from accounts.keys.api_keys import create_api_key  # noqa: E402 - after the settings
from accounts.keys.authentication import principal_for_key  # noqa: E402 - after the settings
from accounts.models import ApiKey, User  # noqa: E402 - after the settings
from benchmarks.rows import plan_by_figures  # noqa: E402 - after the settings
from core.security.scopes import KEY_SCOPES, Principal  # noqa: E402 - after the settings
from evolution.models import Outcome  # noqa: E402 - after the settings
from evolution.outcomes.reporting import report_outcome  # noqa: E402 - after the settings
from mcp_bridge.tools.definitions import TOOLS  # noqa: E402 - after the settings
from playbooks.document.operations import Operation  # noqa: E402 - after the settings
from playbooks.models import Delta, Playbook, Version  # noqa: E402 - after the settings
from playbooks.services.creation import import_playbook  # noqa: E402 - after the settings
from playbooks.services.editing import edit_playbook  # noqa: E402 - after the settings
from playbooks.services.rollback import rollback_playbook  # noqa: E402 - after the settings

SIZES = {
    "outcomes": 1_000_000,
    "playbooks": 10_000,
    "bullets": 1_000,
    "versions": 5_000,
    "keys": 100,
}
ROUNDS = 9
UUIDS = {"sqlite": "lower(hex(randomblob(16)))", "postgresql": "gen_random_uuid()"}
EARLIER = {
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f000', created_at, '-' || (30 * n) || ' seconds')",
    "postgresql": "created_at - n * interval '30 seconds'",
}
NUMBERS = "numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %s)"
Call = Callable[[], object]


@dataclass
class Account:
    """A user with key and browser, and the playbook that is measured."""

    user: User
    token: str
    browser: Client
    playbook: Playbook

    def page(self, path: str) -> Call:
        return lambda: _ok(self.browser.get(path))

    def rest(self, path: str) -> Call:
        headers = {"authorization": f"Bearer {self.token}"}
        return lambda: _ok(self.browser.get(f"/api/v1/{path}", headers=headers))

    def tool(self, called: str, /, **arguments: Any) -> Call:
        return lambda: TOOLS[called].call(principal_for_key(self.token), arguments)


def _ok(response: Any) -> None:
    assert response.status_code == 200, f"{response.status_code}: {response.content[:200]}"


def measure(scale: float, *wanted: str) -> None:
    """Print a line of JSON for each call: CPU on SQLite, else what a clock shows, in ms."""
    call_command("migrate", verbosity=0)
    for what, size in SIZES.items():
        if wanted and what not in wanted:
            continue
        most = max(100, int(size * scale))
        pair = [_account(what, count) for count in (most // 100, most)]
        plan_by_figures()
        few, many = (CALLS[what](account) for account in pair)
        for name in few:
            times = _interleaved(few[name], many[name])
            print(json.dumps({"of": what, "most": most, "call": name} | times), flush=True)


def _interleaved(few: Call, many: Call) -> dict[str, float]:
    clock = time.thread_time if connection.vendor == "sqlite" else time.perf_counter
    taken: dict[Call, list[float]] = {few: [], many: []}
    for number in range(ROUNDS + 1):
        for call in (few, many):
            began = clock()
            call()
            if number:  # the first loads what is loaded once
                taken[call].append(1000 * (clock() - began))
    small, large = (statistics.median(taken[call]) for call in (few, many))
    return {"few": round(small, 2), "many": round(large, 2), "ratio": round(large / small, 2)}


def _account(what: str, count: int) -> Account:
    """Ten bullets, two versions, ten outcomes, one key; and `count` of `what`."""
    user = User.objects.create_user(f"growth-{what}-{count}@example.org", "a long passphrase")
    token = create_api_key(user=user, name="growth", scopes=KEY_SCOPES, notify=False)[1]
    bullets = max(2, count) if what == "bullets" else 10  # the second one is edited
    lines = [
        f"[str-{n:05}] helpful=0 harmful=0 :: Read failing test {n} before the code of it."
        for n in range(1, bullets + 1)
    ]
    by, text = Principal.of(user), "\n".join(["## STRATEGIES & INSIGHTS", *lines])
    playbook = import_playbook(by=by, name="Growth", content=text)
    edit = Operation("UPDATE", id="str-00001", content="Read the whole message before the code.")
    edit_playbook(playbook=playbook, by=by, operations=[edit])
    for number in range(10):
        status = ("success", "failure", "partial")[number % 3]
        report_outcome(
            playbook=playbook, by=principal_for_key(token), outcome=status,
            task_description=f"Make build {number} green", bullet_ids=["str-00001"],
        )  # fmt: skip
    Outcome.objects.filter(playbook=playbook).update(processed_at=playbook.created_at)
    if what in GROW:
        GROW[what](playbook, user, count)
    browser = Client(SERVER_NAME="localhost")
    browser.force_login(user)
    return Account(user, token, browser, Playbook.objects.get(pk=playbook.pk))


def _copy(rows: models.QuerySet[Any], count: int, **changed: str) -> None:
    """Copies of the rows, `count` in all, with these columns as SQL of `n`, the copy's number."""
    columns = [field.column for field in rows.model._meta.local_concrete_fields]
    earlier = EARLIER[connection.vendor]
    values = {"id": UUIDS[connection.vendor], "created_at": earlier, "updated_at": earlier}
    values |= changed
    selected = ", ".join(values.get(column, column) for column in columns)
    table, have, pks = rows.model._meta.db_table, rows.count(), rows.values_list("pk", flat=True)
    marks = ", ".join(["%s"] * have)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) "  # noqa: S608 - our own models
            f"WITH RECURSIVE {NUMBERS} SELECT {selected} FROM {table} CROSS JOIN numbers "
            f"WHERE id IN ({marks})",
            [max(1, count // have - 1), *(_plain(pk) for pk in pks)],
        )


def _plain(pk: UUID) -> Any:
    return pk.hex if connection.vendor == "sqlite" else pk


def _outcomes(playbook: Playbook, _user: User, count: int) -> None:
    _copy(Outcome.objects.filter(playbook=playbook), count)


def _playbooks(playbook: Playbook, _user: User, count: int) -> None:
    """Each with its own version: the page of an account reads it."""
    name = "name || ' ' || CAST(n AS text)"
    _copy(Playbook.objects.filter(pk=playbook.pk), count, name=name, current_version_id="NULL")
    kept = {f.name: getattr(playbook.current_version, f.name) for f in Version._meta.fields}
    kept |= {"number": 1, "parent": None, "job_id": None}
    del kept["id"]
    bare = list(Playbook.objects.filter(owner=playbook.owner, current_version=None))
    made = [Version(**kept | {"playbook": row}) for row in bare]
    Version.objects.bulk_create(made, batch_size=500)
    for row, version in zip(bare, made, strict=True):
        row.current_version = version
    Playbook.objects.bulk_update(bare, ["current_version"], batch_size=500)


def _versions(playbook: Playbook, _user: User, count: int) -> None:
    newest = playbook.versions.filter(number=2)
    _copy(newest, count, number="number + n", seal="''", sealed="NULL")
    deltas = Delta.objects.filter(version=playbook.current_version)
    rows = playbook.versions.filter(number__gt=2).only("pk")
    first = deltas.get()
    values = {f.name: getattr(first, f.name) for f in Delta._meta.fields if f.name != "id"}
    Delta.objects.bulk_create([Delta(**values | {"version": row}) for row in rows], batch_size=500)
    playbook.current_version = playbook.versions.order_by("-number").first()
    playbook.save()


def _keys(_playbook: Playbook, user: User, count: int) -> None:
    number = "substr(prefix, 1, 4) || CAST(1000 + n AS text)"
    _copy(ApiKey.objects.filter(user=user), count, prefix=number, digest=number)


GROW: dict[str, Callable[[Playbook, User, int], None]] = {
    "outcomes": _outcomes,
    "playbooks": _playbooks,
    "versions": _versions,
    "keys": _keys,
}


def _edits(account: Account, operation: Callable[[int], Operation]) -> Call:
    """An edit with another operation at each call."""
    numbers = iter(range(10**6))

    def edit() -> None:
        playbook = Playbook.objects.get(pk=account.playbook.pk)
        by = Principal.of(account.user)
        edit_playbook(playbook=playbook, by=by, operations=[operation(next(numbers))])

    return edit


def _new_text(number: int) -> Operation:
    return Operation("UPDATE", id="str-00002", content=f"Advice {number} of it.")


def _new_bullet(number: int) -> Operation:
    """Whether its advice is there is looked up among all."""
    return Operation("ADD", section="str", content=f"Note {number} about a build.")


def _read_for_tasks(account: Account) -> Call:
    """An excerpt for another task at each call."""
    tasks, pk = iter(range(10**6)), str(account.playbook.pk)

    def read() -> object:
        task = f"Make failing test {next(tasks)} green"
        return account.tool("get_playbook", playbook_id=pk, max_tokens=200, task=task)()

    return read


def _roll_back(account: Account) -> Call:
    # A rollback to an equal text is refused.
    numbers = cycle((1, 2))

    def roll_back() -> None:
        playbook = Playbook.objects.get(pk=account.playbook.pk)
        by = Principal.of(account.user)
        rollback_playbook(playbook=playbook, by=by, number=next(numbers))

    return roll_back


def _everywhere(account: Account) -> dict[str, Call]:
    """What every account asks for."""
    pk = str(account.playbook.pk)
    report = {"task_description": "Make it green", "outcome": "success"}
    return {
        "page: home": account.page("/overview"),
        "page: list": account.page("/playbooks"),
        "page: playbook": account.page(f"/playbooks/{pk}"),
        "page: overview": account.page(f"/playbooks/{pk}/overview"),
        "page: outcomes": account.page(f"/playbooks/{pk}/outcomes"),
        "page: evidence": account.page(f"/playbooks/{pk}/evidence"),
        "page: inbox": account.page("/inbox"),
        "REST: list": account.rest("playbooks"),
        "REST: playbook": account.rest(f"playbooks/{pk}"),
        "REST: outcomes": account.rest(f"playbooks/{pk}/outcomes"),
        "REST: search": account.rest("search?q=nosuchword"),
        "MCP: list": account.tool("list_playbooks"),
        "MCP: read": account.tool("get_playbook", playbook_id=pk, max_tokens=200),
        "MCP: report": account.tool("report_outcome", playbook_id=pk, **report),
    }


def _of_outcomes(account: Account) -> dict[str, Call]:
    base = f"playbooks/{account.playbook.pk}"
    filters = ("status=partial", "signal=test", "client=-", "status=pending", "q=nosuchword")
    pages = {f"page: outcomes?{query}": account.page(f"/{base}/outcomes?{query}")
             for query in filters}  # fmt: skip
    return _everywhere(account) | pages | {
        "page: sources": account.page(f"/{base}/sources"),
        "page: ledger": account.page(f"/{base}/ledger"),
        "REST: evidence": account.rest(f"{base}/evidence"),
    }  # fmt: skip


def _of_playbooks(account: Account) -> dict[str, Call]:
    return _everywhere(account) | {
        "page: list?sort=success": account.page("/playbooks?sort=success"),
        "page: list?q=": account.page("/playbooks?q=nosuchword"),
        "page: usage": account.page("/usage"),
        "page: keys": account.page("/keys"),
        "MCP: list?query": account.tool("list_playbooks", query="nosuchword"),
        "MCP: read by name": account.tool("get_playbook", name="Growth"),
    }


def _of_versions(account: Account) -> dict[str, Call]:
    base, newest = f"playbooks/{account.playbook.pk}", account.playbook.current_version
    number = newest.number if newest else 1
    return _everywhere(account) | {
        "page: versions": account.page(f"/{base}/versions"),
        "page: version": account.page(f"/{base}/versions/{number}"),
        "page: diff": account.page(f"/{base}/versions/{number}/diff"),
        "page: bullet": account.page(f"/{base}/bullets/str-00002"),
        "page: rollback": account.page(f"/{base}/versions/1/rollback"),
        "REST: versions": account.rest(f"{base}/versions"),
        "REST: diff": account.rest(f"{base}/versions/{number}/diff"),
        "REST: bullets": account.rest(f"{base}/bullets"),
        "MCP: versions": account.tool("list_versions", playbook_id=str(account.playbook.pk)),
        "MCP: read for a task": _read_for_tasks(account),
        "edit": _edits(account, _new_text),
        "edit: new bullet": _edits(account, _new_bullet),
        "rollback": _roll_back(account),
    }


def _of_keys(account: Account) -> dict[str, Call]:
    return _everywhere(account) | {
        "page: keys": account.page("/keys"),
        "page: connect": account.page("/connect"),
    }


CALLS: dict[str, Callable[[Account], dict[str, Call]]] = {
    "outcomes": _of_outcomes,
    "playbooks": _of_playbooks,
    "bullets": _of_versions,
    "versions": _of_versions,
    "keys": _of_keys,
}


if __name__ == "__main__":
    measure(float(sys.argv[1]), *sys.argv[2:])

"""How many queries a page makes, and how long it takes: for the pins, and for the command."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from tests.factories import make_user
from tests.harness.clients import logged_in_client
from tests.harness.large_account import build_big_world
from tests.harness.page_urls import common_pages, own_pages
from tests.harness.sample_account import World, build_world

ROUNDS = 3
LARGE = 100
PINS = Path(__file__).parents[1] / "pages" / "query_counts.txt"


@dataclass(frozen=True)
class Measured:
    """One page: its name without ids, the queries of one answer, the best times in ms, its size.

    `cpu_ms` is what a machine would take that does nothing else.
    """

    page: str
    queries: int
    ms: float
    cpu_ms: float
    bytes: int


@contextmanager
def world_of(email: str, *, big: bool) -> Iterator[World]:
    """A world that is gone afterwards; the caller has let the database be used."""
    with transaction.atomic():
        owner: User = make_user(email)
        yield build_big_world(owner) if big else build_world(owner)
        transaction.set_rollback(True)


def pages_of(world: World) -> dict[str, str]:
    """Every page that the owner can open, by a name that has no id of this world in it."""
    one = world.playbook.get_absolute_url()
    last = world.playbook.versions.latest("number").number
    addresses = [*common_pages(), *own_pages(world), world.starter.get_absolute_url()]
    deep = {}
    if last > LARGE:
        # The largest of their kind: late pages, and versions that are far apart.
        deep = {f"{one}/versions?page=200": "", f"{world.session.get_absolute_url()}?page=5": ""}
        deep |= {
            f"{one}/versions/{last}": f"{one}/versions/<last>",
            f"{one}/versions/{last}/diff?against=2": f"{one}/versions/<last>/diff?against=2",
            f"{one}/versions/{last - 1}/rollback": f"{one}/versions/<last but one>/rollback",
        }
    names = {
        str(row.pk): f"<{field.name}>"
        for field in fields(world)
        if (row := getattr(world, field.name)) is not None and hasattr(row, "pk")
    }
    found = {}
    for address in [*addresses, *deep]:
        page = deep.get(address) or address
        for pk, name in names.items():
            page = page.replace(pk, name)
        found[page] = address
    return found


def measure(
    client: Client, page: str, address: str, *, rounds: int, pinned: int | None = None
) -> Measured:
    """The quickest of some answers, and the queries of the last: some pages write at first.

    A page that makes `pinned` queries at once is not asked again.
    """
    best = cpu = float("inf")
    for _ in range(rounds):
        with CaptureQueriesContext(connection) as captured:
            start, used = time.perf_counter(), time.process_time()
            response = client.get(address)
            best = min(best, time.perf_counter() - start)
            cpu = min(cpu, time.process_time() - used)
        assert response.status_code == 200, (page, response.status_code)
        if len(captured) == pinned:
            break
    return Measured(page, len(captured), 1000 * best, 1000 * cpu, len(response.getvalue()))


def measure_all(
    world: World, *, rounds: int = 2, without: str = "", pins: dict[str, int] | None = None
) -> list[Measured]:
    """Every page but those with `without` in their name; with `pins`, once where the pin holds."""
    client = logged_in_client(world.owner)
    return [
        measure(client, page, at, rounds=rounds, pinned=(pins or {}).get(page))
        for page, at in pages_of(world).items()
        if not without or without not in page
    ]


def read_pins() -> dict[str, int]:
    """How many queries each page makes, by its name."""
    lines = [line.split(maxsplit=1) for line in PINS.read_text().splitlines()]
    return {page: int(queries) for queries, page in lines}


def write_pins(measured: list[Measured]) -> None:
    lines = [f"{one.queries:3} {one.page}\n" for one in sorted(measured, key=lambda one: one.page)]
    PINS.write_text("".join(lines))

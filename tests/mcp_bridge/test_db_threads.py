"""Database threads: few connections, carried context variables, a prompt shutdown."""

import asyncio
import contextlib
import socket
import threading
import time
from contextvars import ContextVar
from urllib.parse import urlsplit

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from accounts.models import User
from config.asgi import build_application
from mcp_bridge.protocol.db_threads import THREADS, DatabaseThreads, threads
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.live_server import Agent, live_mcp, serving

color: ContextVar[str] = ContextVar("color")


def test_context_variables_reach_the_work() -> None:
    async def work() -> str:
        color.set("blue")
        return await threads.run(color.get)

    assert asyncio.run(work()) == "blue"
    threads.close()


def test_work_runs_on_few_threads_which_end() -> None:
    pool = DatabaseThreads(3)

    async def work() -> set[str]:
        names = (pool.run(lambda: threading.current_thread().name) for _ in range(50))
        return set(await asyncio.gather(*names))

    assert 1 <= len(asyncio.run(work())) <= 3
    before = threading.active_count()
    pool.close()
    pool.close()
    assert threading.active_count() < before


def test_work_that_fails_in_any_way_answers_its_caller() -> None:
    async def failing(error: BaseException) -> None:
        def fail() -> None:
            raise error

        await threads.run(fail)

    for error, told in ((StopIteration("end"), RuntimeError), (KeyError("k"), KeyError)):
        with pytest.raises(told):
            asyncio.run(asyncio.wait_for(failing(error), 20))
    threads.close()


def test_work_of_a_caller_that_has_gone_is_not_begun() -> None:
    pool, begun, over = DatabaseThreads(1), list[str](), threading.Event()

    async def work() -> None:
        first = asyncio.create_task(pool.run(lambda: over.wait(20)))
        second = asyncio.create_task(pool.run(lambda: begun.append("second")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        over.set()
        assert await first
        await pool.run(lambda: begun.append("third"))

    asyncio.run(work())
    assert begun == ["third"]
    pool.close()


@pytest.mark.databases
def test_a_hundred_calls_leave_few_connections(
    agent: Agent, playbook: Playbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    wrapper = type(connections["default"])
    connect = wrapper.connect

    def counted(self: BaseDatabaseWrapper) -> None:
        opened.append(threading.get_ident())
        connect(self)

    monkeypatch.setattr(wrapper, "connect", counted)

    async def many(client: object) -> None:
        for _ in range(5):
            calls = (client.call_tool("list_playbooks", {}) for _ in range(20))  # type: ignore[attr-defined]  # the SDK's Client
            answers = await asyncio.gather(*calls)
            assert not any(answer.is_error for answer in answers)

    agent.run(many)
    assert len(set(opened)) <= THREADS


def test_an_open_request_does_not_delay_the_shutdown(transactional_db: None, alice: User) -> None:
    token = make_key(alice)[1]
    with contextlib.ExitStack() as stack:
        with serving(build_application()) as url:
            where = urlsplit(url)
            wire = stack.enter_context(
                socket.create_connection((where.hostname or "", where.port or 0), timeout=20)
            )
            head = (
                f"POST /mcp HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {token}\r\n"
            )
            wire.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            started = time.monotonic()
        assert time.monotonic() - started < 15


def test_a_hanging_call_does_not_delay_the_shutdown(
    transactional_db: None, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, begun, over = make_key(alice)[1], threading.Event(), threading.Event()

    def hang(**fields: object) -> None:
        begun.set()
        over.wait(30)

    monkeypatch.setattr("playbooks.services.creation.create_playbook", hang)
    with serving(build_application()) as url:
        agent = live_mcp(url, token)
        caller = threading.Thread(target=_lose, args=(agent,))
        caller.start()
        assert begun.wait(20)
        started = time.monotonic()
    assert time.monotonic() - started < 10
    over.set()
    caller.join(20)


def _lose(agent: Agent) -> None:
    with contextlib.suppress(Exception):
        agent.call("create_playbook", name="Slow")

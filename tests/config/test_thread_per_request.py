"""A request under ASGI: one visit to a thread that keeps its connection, and no more."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from asgiref.sync import SyncToAsync
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from config import urls
from config.web.thread_per_request import THREADS as MOST
from config.web.thread_per_request import ThreadPerRequestHandler
from core.http.request_id import request_id

THREADS: list[str] = []  # that views ran on
ENDED = threading.Event()
HELD, FREE = threading.Semaphore(0), threading.Event()


def plain(request: HttpRequest) -> HttpResponse:
    THREADS.append(threading.current_thread().name)
    return HttpResponse(request_id.get())


async def output() -> Any:
    try:
        yield request_id.get().encode()
        await asyncio.Event().wait()
    finally:
        ENDED.set()


def endless(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(output())


def held_up(request: HttpRequest) -> HttpResponse:
    HELD.release()
    assert FREE.wait(60)
    return HttpResponse()


urlpatterns = [
    path("plain", plain),
    path("held-up", held_up),
    path("endless", endless),
    *urls.urlpatterns,
]


@pytest.fixture
def app(settings: Any) -> Iterator[ThreadPerRequestHandler]:
    settings.ROOT_URLCONF = __name__
    settings.ALLOWED_HOSTS = ["*"]
    THREADS.clear()
    ENDED.clear()
    app = ThreadPerRequestHandler()
    yield app
    app.close()


def get(app: ThreadPerRequestHandler, *addresses: str) -> list[httpx2.Response]:
    async def ask() -> list[httpx2.Response]:
        django: Any = app
        way: Any = httpx2.ASGITransport(app=django)
        async with httpx2.AsyncClient(transport=way, base_url="http://a.test") as client:
            return [
                await client.get(at, headers={"X-Request-ID": "asked-0001"}) for at in addresses
            ]

    return asyncio.run(ask())


def test_a_request_uses_one_thread(
    app: ThreadPerRequestHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hop(*_args: Any, **_more: Any) -> None:
        raise AssertionError("Django went to a thread by itself")

    monkeypatch.setattr(SyncToAsync, "__call__", hop)
    answers = get(app, "/plain", "/plain")
    assert [one.text for one in answers] == ["asked-0001", "asked-0001"]
    assert len(THREADS) == 2


def test_a_stream_knows_its_request_and_ends_when_the_client_leaves(
    app: ThreadPerRequestHandler,
) -> None:
    sent: list[Any] = []
    left = asyncio.Event()

    async def ask() -> None:
        messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> Any:
            if (first := next(messages, None)) is not None:
                return first
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if message.get("body"):
                left.set()

        headers = [(b"host", b"a.test"), (b"x-request-id", b"asked-0001")]
        scope = {"type": "http", "method": "GET", "path": "/endless", "query_string": b"",
                 "headers": headers, "http_version": "1.1"}  # fmt: skip
        await asyncio.wait_for(app(scope, receive, send), 20)

    asyncio.run(ask())
    assert b"asked-0001" in [one.get("body") for one in sent]
    assert ENDED.is_set()


def test_healthz_answers_while_every_thread_is_blocked(app: ThreadPerRequestHandler) -> None:
    django: Any = app
    way: Any = httpx2.ASGITransport(app=django)

    def all_held() -> None:
        for _ in range(MOST):
            assert HELD.acquire(timeout=30)

    async def ask() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=way, base_url="http://a.test") as client:
            waiting = [asyncio.create_task(client.get("/held-up")) for _ in range(MOST)]
            await asyncio.to_thread(all_held)
            try:
                return await asyncio.wait_for(client.get("/healthz"), 10)
            finally:
                FREE.set()
                await asyncio.gather(*waiting)

    assert asyncio.run(ask()).status_code == 200

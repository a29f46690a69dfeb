"""A stopping server answers what a proxy sends on connections that are already open."""

import asyncio
import socket

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

import config.asgi

POST = b"POST / HTTP/1.1\r\nHost: ace\r\nContent-Length: 0\r\n\r\n"


async def responses() -> list[bytes]:
    """Of one connection: to a request before the stop, and to one after the port was closed."""
    given = uvicorn.Config(PlainTextResponse("well"), lifespan="off", log_config=None)
    listener = socket.create_server(("127.0.0.1", 0))
    address, server = listener.getsockname(), uvicorn.Server(given)
    serving = asyncio.create_task(server._serve(sockets=[listener]))
    reader, writer = await asyncio.open_connection(*address)
    writer.write(POST)
    before = await reader.readuntil(b"well")
    server.should_exit = True
    while server.servers and server.servers[0].is_serving():
        await asyncio.sleep(0.01)
    writer.write(POST)
    after = await reader.read()
    writer.close()
    await serving
    return [before, after]


def test_an_idle_server_wakes_twice_a_second_and_keeps_its_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses, ticks = [], []

    class Server(uvicorn.Server):
        async def on_tick(self, counter: int) -> bool:
            ticks.append(counter)
            return await super().on_tick(counter) or len(ticks) == 5

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", pause)
    asyncio.run(Server(uvicorn.Config(PlainTextResponse("well"))).main_loop())
    assert pauses == [0.5] * 4
    assert [tick % 10 for tick in ticks] == [0, 5, 0, 5, 0]  # each tenth sets the header


def test_a_request_on_an_open_connection_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.asgi, "CLOSING_SECONDS", 0.2)
    before, after = asyncio.run(responses())
    assert b"connection: close" not in before
    assert after.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in after

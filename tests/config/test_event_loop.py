"""The event loop that uvicorn takes sends small answers at once."""

import asyncio
import socket
from typing import cast

import uvicorn


class Accepted(asyncio.Protocol):
    """Remembers how the connection was set up."""

    nodelay = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection = transport.get_extra_info("socket")
        type(self).nodelay = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        cast(asyncio.Transport, transport).write(b".")


async def answer_once(listener: socket.socket) -> None:
    server = await asyncio.get_running_loop().create_server(Accepted, sock=listener)
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    await asyncio.wait_for(reader.readexactly(1), 20)
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()


def test_an_answer_of_one_of_several_workers_does_not_wait_for_nagle() -> None:
    config = uvicorn.Config("config.asgi:application", port=0, log_config=None)
    listener = config.bind_socket()  # what uvicorn does for `--workers 2`
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(answer_once(listener))
    assert Accepted.nodelay

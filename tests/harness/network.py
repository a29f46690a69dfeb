"""Hosts with networks of their own where root may make them, and what stands between them."""

import asyncio
import contextlib
import itertools
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

Address = tuple[str, int]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BRIDGE, NETWORK = "acetestbr", "10.231.7"


@contextmanager
def listening(serve: Serve, host: str) -> Iterator[int]:
    """`serve` answers every connection to a free port of the address, in a thread."""
    loop, ready, port = asyncio.new_event_loop(), threading.Event(), [0]
    # Once a client has sent its end, nothing else keeps a task: it was collected at its work, and
    # the client waited until its time was up.
    working: set[asyncio.Task[None] | None] = set()

    async def kept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        working.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        finally:
            working.discard(asyncio.current_task())

    async def run() -> None:
        server = await asyncio.start_server(kept, host, 0)
        port[0] = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await server.serve_forever()

    def work() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        if serving := asyncio.all_tasks(loop):
            # They close their connections before the loop is gone.
            loop.run_until_complete(asyncio.wait(serving))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    task = loop.create_task(run())
    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(10)
    try:
        yield port[0]
    finally:
        # In one call: after the first of several the loop may be closed.
        loop.call_soon_threadsafe(lambda: [one.cancel() for one in asyncio.all_tasks(loop)])
        thread.join(10)


def round_robin(hosts: Sequence[Address], seen: list[int]) -> Serve:
    """A proxy that sends every request to the next host, and each answer on as it comes."""
    turn = itertools.count()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(turn) % len(hosts)
        try:
            request = await _request(reader)
            seen.append(number)
            await _pass_on(request, hosts[number], writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one of the two went away, or the proxy ends: the other sees its connection end
        finally:
            writer.close()

    return serve


async def _pass_on(request: bytes, host: Address, writer: asyncio.StreamWriter) -> None:
    there, out = await asyncio.open_connection(*host)
    try:
        out.write(request)
        async for piece in _pieces(there):
            writer.write(piece)
            await writer.drain()
    finally:
        out.close()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """One whole request that asks for the connection to end after its answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    sizes = [line for line in lines if line.lower().startswith(b"content-length:")]
    size = int(sizes[0].split(b":")[1]) if sizes else 0
    first, rest = lines[0], lines[1:]
    return b"\r\n".join([first, b"Connection: close", *rest]) + await reader.readexactly(size)


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(65536):
        yield piece


def relay(target: Address) -> Serve:
    """Every connection is one to `target`: a way into loopback for another network."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection(*target)
        await asyncio.gather(_pump(reader, out), _pump(there, writer))

    return serve


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async for piece in _pieces(reader):
            writer.write(piece)
            await writer.drain()
    except (OSError, asyncio.CancelledError):
        pass  # the other end was killed, or the relay ends
    finally:
        writer.close()


def can_make_networks() -> bool:
    """Whether root may make network namespaces here, tried with one."""
    if os.geteuid() != 0:
        return False
    made = _ip("netns", "add", "acetest-try", check=False)
    _ip("netns", "del", "acetest-try", check=False)
    return made


@contextmanager
def networks(count: int) -> Iterator[list[tuple[str, str]]]:
    """(name, address) of so many namespaces on one bridge, whose own address ends in .1."""
    names = [(f"acetest{n}", f"{NETWORK}.{n + 10}") for n in range(count)]
    _clear(names)
    try:
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        for number, (name, address) in enumerate(names):
            end, inner = f"acetv{number}", f"acetw{number}"
            _ip("netns", "add", name)
            _ip("link", "add", end, "type", "veth", "peer", "name", inner)
            _ip("link", "set", end, "master", BRIDGE, "up")
            _ip("link", "set", inner, "netns", name)
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", inner)
            for device in (inner, "lo"):
                _ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        _clear(names)


def _clear(names: Sequence[tuple[str, str]]) -> None:
    for name, _ in names:
        _ip("netns", "del", name, check=False)
    _ip("link", "del", BRIDGE, check=False)


def _ip(*arguments: str, check: bool = True) -> bool:
    try:
        ended = subprocess.run(["ip", *arguments], capture_output=True, check=check)
    except FileNotFoundError:
        return False
    return ended.returncode == 0

"""An ASGI handler that runs each Django request in one hop to a pooled thread.

Django's own handler hops to a thread for every sync middleware, signal and view, some twenty times
a request, on a thread made for that request, which opens a new database connection.
"""

import asyncio
from contextlib import closing
from contextvars import Context, copy_context
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix
from starlette.types import Scope

from mcp_bridge.protocol.db_threads import DatabaseThreads

THREADS = 32
# Has its own thread: when a lost database blocks all others, the process still reports that it is
# alive, because restarting it would not help.
LIVENESS_PATH = "/healthz"


class ThreadPerRequestHandler(ASGIHandler):
    """Runs sync middleware and views on one thread, which keeps its database connection."""

    def __init__(self) -> None:
        super().__init__()
        self.threads, self.liveness_thread = DatabaseThreads(THREADS), DatabaseThreads(1)

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def handle(self, scope: Scope, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        # Context variables of the request (its id, the language) stay set while it is sent.
        context = copy_context()
        threads = self.liveness_thread if scope["path"] == LIVENESS_PATH else self.threads
        with closing(body):
            response = await threads.run(lambda: context.run(self._answer, scope, body))
            if response.streaming:
                await self._stream(response, context, receive, send)
            else:
                await self.send_response(response, send)

    def _answer(self, scope: Scope, body: Any) -> HttpResponseBase:
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response = self.get_response(request) if request else refusal
        assert response is not None  # noqa: S101 - narrows the type: one of both is there
        response._handler_class = self.__class__  # type: ignore[attr-defined]  # as Django's own does
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if not response.streaming:
            response.close()
        return response

    def close(self) -> None:
        """Stop the threads and close their connections."""
        self.threads.close()
        self.liveness_thread.close()

    async def _stream(
        self, response: HttpResponseBase, context: Context, receive: Any, send: Any
    ) -> None:
        """Send the parts; a client disconnect cancels it."""
        gone = asyncio.create_task(self.listen_for_disconnect(receive))
        sending = asyncio.create_task(self.send_response(response, send), context=context)
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel(), sending.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)
            await sync_to_async(response.close)()
        if not sending.cancelled():
            sending.result()

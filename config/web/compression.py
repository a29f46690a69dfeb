"""Gzip for HTML pages and for static files served from the source folders."""

import gzip

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers

COMPRESSED_TYPES = ("text/css", "text/javascript", "image/svg+xml")


class CompressionMiddleware(GZipMiddleware):
    """Whole HTML pages, and the small static files that no build step has compressed.

    Never a stream: each of its chunks would be a separate gzip member. Never a `no-store` page: it
    shows a secret, and the size of a compressed page leaks its content (BREACH). The only secrets
    of other pages are CSRF tokens, which Django masks per response and GZipMiddleware pads.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if isinstance(response, StreamingHttpResponse):
            small = kind in COMPRESSED_TYPES and request.path.startswith(
                f"/{settings.STATIC_URL.strip('/')}/"
            )
            return compress_static_file(request, response) if small else response
        if kind != "text/html" or "no-store" in response.headers.get("Cache-Control", ""):
            return response
        packed: HttpResponseBase = super().process_response(request, response)
        return packed


def compress_static_file(request: HttpRequest, response: StreamingHttpResponse) -> HttpResponseBase:
    """A static file served from the source folders, compressed as collectstatic would."""
    patch_vary_headers(response, ["Accept-Encoding"])
    whole = request.method == "GET" and response.status_code == 200
    packed = response.has_header("Content-Encoding") or response.is_async
    if packed or not whole or "gzip" not in request.headers.get("Accept-Encoding", ""):
        return response
    body = gzip.compress(b"".join(response), 6, mtime=0)
    # Not response.close(), which would send request_finished.
    if file := getattr(response, "file_to_stream", None):
        file.close()
    # Without the ETag, which is that of the plain file: Last-Modified is enough for a 304.
    headers = {k: v for k, v in response.headers.items() if k not in {"Content-Length", "ETag"}}
    sizes = {"Content-Encoding": "gzip", "Content-Length": str(len(body))}
    return HttpResponse(body, headers=headers | sizes)

"""Gzip for HTML pages; collectstatic compresses the static files."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressionMiddleware(GZipMiddleware):
    """Whole HTML pages only.

    Never a stream: each of its chunks would be a separate gzip member. Never a `no-store` page: it
    shows a secret, and the size of a compressed page leaks its content (BREACH). The only secrets
    of other pages are CSRF tokens, which Django masks per response and GZipMiddleware pads.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        is_html = response.headers.get("Content-Type", "").partition(";")[0] == "text/html"
        is_secret = "no-store" in response.headers.get("Cache-Control", "")
        if not isinstance(response, HttpResponse) or not is_html or is_secret:
            return response
        packed: HttpResponseBase = super().process_response(request, response)
        return packed

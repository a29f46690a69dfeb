"""The documents as pages, as Markdown and as /llms.txt, and the API reference."""

import hashlib
from functools import cache
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import get_conditional_response
from django.utils.html import escape
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request

from config.docs_site.documents import Document, documents_in
from config.docs_site.markdown import render_document
from config.docs_site.openapi import TAGS

EXAMPLE_URL = "http://127.0.0.1:8000"
"""The address in the documents; a page shows the one in use."""
MARKDOWN, PLAIN = "text/markdown; charset=utf-8", "text/plain; charset=utf-8"
ABOUT = (
    "Agents learn from what happened to them: an agent reads a playbook before a task and reports "
    "the outcome after it; the platform turns outcomes into small edits, as new versions. Agents "
    "speak MCP at /mcp, programs REST at /api/v1 (OpenAPI at /api/schema), people use the pages."
)
swagger_script = SpectacularSwaggerSplitView.as_view()


def documents() -> list[Document]:
    return documents_in(Path(settings.BASE_DIR) / "docs")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Redirects to the first document."""
    return redirect("docs_page", slug=documents()[0].slug)


@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """One document, with links to the others."""
    listed = documents()
    place = next((n for n, document in enumerate(listed) if document.slug == slug), None)
    if place is None:
        raise Http404
    rendered = render_document(listed[place])
    site = escape(request.build_absolute_uri("/").rstrip("/"))
    context = {
        "document": listed[place],
        "headings": rendered.headings,
        # Rendered from files of this repository, with HTML in Markdown disabled.
        "body": mark_safe(rendered.html.replace(EXAMPLE_URL, site)),  # noqa: S308 - see above
        "groups": [(name, [*found]) for name, found in groupby(listed, key=lambda d: d.group)],
        "before": listed[place - 1] if place else None,
        "after": listed[place + 1] if place + 1 < len(listed) else None,
    }
    return render(request, "config/docs_page.html", context)


@require_safe
def markdown_source(request: HttpRequest, slug: str) -> HttpResponse:
    """The Markdown source of one document."""
    for document in documents():
        if document.slug == slug:
            return HttpResponse(document.text, content_type=MARKDOWN)
    raise Http404


@require_safe
def image(request: HttpRequest, name: str) -> HttpResponse:
    """An SVG of docs/; comparing with the listing keeps paths inside the folder."""
    for path in (Path(settings.BASE_DIR) / "docs").glob("*.svg"):
        if path.stem == name:
            return HttpResponse(path.read_text(), content_type="image/svg+xml")
    raise Http404


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    """The index of documents for language models: https://llmstxt.org."""
    lines = ["# ACE Platform", "", f"> {ABOUT}"]
    for name, found in groupby(documents(), key=lambda document: document.group):
        lines += ["", f"## {name}", ""]
        for document in found:
            address = request.build_absolute_uri(f"/docs/{document.slug}.md")
            lines.append(f"- [{document.title}]({address}): {document.summary}")
    return HttpResponse("\n".join(lines) + "\n", content_type=PLAIN)


@require_safe
def llms_full(request: HttpRequest) -> HttpResponse:
    """All documents in one text."""
    texts = [document.text.strip() for document in documents()]
    return HttpResponse("\n\n---\n\n".join(texts) + "\n", content_type=PLAIN)


class SchemaView(SpectacularAPIView):
    """The OpenAPI document, built once by a process: building it takes 0.3 s of CPU."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        renderer = request.accepted_renderer
        with _building:
            body, etag = _openapi_document(renderer.media_type)
        headers = {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept"}
        response = HttpResponse(body, content_type=renderer.media_type, headers=headers)
        return get_conditional_response(request, etag, response=response) or response


# Or every thread that is asked at the start would build it.
_building = Lock()


@cache
def _openapi_document(media_type: str) -> tuple[bytes, str]:
    """The document in the format of a renderer, and its ETag."""
    renderers: dict[str, Any] = {one.media_type: one for one in SchemaView.renderer_classes}
    schema = SchemaView.generator_class().get_schema(public=True)  # type: ignore[no-untyped-call]  # theirs
    schema["tags"] = [{"name": name, "description": said} for name, said in TAGS.items()]
    body: bytes = renderers[media_type]().render(schema, renderer_context={})
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@require_safe
def api_docs(request: HttpRequest) -> HttpResponseBase:
    """Swagger UI; with `?script` its start-up script, which the CSP forbids inline."""
    if "script" in request.GET:
        script: HttpResponseBase = swagger_script(request)
        return script
    return render(request, "config/api_docs.html")

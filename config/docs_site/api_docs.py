"""The reference of the REST door: Swagger UI below the site's header."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularSwaggerSplitView

swagger_script = SpectacularSwaggerSplitView.as_view()


@require_safe
def api_docs(request: HttpRequest) -> HttpResponseBase:
    """The page; with `?script` what begins it, which our policy refuses inside a page."""
    if "script" in request.GET:
        answer: HttpResponseBase = swagger_script(request)
        return answer
    return render(request, "config/api_docs.html")

"""A site whose only page fails."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from config.web import views


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("secret detail")


handler500 = views.server_error
urlpatterns = [path("", broken)]

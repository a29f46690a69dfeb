"""The table of this app's doors: pages and REST."""

from django.urls import URLPattern

pages: list[URLPattern] = []
api: list[URLPattern] = []

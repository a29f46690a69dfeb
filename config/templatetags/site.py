"""Template tags and filters of every page: times, badges, browser names, undo URLs, code."""

import re
from datetime import UTC, datetime

from django import template
from django.contrib.messages.storage.base import Message
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from core.http.forms import undo_url

register = template.Library()

STEPS = (
    ("year", 365 * 24 * 3600),
    ("month", 30 * 24 * 3600),
    ("week", 7 * 24 * 3600),
    ("day", 24 * 3600),
    ("hour", 3600),
    ("minute", 60),
)


@register.filter
def ago(at: datetime) -> str:
    """“3 minutes ago”, “in 2 days”, “just now”; static/js/times.js uses the same words."""
    seconds = (timezone.now() - at).total_seconds()
    for name, length in STEPS:
        count = int(abs(seconds) // length)
        if count:
            if seconds < 0:  # 90 days less a moment are three months
                count = round(-seconds / length)
            text = f"{count} {name}{'s' if count > 1 else ''}"
            return f"{text} ago" if seconds > 0 else f"in {text}"
    return "just now" if seconds >= 0 else "in a moment"


SIGNS = {
    **dict.fromkeys(("active", "completed", "success", "applied", "proven better"), "good"),
    **dict.fromkeys(("failed", "failure", "revoked", "rejected", "reverted"), "bad"),
    **dict.fromkeys(("found worse",), "bad"),
    **dict.fromkeys(("partial", "expired", "set_aside", "cancelled"), "warn"),
    **dict.fromkeys(("running", "queued", "pending", "on trial"), "live"),
}


# Tags and not templates: lists have hundreds of these, and an include each was half of their cost.
@register.simple_tag
def badge(word: str, label: str = "") -> SafeString:
    """The state `word` as a coloured badge. `label` overrides the text."""
    return format_html('<span class="badge {}">{}</span>', SIGNS.get(word, ""), label or word)


@register.simple_tag
def when(at: datetime | None, none: str = "") -> SafeString:
    """A relative time, with the exact one in `datetime` and for browsers without JavaScript."""
    if not at:
        return format_html('<span class="muted">{}</span>', none or "never")
    exact = at.astimezone(UTC)
    shown = f"{exact.day} {exact:%b %Y, %H:%M}"
    form = '<time datetime="{}">{}<span class="no-js">, {} UTC</span></time>'
    return format_html(form, exact.isoformat(), ago(at), shown)


@register.filter
def lasted(start: datetime, end: datetime) -> str:
    """The time between as “4 s”, “3 min 20 s” or “2 h 5 min”."""
    seconds = max(0, round((end - start).total_seconds()))
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds or 'under 1'} s"


# The first match counts: Edge and Opera also say Chrome, and all of them say Safari.
BROWSERS = (
    *(("Edg", "Edge"), ("OPR/", "Opera"), ("Firefox", "Firefox"), ("FxiOS", "Firefox")),
    *(("Chrome", "Chrome"), ("CriOS", "Chrome"), ("Safari", "Safari")),
)
SYSTEMS = (
    *(("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows")),
    *(("Mac OS", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux")),
)


@register.filter
def browser_name(user_agent: str) -> str:
    """“Firefox on Windows”; an unknown one by its own user agent."""
    browser = next((name for sign, name in BROWSERS if sign in user_agent), "")
    system = next((name for sign, name in SYSTEMS if sign in user_agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or user_agent[:80] or "Unknown browser"


@register.filter(name="undo_url")
def undo_address_of(message: Message) -> str:
    return undo_url(message)


@register.filter
def inline_code(sentence: str) -> SafeString:
    """The sentence, escaped, with `this` as <code>."""
    escaped = conditional_escape(sentence)
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S308 - escaped above

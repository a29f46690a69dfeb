"""The template filter `inline_code`: backticks become <code>."""

import re

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def inline_code(sentence: str) -> SafeString:
    """The sentence, escaped, with `this` as <code>."""
    escaped = conditional_escape(sentence)
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S308 - escaped above

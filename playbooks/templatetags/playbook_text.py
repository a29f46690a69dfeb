"""Template filters for what playbooks are made of."""

from django import template

from playbooks.reasons import reason_text

register = template.Library()
register.filter("reason_text", reason_text)

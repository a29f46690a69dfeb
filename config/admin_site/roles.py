"""The groups that every release brings: what support, billing and operators may do in the admin."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

_FILE = Path(__file__).with_suffix(".toml")
ROLES: dict[str, dict[str, list[str]]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))


def load_roles() -> None:
    """Create or update the groups; the rights of other groups stay as they are."""
    for name in ROLES:
        group, _ = Group.objects.get_or_create(name=name)
        group.permissions.set(_permissions(name))


def _permissions(name: str) -> Iterator[Permission]:
    role = ROLES[name]
    views = Q(content_type__app_label__in=role["views_rows_of"], codename__startswith="view_")
    yield from Permission.objects.filter(views | Q(codename__in=role["may"]))

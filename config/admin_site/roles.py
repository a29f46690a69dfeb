"""The groups that every release brings: what support, billing and operators may do in the admin."""

from collections.abc import Iterator

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

PEOPLE = ("view_user", "view_apikey", "view_connectedapp", "view_usersession", "view_authenticator")
ROLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # name: apps whose rows it views, and further permissions
    "Support": (
        ("core", "playbooks", "evolution", "billing", "mcp_bridge"),
        (
            *PEOPLE,
            *("change_user", "change_apikey", "delete_connectedapp", "delete_usersession"),
            *("delete_authenticator", "change_evolutionjob", "change_outcome"),
            *("add_playbook", "change_playbook", "change_reviewitem"),
        ),
    ),
    "Billing": (
        ("core", "billing"),
        (
            *("view_user", "change_billingaccount", "change_plan", "add_plan"),
            *("change_quotaperiod", "add_limit", "change_limit", "delete_limit"),
        ),
    ),
    "Operator": (
        # Without accounts: support sees people beside their rows.
        ("core", "playbooks", "evolution", "billing", "mcp_bridge"),
        (
            *("change_evolutionjob", "change_outcome", "change_providercircuit"),
            *("add_priceoverride", "change_priceoverride", "delete_priceoverride"),
            *("add_limit", "change_limit", "delete_limit"),
        ),
    ),
}


def load_roles() -> None:
    """Create or update the groups; the rights of other groups stay as they are."""
    for name in ROLES:
        group, _ = Group.objects.get_or_create(name=name)
        group.permissions.set(_permissions(name))


def _permissions(name: str) -> Iterator[Permission]:
    apps, further = ROLES[name]
    views = Q(content_type__app_label__in=apps, codename__startswith="view_")
    yield from Permission.objects.filter(views | Q(codename__in=further))

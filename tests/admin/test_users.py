"""What staff can do with users, and what they cannot."""

import html
import re

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.admin import site
from django.contrib.auth.models import Permission
from django.urls import reverse

from accounts.models import User
from accounts.services import user_administration
from billing.models import Limit, UsageRecord
from core.errors import Conflict, Forbidden
from core.models import AuditEntry
from core.security.scopes import Principal
from playbooks.models import Playbook
from tests.factories import make_key, make_outcome, make_playbook, make_user
from tests.harness.admin_client import AdminClient, refresh
from tests.harness.clients import logged_in_client
from tests.harness.sample_account import World


@pytest.fixture
def helper(db: None) -> User:
    """Staff with every permission, and no superuser."""
    user = make_user("helper@example.org", is_staff=True)
    user.user_permissions.set(Permission.objects.all())
    return user


def test_the_list_shows_what_users_have_and_spend(desk: AdminClient, world: World) -> None:
    page = desk.rows("accounts_user")
    assert '<td class="field-playbooks">5</td>' in page
    known = sum(record.cost_usd or 0 for record in UsageRecord.objects.all())
    unknown = UsageRecord.objects.filter(cost_usd=None).count()
    assert f"${known:.2f} + {unknown} with an unknown price" in page


def test_a_second_factor_can_be_required(desk: AdminClient, alice: User) -> None:
    assert "1 user must set up a second factor." in desk.act("require_second_factor", alice)
    assert refresh(alice).second_factor_required
    desk.act("stop_requiring_second_factor", alice)
    assert not refresh(alice).second_factor_required


def test_factors_of_a_lost_device_can_be_removed(desk: AdminClient, alice: User) -> None:
    row = Authenticator.objects.create(user=alice, type="totp", data={"secret": "canary"})
    assert "canary" not in desk.row(row)
    assert "1 user has no second factor now." in desk.act("remove", row)
    assert not Authenticator.objects.exists()


def test_an_account_is_deleted_at_its_owners_request(desk: AdminClient, world: World) -> None:
    page = desk.act("erase", world.owner)
    assert "This cannot be undone" in page
    own = Playbook.objects.filter(owner=world.owner).count()
    assert f"{own} playbooks" in page
    assert re.findall(r"\w+ tally\w*|\w+ counts+", page) == []
    typed = {"apply": "Delete permanently", "confirmation": world.owner.email}
    sent = typed | {"confirmation": "yes", "action": "erase", "_selected_action": world.owner.pk}
    refused = desk.client.post("/admin/accounts/user/", sent)
    assert (refused.status_code, User.objects.filter(pk=world.owner.pk).count()) == (400, 1)
    assert "1 account deleted." in desk.act("erase", world.owner, **typed)
    assert not User.objects.filter(pk=world.owner.pk).exists()
    entry = AuditEntry.objects.get(action="delete_account")
    assert (entry.actor, entry.owner_id) == ("staff@example.org", world.owner.pk)
    assert "alice" not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("action", ["disable", "erase", "stop_requiring_second_factor"])
def test_staff_with_view_permission_cannot_act_on_users(alice: User, action: str) -> None:
    looker = make_user("looker@example.org", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename="view_user"))
    User.objects.filter(pk=alice.pk).update(second_factor_required=True)
    sent = {
        "action": action,
        "_selected_action": str(alice.pk),
        "apply": "Yes",
        "reason": "x",
        "confirmation": alice.email,
    }
    logged_in_client(looker).post("/admin/accounts/user/", sent)
    assert refresh(alice).is_active
    assert refresh(alice).second_factor_required


def test_every_admin_action_requires_more_than_view_permission() -> None:
    """Django offers an action that names no permission to whoever may see the list."""
    for model, admin in site._registry.items():
        for action, *_ in admin._get_base_actions():  # type: ignore[attr-defined]  # not in its stubs
            assert getattr(action, "allowed_permissions", None), (model, action)


def test_nobody_disables_their_own_account(staff: User) -> None:
    with pytest.raises(Conflict):
        user_administration.disable_user(user=staff, by=Principal.of(staff))


@pytest.mark.parametrize("powers", [("is_staff", "is_superuser"), ("is_staff",), ("is_superuser",)])
def test_only_a_superuser_changes_other_staff(
    helper: User, staff: User, powers: tuple[str, ...]
) -> None:
    by = Principal.of(helper)
    staff.is_staff, staff.is_superuser = "is_staff" in powers, "is_superuser" in powers
    staff.save()
    for service in (
        user_administration.disable_user,
        user_administration.enable_user,
        user_administration.require_second_factor,
        user_administration.remove_second_factors,
        user_administration.end_all_sessions,
    ):
        with pytest.raises(Forbidden):
            service(user=staff, by=by)
    for form in ("password", "change"):
        sent = {"email": "mine@example.org", "password1": "x" * 20, "password2": "x" * 20}
        answer = logged_in_client(helper).post(f"/admin/accounts/user/{staff.pk}/{form}/", sent)
        assert answer.status_code == 403


def test_staff_cannot_make_themselves_superusers(helper: User) -> None:
    client = logged_in_client(helper)
    sent = {"email": helper.email, "is_staff": "on", "is_superuser": "on"}
    client.post(f"/admin/accounts/user/{helper.pk}/change/", sent)
    assert not refresh(helper).is_superuser


def test_a_change_in_the_form_is_in_the_audit_log(desk: AdminClient, alice: User) -> None:
    sent = {"email": "new@example.org", "email_verified": "on"}
    desk.client.post(f"/admin/accounts/user/{alice.pk}/change/", sent)
    entry = AuditEntry.objects.get(action="update_user")
    assert entry.owner_id == alice.pk
    assert "email, " in entry.detail["fields"].lower()
    assert "new@example.org" not in str(entry.detail)


def test_setting_and_removing_a_cost_cap_is_audited(desk: AdminClient, alice: User) -> None:
    sent = {"user": str(alice.pk), "playbook_id": "", "amount": "2.50", "scope": "account"}
    sent |= {"unit": "usd", "window": "day", "warn_percent": "80", "stops": "on"}
    desk.client.post("/admin/billing/limit/add/", sent)
    desk.act("delete_selected", Limit.objects.get(user=alice), post="yes")
    entries = AuditEntry.objects.filter(subject="limit").order_by("id")
    assert [entry.action for entry in entries] == ["set_limit", "remove_limit"]
    assert {entry.owner_id for entry in entries} == {alice.pk}


def test_the_lists_of_an_account_show_nobody_elses_rows(desk: AdminClient, alice: User) -> None:
    """A search for alice@example.org also finds malice@example.org."""
    malice = make_user("malice@example.org")
    for user in (alice, malice):
        make_key(user)
        playbook = make_playbook(user, name=f"Of {user.email}")
        make_outcome(playbook, user)
    address = reverse("admin:customer", args=[alice.pk])
    assert f'href="{address}"' in desk.row(alice)
    customer = desk.client.get(address).content.decode()
    links = set(re.findall(r'href="(/admin/[^"]*owner=[^"]*)"', customer))
    assert len(links) == 10
    for link in links:
        page = desk.client.get(html.unescape(link))
        assert (page.status_code, "malice" in page.content.decode()) == (200, False), link
    assert "Of alice@example.org" in desk.rows("playbooks_playbook", owner=str(alice.pk))
    for model in ("accounts_webhookendpoint", "accounts_webhookdelivery", "playbooks_trial"):
        assert "malice" not in desk.rows(model, owner=str(alice.pk)), model
    assert "alice" not in desk.rows("playbooks_playbook", owner="x' or 1=1")

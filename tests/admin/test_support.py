"""What support uses: one search, the customer page, buttons on a row, seeing a user's pages."""

import io
import re
import zipfile

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from accounts.services.personal_data import export_account
from billing.limits import plan_limits
from billing.models import Limit
from config.admin_site.roles import ROLES, load_roles
from core.models import AuditEntry
from core.ratelimit.limits import consume_rate_limit
from evolution.models import EvolutionJob, Incident
from mcp_bridge.models import ClientActivity
from playbooks.models import Playbook
from tests.factories import make_key, make_user
from tests.harness.admin_client import AdminClient, is_denied, refresh
from tests.harness.clients import logged_in_client
from tests.harness.sample_account import World


@pytest.fixture
def helper(db: None) -> User:
    """Staff in the group Support."""
    load_roles()
    user = make_user("helper@example.org", is_staff=True)
    user.groups.add(Group.objects.get(name="Support"))
    return user


def find(client: Client, query: str) -> str:
    answer = client.post(reverse("admin:search"), {"q": query})
    assert answer.status_code == 200
    return answer.content.decode()


def test_one_search_finds_what_people_send(desk: AdminClient, world: World) -> None:
    key, token = make_key(world.owner, name="laptop")
    EvolutionJob.objects.filter(pk=world.failed.pk).update(correlation_id="request-1234")
    customer = reverse("admin:customer", args=[world.owner.pk])
    for query, found in (
        ("alice@", customer),
        (str(world.owner.pk), customer),
        (token, f"apikey/{key.pk}/"),
        (key.prefix, f"apikey/{key.pk}/"),
        (str(world.failed.pk), f"evolutionjob/{world.failed.pk}/"),
        ("request-1234", f"evolutionjob/{world.failed.pk}/"),
        ("Fixing te", f"playbook/{world.playbook.pk}/"),
        ("mis-00003", "/admin/playbooks/bullet/"),
    ):
        assert found in find(desk.client, query), query
    assert "request-1234" in desk.row(refresh(world.failed))
    assert "Nothing found" in find(desk.client, "no such thing")
    assert "Enter a search term." in find(desk.client, " ")


def test_a_list_keeps_its_own_search(desk: AdminClient, world: World) -> None:
    """The search over everything is on the first page; each list searches its rows."""
    found = desk.rows("playbooks_playbook", q="Fixing te")
    assert 'id="searchbar"' in found
    assert "Fixing tests" in found
    assert world.empty.name not in found


def test_a_pasted_key_is_never_in_a_url(desk: AdminClient) -> None:
    assert desk.client.get(reverse("admin:search"), {"q": "ace_live_x"}).status_code == 405


def test_the_customer_page_shows_an_account_in_one_view(desk: AdminClient, world: World) -> None:
    page = desk.client.get(reverse("admin:customer", args=[world.owner.pk])).content.decode()
    for text in ("Fixing tests", "Spent in 30 days", "Evolutions failed", "API keys", "Audit log"):
        assert text in page, text
    assert 'value="View as this user (read-only)"' in page
    assert 'value="Enable again"' not in page


def test_the_customer_page_shows_requests_and_rates(desk: AdminClient, world: World) -> None:
    """The last call of each client, why it was refused, and what is used of each rate."""
    owner = world.owner
    refused = {"accepted_at": None, "refused_at": timezone.now(), "refusal": "key_revoked"}
    ClientActivity.objects.create(
        user=owner, credential="abc", client="Claude Code", seen_at=timezone.now(), **refused
    )
    own = Limit.objects.create(user=owner, unit="reports", window="hour", amount=7)
    plan_limits._report_limit.cache_clear()
    for _ in range(2):
        consume_rate_limit("report_outcome", str(owner.pk), rate="7/h")
    page = desk.client.get(reverse("admin:customer", args=[owner.pk])).content.decode()
    cells = re.findall(r"<th scope=\"row\">(\w+)</th><td>(\d+)</td><td>(\d+/\w)</td>", page)
    assert ("report_outcome", "2", "7/h") in cells
    assert ("ask_playground", "0", "120/h") in cells
    named = f"/limit/{own.pk}/", f"<code>user_id</code> {owner.pk}"
    for text in ("Claude Code", "key_revoked", *named):
        assert text in page, text


def test_only_support_and_superusers_open_it(
    helper: User, owner: Client, stranger: Client, world: World
) -> None:
    address = reverse("admin:customer", args=[world.owner.pk])
    assert is_denied(owner, address, reverse("admin:search"))
    assert is_denied(stranger, address, reverse("admin:search"))
    assert logged_in_client(helper).get(address).status_code == 200
    clerk = make_user("clerk@example.org", is_staff=True)
    assert logged_in_client(clerk).get(address).status_code == 403
    assert "alice" not in find(logged_in_client(clerk), "alice@").replace('value="alice@"', "")


def test_staff_export_on_behalf_is_audited(desk: AdminClient, world: World) -> None:
    address = reverse("admin:export_customer", args=[world.owner.pk])
    answer = desk.client.post(address)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        own = zipfile.ZipFile(io.BytesIO(export_account(user=world.owner)))
        assert archive.namelist() == own.namelist()
    entry = AuditEntry.objects.filter(action="export_account").order_by("id").first()
    assert entry is not None
    assert (entry.actor, entry.owner_id) == ("staff@example.org", world.owner.pk)


def test_a_rows_page_offers_the_actions_that_apply(desk: AdminClient, world: World) -> None:
    offered = set(re.findall(r'name="action" value="(\w+)"', desk.row(world.failed)))
    assert offered == {"retry", "redrive"}
    assert set(re.findall(r'name="action" value="(\w+)"', desk.row(world.queued))) >= {"cancel"}


def test_after_an_action_the_rows_page_comes_back(desk: AdminClient, world: World) -> None:
    pk = str(world.queued.pk)
    sent = {"action": "cancel", "_selected_action": pk, "row": pk}
    answer = desk.client.post(reverse("admin:evolution_evolutionjob_changelist"), sent)
    assert answer["Location"] == reverse("admin:evolution_evolutionjob_change", args=[pk])
    assert refresh(world.queued).status == "cancelled"


def test_viewing_as_a_user_shows_their_pages_and_changes_nothing(
    desk: AdminClient, world: World
) -> None:
    page = f"/playbooks/{world.playbook.pk}"
    assert desk.client.get(page).status_code == 404
    assert "Viewing as alice@example.org (read-only)" in desk.act("view_as", world.owner)
    assert "Fixing tests" in desk.client.get(page).content.decode()
    entry = AuditEntry.objects.get(action="view_as_user")
    assert (entry.actor, entry.owner_id) == ("staff@example.org", world.owner.pk)
    refused = desk.client.post(f"{page}/archive")
    assert refused.status_code == 403
    assert "read-only. Stop viewing first" in refused.content.decode()
    assert refresh(world.playbook).status == Playbook.Status.ACTIVE
    assert "alice" not in desk.client.get("/settings").content.decode()
    done = desk.client.post("/stop-viewing")
    assert done["Location"] == reverse("admin:customer", args=[world.owner.pk])
    assert desk.client.get(page).status_code == 404


def test_viewing_ends_by_itself(desk: AdminClient, world: World) -> None:
    desk.act("view_as", world.owner)
    session = desk.client.session
    session["view_as"] = [str(world.owner.pk), 0]
    session.save()
    assert desk.client.get(f"/playbooks/{world.playbook.pk}").status_code == 404


def test_staff_and_disabled_accounts_cannot_be_viewed(desk: AdminClient, helper: User) -> None:
    assert "without staff rights" in desk.act("view_as", helper)
    assert "view_as" not in desk.client.session
    User.objects.filter(pk=helper.pk).update(is_staff=False, is_active=False)
    desk.act("view_as", helper)
    assert "view_as" not in desk.client.session


def test_a_person_without_staff_rights_views_nobody(owner: Client, world: World) -> None:
    """A session that was staff's when it began."""
    other = make_user("other@example.org")
    session = owner.session
    session["view_as"] = [str(other.pk), 1e12]
    session.save()
    assert owner.get(f"/playbooks/{world.playbook.pk}").status_code == 200


def kinds_of_links(client: Client, *pages: str) -> dict[str, str]:
    """One address of the admin for each kind that these pages link to, without ids and filters."""
    texts = [client.get(page).content.decode() for page in pages]
    found = re.findall(r'href="(/admin/[^"?#]*)', " ".join(texts))
    return {re.sub(r"[0-9a-f-]{36}|\d+", "", address): address for address in found}


@pytest.mark.parametrize("role", ROLES)
def test_each_role_is_offered_nothing_that_is_refused(role: str, world: World) -> None:
    load_roles()
    Incident.objects.create(kind=Incident.Kind.WEBHOOKS_FAILED, key="1", text="2 failed.")
    user = make_user(f"{role.lower()}@example.org", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = logged_in_client(user)
    lists = kinds_of_links(client, "/admin/")
    assert len(lists) >= 5
    customer = reverse("admin:customer", args=[world.owner.pk])
    rows = [
        row
        for row in (world.owner, world.done, world.playbook, world.key, world.outcome)
        if user.has_perm(f"{row._meta.app_label}.view_{row._meta.model_name}")
    ]
    pages = [
        *([customer] if world.owner in rows else []),
        *(
            reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
            for row in rows
        ),
        *(page for page in lists if page.endswith(("/incident/", "/auditentry/"))),
    ]
    offered = lists | kinds_of_links(client, *pages)
    refused = {page for page in offered.values() if client.get(page).status_code not in (200, 302)}
    assert refused == set()
    if world.owner in rows:
        page = client.get(customer).content.decode()
        may_change = user.has_perm("accounts.change_user")
        assert ("Export their data" in page, "Set a password" in page) == (may_change, may_change)


def test_a_superuser_puts_staff_into_a_role(desk: AdminClient, helper: User) -> None:
    billing = Group.objects.get(name="Billing")
    address = reverse("admin:accounts_user_change", args=[helper.pk])
    sent = {"email": helper.email, "is_staff": "on", "groups": str(billing.pk)}
    for client, roles in ((logged_in_client(helper), ["Support"]), (desk.client, ["Billing"])):
        assert client.post(address, sent).status_code == 302
        assert [group.name for group in helper.groups.all()] == roles


def test_roles_name_permissions_that_exist(db: None) -> None:
    known = set(Permission.objects.values_list("codename", flat=True))
    for name, further in ((name, role["may"]) for name, role in ROLES.items()):
        assert set(further) <= known, name

"""Every page by its address, for tests that walk over all of them."""

from django.contrib import admin
from django.urls import reverse

from accounts.admin.oauth import HiddenAdmin
from tests.harness.sample_account import World

PUBLIC = (
    *("/", "/login", "/login/reset", "/register", "/no-such-page"),
    *("/docs/operations", "/docs/mcp"),
)
ADMIN_MODELS = tuple(
    model._meta.label_lower.replace(".", "/")
    for model, page in admin.site._registry.items()
    if not isinstance(page, HiddenAdmin)
)
ADMIN = ("/admin/", "/admin/accounts/user/add/", *(f"/admin/{name}/" for name in ADMIN_MODELS))


def common_pages() -> list[str]:
    """What every logged-in person can open."""
    return [
        *(
            "/overview",
            "/playbooks",
            "/playbooks?status=archived",
            "/playbooks?q=nothing",
            "/go",
            "/go?q=new",
            "/playbooks/new",
            "/playbooks/import",
        ),
        *(
            "/inbox",
            "/playground",
            "/keys",
            "/usage",
            "/usage?period=week",
            "/usage?period=month",
        ),
        *("/connect", "/connect?client=claude-ai"),
        "/activity",
        *("/sessions", "/sessions?status=reported"),
        *("/start", "/usage?model=gpt-4o", "/usage?model=none-such"),
        *("/usage/budgets", "/usage/budgets/set", "/billing", "/billing?paid=1"),
        *("/settings", "/settings/password", "/settings/sessions", "/settings/webhook"),
        *("/settings/second-factor", "/settings/second-factor/passkeys", "/settings/confirm"),
    ]


def staff_pages(world: World) -> list[str]:
    """The admin's pages of single rows, and those that ask before something changes."""
    rows = {
        "accounts/user": world.owner,
        "accounts/apikey": world.key,
        "playbooks/playbook": world.playbook,
        "evolution/outcome": world.outcome,
        "evolution/evolutionjob": world.done,
        "evolution/agentsession": world.session,
    }
    one, starter = (f"/admin/playbooks/playbook/{p.pk}" for p in (world.playbook, world.starter))
    return [
        *(f"/admin/{model}/{row.pk}/change/" for model, row in rows.items()),
        f"/admin/evolution/evolutionjob/{world.failed.pk}/change/",
        f"/admin/customers/{world.owner.pk}/",
        f"/admin/accounts/user/{world.owner.pk}/password/",
        f"{starter}/change/",
        f"{starter}/edit/",
        "/admin/evolution/evolutionjob/?state=stuck",
        "/admin/core/auditentry/?q=alice@example.org",
        "/admin/billing/usagerecord/summary/?by=day&span=all",
    ]


def own_pages(world: World) -> list[str]:
    """What only the owner can open; a stranger finds nothing there."""
    one = world.playbook.get_absolute_url()
    return [
        *(page.get_absolute_url() for page in (world.playbook, world.empty, world.archived)),
        *(f"{one}?{rest}" for rest in ("show=retired", "q=test&sort=used", "q=nowhere")),
        f"{one}?section=strategies_and_insights",
        f"{one}/bullets/str-00001",
        f"{one}/bullets/mis-00003",
        f"{one}/bullets/str-00001/edit",
        *(
            f"{one}/{tab}"
            for tab in ("overview", "versions", "outcomes", "evolutions", "settings", "export")
        ),
        *(
            f"{one}/versions/{rest}"
            for rest in ("1", "2", "3", "3/diff?against=1&view=side", "2/diff")
        ),
        f"{one}/versions/1/rollback",
        f"{one}/sources",
        *(f"/inbox?playbook={world.playbook.pk}{rest}" for rest in ("", "&state=declined")),
        f"{one}/sources/user:{world.owner.pk}",
        f"{one}/outcomes?status=failure",
        f"{one}/outcomes?status=set_aside",
        f"{one}/outcomes?status=success&signal=self_report&version=1&client=-",
        f"{one}/outcomes/new",
        f"{one}/evidence",
        f"{one}/evidence?signal=self_report",
        *(f"{one}/{page}" for page in ("ledger", "ledger?sort=difference", "shares?kind=diff")),
        *(f"{one}/{page}" for page in ("trials", "trials?bullet_id=str-00001")),
        world.outcome.get_absolute_url(),
        f"/sessions?playbook={world.playbook.pk}",
        *(one.get_absolute_url() for one in (world.session, world.chat)),
        *(f"{world.session.get_absolute_url()}/{verb}" for verb in ("close", "delete")),
        f"/playground/{world.tried.pk}",
        f"{one}/bullets/str-00001/sessions",
        f"{world.empty.get_absolute_url()}/outcomes",
        f"{world.empty.get_absolute_url()}/evolutions",
        f"{world.empty.get_absolute_url()}/evidence",
        f"{world.empty.get_absolute_url()}/ledger",
        *(job.get_absolute_url() for job in (world.done, world.queued, world.failed)),
        f"/usage/budgets/set?playbook={world.playbook.pk}",
        reverse("accounts:rotate_key", args=[world.key.pk]),
        reverse("accounts:revoke_key", args=[world.key.pk]),
        reverse("accounts:disconnect_app", args=[world.app.pk]),
    ]

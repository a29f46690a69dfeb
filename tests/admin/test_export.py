"""Export of admin lists as CSV: filtered, bounded, without formulas."""

import pytest
from pytest import MonkeyPatch

from accounts.models import User
from core import admin
from tests.factories import make_playbook
from tests.harness.admin_client import AdminClient
from tests.harness.sample_account import World

EXPORTED = (
    *("accounts_user", "accounts_apikey", "core_auditentry", "billing_usagerecord"),
    *("playbooks_playbook", "evolution_evolutionjob", "evolution_outcome"),
)


def test_a_name_that_looks_like_a_formula_is_escaped(desk: AdminClient, alice: User) -> None:
    for name in ("=1+1", "+1", "-1", "@x"):
        make_playbook(alice, name=name)
    lines = desk.export("playbooks_playbook")
    assert sorted(line.split(",")[1] for line in lines[1:]) == ["'+1", "'-1", "'=1+1", "'@x"]


@pytest.mark.parametrize("model", EXPORTED)
def test_each_big_list_can_be_exported(model: str, desk: AdminClient, world: World) -> None:
    lines = desk.export(model)
    assert len(lines) > 1
    assert world.key.digest not in "\n".join(lines)


def test_the_export_applies_the_lists_filter(desk: AdminClient, world: World) -> None:
    assert len(desk.export("evolution_evolutionjob", state="failed")) == 2
    assert len(desk.export("evolution_evolutionjob", q="nonsense")) == 1
    assert desk.client.get("/admin/evolution/evolutionjob/export/?no=such").status_code == 400


def test_the_export_stops_at_its_limit_with_a_note(
    desk: AdminClient, world: World, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "MAX_ROWS", 2)
    lines = desk.export("evolution_outcome")
    assert len(lines) == 4
    assert "Stopped after 2 rows" in lines[-1]


def test_outcome_texts_are_not_exported(desk: AdminClient, world: World) -> None:
    text = "\n".join(desk.export("evolution_outcome"))
    assert "Make the build green" not in text

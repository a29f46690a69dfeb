"""Playbooks over REST: list, read, change, copy, archive."""

import pytest

from accounts.models import User
from core.security.scopes import Principal
from playbooks.document.formats import FORMATS
from playbooks.document.imports import read_file
from playbooks.models import Playbook, Version
from playbooks.services.serving_tokens import read_serving_token
from playbooks.starters.loader import load_starters
from tests.factories import ACE_TEXT, make_key, make_outcome, make_playbook
from tests.harness.rest_client import Rest


def path_of(playbook: Playbook) -> str:
    return f"/playbooks/{playbook.pk}"


def test_the_list_shows_counts_and_the_current_version(alice: User, playbook: Playbook) -> None:
    make_outcome(playbook, alice)
    (row,) = Rest.of(alice).get("/playbooks").json()["results"]
    assert (row["id"], row["version"], row["bullet_count"]) == (str(playbook.pk), 1, 3)
    assert (row["outcome_count"], row["pending_outcomes"]) == (1, 1)


def test_starters_are_listed_when_asked_for(alice: User) -> None:
    load_starters()
    rest = Rest.of(alice)
    assert rest.get("/playbooks").json()["results"] == []
    listed = rest.get("/playbooks?include_starters=true").json()["results"]
    assert len(listed) >= 3
    assert {row["source"] for row in listed} == {"starter"}


def test_reading_gives_the_agents_view_and_writes_nothing(alice: User, playbook: Playbook) -> None:
    before = Playbook.objects.values_list().get()
    reading = Rest.of(alice).get(path_of(playbook)).json()
    assert "[str-00001] Read the failing test before the code." in reading["content"]
    assert (reading["version"], reading["current_version"]) == (1, 1)
    assert Playbook.objects.values_list().get() == before


def test_a_serving_id_ties_an_outcome_to_its_version(alice: User, playbook: Playbook) -> None:
    token = Rest.of(alice).get(path_of(playbook)).json()["serving_id"]
    read = read_serving_token(token, playbook=playbook, principal=Principal.of(alice))
    assert read.version == playbook.current_version


def test_one_section_is_read_by_any_of_its_names(alice: User, playbook: Playbook) -> None:
    rest = Rest.of(alice)
    for name in ("mis", "common_mistakes_to_avoid", "COMMON MISTAKES TO AVOID".replace(" ", "%20")):
        content = rest.get(f"{path_of(playbook)}?section={name}").json()["content"]
        assert "[mis-00003]" in content
        assert "[str-00001]" not in content


def test_an_unknown_section_is_refused_with_the_known_ones(alice: User, playbook: Playbook) -> None:
    answer = Rest.of(alice).get(f"{path_of(playbook)}?section=nope")
    assert answer.status_code == 400
    assert "`mis`" in answer.json()["error"]["message"]


def test_a_playbook_is_created_with_default_or_own_sections(alice: User) -> None:
    rest = Rest.of(alice)
    default = rest.post("/playbooks", {"name": "Default"})
    own = rest.post("/playbooks", {"name": "Own", "sections": [{"title": "SQL", "slug": "sql"}]})
    assert (default.status_code, own.status_code) == (201, 201)
    sections = rest.get(f"/playbooks/{own.json()['id']}/sections").json()["results"]
    assert [section["slug"] for section in sections] == ["sql", "misc"]


def test_put_replaces_and_patch_keeps(alice: User, playbook: Playbook) -> None:
    rest = Rest.of(alice)
    body = {"name": "Renamed", "description": "For tests", "outcome_threshold": 7}
    assert rest.put(path_of(playbook), body).json()["outcome_threshold"] == 7
    patched = rest.patch(path_of(playbook), {"token_budget": 9000}).json()
    assert (patched["name"], patched["outcome_threshold"]) == ("Renamed", 7)
    replaced = rest.put(path_of(playbook), {"name": "Again"}).json()
    assert (replaced["description"], replaced["outcome_threshold"]) == ("", None)
    assert replaced["token_budget"] == 16_000


def test_put_without_a_name_changes_nothing(alice: User, playbook: Playbook) -> None:
    assert Rest.of(alice).put(path_of(playbook), {"description": "a"}).status_code == 400
    playbook.refresh_from_db()
    assert playbook.description == ""


def test_delete_archives_and_patch_restores(alice: User, playbook: Playbook) -> None:
    rest = Rest.of(alice)
    assert rest.delete(path_of(playbook)).status_code == 204
    assert rest.get("/playbooks").json()["results"] == []
    assert len(rest.get("/playbooks?status=archived").json()["results"]) == 1
    assert rest.patch(path_of(playbook), {"status": "active"}).json()["status"] == "active"
    assert len(rest.get("/playbooks").json()["results"]) == 1
    assert Version.objects.count() == 1


def test_a_starter_is_read_and_cloned_but_never_changed(alice: User) -> None:
    load_starters()
    starter = Playbook.objects.starters().first()
    assert starter is not None
    rest, path = Rest.of(alice), path_of(starter)
    assert rest.get(path).status_code == 200
    clone = rest.post(f"{path}/clone").json()
    assert (clone["name"], clone["cloned_from"]) == (starter.name, str(starter.pk))
    for answer in (rest.patch(path, {"name": "Mine"}), rest.delete(path)):
        assert answer.status_code == 404
    assert rest.post(f"{path}/deltas", {"operations": [{"type": "ADD"}]}).status_code == 404


def test_an_export_imports_as_it_is(alice: User, playbook: Playbook) -> None:
    rest = Rest.of(alice)
    exported = rest.get(f"{path_of(playbook)}/export").json()
    made = rest.post("/playbooks/import", exported).json()
    assert rest.get(f"/playbooks/{made['id']}/export").json() == exported


def test_an_import_names_the_wrong_line(alice: User) -> None:
    answer = Rest.of(alice).post("/playbooks/import", {"content": f"{ACE_TEXT}\nno bullet\n"})
    assert answer.status_code == 400
    assert answer.json()["error"]["fields"]["content"][0].startswith("Line 8")


def test_an_import_over_the_limit_is_too_large(alice: User) -> None:
    answer = Rest.of(alice).post("/playbooks/import", {"name": "a", "content": "## A\n" * 30_000})
    assert (answer.status_code, Playbook.objects.count()) == (413, 0)


@pytest.mark.parametrize("query", ["status=gone", "include_starters=maybe"])
def test_an_unknown_filter_is_refused(alice: User, query: str) -> None:
    make_playbook(alice)
    assert Rest.of(alice).get(f"/playbooks?{query}").status_code == 400


@pytest.mark.parametrize(
    ("name", "kind"),
    [("json", "application/json"), ("agents", "text/markdown"), ("skill", "application/zip")],
)
def test_an_export_is_a_file_in_the_format_asked_for(
    playbook: Playbook, alice: User, name: str, kind: str
) -> None:
    answer = Rest.of(alice).get(f"/playbooks/{playbook.pk}/export?format={name}")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith(kind)


def test_an_unknown_format_is_refused_with_the_known_ones(playbook: Playbook, alice: User) -> None:
    answer = Rest.of(alice).get(f"/playbooks/{playbook.pk}/export?format=xml")
    assert answer.status_code == 400
    assert "ace, json, agents, skill" in str(answer.json()["error"]["fields"])


def test_a_json_export_is_imported(playbook: Playbook, alice: User) -> None:
    rest = Rest.of(alice)
    text = rest.get(f"/playbooks/{playbook.pk}/export?format=json").content.decode()
    made = rest.post("/playbooks/import", {"name": "Copy", "content": text})
    assert made.status_code == 201
    assert made.json()["bullet_count"] == 3


RULES = "# House rules\n\n- Tag each release.\n| a |\n"


def test_an_import_can_be_previewed_and_takes_its_name_from_inside(alice: User) -> None:
    rest = Rest(make_key(alice)[1])
    shown = rest.post("/playbooks/import", {"content": RULES, "dry_run": True})
    assert (shown.status_code, Playbook.objects.count()) == (200, 0)
    preview = shown.json()
    assert (preview["format"], preview["name"]) == ("Markdown", "House rules")
    rows = [(one["line"], one["id"], one["skipped"]) for one in preview["lines"]]
    assert rows == [(3, "misc-00001", ""), (4, "", "Tables are not imported.")]
    made = rest.post("/playbooks/import", {"content": RULES}).json()
    assert (made["name"], made["bullet_count"]) == ("House rules", 1)


def test_a_playbook_is_created_with_first_advice(alice: User) -> None:
    rest = Rest(make_key(alice)[1])
    made = rest.post("/playbooks", {"name": "Deploys", "content": RULES}).json()
    assert (made["name"], made["bullet_count"]) == ("Deploys", 1)
    both = {"name": "Deploys", "content": RULES, "sections": [{"title": "A"}]}
    assert rest.post("/playbooks", both).status_code == 400


@pytest.mark.parametrize("name", FORMATS)
def test_each_export_can_be_imported_over_rest(alice: User, playbook: Playbook, name: str) -> None:
    rest = Rest(make_key(alice)[1])
    answer = rest.get(f"/playbooks/{playbook.pk}/export?format={name}")
    content = answer.json()["content"] if name == "ace" else read_file(answer.content)
    made = rest.post("/playbooks/import", {"content": content, "name": "Back"})
    assert (made.status_code, made.json()["bullet_count"]) == (201, 3)

"""The OpenAPI document is valid and complete, and its names are plain."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from core.security.scopes import Scope
from tests.harness.rest_routes import ROUTES
from tests.harness.slow_requests import Stopwatch

COMPONENTS = Path(__file__).with_name("openapi_components.txt")
VERBS = {
    *("add", "approve", "archive", "cancel", "clone", "close", "create", "decline", "delete"),
    *("diff", "edit", "export", "get", "import", "list", "log", "open", "receive"),
    *("refresh", "register", "replace", "report", "retry", "revoke", "rollback", "rotate"),
    *("end", "search", "send", "set", "start", "subscribe", "trigger", "undo", "update"),
}
DIALECT = {
    *("beat", "belonging", "chain", "doing", "door", "ending", "figure", "hall", "held", "letter"),
    *("line", "patience", "place", "played", "quoting", "reach", "rung", "said", "seat", "shape"),
    *("shelf", "standing", "tell", "told", "turn", "waking", "whom"),
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    out = io.StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=out)
    found: dict[str, Any] = yaml.load(out.getvalue(), yaml.CSafeLoader)  # four times as fast
    return found


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_route_of_the_contract_is_described(document: dict[str, Any]) -> None:
    assert len(operations(document)) == len(ROUTES)


def test_requests_and_numbers_are_as_strict_as_the_server(document: dict[str, Any]) -> None:
    schemas, found = document["components"]["schemas"], operations(document)
    bodies = [
        content["schema"]
        for operation in found.values()
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    named = {body["$ref"].rpartition("/")[2] for body in bodies if "$ref" in body}
    assert len(named) > 20
    assert {n for n in named if schemas[n].get("additionalProperties") is not False} == set()
    numbers = [
        parameter["schema"].get("minimum")
        for operation in found.values()
        for parameter in operation.get("parameters", ())
        if parameter["name"] in {"version", "max_tokens", "against", "page_size"}
    ]
    assert set(numbers) == {1}
    export = found["GET /api/v1/playbooks/{id}/export"]["responses"]["200"]["content"]
    assert set(export) == {"application/json", "text/markdown", "application/zip"}


def test_components_are_those_that_were_reviewed(document: dict[str, Any]) -> None:
    assert sorted(document["components"]["schemas"]) == COMPONENTS.read_text().split()


def test_a_count_of_tokens_of_a_text_is_called_an_estimate(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"].values()
    counts = [schema.get("properties", {}).get("token_count") for schema in schemas]
    assert sum(count is not None for count in counts) >= 3
    assert all(count is None or "Estimate" in count["description"] for count in counts)


def test_operation_ids_begin_with_a_verb(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in operations(document).values()]
    assert {name.split("_")[0] for name in ids} == VERBS


def test_no_public_name_has_a_word_of_our_own(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in operations(document).values()]
    names = [*document["components"]["schemas"], *ids]
    words = {name: set(re.findall(r"[A-Z]?[a-z]+", name)) for name in names}
    dialect = DIALECT | {f"{word}s" for word in DIALECT}
    found = {name: {word.lower() for word in words[name]} & dialect for name in names}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_every_route_but_the_public_ones_needs_a_bearer(document: dict[str, Any]) -> None:
    public = {name for name, op in operations(document).items() if not op.get("security")}
    ways = ("register", "login", "refresh", "logout")
    expected = {f"POST /api/v1/auth/{way}" for way in ways} | {"POST /api/v1/billing/webhook"}
    assert public == expected


def test_every_route_documents_its_scope_and_errors(document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        assert "400" in operation["responses"], name
        if operation.get("security"):
            assert {"401", "403"} <= set(operation["responses"]), name
            assert any(f"`{scope}`" in operation["description"] for scope in Scope), name


def test_a_post_that_creates_takes_an_idempotency_key(document: dict[str, Any]) -> None:
    takes = {
        operation["operationId"]
        for operation in operations(document).values()
        if any(p["name"] == "Idempotency-Key" for p in operation.get("parameters", []))
    }
    assert takes == {
        *("create_api_key", "rotate_api_key", "create_playbook", "clone_playbook"),
        *("import_playbook", "rollback_playbook", "edit_playbook", "report_outcome"),
        *("trigger_evolution", "approve_review_item", "rollback_source", "undo_version"),
        *("open_session", "add_messages", "start_trial"),
    }


@pytest.mark.parametrize("accept", ["application/json", "*/*"])
def test_the_document_is_built_once(db: None, accept: str) -> None:
    client = Client(headers={"Accept": accept})
    first = client.get("/api/schema")
    same = client.get("/api/schema", headers={"If-None-Match": first["ETag"]})
    assert (same.status_code, same.content) == (304, b"")
    watch = Stopwatch()
    for _ in range(3):
        watch.send("/api/schema", lambda: client.get("/api/schema").status_code)
    assert min(one.seconds for one in watch.requests) < 0.05


def test_schema_and_docs_are_public(db: None) -> None:
    client = Client()
    assert client.get("/api/schema").status_code == 200
    page = client.get("/api/docs")
    assert "swagger-ui-bundle.js" in page.content.decode()
    assert "default-src 'none'" in page["Content-Security-Policy"]


def test_the_docs_have_nothing_inline(db: None) -> None:
    page = Client().get("/api/docs").content.decode()
    assert "<style" not in page
    assert "<script>" not in page
    assert "https://" not in page


def test_each_operation_has_a_summary_and_a_group_that_is_described(client: Client) -> None:
    found = yaml.load(client.get("/api/schema").content, yaml.CSafeLoader)
    described = {tag["name"] for tag in found["tags"]}
    operations = [one for path in found["paths"].values() for one in path.values()]
    assert {tag for one in operations for tag in one["tags"]} <= described
    assert all(0 < len(one["summary"]) <= 120 for one in operations)

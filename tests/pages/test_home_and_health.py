"""Home, health, errors, and the files that every page needs."""

import hashlib
from pathlib import Path

import pytest
from django.conf import settings
from django.db import DatabaseError
from django.test import Client, override_settings
from django.utils import timezone

from accounts.models import User
from config.observability import readiness
from evolution.models import WorkerHeartbeat

VENDOR = Path(settings.BASE_DIR) / "static" / "vendor"


def test_an_anonymous_visitor_sees_the_landing_page(client: Client, db: None) -> None:
    page = client.get("/").content.decode()
    assert 'href="/register"' in page
    assert 'href="/login"' in page


def test_a_playbook_that_gets_better_moves_only_when_asked_and_is_small(
    client: Client, db: None
) -> None:
    page = client.get("/").content.decode()
    still, moving = page.split("</summary>")
    pictures = Path(settings.BASE_DIR) / "static" / "img"
    for name in ("playbook", "playbook-phone"):
        assert f"img/{name}-still." in still
        assert f"img/{name}." in moving
        assert b"ANIM" not in (pictures / f"{name}-still.webp").read_bytes()
        film = (pictures / f"{name}.webp").read_bytes()
        assert film.count(b"ANMF") > 10
        assert len(film) < 1_500_000
    assert '<details class="film"><summary>' in page  # closed: nothing moves yet
    assert 'loading="lazy"' in moving
    first_screen = (Path(settings.BASE_DIR) / "README.md").read_text()[:1200]
    assert 'media="(prefers-reduced-motion: reduce)" srcset="static/img/playbook-still.webp"' in (
        first_screen
    )


def test_home_leads_people_to_their_first_steps_then_to_their_playbooks(owner: Client) -> None:
    assert owner.get("/")["Location"] == "/start"
    owner.post("/start/dismiss")
    assert owner.get("/")["Location"] == "/overview"


def test_a_live_process_answers_without_a_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@override_settings(
    SECURE_SSL_REDIRECT=True, ALLOWED_HOSTS=["ace.example.org"], METRICS_TOKEN="secret"
)
def test_a_probe_asks_a_process_by_its_address_over_plain_http(client: Client, db: None) -> None:
    here = {"Host": "10.0.0.7:8000"}
    scrape = here | {"Authorization": "Bearer secret"}
    assert client.get("/healthz", headers=here).json() == {"status": "ok"}
    assert "database" in client.get("/readyz", headers=here).json()["checks"]
    assert client.get("/metrics", headers=here).status_code == 401
    assert b"ace_jobs" in client.get("/metrics", headers=scrape).content
    assert client.get("/login", headers=here).status_code == 400


def test_readiness_names_each_check_and_its_time(client: Client, db: None) -> None:
    WorkerHeartbeat.objects.create(worker="w", last_seen_at=timezone.now())
    answer = client.get("/readyz")
    checks = answer.json()["checks"]
    assert answer.status_code == 200
    assert {name: check["status"] for name, check in checks.items()} == {
        "database": "ok",
        "migrations": "ok",
        "worker": "ok",
    }
    assert all(check["took_ms"] >= 0 for check in checks.values())


def test_a_silent_worker_is_said_and_the_web_stays_ready(client: Client, db: None) -> None:
    WorkerHeartbeat.objects.create(
        worker="w", last_seen_at=timezone.now() - 2 * readiness.WORKER_SILENT_AFTER
    )
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["worker"]["status"]) == (200, "late")


def test_without_a_database_it_is_not_ready(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> tuple[str, str]:
        raise DatabaseError("connection refused by 10.0.0.1")

    monkeypatch.setitem(readiness.CHECKS, "database", broken)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "10.0.0.1" not in answer.content.decode()


def test_an_unknown_address_gets_a_page_with_the_request_id(client: Client, db: None) -> None:
    response = client.get("/nothing", headers={"X-Request-ID": "abcdefgh-1"})
    assert response.status_code == 404
    assert "abcdefgh-1" in response.content.decode()


def test_a_failure_gets_a_page_that_needs_no_database(client: Client) -> None:
    client.raise_request_exception = False
    with override_settings(ROOT_URLCONF="tests.pages.broken_urls"):
        response = client.get("/", headers={"X-Request-ID": "abcdefgh-2"})
    assert response.status_code == 500
    page = response.content.decode()
    assert "abcdefgh-2" in page
    assert "secret detail" not in page


def test_a_body_over_the_limit_gets_a_page(client: Client, alice: User) -> None:
    sent = {"email": "x" * (settings.MAX_BODY_BYTES + 1), "password": "x"}
    response = client.post("/login", sent, headers={"accept": "text/html"})
    assert response.status_code == 413
    assert "Too large" in response.content.decode()
    assert "default-src 'none'" in response["Content-Security-Policy"]


def test_the_vendored_files_are_those_that_the_readme_names() -> None:
    digest = hashlib.sha256((VENDOR / "htmx" / "htmx.min.js").read_bytes()).hexdigest()
    assert digest in (VENDOR / "README.md").read_text()


def test_no_stylesheet_or_script_asks_for_another_host() -> None:
    for path in (Path(settings.BASE_DIR) / "static").rglob("*.[cj]ss*"):
        assert "sourceMappingURL" not in path.read_text()
        assert "url(http" not in path.read_text()


def test_the_favicon_is_found_by_those_who_guess_it(client: Client) -> None:
    assert client.get("/favicon.ico")["Location"] == "/static/img/favicon.svg"

"""`manage.py doctor` finds real faults, says what to do, and tells no secret."""

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import LlmKey, User
from config.doctor import own_checks
from config.management.commands.doctor import CHECKS
from core.clock import database_now
from core.security.encryption import encrypt
from evolution.models import EvolutionJob, WorkerHeartbeat
from evolution.worker import role_check
from playbooks.models import Playbook
from tests.harness.fake_llm.model import ALWAYS, FakeLLM
from tests.harness.stub_servers import endpoint, mail_server

KEY = "sk-doctor-canary-8472"
pytestmark = [pytest.mark.databases, pytest.mark.django_db]


@pytest.fixture
def refused() -> Iterator[int]:
    """A port at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def examine(*arguments: str) -> dict[str, dict[str, str]]:
    """What every look found, by name."""
    output = StringIO()
    try:
        call_command("doctor", "--json", *arguments, stdout=output)
        code = 0
    except CommandError as error:
        code = error.returncode
    body = json.loads(output.getvalue())
    assert body["ok"] == (code == 0)
    assert KEY not in output.getvalue()
    return {found["name"]: found for found in body["checks"]}


def use_models(settings: Any, url: str) -> None:
    settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", KEY
    settings.OPENAI_BASE_URL = f"{url}/v1"


def test_a_healthy_instance_has_no_failure_and_every_look_is_taken() -> None:
    WorkerHeartbeat.objects.create(worker="one", last_seen_at=database_now())
    found = examine()
    assert [name for name, it in found.items() if it["status"] == "failed"] == []
    assert list(found) == list(CHECKS)


def test_for_people_it_prints_a_line_each_and_the_advice(capsys: Any) -> None:
    with pytest.raises(CommandError, match="1 of 12 checks failed"):
        call_command("doctor")
    printed = capsys.readouterr().out
    assert "XX worker     no worker has been seen" in printed
    assert "Start manage.py run_worker" in printed


def test_a_database_that_is_stopped_is_named_and_what_needs_it_is_left_out(
    refused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("a file cannot be stopped")
    monkeypatch.setitem(connection.settings_dict, "PORT", str(refused))
    found = examine()
    assert "Connection refused" in found["database"]["detail"]
    assert {found[name]["status"] for name in ("migrations", "worker", "queue")} == {"skipped"}


def test_a_wrong_database_password_is_reported_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("a file has no password")
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", KEY)
    assert "password authentication failed" in examine("database")["database"]["detail"]


def test_a_pooler_that_drops_our_time_outs_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one time-out, which is ours")
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {})
    assert "without our time-outs" in examine("database")["database"]["detail"]


def test_missing_migrations_are_counted() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    found = examine()
    assert found["migrations"]["advice"] == "Run manage.py migrate."
    assert found["queue"]["status"] == "skipped"


def test_code_that_is_older_than_its_database_is_warned_of() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied)"
            " VALUES ('playbooks', '9999_of_tomorrow', '2026-11-21 00:00:00+00:00')"
        )
    assert "1 unknown to this version" in examine("migrations")["migrations"]["detail"]


def test_a_clock_that_is_off_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_checks, "host_now", lambda: datetime.now(UTC) - timedelta(minutes=5))
    assert examine("clock")["clock"]["status"] == "failed"


def test_an_unknown_check_is_an_error() -> None:
    with pytest.raises(CommandError, match="Unknown check: heart"):
        call_command("doctor", "heart")


def test_a_full_disk_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_checks, "MIN_FREE_MB", 10**9)
    assert examine("disk")["disk"]["status"] == "failed"


def test_keys_that_do_not_open_what_is_stored_are_found(alice: User, settings: Any) -> None:
    LlmKey.objects.create(user=alice, encrypted_key=encrypt(KEY), last_four="8472")
    settings.FIELD_ENCRYPTION_KEYS = ["another-key-" * 4]
    assert examine("encryption")["encryption"]["status"] == "failed"


def test_counters_whose_redis_is_gone_are_found(refused: int, settings: Any) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{refused}/0"
    backend = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": settings.REDIS_URL}}
    assert examine("cache")["cache"]["status"] == "failed"


def test_a_worker_that_went_silent_is_found() -> None:
    WorkerHeartbeat.objects.create(worker="one", last_seen_at=database_now() - timedelta(minutes=3))
    assert examine("worker")["worker"]["detail"].startswith("seen 1")


def test_a_job_on_which_nobody_works_is_found(playbook: Playbook) -> None:
    long_ago = database_now() - timedelta(hours=1)
    job = EvolutionJob.objects.create(playbook=playbook, status="running", trigger="manual")
    EvolutionJob.objects.filter(pk=job.pk).update(lease_expires_at=long_ago, created_at=long_ago)
    assert examine("queue")["queue"]["detail"].endswith("1 stuck")


@pytest.mark.parametrize(
    ("status", "names", "output"),
    [
        (401, [], "The provider rejected the API key"),
        (429, [], "rate limiting calls (429)"),
        (500, [], "provider failed (500)"),
        (404, [], "has no list of models"),
        (200, ["another"], "does not list gpt-4o-mini"),
        (200, ["gpt-4o-mini"], "accepts the key and lists gpt-4o-mini"),
    ],
)
def test_the_models_endpoint_is_asked_for_its_list_and_no_token_is_spent(
    status: int, names: list[str], output: str, settings: Any
) -> None:
    with endpoint(status, {"data": [{"id": name} for name in names]}) as (url, asked):
        use_models(settings, url)
        assert output in examine("model")["model"]["detail"]
    assert asked == ["GET /v1/models"]


def test_each_role_asks_its_own_question_and_a_key_is_not_needed(settings: Any) -> None:
    with FakeLLM() as llm:
        use_models(settings, llm.base_url)
        settings.OPENAI_API_KEY = ""
        assert (
            "works as generator, reflector, curator" in examine("model", "--llm")["model"]["detail"]
        )
        assert {call.role for call in llm.requests} == {"generator", "reflector", "curator"}
        llm.fail("curator", "not_json", times=ALWAYS)
        found = examine("model", "--llm")["model"]
    assert found["status"] == "failed"
    assert found["detail"].startswith("curator: ")


def test_a_models_endpoint_that_is_gone_is_found(refused: int, settings: Any) -> None:
    use_models(settings, f"http://127.0.0.1:{refused}")
    assert examine("model")["model"]["detail"].endswith("could not be reached.")


def test_a_wrong_endpoint_is_distinguished_from_one_without_the_model(
    settings: Any,
) -> None:
    with endpoint(200, {"hello": "world"}) as (url, _):
        use_models(settings, url)
        found = examine("model")["model"]
    assert found["detail"].endswith("has no list of models")
    assert "/v1 is missing" in found["advice"]


def test_an_endpoint_that_drips_is_not_waited_for(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(role_check, "LIST_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        use_models(settings, f"http://127.0.0.1:{silent.getsockname()[1]}")
        found = examine("model")["model"]["detail"]
    assert found.endswith("did not answer in time.")


def test_a_mail_server_that_is_gone_is_found(refused: int, settings: Any) -> None:
    use_mail(settings, refused)
    assert examine("mail")["mail"]["detail"] == f"127.0.0.1:{refused}: connection refused"


def test_a_mail_server_that_refuses_the_login_is_found(settings: Any) -> None:
    with mail_server(b"535 5.7.8 no\r\n") as port:
        use_mail(settings, port)
        assert examine("mail")["mail"]["detail"].endswith("rejects the login")


def use_mail(settings: Any, port: int) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 10
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "ace", KEY


@pytest.mark.parametrize(
    ("changed", "status", "output"),
    [
        ({"DEBUG": True, "LOCAL": False}, "failed", "DEBUG=true"),
        ({"PUBLIC_URL": "https://else.example"}, "failed", "the host of PUBLIC_URL"),
        ({"EMAIL_VERIFICATION": "mandatory"}, "failed", "EMAIL_VERIFICATION=mandatory"),
        ({"OPENAI_API_KEY": KEY}, "warning", "never uses it"),
        ({"JWT_SECRET_KEY": "test-" * 10}, "warning", "is also JWT_SECRET_KEY"),
        ({"LOCAL": False, "ALLOWED_HOSTS": ["*"]}, "warning", "ALLOWED_HOSTS=*"),
        ({"LOCAL": False, "ALLOWED_HOSTS": ["localhost"]}, "warning", "no other can reach it"),
        ({"LOCAL": False, "ALLOWED_HOSTS": ["ace.example"]}, "warning", "unencrypted"),
    ],
)
def test_settings_that_contradict_each_other_are_found(
    changed: dict[str, Any], status: str, output: str, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    for name, value in changed.items():
        setattr(settings, name, value)
    found = examine("settings")["settings"]
    assert (found["status"], output in found["detail"]) == (status, True)


@pytest.mark.parametrize("name", ["COST_CAP_USER_DAY_USD", "MAX_STORED_MB"])
def test_a_limit_in_the_environment_that_nothing_reads_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "5")
    found = examine("settings")["settings"]
    assert (found["status"], f"{name}: no longer read" in found["detail"]) == ("warning", True)


def test_trusting_every_proxy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert "claim any address" in examine("settings")["settings"]["detail"]

"""Credentials in texts of agents are redacted; prose is left alone."""

import time

import pytest

from accounts.keys.key_format import mint
from accounts.models import User
from core.security.redaction import redact
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.harness.interfaces import open_interfaces
from tests.harness.live_server import live_url
from tests.harness.random_tokens import accepted

__all__ = ["live_url"]

FORMS = [
    *("ace_oat_" + "A" * 43, "ace_ort_" + "b" * 43, "sk-" + "a" * 48, "sk-proj-" + "a1_-" * 20),
    *("sk-ant-api03-" + "a" * 80, "sk_live_" + "a" * 24, "whsec_" + "a" * 32, "ghp_" + "a" * 36),
    *("github_pat_" + "a" * 60, "glpat-" + "a" * 20, "AKIA" + "A" * 16, "AIza" + "a" * 35),
    *("xoxb-1234567890-abcdef", "hf_" + "a" * 34, "npm_" + "a" * 36, "pypi-" + "a" * 60),
    "eyJ" + "a" * 20 + ".eyJ" + "b" * 40 + "." + "c" * 43,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    *("SG." + "a" * 22 + "." + "b" * 43, "xapp-1-A0-1-" + "a" * 20),
]
# Recognized by their context: the text before each secret, and the secret.
PLACES = [
    ("postgres://{}/ace", "alice:s3cret@"),
    ("AWS_SECRET_ACCESS_KEY={}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ('aws_secret_access_key = "{}"', "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-1\n\n{}", "MIIEkey"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}", "lQVYBGkey"),
]


@pytest.mark.parametrize("form", [*FORMS, mint().token], ids=range(len(FORMS) + 1))
def test_a_credential_is_redacted_anywhere_in_a_text(form: str) -> None:
    for text in (form, f"KEY={form}", f'{{"key": "{form}"}}', f"a\n{form}\nb"):
        assert form not in redact(text), text
        assert "removed]" in redact(text)


@pytest.mark.parametrize(("around", "secret"), PLACES)
def test_a_secret_is_redacted_by_its_context(around: str, secret: str) -> None:
    assert secret not in redact(around.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Ask for the sk-learn docs.",
            "task-force-one-is-here",
            "risk-based, ask-me",
            "ghp_short",
        ),
        *("The AKIA prefix is AWS's.", "ace_live_ keys are long", "-----BEGIN CERTIFICATE-----"),
    ],
)
def test_prose_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_redaction_is_fast_for_any_text() -> None:
    hard = [
        part * 3000 for part in ("sk-", "eyJ", "-----BEGIN ", "a://b:", "eyJa.", "AKIA", "xoxb-")
    ]
    began = time.process_time()
    for text in hard:
        redact(text)
    assert time.process_time() - began < 2


def test_no_interface_stores_a_credential(live_url: str, alice: User, playbook: Playbook) -> None:
    ours, theirs = mint().token, FORMS[2]
    for interface in open_interfaces(live_url, alice).values():
        trace = f"export OPENAI_API_KEY={theirs}"
        fields = {"task_description": f"Use {ours}", "reasoning_trace": trace, "signal": "test"}
        fields["outcome"] = "success"
        assert interface.report_outcome(playbook, **fields, notes=f"{ours} {theirs}").kind == "ok"
    kept = str(list(Outcome.objects.values_list("task_description", "reasoning_trace", "notes")))
    assert Outcome.objects.count() == 3
    assert ours not in kept
    assert theirs not in kept


def test_no_random_token_is_a_key() -> None:
    assert accepted(20_000) == 0

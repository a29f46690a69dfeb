"""The recorded chat is what its script says, and its page says that it is recorded."""

import json
import os

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from evolution.playground.recorded_chat import RECORDING_PATH, recorded_sides
from tests.evolution.playground.record_chat import record
from tests.harness.fake_llm.model import FakeLLM


def test_the_recording_is_what_its_script_says(alice: User, llm: FakeLLM) -> None:
    """To record it anew after a change: set ACE_RECORD_CHAT and run this test."""
    recorded = json.dumps(record(alice, llm), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("ACE_RECORD_CHAT"):
        RECORDING_PATH.write_text(recorded, encoding="utf-8")
    assert RECORDING_PATH.read_text(encoding="utf-8") == recorded


@pytest.mark.django_db
def test_the_recorded_chat_says_so_and_is_there_without_a_model(client: Client) -> None:
    client.force_login(User.objects.create_user("new@example.org"))
    page = client.get(reverse("evolution:recorded_chat")).content.decode()
    assert "Recorded chat" in page
    assert "This page calls no model" in page
    assert '<form class="rating"' not in page


def test_the_recording_cites_only_what_its_playbook_has() -> None:
    with_playbook, without = recorded_sides()
    assert with_playbook.cited == {"str-00001", "str-00002", "calc-00003", "mis-00004", "mis-00005"}
    assert not any(one.unknown for one in with_playbook.messages)
    assert not without.cited

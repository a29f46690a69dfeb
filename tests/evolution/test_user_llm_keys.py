"""An owner with a key of their own pays for their evolutions, at their own endpoint."""

import pytest
from django.conf import LazySettings

from accounts.keys.llm_keys import set_llm_key
from accounts.models import User
from billing.models import UsageRecord
from evolution.models import EvolutionJob
from evolution.worker.credentials import credential_for
from evolution.worker.tasks import run_evolution
from tests.harness.fake_llm.model import FakeLLM


def test_without_a_key_of_ones_own_the_operators_pays(alice: User, settings: LazySettings) -> None:
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "sk-operator", "https://a.example/v1"
    credential = credential_for(alice.pk)
    assert (credential.api_key, credential.own) == ("sk-operator", False)


@pytest.mark.django_db(transaction=True)
def test_an_owners_key_is_used_even_where_the_rules_think_for_others(
    job: EvolutionJob, alice: User, settings: LazySettings
) -> None:
    with FakeLLM() as llm:
        settings.OPENAI_BASE_URL = llm.base_url
        set_llm_key(user=alice, api_key="sk-of-alice")
        assert run_evolution(str(job.pk)) == "completed"
        assert {call.headers["authorization"] for call in llm.requests} == {"Bearer sk-of-alice"}
    record = UsageRecord.objects.first()
    assert record is not None
    assert record.credential == credential_for(alice.pk).circuit_key


@pytest.mark.django_db(transaction=True)
def test_an_address_that_leads_inside_by_now_is_not_called(
    job: EvolutionJob, alice: User, settings: LazySettings
) -> None:
    with FakeLLM() as llm:
        settings.PRIVATE_HOSTS = ["localhost"]
        set_llm_key(user=alice, api_key="sk-of-alice", base_url="https://localhost/v1")
        settings.PRIVATE_HOSTS = []
        assert run_evolution(str(job.pk)) == "waiting"
        assert llm.count() == 0
    job.refresh_from_db()
    assert "not on the public internet" in job.wait_reason

"""The usage page and its CSV: sums by time, playbook, model and key; unknown is never 0."""

import csv
import io
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.test import Client
from django.utils import timezone

from accounts.models import ApiKey, User
from billing.models import UsageRecord
from playbooks.models import Playbook
from tests.factories import make_key, make_playbook


def use(user: User, *, days_ago: int = 0, **fields: Any) -> UsageRecord:
    known: dict[str, Any] = {
        "step": "curate",
        "attempt": 1,
        "operation": "curate",
        "status": "answered",
        "model": "gpt-4o-mini",
        "prompt_tokens": 900,
        "completion_tokens": 100,
        "total_tokens": 1000,
        "cost_usd": Decimal("0.25"),
        "job_id": uuid.uuid4(),
        "created_at": timezone.now() - timedelta(days=days_ago),
    }
    return UsageRecord.objects.create(user=user, **known | fields)


def read_csv(client: Client, query: str = "") -> list[dict[str, str]]:
    response = client.get(f"/usage.csv{query}")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def shares(client: Client, name: str) -> dict[str, int]:
    cuts = {cut.name: cut for cut in client.get("/usage").context["breakdowns"]}
    return {share.label: share.total.total_tokens for share in cuts[name].shares}


def test_the_same_calls_are_cut_by_playbook_model_purpose_and_key(
    owner: Client, alice: User
) -> None:
    playbook, key = make_playbook(alice), make_key(alice, name="ci")[0]
    use(alice, playbook_id=playbook.pk, api_key_id=key.pk)
    use(alice, playbook_id=playbook.pk, model="gpt-4o", operation="reflect")
    assert shares(owner, "playbook") == {playbook.name: 2000}
    assert shares(owner, "model") == {"gpt-4o-mini": 1000, "gpt-4o": 1000}
    assert shares(owner, "operation") == {"write bullets": 1000, "reflect on outcomes": 1000}
    assert shares(owner, "key") == {"ci": 1000, "no key": 1000}


def test_a_filter_narrows_every_table_and_can_be_taken_away(owner: Client, alice: User) -> None:
    key, _ = make_key(alice, name="ci")
    use(alice, api_key_id=key.pk)
    use(alice, model="gpt-4o")
    page = owner.get(f"/usage?key={key.pk}")
    assert page.context["total"].calls == 1
    assert "Key: ci" in page.content.decode()
    assert owner.get("/usage?key=-").context["total"].calls == 1
    assert owner.get("/usage?model=gpt-4o").context["total"].calls == 1
    assert owner.get("/usage?operation=reflect").context["total"].calls == 0


def test_a_filter_that_fits_nothing_shows_the_way_back(owner: Client, alice: User) -> None:
    use(alice)
    page = owner.get("/usage?model=none-such").content.decode()
    assert "No usage matches these filters" in page


def test_a_filter_that_is_none_is_no_filter(owner: Client, alice: User) -> None:
    use(alice)
    for query in ("playbook=x", "operation=x", "key=x", "key=' OR 1=1"):
        assert owner.get(f"/usage?{query}").context["total"].calls == 1


def test_a_strangers_usage_is_in_no_sum(owner: Client, charlie: User) -> None:
    theirs = use(charlie, playbook_id=make_playbook(charlie).pk)
    assert not owner.get(f"/usage?playbook={theirs.playbook_id}").context["rows"]
    assert read_csv(owner) == []


def test_an_unknown_cost_is_said_and_never_nought(owner: Client, alice: User) -> None:
    use(alice, model="own-model", cost_usd=None)
    page = owner.get("/usage").content.decode()
    assert "$0" not in page.split("</figure>")[-1]
    assert "no price for own-model" in page
    assert [(row["cost_usd"], row["known_cost_usd"]) for row in read_csv(owner)] == [
        ("unknown", "")
    ]


def test_a_cost_known_in_part_is_a_lower_bound(owner: Client, alice: User) -> None:
    use(alice)
    use(alice, model="own-model", cost_usd=None)
    page = " ".join(owner.get("/usage").content.decode().split())
    assert "<small>at least</small> $0.2500" in page


def test_weeks_and_months_join_days(owner: Client, alice: User) -> None:
    for days in (0, 7, 14):
        use(alice, days_ago=days)
    for period, rows in (("day", 3), ("week", 3)):
        assert len(owner.get(f"/usage?period={period}").context["rows"]) == rows
    months = owner.get("/usage?period=month").context["rows"]
    assert sum(total.calls for _start, total in months) == 3
    assert all(start.day == 1 for start, _total in months)


def test_a_period_that_is_none_is_refused(owner: Client) -> None:
    assert owner.get("/usage?period=year").status_code == 400
    assert owner.get("/usage.csv?period=year").status_code == 400


def test_the_csv_has_each_bucket_by_playbook_model_and_key(owner: Client, alice: User) -> None:
    playbook, key = make_playbook(alice), make_key(alice, name="ci")[0]
    use(alice, playbook_id=playbook.pk, api_key_id=key.pk)
    (row,) = read_csv(owner)
    assert (row["playbook"], row["key"], row["total_tokens"]) == (playbook.name, "ci", "1000")
    assert (row["model"], row["operation"]) == ("gpt-4o-mini", "curate")
    assert row["start"] == str(timezone.now().date())


def test_a_name_that_a_spreadsheet_would_run_is_only_text(owner: Client, alice: User) -> None:
    playbook = make_playbook(alice, name="=HYPERLINK(1)")
    use(alice, playbook_id=playbook.pk, model="@SUM(1)")
    (row,) = read_csv(owner)
    assert (row["playbook"], row["model"]) == ("'=HYPERLINK(1)", "'@SUM(1)")


def test_what_is_gone_is_named_so(owner: Client, alice: User, playbook: Playbook) -> None:
    key, _ = make_key(alice)
    use(alice, playbook_id=playbook.pk, api_key_id=key.pk)
    ApiKey.objects.all().delete()
    assert shares(owner, "key") == {"deleted key": 1000}


def test_the_page_costs_the_same_however_much_there_is(
    owner: Client, alice: User, django_assert_num_queries: Any
) -> None:
    for number in range(6):
        playbook, key = make_playbook(alice, name=str(number)), make_key(alice)[0]
        use(alice, playbook_id=playbook.pk, api_key_id=key.pk, days_ago=number)
    with django_assert_num_queries(10):  # session, user, inbox, four cuts, two of names, budgets
        owner.get("/usage")

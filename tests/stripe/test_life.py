"""A subscription from its first page to its end, over real HTTP."""

import pytest

from tests.stripe.customer import Customer
from tests.stripe.fake import DECLINED, FAILS_LATER, FakeStripe

pytestmark = pytest.mark.django_db(transaction=True)


def test_first(buyer: Customer, shop: FakeStripe) -> None:
    url = buyer.subscribe("team").json()["url"]
    assert buyer.pay(url, DECLINED).status_code == 402
    assert buyer.plan == "free"
    assert buyer.pay(url).status_code == 303
    assert [one.status for one in shop.deliver()] == [200, 200, 200]
    assert buyer.plan == "team"
    assert buyer.subscribe("pro").status_code == 409

"""A buying user: REST at our server and forms at the fake Stripe, over HTTP."""

from dataclasses import dataclass
from typing import Any

import httpx2

from accounts.keys.jwt_tokens import issue_tokens
from accounts.models import User
from billing.models import BillingAccount
from billing.plans.entitlements import entitlement_for
from tests.harness.fake_stripe.world import GOOD


@dataclass(frozen=True)
class Customer:
    """`Customer.of(alice, url)` signs in with an access token."""

    user: User
    site: str
    token: str

    @classmethod
    def of(cls, user: User, site: str) -> "Customer":
        return cls(user, site, issue_tokens(user=user).access)

    def post(self, path: str, body: dict[str, Any] | None = None) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.site}/api/v1{path}"
        return httpx2.post(url, json=body or {}, headers=headers, timeout=30, trust_env=False)

    def put(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.site}/api/v1{path}"
        return httpx2.put(url, json=body, headers=headers, timeout=30, trust_env=False)

    def subscribe(self, plan: str = "pro") -> httpx2.Response:
        return self.post("/billing/subscribe", {"plan": plan})

    def pay(self, page: str, card: str = GOOD) -> httpx2.Response:
        return httpx2.post(page, data={"card": card}, trust_env=False, timeout=30)

    def buy(self, plan: str = "pro", card: str = GOOD) -> None:
        answer = self.subscribe(plan)
        assert answer.status_code == 200, answer.text
        assert self.pay(answer.json()["url"], card).status_code == 303

    def manage(self, **form: str) -> httpx2.Response:
        """Submit a form of the billing portal."""
        page = self.post("/billing/portal").json()["url"]
        return httpx2.post(page, data=form, trust_env=False, timeout=30)

    @property
    def account(self) -> BillingAccount:
        return BillingAccount.objects.select_related("plan").get(user=self.user)

    @property
    def plan(self) -> str:
        """The plan that applies now."""
        found = entitlement_for(self.user.pk)
        assert found is not None
        return found.plan.slug

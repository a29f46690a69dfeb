"""A small Stripe for tests: a real HTTP server with a clock of its own.

`world` is what Stripe knows and how time changes it, `api` its REST routes, `pages` the pay page
and the portal, `delivery` the events it sends, `server` the thread that listens.
"""

from tests.harness.fake_stripe.server import FakeStripe as FakeStripe
from tests.harness.fake_stripe.server import fake_stripe as fake_stripe
from tests.harness.fake_stripe.world import DECLINED as DECLINED
from tests.harness.fake_stripe.world import FAILS_LATER as FAILS_LATER
from tests.harness.fake_stripe.world import GOOD as GOOD

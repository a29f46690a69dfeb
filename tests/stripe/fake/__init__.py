"""A small Stripe for tests: a real HTTP server with a clock of its own.

`world` is what Stripe knows and how time changes it, `api` its REST routes, `pages` the pay page
and the portal, `delivery` the events it sends, `server` the thread that listens.
"""

from tests.stripe.fake.server import FakeStripe as FakeStripe
from tests.stripe.fake.server import fake_stripe as fake_stripe
from tests.stripe.fake.world import DECLINED as DECLINED
from tests.stripe.fake.world import FAILS_LATER as FAILS_LATER
from tests.stripe.fake.world import GOOD as GOOD

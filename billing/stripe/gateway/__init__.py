"""The only place that knows stripe and dj-stripe.

`stripe_api` speaks to Stripe and `mirror` to dj-stripe's tables. Neither is imported before its first
use: while billing is off, dj-stripe is no installed app and nobody pays for their start-up.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import billing.stripe.gateway.mirror as mirror
    import billing.stripe.gateway.provisioning as provisioning
    import billing.stripe.gateway.stripe_api as stripe_api

__all__ = ("mirror", "provisioning", "stripe_api")


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(name)

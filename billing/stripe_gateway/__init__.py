"""The only place that knows stripe and dj-stripe.

`calls` speaks to Stripe and `mirror` to dj-stripe's tables. Neither is imported before its first
use: while billing is off, dj-stripe is no installed app and nobody pays for their start-up.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import billing.stripe_gateway.calls as calls
    import billing.stripe_gateway.mirror as mirror
    import billing.stripe_gateway.offering as offering

__all__ = ("calls", "mirror", "offering")


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(name)

"""The only package that imports stripe and dj-stripe.

`stripe_api` calls Stripe, `setup` prepares it, and `mirror` writes dj-stripe's tables. Each is
imported at its first use: while billing is off, dj-stripe is not an installed app.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import billing.stripe.gateway.mirror as mirror
    import billing.stripe.gateway.setup as setup
    import billing.stripe.gateway.stripe_api as stripe_api

__all__ = ("mirror", "setup", "stripe_api")


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(name)

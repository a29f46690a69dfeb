"""What accounts needs from the apps above it; each of those sets its part in AppConfig.ready.

Nothing has a default: a part that is missing raises AttributeError instead of lifting a limit.
"""

from collections.abc import Callable
from uuid import UUID


class Hooks:
    playbook_names: Callable[..., dict[UUID, str]]
    """`(who, *, ids=None, active=False)`: names of the user's playbooks by id, sorted by name; only
    `ids`, only active ones. Set by playbooks."""
    check_api_key_limit: Callable[..., None]
    """`(*, user)`: raise Conflict when the user may have no more API keys; runs inside the
    transaction. Set by billing."""
    keep_used_quota: Callable[..., None]
    """`(*, user)`: keep what the user has used of a plan, before their rows are deleted. Set by
    billing."""


hooks = Hooks()

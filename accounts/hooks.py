"""What accounts needs from the apps above it; each of those sets its part in AppConfig.ready.

Nothing has a default: a part that is missing raises AttributeError instead of lifting a limit.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from accounts.models import User
    from core.security.scopes import Principal


class PlaybookNames(Protocol):
    def __call__(
        self,
        who: "User | Principal",
        *,
        ids: Collection[UUID | str] | None = None,
        active: bool = False,
    ) -> dict[UUID, str]:
        """Names of the user's playbooks by id, sorted by name; only `ids`, only active ones."""


class ApiKeyLimitCheck(Protocol):
    def __call__(self, *, user: "User") -> None:
        """Raise Conflict when the user may have no more API keys; runs inside the transaction."""


class QuotaKeeper(Protocol):
    def __call__(self, *, user: "User") -> None:
        """Keep what the user has used of a plan; runs before their rows are deleted."""


class Hooks:
    playbook_names: PlaybookNames  # set by playbooks
    check_api_key_limit: ApiKeyLimitCheck  # set by billing
    keep_used_quota: QuotaKeeper  # set by billing


hooks = Hooks()

"""Settings of a real server that creates its tables without migrations, in a second."""

from tests.harness.live_settings import *  # noqa: F403 - a settings module is its names


class NoMigrations(dict[str, None]):
    """Of no app."""

    def __contains__(self, app: object) -> bool:
        return True

    def __getitem__(self, app: str) -> None:
        return None


MIGRATION_MODULES = NoMigrations()

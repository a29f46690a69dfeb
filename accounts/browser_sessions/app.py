"""The app of allauth's table of sessions."""

from allauth.usersessions.apps import UserSessionsConfig


class BrowserSessionsConfig(UserSessionsConfig):  # type: ignore[misc]  # allauth ships no types
    """Without its signals, which would store the keys of cookies: store.py writes the rows."""

    def ready(self) -> None:
        pass

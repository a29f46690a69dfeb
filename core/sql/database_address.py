"""Which database a process works on, in words that may be printed."""

import logging

from django.conf import settings
from django.db import connection

logger = logging.getLogger(__name__)


def log_start(role: str) -> None:
    """The first line of a process: what runs here."""
    words = settings.VERSION, role, settings.ACE_ENGINE, database_address()
    logger.info("ACE Platform %s started as %s: engine %s, %s", *words)


def database_address() -> str:
    """The server, port and name of the database, or its file; never the password."""
    place = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"the SQLite file {place['NAME']}"
    server = f"{place['HOST'] or 'the local socket'}:{place['PORT'] or 5432}"
    return f"the PostgreSQL database {place['NAME']!r} at {server}"

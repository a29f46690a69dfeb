"""Which database a command works on, in words that may be printed."""

from django.db import connection


def database_address() -> str:
    """The server, port and name of the database, or its file; never the password."""
    place = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"the SQLite file {place['NAME']}"
    server = f"{place['HOST'] or 'the local socket'}:{place['PORT'] or 5432}"
    return f"the PostgreSQL database {place['NAME']!r} at {server}"

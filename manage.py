#!/usr/bin/env python
"""Django's command line for ACE Platform."""

import os
import sys

HOW = "`make run` makes .venv with all that is needed; then: .venv/bin/python manage.py"
if sys.version_info < (3, 11):  # noqa: UP036 - what an older one would say helps nobody
    sys.exit(f"ACE Platform needs Python 3.11 to 3.13, not {sys.version.split()[0]}. {HOW}")
try:
    from django.core.exceptions import ImproperlyConfigured
    from django.db.utils import DatabaseError

    from config.management import gc_tuning
    from config.management.command_line import CommandLine
except ModuleNotFoundError:
    sys.exit(f"{sys.executable} has no Django. {HOW}")

# These serve requests, or start what does; for every other command one connection is enough.
SERVERS = {"run", "run_mcp", "runserver"}


def main() -> None:
    """Run the command; a wrong setting or an absent database is one sentence, no traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    gc_tuning.disable_gc()  # until Django is ready: config/apps.py
    if not SERVERS & set(sys.argv[1:2]):
        os.environ["DATABASE_POOL"] = "false"
    try:
        CommandLine(sys.argv).execute()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except DatabaseError as error:
        from config.management.database_errors import describe_database_error  # noqa: PLC0415 - only when it is needed

        said = describe_database_error(error)
        if not said:
            raise
        sys.exit(said)


if __name__ == "__main__":
    main()

#!/usr/bin/env python
"""Django's command line for ACE Platform."""

import gc
import os
import sys

HOW = "`make run` makes .venv with all that is needed; then: .venv/bin/python manage.py"
if sys.version_info < (3, 11):  # noqa: UP036 - an older one fails with a syntax error
    sys.exit(f"ACE Platform needs Python 3.11 to 3.13, not {sys.version.split()[0]}. {HOW}")
try:
    from django.core.exceptions import ImproperlyConfigured
    from django.db.utils import DatabaseError

    from config.management.command_line import CommandLine
except ModuleNotFoundError:
    sys.exit(f"{sys.executable} has no Django. {HOW}")


def main() -> None:
    """Run the command; report a wrong setting or a missing database without a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    gc.disable()  # until Django is ready: config/apps.py
    try:
        CommandLine(sys.argv).execute()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except DatabaseError as error:
        from config.management.database_errors import (  # noqa: PLC0415 - only when needed
            describe_database_error,
        )

        message = describe_database_error(error)
        if not message:
            raise
        sys.exit(message)


if __name__ == "__main__":
    main()

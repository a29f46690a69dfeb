#!/usr/bin/env python
"""Django's command line for ACE Platform."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db.utils import OperationalError

# These serve requests, or start what does; for every other command one connection is enough.
SERVERS = {"run", "run_mcp", "runserver"}


def main() -> None:
    """Run the command; a wrong setting or an absent database is one sentence, no traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if not SERVERS & set(sys.argv[1:2]):
        os.environ["DATABASE_POOL"] = "false"
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except OperationalError as error:
        from config.unreachable import say_unreachable  # noqa: PLC0415 - only when it is needed

        said = say_unreachable(error)
        if not said:
            raise
        sys.exit(said)


if __name__ == "__main__":
    main()

"""`manage.py` in a process of its own on the database of the test that started it."""

import os
import sys

import django
from django.conf import settings
from django.core.management import call_command

if __name__ == "__main__":
    settings.DATABASES["default"]["NAME"] = os.environ["ACE_TEST_DATABASE"]
    django.setup()
    call_command(*sys.argv[1:])

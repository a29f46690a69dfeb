"""These tests need billing on: `TEST_BILLING_ENABLED=true pytest tests/stripe`, as tests/run.py does."""

from django.conf import settings

collect_ignore_glob = [] if settings.BILLING_ENABLED else ["test_*.py"]

"""What a transactional test leaves to the next one: nothing but what migrations always make."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection

from accounts.models import User
from core.audit import record
from core.models import AuditEntry
from playbooks.models import Playbook
from tests.harness import fast_flush

pytestmark = pytest.mark.databases


@pytest.mark.django_db(transaction=True)
def test_every_row_goes_the_audit_logs_too(alice: User, playbook: Playbook) -> None:
    record(action="playbook.created", by=None, subject=playbook, owner=alice)
    assert AuditEntry.objects.exists()
    fast_flush.empty(connection)
    assert fast_flush.filled_tables(connection) == []
    assert Permission.objects.filter(content_type__app_label="playbooks").exists()

"""What a transactional test leaves to the next one: nothing but what migrations always make."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection

from accounts.audit import record
from accounts.models import AuditEntry, User
from playbooks.models import Playbook
from tests import emptying

pytestmark = pytest.mark.databases


@pytest.mark.django_db(transaction=True)
def test_every_row_goes_the_audit_logs_too(alice: User, playbook: Playbook) -> None:
    record(action="playbook.created", by=None, subject=playbook, owner=alice)
    assert AuditEntry.objects.exists()
    emptying.empty(connection)
    assert emptying.filled_tables(connection) == []
    assert Permission.objects.filter(content_type__app_label="playbooks").exists()

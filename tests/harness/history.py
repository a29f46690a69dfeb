"""The history of a playbook, checked as `manage.py verify` checks it."""

from django.db import transaction

from playbooks.models import Playbook
from playbooks.services.loading import lock_playbook
from playbooks.services.verification import check_rows, check_versions


def verify_playbook(playbook: Playbook) -> list[str]:
    """The inconsistencies of versions, deltas and rows, the first one first."""
    with transaction.atomic():
        # Locked, because a version published between two of our queries would look like a fault.
        lock_playbook(playbook)
        problems, last = check_versions(playbook)
        return problems + check_rows(playbook, last)

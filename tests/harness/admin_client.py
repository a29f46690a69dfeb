"""What staff does at the admin, in the fewest words."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.test import Client
from django.urls import reverse

from tests.harness.sample_account import World


@dataclass(frozen=True)
class AdminClient:
    client: Client

    def rows(self, model: str, **query: str) -> str:
        """The list's page, filtered."""
        answer = self.client.get(reverse(f"admin:{model}_changelist"), query)
        assert answer.status_code == 200
        return answer.content.decode()

    def row(self, row: Model) -> str:
        address = reverse(f"admin:{row._meta.label_lower.replace('.', '_')}_change", args=[row.pk])
        answer = self.client.get(address)
        assert answer.status_code == 200
        return answer.content.decode()

    def act(self, action: str, *rows: Model, **fields: str) -> str:
        """Do the action on the rows; the page that comes after."""
        model = rows[0]._meta.label_lower.replace(".", "_")
        sent: dict[str, Any] = {"action": action, "_selected_action": [row.pk for row in rows]}
        address = reverse(f"admin:{model}_changelist")
        answer = self.client.post(address, sent | fields, follow=True)
        assert answer.status_code == 200
        return answer.content.decode()

    def export(self, model: str, **query: str) -> list[str]:
        """The lines of the list's CSV."""
        answer: Any = self.client.get(reverse(f"admin:{model}_export"), query)
        assert answer.status_code == 200
        text: str = answer.content.decode()
        return text.splitlines()


def is_denied(client: Client, *addresses: str) -> bool:
    """Neither reading nor writing gets anybody but staff further than the login or a 404."""
    answers = [send(address) for address in addresses for send in (client.get, client.post)]
    return {answer.status_code for answer in answers} <= {302, 404}


def refresh(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


__all__ = ["AdminClient", "World", "is_denied", "refresh"]

from core.audit import record
from core.security.scopes import Principal
from playbooks.models import Playbook


def record_change(action: str, by: Principal, playbook: Playbook, **detail: str | int) -> None:
    record(action=action, by=by, subject=playbook, owner=playbook.owner_id, **detail)

"""How a call that `admit` let through ends."""

from billing.models import UsageRecord
from evolution.engine.llm import Usage
from evolution.worker.lines import Admitted, dismiss

USED = Usage(1000, 500, total_tokens=1500)


def end(admitted: Admitted, error: str = "") -> UsageRecord:
    return dismiss(admitted, usage=USED, model="gpt-4o-mini", request_id="", error=error)

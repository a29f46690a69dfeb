"""How a call that `admit` let through ends."""

from billing.models import UsageRecord
from evolution.engine.llm import Usage
from evolution.worker.llm_admission import AdmittedCall
from evolution.worker.llm_admission import finish_call as dismiss

USED = Usage(1000, 500, total_tokens=1500)


def finish_call(admitted: AdmittedCall, error: str = "") -> UsageRecord:
    return dismiss(admitted, usage=USED, model="gpt-4o-mini", request_id="", error=error)


def raising(error: Exception) -> object:
    def think(_: object) -> None:
        raise error

    return think

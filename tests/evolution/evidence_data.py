"""A playbook that has evolved, and tasks that were played under its versions."""

from django.db import transaction

from accounts.models import User
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services.editing import edit_playbook
from playbooks.services.reading import read_playbook
from tests.factories import make_outcome, publish

RESULTS = {"s": "success", "f": "failure", "p": "partial"}
NAME = Operation("ADD", section="str", content="Name the failing test.")
LESSON = Operation("ADD", section="str", content="Run the linter before the tests.")


def evolve_once(playbook: Playbook, by: User) -> Playbook:
    """Version 2 is a person's edit, version 3 an evolution."""
    edit_playbook(playbook=playbook, by=Principal.of(by), operations=[NAME])
    with transaction.atomic():
        locked = Playbook.objects.select_for_update().get(pk=playbook.pk)
        publish(locked, operations=[LESSON], reason="evolution", machine=False)
    return locked


def report_outcomes(
    playbook: Playbook, by: User, results: str, *, version: int = 0, **sent: str
) -> None:
    """Tasks with these results, after reading `version`; 0: without a serving."""
    if version:
        reading = read_playbook(playbook=playbook, by=Principal.of(by), version=version)
        sent["serving_id"] = reading.serving_id
    for letter in results:
        make_outcome(playbook, by, outcome=RESULTS[letter], **sent)

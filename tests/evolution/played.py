"""A playbook that has evolved, and tasks that were played under its versions."""

from django.db import transaction

from accounts.models import User
from accounts.scopes import Principal
from playbooks.models import Playbook
from playbooks.operations import Operation
from playbooks.services import edit_playbook, publish_deltas, read_playbook
from tests.factories import make_outcome

RESULTS = {"s": "success", "f": "failure", "p": "partial"}
NAME = Operation("ADD", section="str", content="Name the failing test.")
LESSON = Operation("ADD", section="str", content="Run the linter before the tests.")


def evolve_once(playbook: Playbook, by: User) -> Playbook:
    """Version 2 is a person's edit, version 3 an evolution."""
    edit_playbook(playbook=playbook, by=Principal.of(by), operations=[NAME])
    with transaction.atomic():
        locked = Playbook.objects.select_for_update().get(pk=playbook.pk)
        publish_deltas(playbook=locked, operations=[LESSON], reason="evolution", machine=False)
    return locked


def play(playbook: Playbook, by: User, results: str, *, version: int = 0, **sent: str) -> None:
    """Tasks with these results, after reading `version`; 0: without a serving."""
    if version:
        reading = read_playbook(playbook=playbook, by=Principal.of(by), version=version)
        sent["serving_id"] = reading.serving_id
    for letter in results:
        make_outcome(playbook, by, outcome=RESULTS[letter], **sent)

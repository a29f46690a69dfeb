"""Plain factories: what a test needs, made by the services that users reach."""

from functools import partial
from typing import Any

from django.db import transaction

from accounts.keys.api_keys import create_api_key
from accounts.models import ApiKey, ConnectedApp, User
from accounts.oauth.clients import register_client
from accounts.oauth.connections import connect_app
from core.security.scopes import KEY_SCOPES, Principal
from evolution.models import AgentSession, Outcome
from evolution.outcomes import reporting as evolution
from evolution.sessions import recording
from evolution.sessions.validation import NewMessage
from playbooks.document.operations import Operation
from playbooks.models import Playbook, ReviewItem
from playbooks.services import creation as playbooks
from playbooks.services.editing import edit_playbook
from playbooks.services.loading import version_of
from playbooks.services.publishing import Publication, judge_deltas, publish_deltas

PASSWORD = "correct horse battery"

ACE_TEXT = """\
## STRATEGIES & INSIGHTS
[str-00001] helpful=2 harmful=0 :: Read the failing test before the code.
[str-00002] helpful=0 harmful=0 :: Prefer the smallest change that makes the test pass.

## COMMON MISTAKES TO AVOID
[mis-00003] helpful=1 harmful=1 :: Do not silence a warning; find what causes it.
"""


def make_user(email: str, **fields: Any) -> User:
    return User.objects.create_user(email, PASSWORD, **fields)


def make_key(user: User, **fields: Any) -> tuple[ApiKey, str]:
    fields.setdefault("name", "test key")
    fields.setdefault("scopes", KEY_SCOPES)
    return create_api_key(user=user, **fields)


def make_app(user: User, *, name: str = "Test agent") -> ConnectedApp:
    """An app that the user has let in, without a token."""
    metadata = {"client_name": name, "redirect_uris": ["https://agent.example/callback"]}
    client = register_client(metadata=metadata, address="test").client
    return connect_app(
        user=user, client=client, redirect_host="agent.example", scopes=["read", "write"]
    )


def make_playbook(owner: User, *, name: str = "Fixing tests", text: str = ACE_TEXT) -> Playbook:
    return playbooks.import_playbook(by=Principal.of(owner), name=name, content=text)


def make_outcome(playbook: Playbook, by: User, **fields: Any) -> Outcome:
    fields.setdefault("task_description", "Make the build green")
    fields.setdefault("outcome", "success")
    report = evolution.report_outcome(playbook=playbook, by=Principal.of(by), **fields)
    return report.outcome


def text_of_playbook(playbook: Playbook) -> str:
    """The ACE text of the current version."""
    return version_of(playbook, None).text


def publish(playbook: Playbook, **judged: Any) -> Publication:
    """Judge and publish in the caller's transaction."""
    return publish_deltas(partial(judge_deltas, playbook=playbook, **judged), playbook=playbook)


def add_bullet(playbook: Playbook, text: str = "Later advice.") -> None:
    """By hand, in a version that can be rolled back."""
    assert playbook.owner is not None
    by = Principal.of(playbook.owner)
    edit_playbook(playbook=playbook, by=by, operations=[Operation("ADD", content=text)])


def make_review_item(playbook: Playbook, text: str) -> ReviewItem:
    """What a machine proposed and the review rule held: `text` has to be a risky one."""
    with transaction.atomic():
        made = publish(
            Playbook.objects.select_for_update().get(pk=playbook.pk),
            operations=[Operation("ADD", section="str", content=text)],
            reason="evolution",
            machine=True,
            max_adds={"": 3},
        )
    return ReviewItem.objects.get(delta=made.deltas[0])


def make_session(
    user: User, playbook: Playbook | None = None, *said: tuple[str, str], **fields: Any
) -> AgentSession:
    """An open session in which each role said its text."""
    session = recording.open_session(by=Principal.of(user), playbook=playbook, **fields)
    if said:
        messages = [NewMessage(role, text) for role, text in said]
        recording.add_messages(session=session, messages=messages)
    return session

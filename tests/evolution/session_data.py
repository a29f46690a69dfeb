"""A session whose report the rules engine has learnt from."""

from accounts.models import User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import AgentSession
from evolution.sessions.recording import SessionReport, close_session
from evolution.worker.claims import claim_job
from evolution.worker.engine_run import run_engine
from evolution.worker.publication import publish
from playbooks.models import Playbook
from tests.factories import make_session

LESSON = "Ask for the time zone before dates are compared."
SAID = (
    ("system", "Use the playbook."),
    ("user", "Why is the date wrong?"),
    ("assistant", "By [str-00001] I read the test first: the zone differs."),
)


def close_taught_session(playbook: Playbook, owner: User) -> AgentSession:
    """It cites str-00001, and its report adds a bullet with LESSON."""
    session = make_session(owner, playbook, *SAID)
    by = Principal.of(owner)
    report = SessionReport("success", notes=f"lesson: {LESSON}", signal="human")
    close_session(session=session, by=by, report=report)
    job = trigger_evolution(playbook=playbook, by=by).job
    # What the worker's task does, without its care for connections (a test may hold one open).
    claim = claim_job(str(job.pk))
    assert claim is not None
    publish(claim, run_engine(claim))
    return session

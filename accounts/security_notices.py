"""E-mails about what happened to an account, so that its owner notices what somebody else did."""

from django.db import transaction

from accounts.models import User
from core.emails import send_email


def send_security_notice(user: User, what: str) -> None:
    """E-mail the user once the transaction is committed."""
    transaction.on_commit(
        lambda: send_email("security_notice", to=user.email, what=what, account=user.email)
    )

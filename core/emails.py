"""Sending e-mail: one text template each, whose first line is the subject."""

import logging
from smtplib import SMTPException
from typing import TYPE_CHECKING

from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string

if TYPE_CHECKING:
    from django.contrib.auth.models import _User as User

logger = logging.getLogger(__name__)


def send_email(name: str, *, to: str, **context: str) -> None:
    """Send `templates/emails/<name>.txt`; a failure is logged, not raised.

    Never call it inside a transaction: a slow mail server would hold it open.
    """
    text = render_to_string(f"emails/{name}.txt", context | {"email": to})
    subject, _, body = text.strip().partition("\n")
    try:
        EmailMessage(subject, body.strip() + "\n", to=[to]).send()
    except (SMTPException, OSError) as error:
        # The response must not depend on it: that would reveal which addresses have accounts.
        logger.warning("Could not send the e-mail %s: %s", name, type(error).__name__)


def send_security_notice(user: "User", what: str) -> None:
    """E-mail the user, once the transaction is committed, so that they notice what others did."""
    transaction.on_commit(
        lambda: send_email("security_notice", to=user.email, what=what, account=user.email)
    )

"""Sending e-mail: one text template each, whose first line is the subject."""

import logging
from smtplib import SMTPException

from django.core.mail import EmailMessage
from django.template.loader import render_to_string

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

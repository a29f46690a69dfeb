"""Letters of the platform to people: one text template each, its first line the subject."""

import logging
from smtplib import SMTPException

from django.core.mail import EmailMessage
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)


def send_email(name: str, *, to: str, **context: str) -> None:
    """The letter `templates/emails/<name>.txt` is on its way, or the log says why not.

    Never call it inside a transaction: a slow mail server would hold it open.
    """
    text = render_to_string(f"emails/{name}.txt", context | {"email": to})
    subject, _, body = text.strip().partition("\n")
    try:
        EmailMessage(subject, body.strip() + "\n", to=[to]).send()
    except (SMTPException, OSError) as error:
        # The answer to the person must not depend on it: it would tell who has an account.
        logger.warning("Could not send the e-mail %s: %s", name, type(error).__name__)

"""Browsers that are logged in."""

import time

from allauth.account.internal.flows.login import (
    _AUTHENTICATION_METHODS_USER_SESSION_KEY as RECORDED_USER,
)
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as RECORDS
from django.test import Client

from accounts.models import User


def logged_in_client(user: User, *, minutes_ago: int = 0) -> Client:
    return log_in_client(Client(), user, minutes_ago=minutes_ago)


def log_in_client(client: Client, user: User, *, minutes_ago: int = 0) -> Client:
    """Log the browser in as by the page: with the time of the password, which some pages ask."""
    client.force_login(user)
    session = client.session
    at = time.time() - 60 * minutes_ago
    session[RECORDS] = [{"method": "password", "at": at}]
    session[RECORDED_USER] = str(user.pk)
    session.save()
    return client

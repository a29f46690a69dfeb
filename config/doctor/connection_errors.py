"""Describes connection errors in fixed phrases, since library messages may contain secrets."""

import socket
import ssl
from collections.abc import Iterator
from smtplib import SMTPServerDisconnected

import httpx2
import redis.exceptions

NO_ADDRESS = (httpx2.InvalidURL, httpx2.UnsupportedProtocol)
TOO_SLOW = (TimeoutError, httpx2.TimeoutException, redis.exceptions.TimeoutError)
# Most specific first: library errors wrap the error of the socket.
REASONS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (ConnectionRefusedError, "connection refused"),
    (socket.gaierror, "unknown host"),
    (ssl.SSLCertVerificationError, "invalid TLS certificate"),
    (ssl.SSLError, "no TLS on that port"),
    (NO_ADDRESS, "not a URL: it must begin with https:// or http://"),
    (TOO_SLOW, "timed out"),
    (SMTPServerDisconnected, "disconnected or timed out"),
)


def describe_connection_error(error: BaseException) -> str:
    """The phrase for the error or its cause, else the name of its class."""
    chain = list(_chain(error))
    for kinds, words in REASONS:
        if any(isinstance(one, kinds) for one in chain):
            return words
    return type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__

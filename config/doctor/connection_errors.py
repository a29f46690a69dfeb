"""Why a server of others was not reached, in words of ours: their texts may hold secrets."""

import socket
import ssl
from collections.abc import Iterator
from smtplib import SMTPServerDisconnected

import httpx2
import redis.exceptions

NO_ADDRESS = (httpx2.InvalidURL, httpx2.UnsupportedProtocol)
TOO_SLOW = (TimeoutError, httpx2.TimeoutException, redis.exceptions.TimeoutError)
# The most telling first: an error of a library hides the one of the socket behind it.
REASONS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (ConnectionRefusedError, "nothing listens there"),
    (socket.gaierror, "the host is not known"),
    (ssl.SSLCertVerificationError, "its certificate is not valid"),
    (ssl.SSLError, "it does not speak TLS there"),
    (NO_ADDRESS, "this is no address: it begins with https:// or http://"),
    (TOO_SLOW, "it does not answer in time"),
    (SMTPServerDisconnected, "it hangs up, or does not answer in time"),
)


def describe_connection_error(error: BaseException) -> str:
    """The reason, or the name of the error where there is no better word."""
    chain = list(_chain(error))
    for kinds, words in REASONS:
        if any(isinstance(one, kinds) for one in chain):
            return words
    return type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__

"""HTTP requests to URLs that users or clients choose: https, public, no redirects, bounded.

A host is resolved once, all of its addresses must be public, and the connection goes to one of
them: a second DNS answer cannot lead to an internal host (DNS rebinding).
"""

import ipaddress
import logging
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

import httpcore2
import httpx2

from core.errors import Invalid
from core.http.deadlines import DeadlineBackend, to_httpcore_request

for _logger in ("httpx2", "httpcore2"):
    logging.getLogger(_logger).setLevel(logging.WARNING)
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# The assigned part of IPv6, and the prefix in it for documentation (RFC 9637).
GLOBAL_UNICAST, DOCUMENTATION = ipaddress.ip_network("2000::/3"), ipaddress.ip_network("3fff::/20")
# Public by their numbers only: Azure's metadata service, and protocol assignments (RFC 6890).
INTERNAL = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
PORTS = frozenset({80, 443})


class HostUnreachable(Invalid):
    """The URL gives no response; the message has the reason, never an internal address."""

    code = "unreachable"


@dataclass(frozen=True)
class FetchedResponse:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def is_public_address(address: str) -> bool:
    """True for an address on the public internet; IPv4 inside IPv6 is checked as IPv4."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.teredo is not None:
            return all(map(_is_public_ipv4, ip.teredo))
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public_ipv4(inner)
        # Python counts deprecated IPv4 embeddings and unassigned blocks as global.
        if ip not in GLOBAL_UNICAST or ip in DOCUMENTATION:
            return False
        return ip.is_global and not ip.is_multicast
    return _is_public_ipv4(ip)


def _is_public_ipv4(ip: ipaddress.IPv4Address) -> bool:
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in INTERNAL)


def resolve_public_addresses(
    host: str, port: int, *, private_hosts: Collection[str] = ()
) -> list[str]:
    """The addresses of the host: all public, and port 443 or 80, unless in `private_hosts`.

    Raises HostUnreachable: one internal address among them refuses the host.
    """
    if host not in private_hosts and port not in PORTS:
        raise HostUnreachable("Use port 443: other ports are for hosts in PRIVATE_HOSTS.")
    try:
        found = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError):
        raise HostUnreachable("The host of this URL is unknown.") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if host not in private_hosts and not all(map(is_public_address, addresses)):
        raise HostUnreachable("The host of this URL is not on the public internet.")
    return addresses


def fetch(
    url: str,
    *,
    max_bytes: int,
    seconds: float,
    private_hosts: Collection[str] = (),
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
    content: bytes | None = None,
) -> FetchedResponse:
    """Request an https URL, or http of a private host; redirects are returned, not followed.

    Raises HostUnreachable: no https, an internal address, no response in `seconds`, a body over
    `max_bytes`.
    """
    parts = urlsplit(url)
    is_plain = parts.scheme == "http" and parts.hostname in private_hosts
    if not (parts.scheme == "https" or is_plain) or not parts.hostname:
        raise HostUnreachable("The URL does not start with https://.")
    deadline = time.monotonic() + seconds
    resolve = partial(resolve_public_addresses, private_hosts=private_hosts)
    backend = DeadlineBackend(deadline, resolve)
    accepts = {"Accept": "application/json"} | dict(headers or {})
    request = httpx2.Request(method, url, headers=accepts, content=content)
    try:
        with httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(), network_backend=backend
        ) as pool:
            return _read_response(pool, request, max_bytes)
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError):
        raise HostUnreachable("The URL did not respond.") from None


def _read_response(
    pool: httpcore2.ConnectionPool, request: httpx2.Request, max_bytes: int
) -> FetchedResponse:
    response = pool.handle_request(to_httpcore_request(request))
    body = bytearray()
    try:
        for chunk in response.iter_stream():
            body += chunk
            if len(body) > max_bytes:
                raise HostUnreachable(f"The response is over {max_bytes} bytes.")
    finally:
        response.close()
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
    }
    return FetchedResponse(response.status, headers, bytes(body))

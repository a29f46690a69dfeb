"""A user's LLM key is stored encrypted, never shown, and never sent to internal hosts."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from accounts.keys.llm_keys import llm_credential_for, remove_llm_key, set_llm_key
from accounts.models import LlmKey, User
from core.errors import Invalid, NotFound
from core.http.safe_http import HostUnreachable, fetch, is_public_address, resolve_public_addresses
from core.models import AuditEntry
from core.security.encryption import DecryptionError, decrypt, encrypt, reencrypt

KEY = "sk-canary-llm-key-0123456789"
INNER = [
    *("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"),  # noqa: S104 - nothing binds
    *("169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1"),
    *("203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1", "100::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1"),
    *("64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::", "2002:c0a8:101::", "2001:0:7f00:1::"),
    # Deprecated and local IPv6 embeddings of internal addresses, and unassigned blocks.
    *("::127.0.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1"),
    *("3fff::1", "5f00::1", "4000::1"),
    # Metadata of a cloud, and protocol assignments, which Python counts as global.
    *("168.63.129.16", "192.0.0.9", "192.0.0.100", "::ffff:168.63.129.16", "64:ff9b::a83f:8110"),
]
# Spellings of an address that evade filters.
SPELLINGS = [
    *("https://127.0.0.1", "https://127.1", "https://2130706433", "https://0x7f000001"),
    *("https://0177.0.0.1", "https://0x7f.1", "https://127.0.0.1.", "https://localhost"),
    *("https://localhost.", "https://[::1]", "https://[::]", "https://[::ffff:127.0.0.1]"),
    *("https://[::ffff:7f00:1]", "https://[fe80::1%25lo]", "https://0", "https://0.0.0.0"),
    *("https://169.254.169.254/latest/meta-data", "https://metadata.internal", "https://10.1"),
    *("http://example.com", "ftp://example.com", "file:///etc/passwd", "gopher://example.com"),
    *("//example.com", "example.com", "https://", "https:///v1", "https://@", "https://:443"),
    *("https://user@example.com", "https://a:b@example.com", "https://example.com\\@127.0.0.1"),
    *(
        "https://example.com:99999",
        "https://example.com:x",
        "https://[",
        "https://[::1",
        "https://]",
    ),
    *("https://example.com?x=1", "https://example.com#x", "https://ex\u0430mple.com"),
    *("javascript:alert(1)", "data:text/plain,x", "https://①②⑦.⓪.⓪.①", "https://1.1.1.1 @10.0.0.1"),
]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses to which a connection was opened: a guard on the socket itself."""
    opened: list[str] = []

    def connect(self: socket.socket, address: Any) -> None:
        opened.append(str(address[0]))
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    return opened


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What the name server says; numbers in every spelling go to the real library."""
    known: dict[str, list[str]] = {"metadata.internal": ["169.254.169.254"]}
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
        if host in known:
            return [(0, 0, 0, "", (address, port)) for address in known[host]]
        if host.strip(".") != "localhost":
            kwargs["flags"] = socket.AI_NUMERICHOST
        return list(real(host, port, *args, **kwargs))

    monkeypatch.setattr("core.http.safe_http.socket.getaddrinfo", look_up)
    return known


@pytest.mark.parametrize("address", INNER)
def test_internal_addresses_are_not_public(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize("address", INNER)
def test_a_host_with_an_internal_address_is_never_connected_to(
    address: str, names: dict[str, list[str]], sent: list[str]
) -> None:
    names["evil.example"] = ["1.1.1.1", address]
    with pytest.raises(HostUnreachable):
        fetch("https://evil.example/v1/models", max_bytes=10, seconds=1)
    assert sent == []


@pytest.mark.parametrize("url", SPELLINGS)
def test_no_spelling_of_an_internal_address_is_accepted(
    alice: User, url: str, names: dict[str, list[str]], sent: list[str]
) -> None:
    with pytest.raises(Invalid):
        set_llm_key(user=alice, api_key=KEY, base_url=url)
    assert (sent, LlmKey.objects.exists()) == ([], False)


def test_a_host_is_resolved_only_once(names: dict[str, list[str]], sent: list[str]) -> None:
    class Rebinding(list[str]):
        def __iter__(self) -> Iterator[str]:
            yield self.pop(0)

    names["rebinding.example"] = Rebinding(["1.1.1.1", "127.0.0.1"])
    with pytest.raises(HostUnreachable):
        fetch("https://rebinding.example/", max_bytes=10, seconds=1)
    assert sent == ["1.1.1.1"]


def test_the_operator_may_allow_an_internal_host(
    alice: User, names: dict[str, list[str]], settings: Settings
) -> None:
    names["models.internal"] = ["10.0.0.7"]
    settings.PRIVATE_HOSTS = ["models.internal"]
    key = set_llm_key(user=alice, api_key=KEY, base_url="https://models.internal/v1/")
    assert key.base_url == "https://models.internal/v1"


def test_a_key_is_encrypted_and_only_its_end_is_shown(alice: User) -> None:
    key = set_llm_key(user=alice, api_key=f" {KEY} ")
    assert (key.last_four, KEY in key.encrypted_key, decrypt(key.encrypted_key)) == (
        KEY[-4:],
        False,
        KEY,
    )
    assert KEY not in str(list(AuditEntry.objects.values_list()))


def test_the_worker_gets_the_key_and_its_allowed_addresses(
    alice: User, charlie: User, names: dict[str, list[str]]
) -> None:
    names["api.example.com"] = ["1.1.1.1"]
    set_llm_key(user=alice, api_key=KEY, base_url="https://api.example.com/v1")
    own = llm_credential_for(user_id=alice.pk)
    assert own is not None
    assert own.resolve is not None
    assert (own.api_key, own.resolve("api.example.com", 443)) == (KEY, ["1.1.1.1"])
    assert KEY not in repr(own)
    assert llm_credential_for(user_id=charlie.pk) is None


def test_the_platforms_own_endpoint_is_not_checked(alice: User) -> None:
    set_llm_key(user=alice, api_key=KEY)
    own = llm_credential_for(user_id=alice.pk)
    assert own is not None
    assert (own.base_url, own.resolve) == ("", None)


def test_a_removed_key_is_gone(alice: User) -> None:
    set_llm_key(user=alice, api_key=KEY)
    remove_llm_key(user=alice)
    assert not LlmKey.objects.exists()
    with pytest.raises(NotFound):
        remove_llm_key(user=alice)


@pytest.mark.parametrize("api_key", ["", "short", "k" * 501, "sk-\x00-0123456789", "sk-ключ-0123"])
def test_malformed_keys_are_refused(alice: User, api_key: str) -> None:
    with pytest.raises(Invalid):
        set_llm_key(user=alice, api_key=api_key)


def test_encryption_survives_a_change_of_keys(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = ["old" * 20]
    sealed = encrypt("secret")
    settings.FIELD_ENCRYPTION_KEYS = ["new" * 20, "old" * 20]
    fresh = reencrypt(sealed)
    settings.FIELD_ENCRYPTION_KEYS = ["new" * 20]
    assert decrypt(fresh) == "secret"
    with pytest.raises(DecryptionError):
        decrypt(sealed)
    with pytest.raises(DecryptionError):
        reencrypt(sealed)


def test_one_internal_address_of_several_refuses_the_host(names: dict[str, list[str]]) -> None:
    names["mixed.example"] = ["1.1.1.1", "127.0.0.1"]
    with pytest.raises(HostUnreachable):
        resolve_public_addresses("mixed.example", 443)


@pytest.mark.parametrize("port", [22, 6379, 8443])
def test_only_web_ports_are_connected_to_unless_the_host_is_allowed(
    port: int, names: dict[str, list[str]], sent: list[str]
) -> None:
    names["public.example"] = ["1.1.1.1"]
    with pytest.raises(HostUnreachable, match="port 443"):
        fetch(f"https://public.example:{port}/", max_bytes=10, seconds=1)
    assert sent == []
    allowed = resolve_public_addresses("public.example", port, private_hosts=["public.example"])
    assert allowed == ["1.1.1.1"]

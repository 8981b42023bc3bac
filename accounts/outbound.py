"""Where calls to addresses that a shop has set may go: out, and never in.

A shop names the address of its API and of its webhooks, so it could name one of ours: a database, a
cloud's metadata service, this machine. `check_url` judges an address as it is written; it cannot
know where a name leads. `CheckedTransport` does: each name is resolved once, every address it
stands for is judged, and the connection is made to one of exactly those, so that a name which
leads elsewhere a moment later leads nowhere.
"""

import ipaddress
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpcore
import httpx
from django.conf import settings
from typing_extensions import override

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Only machines beside us and the metadata services of clouds: no operator can mean these.
_NEVER = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "192.0.0.0/24",
        "224.0.0.0/3",
        "::/128",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
        "fe80::/9",
        "ff00::/8",
    )
)


class ForbiddenAddressError(ValueError):
    """The address leads inside, or its connection would not be private. Nothing was sent."""


@dataclass(frozen=True)
class Rules:
    """What an operator lets through: this machine, and hosts inside that are named one by one."""

    allows_loopback: bool = False
    inside_hosts: frozenset[str] = frozenset()

    def names(self, host: str) -> bool:
        """Was this host named by the operator?"""
        return _plain(host) in self.inside_hosts

    def allow(self, host: str, address: _Address) -> bool:
        """May `host` be reached at `address`?"""
        address = _unwrapped(address)
        if any(address in net for net in _NEVER):
            return False
        if self.names(host) or (self.allows_loopback and address.is_loopback):
            return True
        return address.is_global and not address.is_reserved


def rules() -> Rules:
    """This deployment's."""
    hosts = frozenset(_plain(host) for host in settings.INSIDE_HOSTS)
    return Rules(allows_loopback=settings.DEMO, inside_hosts=hosts)


def check_url(url: str, by: Rules) -> None:
    """Judge an address as it is written: its scheme, and its host where that is a number.

    Https, or plain http to what the operator lets through inside. Raises ForbiddenAddressError.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as exc:
        raise ForbiddenAddressError("This is not a web address") from exc
    if parts.scheme not in {"http", "https"} or not host or "@" in parts.netloc:
        raise ForbiddenAddressError("This is not a web address")
    address = _literal(host)
    if address is not None and not by.allow(host, address):
        raise ForbiddenAddressError("This address leads inside")
    if parts.scheme == "http" and not _may_be_plain(host, address, by):
        raise ForbiddenAddressError("Use https: plain http is for this machine, in the demo")


def resolve(host: str, port: int, by: Rules) -> tuple[str, ...]:
    """The addresses that a host stands for now, each of them allowed.

    Raises ForbiddenAddressError when one is not, OSError when there is none. Asks the network.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    check_addresses(host, addresses, by)
    return addresses


def check_addresses(host: str, addresses: Iterable[str], by: Rules) -> None:
    """Judge what a name was resolved to. Raises ForbiddenAddressError if one address is inside."""
    for address in addresses:
        if not by.allow(host, ipaddress.ip_address(address)):
            raise ForbiddenAddressError(f"{host} leads inside")


class CheckedBackend(httpcore.SyncBackend):
    """Opens connections to allowed addresses alone: to what was judged, not to what is named."""

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Raises httpcore.ConnectError or ConnectTimeout; within `timeout` seconds for all tries."""
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            addresses = resolve(host, port, rules())
        except (ForbiddenAddressError, OSError) as exc:
            raise httpcore.ConnectError(str(exc)) from exc
        failure: Exception = httpcore.ConnectTimeout(host)
        for address in addresses:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            try:
                return super().connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                failure = exc
        raise failure


class CheckedTransport(httpx.HTTPTransport):
    """HTTP to allowed addresses alone, for `httpx.Client(transport=…)`. It retries nothing.

    TLS names and checks the host as it was written. The client must not follow redirects by
    itself, nor take proxies from the environment: a proxy would resolve the name once more.
    """

    def __init__(self, limits: httpx.Limits) -> None:
        super().__init__(limits=limits, retries=0)
        self._pool.close()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            retries=0,
            network_backend=CheckedBackend(),
        )


def _may_be_plain(host: str, address: _Address | None, by: Rules) -> bool:
    if by.names(host):
        return True
    is_here = _plain(host) == "localhost" or _plain(host).endswith(".localhost")
    return by.allows_loopback and (is_here if address is None else address.is_loopback)


def _plain(host: str) -> str:
    return host.lower().strip("[]").rstrip(".")


def _literal(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(_plain(host))
    except ValueError:
        return None


def _unwrapped(address: _Address) -> _Address:
    """The IPv4 address inside an IPv6 one that stands for it."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address

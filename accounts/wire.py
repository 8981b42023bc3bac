"""One HTTP exchange with a shop: bounded in time and size, sent once, never redirected or led inside."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Literal, NoReturn

import httpx
from django.utils import timezone

from accounts import outbound

MAX_RESPONSE = 256 * 1024  # bytes
MAX_RETRY_AFTER = 3600.0  # seconds
CONNECT_TIMEOUT = 3.0  # seconds

BrokenKind = Literal["timeout", "reset", "unreadable"]


class NotSentError(Exception):
    """Certainly no byte of the request reached the other side."""


class BrokenError(Exception):
    """The request went out, wholly or in part, and no usable answer came back."""

    def __init__(self, kind: BrokenKind) -> None:
        super().__init__(kind)
        self.kind: BrokenKind = kind


@dataclass(frozen=True)
class Answer:
    """A complete answer. `body` holds at most MAX_RESPONSE bytes."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON that can be stored: no NaN, no NUL, no lone surrogates.

        Raises ValueError for anything else, however deep or long.
        """
        try:
            return storable(json.loads(self.body, parse_constant=_refuse_constant))
        except RecursionError as exc:
            raise ValueError("nested too deeply") from exc

    def retry_after(self) -> float | None:
        """Seconds to wait, between 0 and an hour; None when the header is missing or odd."""
        text = self.headers.get("retry-after", "")
        if text.isascii() and text.isdigit():
            return min(float(text[:9]), MAX_RETRY_AFTER)
        try:
            seconds = (parsedate_to_datetime(text) - timezone.now()).total_seconds()
        except (ValueError, TypeError):
            return None
        return max(0.0, min(seconds, MAX_RETRY_AFTER))


def read(
    url: str, *, headers: Mapping[str, str], params: Mapping[str, str], timeout: float
) -> Answer:
    """GET over the shared pool. Raises NotSentError or BrokenError."""
    request = _pools.reader().build_request("GET", url, headers=headers, params=params)
    return _exchange(_pools.reader(), request, timeout)


def write(
    method: str, url: str, *, headers: Mapping[str, str], body: bytes, timeout: float
) -> Answer:
    """Send exactly these bytes, once. Raises NotSentError or BrokenError."""
    request = _pools.writer().build_request(method, url, headers=headers, content=body)
    return _exchange(_pools.writer(), request, timeout)


class _Pools:
    """The process's connections: made at first use, and anew in a forked child."""

    def __init__(self) -> None:
        self._reader: httpx.Client | None = None
        self._writer: httpx.Client | None = None

    def forget(self) -> None:
        """Drop the parent's connections unclosed: two processes must not share a socket."""
        self._reader = self._writer = None

    def reader(self) -> httpx.Client:
        if self._reader is None:
            self._reader = _client(keep_alive=50)
        return self._reader

    def writer(self) -> httpx.Client:
        """Never reuses a connection.

        One that the other side closes at that very moment cannot be told from a request that
        was carried out and lost its answer, and money would wait for a look-up for nothing.
        """
        if self._writer is None:
            self._writer = _client(keep_alive=0)
        return self._writer


_pools = _Pools()
os.register_at_fork(after_in_child=_pools.forget)


def _client(*, keep_alive: int) -> httpx.Client:
    # The pool is shared by all customers of all shops: it must not carry a cookie from one to
    # another, nor take a proxy or credentials from the environment.
    no_cookies = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=keep_alive)
    return httpx.Client(
        transport=outbound.CheckedTransport(limits),
        trust_env=False,
        follow_redirects=False,
        cookies=no_cookies,
        headers={
            "User-Agent": "countersign",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        },
    )


def _exchange(client: httpx.Client, request: httpx.Request, timeout: float) -> Answer:
    try:
        outbound.check_url(str(request.url), outbound.rules())
    except outbound.ForbiddenAddressError as exc:
        raise NotSentError("Forbidden") from exc
    limit = httpx.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT))
    request.extensions["timeout"] = limit.as_dict()
    deadline = time.monotonic() + timeout
    try:
        response = client.send(request, stream=True)
        try:
            return Answer(response.status_code, response.headers, _body(response, deadline))
        finally:
            response.close()
    except httpx.HTTPError as exc:
        _raise_for(exc)


def _raise_for(exc: httpx.HTTPError) -> NoReturn:
    match exc:
        case (
            httpx.ConnectError()
            | httpx.ConnectTimeout()
            | httpx.PoolTimeout()
            | httpx.UnsupportedProtocol()
            | httpx.LocalProtocolError()
        ):
            raise NotSentError(type(exc).__name__) from exc
        case httpx.TimeoutException():
            raise BrokenError("timeout") from exc
        case _:
            raise BrokenError("reset") from exc


def _body(response: httpx.Response, deadline: float) -> bytes:
    """The body as sent. A compressed one was not asked for and could be a bomb."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise BrokenError("unreadable")
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_RESPONSE:
            raise BrokenError("unreadable")
        if time.monotonic() > deadline:
            raise BrokenError("timeout")
    return bytes(body)


def storable(value: Any) -> Any:
    """The same JSON value with every string fit for PostgreSQL."""
    match value:
        case str():
            return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
        case list():
            return [storable(item) for item in value]
        case dict():
            return {storable(key): storable(item) for key, item in value.items()}
        case _:
            return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

"""The shapes that an account's fields must have: no database, no network."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ValidationError

from accounts import outbound

CURRENCY = r"^[A-Z]{3}$"
SLUG = r"^[a-z0-9](-?[a-z0-9]+)*$"
# What a shop may call its customer: no separators of paths, lists or actors ("customer:<id>").
PLAIN_ID = r"^[A-Za-z0-9][A-Za-z0-9._@+~-]{0,119}$"
# A key id is only ever compared with stored ones, so a path or a URL in it is just unknown.
KEY_ID = r"^[A-Za-z0-9._:=+-]{1,120}$"
LOCALE = r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$"
COUNTRY = r"^[A-Z]{2}$"
# Stricter than a URL parser: origins are written into a Content-Security-Policy header.
HOST = r"^([a-z0-9]([a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$"


def is_plain_id(text: object) -> bool:
    """Whether `text` can be a customer's id."""
    return isinstance(text, str) and re.fullmatch(PLAIN_ID, text) is not None


def is_key_id(text: object) -> bool:
    """Whether `text` can name a signing key."""
    return isinstance(text, str) and re.fullmatch(KEY_ID, text) is not None


def is_locale(text: object) -> bool:
    """Whether `text` looks like a language tag, e.g. "en" or "pt-BR"."""
    return isinstance(text, str) and re.fullmatch(LOCALE, text) is not None


def validate_origin(text: str) -> None:
    """A web origin exactly as a browser sends it: scheme, host, port when not the usual one."""
    parts = _split(text)
    if text != f"{parts.scheme}://{parts.netloc}":
        raise ValidationError(
            "%(text)s is not an origin such as https://shop.example", params={"text": text}
        )
    _refuse_plain_http(parts)
    if parts.port is not None and parts.port == {"http": 80, "https": 443}[parts.scheme]:
        raise ValidationError("Leave out the usual port: browsers do")


def validate_base_url(text: str) -> None:
    """Where a shop's API lives: out there over https, or inside where the operator says so.

    No query, no credentials. Where a name leads is seen when it is called (accounts.outbound).
    """
    parts = _split(text)
    if parts.query or parts.fragment or text.endswith("/"):
        raise ValidationError("Leave out the query, the fragment and the closing slash")
    try:
        outbound.check_url(text, outbound.rules())
    except outbound.ForbiddenAddressError as exc:
        raise ValidationError(str(exc)) from exc


def validate_country(text: str) -> None:
    """An ISO 3166 alpha-2 country code."""
    if re.fullmatch(COUNTRY, text) is None:
        raise ValidationError("%(text)s is not a country code such as US", params={"text": text})


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as exc:
        raise ValidationError("This is not a web address") from exc
    if parts.scheme not in {"http", "https"} or re.fullmatch(HOST, parts.netloc) is None:
        raise ValidationError("This is not a web address")
    return parts


def _refuse_plain_http(parts: SplitResult) -> None:
    """Tokens travel over these addresses, so plain http is for the same machine or private names."""
    if parts.scheme == "https" or _is_near(parts.hostname or ""):
        return
    raise ValidationError("Plain http is only for this machine or a private network: use https")


def _is_near(host: str) -> bool:
    """Loopback, a private address, or a name without dots (a container's)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(".localhost")
    return address.is_loopback or (address.is_private and not address.is_link_local)

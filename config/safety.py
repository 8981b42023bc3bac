"""What makes a configuration unsafe for a deployment that others can reach.

`findings` reads settings and nothing else. Each finding names the setting and says why it is unsafe;
no secret is ever part of a text. Those that are `refused` stop every process of a deployment from
starting (`config.checks`), the rest are told by `manage.py check --deploy`.
"""

import base64
import binascii
import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from celery import current_app
from typing_extensions import override

Settings = Any  # django.conf.settings, or whatever has its attributes

STAND_IN_MODEL = "countersign-rules"
SECRET_LENGTH = 50
# Words of keys that were typed or copied and not made: chance writes none of them.
TYPED = ("insecure", "changeme", "change-me", "change_me", "secret", "password", "example", "your-")
# Keys that stand in public documents: the Fernet specification, and RFC 8032, 7.1, tests 1 to 3.
PUBLISHED = {
    bytes.fromhex("730ff4c7af3d46923e8ed451ee813c87f790b0a226bc96a92de49b5e9c05e1ee"),
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"),
    bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"),
    bytes.fromhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7"),
}
_FEW = 12  # different bytes; of 32 random ones fewer is a thing that does not happen


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One unsafe setting, by the name under which an operator sets it."""

    id: str
    setting: str
    text: str
    is_refused: bool = True

    @override
    def __str__(self) -> str:
        return f"{self.setting}: {self.text}"


Rule = Callable[[Settings], Iterator[Finding]]


def findings(settings: Settings, *, deployed: bool) -> list[Finding]:
    """Everything that is unsafe, in the order of `.env.example`.

    `deployed`: judge as a deployment even if it serves this machine alone.
    """
    if not deployed and is_local(settings):
        return [] if settings.DEMO else list(debug(settings))
    return [finding for rule in _RULES for finding in rule(settings)]


def is_local(settings: Settings) -> bool:
    """Whether the product is reached from this machine only: its address and every host name say so."""
    named = [host for host in settings.ALLOWED_HOSTS if not _is_single_label(host)]
    return all(map(_is_loopback, [urlsplit(settings.PUBLIC_URL).hostname or "", *named]))


def debug(settings: Settings) -> Iterator[Finding]:
    if settings.DEBUG:
        yield Finding(
            id="E001",
            setting="COUNTERSIGN_DEBUG",
            text="debug pages show settings and rows to whoever meets an error",
        )


def demo(settings: Settings) -> Iterator[Finding]:
    if settings.DEMO:
        yield Finding(
            id="E002",
            setting="COUNTERSIGN_DEMO",
            text="everybody knows the demo's passwords; only this machine may reach a demo",
        )


def secret_key(settings: Settings) -> Iterator[Finding]:
    key = settings.SECRET_KEY
    if len(key) < SECRET_LENGTH or len(set(key)) < _FEW:
        text = f"must be {SECRET_LENGTH} random characters or more"
    elif any(word in key.lower() for word in TYPED):
        text = "is a text that somebody typed or copied; make a random one"
    elif key == _of_demo(settings, "COUNTERSIGN_SECRET_KEY"):
        text = _DEMOS_KEY
    else:
        return
    yield Finding(id="E003", setting="COUNTERSIGN_SECRET_KEY", text=text)


def encryption_keys(settings: Settings) -> Iterator[Finding]:
    names = settings.ENCRYPTION_KEYS
    if not names:
        yield Finding(id="E004", setting="COUNTERSIGN_ENCRYPTION_KEYS", text="holds no key")
    for n, key in enumerate(names, start=1):
        fault = _key_fault(settings, "COUNTERSIGN_ENCRYPTION_KEYS", key)
        if fault:
            yield Finding(id="E004", setting="COUNTERSIGN_ENCRYPTION_KEYS", text=f"key {n} {fault}")


def seal_key(settings: Settings) -> Iterator[Finding]:
    key = settings.SEAL_KEY
    fault = _key_fault(settings, "COUNTERSIGN_SEAL_KEY", key)
    if not fault and _bytes(key) in {_bytes(other) for other in settings.ENCRYPTION_KEYS}:
        fault = "is an encryption key too; each key has one use"
    if fault:
        yield Finding(id="E005", setting="COUNTERSIGN_SEAL_KEY", text=fault)


def public_url(settings: Settings) -> Iterator[Finding]:
    address = urlsplit(settings.PUBLIC_URL)
    if address.scheme != "https":
        yield Finding(
            id="E006",
            setting="COUNTERSIGN_PUBLIC_URL",
            text="must begin with https://; tokens, passwords and cookies would travel in plain text",
        )
    if _is_loopback(address.hostname or ""):
        yield Finding(
            id="E006",
            setting="COUNTERSIGN_PUBLIC_URL",
            text="nobody else reaches this machine by it",
        )


def allowed_hosts(settings: Settings) -> Iterator[Finding]:
    hosts = settings.ALLOWED_HOSTS
    if "*" in hosts:
        yield Finding(
            id="E007",
            setting="COUNTERSIGN_ALLOWED_HOSTS",
            text="* lets whoever sends a request choose the host in our links; name the hosts",
        )
    public = urlsplit(settings.PUBLIC_URL).hostname or ""
    if not any(host in {"*", public} or _covers(host, public) for host in hosts):
        yield Finding(
            id="E008",
            setting="COUNTERSIGN_ALLOWED_HOSTS",
            text="does not hold the host of COUNTERSIGN_PUBLIC_URL, so every request is refused",
        )


def cookies(settings: Settings) -> Iterator[Finding]:
    for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SESSION_COOKIE_HTTPONLY"):
        if settings.PUBLIC_URL.startswith("https://") and not getattr(settings, name):
            yield Finding(
                id="E009", setting=name, text="must be on: it keeps the cookie from others"
            )


def serializers(settings: Settings) -> Iterator[Finding]:
    celery = current_app.conf
    accepted = {celery.task_serializer, celery.result_serializer, *celery.accept_content}
    if accepted != {"json"}:
        yield Finding(
            id="E010",
            setting="accept_content of Celery",
            text="only json: whoever can write to Redis would run code with anything that unpickles",
        )
    if "pickle" in settings.SESSION_SERIALIZER.lower():
        yield Finding(
            id="E010", setting="SESSION_SERIALIZER", text="must not unpickle what a session holds"
        )


def model(settings: Settings) -> Iterator[Finding]:
    if settings.MODEL_IS_STAND_IN:
        yield Finding(
            id="E011",
            setting="COUNTERSIGN_MODEL_IS_STAND_IN",
            text="the rule-based stand-in is for trying things out, not for customers",
        )
    elif settings.MODEL == STAND_IN_MODEL:
        yield Finding(
            id="E011",
            setting="COUNTERSIGN_MODEL",
            text="names the stand-in's model; name a real one",
        )
    address = urlsplit(settings.OPENAI_BASE_URL)
    if address.scheme == "http" and not _is_private(address):
        yield Finding(
            id="W001",
            setting="OPENAI_BASE_URL",
            text="conversations and the API key travel in plain text",
            is_refused=False,
        )


def approvers(settings: Settings) -> Iterator[Finding]:
    if not settings.APPROVERS_NEED_CODE:
        yield Finding(
            id="W005",
            setting="COUNTERSIGN_APPROVERS_NEED_CODE",
            text="is off: whoever learns an approver's password can countersign as them",
            is_refused=False,
        )


def redis(settings: Settings) -> Iterator[Finding]:
    address = urlsplit(settings.REDIS_URL)
    is_near = address.scheme == "unix" or _is_loopback(address.hostname or "")
    if not is_near and not address.password:
        yield Finding(
            id="W002",
            setting="REDIS_URL",
            text="has no password: whoever reaches that Redis can empty it and ring every bell",
            is_refused=False,
        )


def watching(settings: Settings) -> Iterator[Finding]:
    if not settings.METRICS_TOKEN:
        yield Finding(
            id="W003",
            setting="COUNTERSIGN_METRICS_TOKEN",
            text="is not set: only this machine can read /metrics, a proxy on it included",
            is_refused=False,
        )
    if not settings.SEAL_HEAD_FILE:
        yield Finding(
            id="W004",
            setting="COUNTERSIGN_SEAL_HEAD_FILE",
            text="is not set: without a head kept elsewhere nobody notices a trail that was cut",
            is_refused=False,
        )


_RULES: list[Rule] = [
    debug,
    demo,
    secret_key,
    encryption_keys,
    seal_key,
    public_url,
    allowed_hosts,
    cookies,
    serializers,
    model,
    approvers,
    redis,
    watching,
]
_DEMOS_KEY = "is the key of a demo that ran in this data folder; a deployment needs one of its own"


def _key_fault(settings: Settings, name: str, key: str) -> str:
    """What is wrong with 32 bytes of base64, or an empty text."""
    raw = _bytes(key)
    if raw is None:
        return "is not 32 bytes in base64"
    if raw in PUBLISHED:
        return "stands in a public document"
    if len(set(raw)) < _FEW:
        return "is not random"
    return _DEMOS_KEY if key == _of_demo(settings, name) else ""


def _bytes(key: str) -> bytes | None:
    try:
        raw = base64.b64decode(key.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == 32 else None


def _of_demo(settings: Settings, name: str) -> str | None:
    """The key that `script/server` made in the data folder, if a demo ever ran on it."""
    folder = Path(settings.BASE_DIR) / settings.DATA
    try:
        if not (folder / "orders_stub").is_dir():
            return None
        kept: str = (folder / "secrets" / name).read_text()
    except OSError:
        return None
    return kept.strip()


def _is_loopback(host: str) -> bool:
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost" or bare.endswith(".localhost")


def _is_single_label(host: str) -> bool:
    """A container's name: no name server of the world knows it."""
    return host != "*" and not set(host) & set(".:")


def _is_private(address: SplitResult) -> bool:
    host = address.hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return _is_single_label(host) or host.endswith((".localhost", ".internal", ".local"))


def _covers(allowed: str, host: str) -> bool:
    """Django's leading dot: the name and all below it."""
    return allowed.startswith(".") and (host == allowed[1:] or host.endswith(allowed))

"""Is everything there that a running Countersign needs? One finding for each thing, whatever it is.

Nothing is written and nobody is asked for more than an answer: the model gets no prompt, shops no
customer's token, the mail server no letter.
"""

import smtplib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import redis
from celery import current_app
from django.conf import settings
from django.core.checks import Tags, run_checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from accounts.models import Shop
from audit.models import Unsealed
from tools.history import read_identity
from tools.models import LookFirst

OK, WARN, BAD = "ok", "warning", "wrong"
SECONDS = 3.0
MAX_SKEW = 2.0  # seconds: leases go by the database's clock, deadlines of calls by the host's
OLDEST_POSTGRES = 15
OLDEST_REDIS = (6, 2)
MAX_UNSEALED = 100_000
# What no change of state or of the trail may go past; each is guarded by a trigger.
GUARDED = ("audit_event", "audit_seal", "tools_operation", "agents_task", "agents_step")


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `state` is ok, warning or wrong."""

    what: str
    state: str
    text: str


def examine() -> Iterator[Finding]:
    """Look at everything, one after the other; what cannot be looked at is a finding too."""
    for what, look in _LOOKS.items():
        try:
            yield from (Finding(what, state, text) for state, text in look())
        except Exception as exc:  # noqa: BLE001 - a patient that cannot be examined is ill
            yield Finding(what, BAD, f"{type(exc).__name__}: {str(exc).splitlines()[0][:200]}")


Look = Iterator[tuple[str, str]]


def _settings() -> Look:
    found = run_checks(tags=[Tags.security], include_deployment_checks=not settings.DEMO)
    for message in found:
        yield BAD if message.is_serious() else WARN, str(message.msg)
    if not found:
        yield OK, "nothing unsafe" + (" for a demo" if settings.DEMO else "")


def _database() -> Look:
    version = connection.cursor().connection.info.server_version // 10000
    state = OK if version >= OLDEST_POSTGRES else BAD
    yield state, f"PostgreSQL {version}"
    (most,) = _row("SELECT setting::int FROM pg_settings WHERE name = 'max_connections'")
    options: dict[str, Any] = connection.settings_dict["OPTIONS"]
    pool = options["pool"]["max_size"]
    if most < 3 * pool:
        yield WARN, f"max_connections is {most}; web, worker and sealer may ask for {pool} each"


def _migrations() -> Look:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    names = ", ".join(str(migration) for migration, _ in missing[:5])
    yield (BAD, f"not applied: {names}; run migrate") if missing else (OK, "all applied")


def _role() -> Look:
    """A role that could rewrite the trail proves nothing to an auditor."""
    name, is_super = _row(
        "SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user"
    )
    may = [
        right
        for right in ("UPDATE", "DELETE", "TRUNCATE")
        if _row("SELECT has_table_privilege('audit_event', %s)", right)[0]
    ]
    if is_super:
        yield WARN, f"{name} is a superuser and could switch every guard off; see audit_grants"
    elif may:
        yield WARN, f"{name} has {', '.join(may)} on audit_event; see audit_grants"
    else:
        yield OK, f"{name} can add to the trail and change nothing in it"
    for table in ("audit_event", "tools_operation", "agents_task"):
        if not _row("SELECT has_table_privilege(%s, 'INSERT, SELECT')", table)[0]:
            yield BAD, f"{name} may not write to {table}"


def _guards() -> Look:
    """Every trigger of ours is there and switched on."""
    query = """
        SELECT c.relname, count(*) FILTER (WHERE t.tgenabled IN ('O', 'A')), count(*)
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace
        GROUP BY c.relname
    """
    with connection.cursor() as cursor:
        cursor.execute(query)
        found = {table: (on, there) for table, on, there in cursor.fetchall()}
    for table in sorted(set(GUARDED) - found.keys()):
        yield BAD, f"{table} has no trigger: migrate, or restore it"
    off = sorted(table for table, (on, there) in found.items() if on < there)
    for table in off:
        yield BAD, f"a trigger of {table} is switched off"
    if not off:
        yield OK, f"{sum(there for _, there in found.values())} triggers, all on"


def _history() -> Look:
    """After a restore or a failover shops are asked first, which somebody should know."""
    if read_identity() is None:
        yield WARN, "the role may not read pg_control_system(): a failover is not noticed by itself"
    period = LookFirst.objects.filter(is_on=True).first()
    if period is None:
        yield OK, "sends as usual"
    else:
        since, until = (f"{at:%Y-%m-%d %H:%M} UTC" for at in (period.since, period.until))
        yield WARN, f"commits since {since} may be missing; shops are asked first until {until}"


def _clock() -> Look:
    began = time.time()
    (theirs,) = _row("SELECT extract(epoch FROM clock_timestamp())::float8")
    skew = abs(theirs - (began + time.time()) / 2)
    yield (OK if skew <= MAX_SKEW else BAD), f"{skew:.1f} s between this host and the database"


def _redis() -> Look:
    with redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=SECONDS, socket_connect_timeout=SECONDS
    ) as client:
        version = str(client.info("server")["redis_version"])
        policy = str(client.config_get("maxmemory-policy").get("maxmemory-policy", "unknown"))
    is_new = tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_REDIS
    yield (OK if is_new else BAD), f"Redis {version}"
    good = policy == "noeviction"
    yield (
        (OK if good else BAD),
        f"maxmemory-policy {policy}" + ("" if good else ": messages get lost"),
    )


def _workers() -> Look:
    found = current_app.control.inspect(timeout=SECONDS / 2).ping() or {}
    yield (OK if found else BAD), f"{len(found)} answer"


def _sealer() -> Look:
    waiting = Unsealed.objects.count()
    state = OK if waiting < MAX_UNSEALED else BAD
    yield state, f"{waiting:,} events wait for a seal"
    if not settings.SEAL_HEAD_FILE and not settings.DEMO:
        yield WARN, "no head is published (COUNTERSIGN_SEAL_HEAD_FILE)"


def _model() -> Look:
    headers = {"Authorization": f"Bearer {settings.OPENAI_API_KEY}"}
    status = _asked(f"{settings.OPENAI_BASE_URL}/models", headers)
    state = BAD if status in {401, 403} or status >= 500 else OK
    what = "the rule-based stand-in" if settings.MODEL_IS_STAND_IN else settings.MODEL
    yield state, f"{what}: {status}" + (" (OPENAI_API_KEY)" if status in {401, 403} else "")


def _shops() -> Look:
    shops = Shop.objects.order_by("slug")
    for shop in shops:
        try:
            status = _asked(shop.base_url, {})
        except httpx.HTTPError as exc:
            yield BAD, f"{shop.slug}: {type(exc).__name__}"
        else:
            yield (OK if status < 500 else BAD), f"{shop.slug}: answers with {status}"
    if not shops:
        yield WARN, "there is none yet; docs/deploy.md says how to make one"


def _mail() -> Look:
    if not settings.SMTP_URL:
        yield WARN, "none is set (COUNTERSIGN_SMTP_URL): tickets are not closed by the agent"
        return
    address = urlsplit(settings.SMTP_URL)
    kind = smtplib.SMTP_SSL if address.scheme == "smtps" else smtplib.SMTP
    with kind(address.hostname or "", address.port or 25, timeout=SECONDS) as server:
        code, _ = server.noop()
    yield (OK if code == 250 else BAD), f"{address.hostname} answers with {code}"


_LOOKS: dict[str, Callable[[], Look]] = {
    "settings": _settings,
    "database": _database,
    "migrations": _migrations,
    "role": _role,
    "guards": _guards,
    "history": _history,
    "clock": _clock,
    "redis": _redis,
    "workers": _workers,
    "sealer": _sealer,
    "model": _model,
    "shops": _shops,
    "mail": _mail,
}


def _asked(url: str, headers: dict[str, str]) -> int:
    """The status of a GET that follows no redirect."""
    with httpx.Client(timeout=SECONDS, trust_env=False) as client:
        return client.get(url, headers=headers).status_code


def _row(query: str, *values: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        found = cursor.fetchone()
    if found is None:
        raise DatabaseError("no row")
    return tuple(found)

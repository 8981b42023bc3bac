"""Idempotency-Key, in the shape of draft-ietf-httpapi-idempotency-key-header-07.

The answer is kept in the transaction that made the thing it tells of: either both exist after a
crash or neither does. A refusal keeps nothing, since nothing was made: the same request is judged
anew when it is sent again.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from prometheus_client import Counter

from agents.api import problems
from agents.api.problems import ProblemError
from agents.models import IdempotencyRecord
from tools.clock import database_now
from tools.outages import again_on_collision

# An RFC 8941 string; a plain token is taken as well, since many clients send one.
MAX_KEY = 255
_QUOTED = rf'"(?:[ !#-\[\]-~]|\\["\\]){{1,{MAX_KEY}}}"'
_BARE = rf"[A-Za-z0-9_.:~+/=-]{{1,{MAX_KEY}}}"
KEY_PATTERN = f"{_QUOTED}|{_BARE}"
KEPT = timedelta(hours=24)

REPLAYS = Counter(
    "countersign_request_replays_total",
    "Requests that were answered from the record of an earlier one with the same Idempotency-Key",
)


@dataclass(frozen=True)
class Answer:
    """What a request came to, in a form that can be kept and given again."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    is_replay: bool = False


class _LostError(Exception):
    """Somebody else has taken the request over meanwhile."""


def key_of(request: HttpRequest) -> str:
    """The request's key. Raises ProblemError: 400 when it is missing or malformed."""
    header = request.headers.get("Idempotency-Key")
    if header is None:
        raise ProblemError(problems.KEY_MISSING)
    if re.fullmatch(KEY_PATTERN, header) is None:
        raise ProblemError(
            problems.KEY_MALFORMED,
            f"The key is a quoted string of 1 to {MAX_KEY} printable ASCII characters.",
        )
    return re.sub(r"\\(.)", r"\1", header[1:-1]) if header.startswith('"') else header


def digest_of(request: HttpRequest, body: dict[str, Any]) -> str:
    """Equal for equal requests, whatever the order of the body's members.

    Keyed, since a body may hold a number that could be guessed from a plain digest of it.
    """
    canonical = json.dumps([request.method, request.path, body], sort_keys=True)
    return hmac.digest(settings.SECRET_KEY.encode(), canonical.encode(), "sha256").hex()


def run(
    *,
    scope: str,
    key: str,
    digest: str,
    prepare: Callable[[], None],
    act: Callable[[], Answer],
) -> Answer:
    """The first answer under this key: made now, or given again.

    `prepare` runs outside any transaction and may call the shop; `act` makes what is to be made,
    in one transaction with the record of its answer. Raises ProblemError: 422 when the key stands
    for another request, 409 while the first is in flight; and what `prepare` or `act` raise.
    """
    claimed = _claim(scope, key, digest)
    if isinstance(claimed, Answer):
        REPLAYS.inc()
        return claimed
    try:
        prepare()
        answer = _act(claimed, act)
    except _LostError as exc:
        raise _in_flight() from exc
    except BaseException:
        _forget(claimed)
        raise
    return answer


@again_on_collision
@transaction.atomic
def _act(claimed: "_Claim", act: Callable[[], Answer]) -> Answer:
    answer = act()
    _keep(claimed, answer)
    return answer


@dataclass(frozen=True)
class _Claim:
    """Our hold on a key. `since` fences it: whoever takes over writes a later one."""

    record_id: int
    since: datetime


def _claim(scope: str, key: str, digest: str) -> Answer | _Claim:
    now = database_now()
    _forget_old(now)
    record, is_new = IdempotencyRecord.objects.get_or_create(
        scope=scope, key=key, defaults={"request_digest": digest, "created_at": now}
    )
    if is_new:
        return _Claim(record.pk, now)
    if record.request_digest != digest:
        raise ProblemError(problems.KEY_REUSED)
    if record.response is not None and record.status_code is not None:
        kept = record.response
        return Answer(record.status_code, kept["body"], kept["headers"], is_replay=True)
    # Without an answer for as long as a worker may hold a task, its process has died.
    if record.created_at > now - timedelta(seconds=settings.LEASE_SECONDS):
        raise _in_flight()
    taken = IdempotencyRecord.objects.filter(
        pk=record.pk, created_at=record.created_at, response__isnull=True
    ).update(created_at=now)
    if taken != 1:
        raise _in_flight()
    return _Claim(record.pk, now)


def _keep(claim: _Claim, answer: Answer) -> None:
    kept = _held(claim).update(
        status_code=answer.status, response={"body": answer.body, "headers": answer.headers}
    )
    if kept != 1:
        raise _LostError


def _forget(claim: _Claim) -> None:
    _held(claim).delete()


def _held(claim: _Claim) -> Any:
    return IdempotencyRecord.objects.filter(
        pk=claim.record_id, created_at=claim.since, response__isnull=True
    )


def _forget_old(now: datetime) -> None:
    """A few of the oldest at a time, so that the table stays as large as a day."""
    with transaction.atomic():
        old = (
            IdempotencyRecord.objects.select_for_update(skip_locked=True)
            .filter(created_at__lt=now - KEPT)
            .order_by("created_at")
            .values_list("pk", flat=True)[:20]
        )
        IdempotencyRecord.objects.filter(pk__in=list(old)).delete()


def _in_flight() -> ProblemError:
    return ProblemError(problems.IN_FLIGHT, headers={"Retry-After": "1"})


def message_id_of(key: str) -> str:
    """The id of the message sent under a key: makes it one message, whatever becomes of the record."""
    return f"api-{hashlib.sha256(key.encode()).hexdigest()[:40]}"

"""Telling a shop what happened: CloudEvents, signed by Standard Webhooks, at least once, in order.

A notice is a row beside the event that it tells of; its bytes and its id are the same each time it is
sent. It carries ids, states and amounts, never a person's words. Nothing here decides anything:
what is done about a notice is done in the console, by somebody who is signed in.
"""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from standardwebhooks import Webhook

from accounts import endpoints, wire
from accounts.keys import decrypt
from accounts.models import Endpoint, Notice
from audit.models import Event

TYPES: Final = frozenset(
    {f"approval.{what}" for what in ("requested", "granted", "rejected", "expired", "reminded")}
    | {
        f"{kind}.{what}"
        for kind in ("refund", "cancel", "change_address", "close_ticket")
        for what in ("succeeded", "failed", "needs_person", "reversed", "contradicted")
    }
    | {"refund.arrived", "refund.overdue"}
    | {"task.handed_off", "task.failed", "ticket.reopened"}
    | {"adapter.paused", "adapter.resumed", "kill_switch.thrown", "kill_switch.released"}
)
TIMEOUT = 5.0  # seconds for one delivery
MAX_ATTEMPTS = 8  # for a notice that the receiver itself refuses
MAX_AGE = timedelta(days=3)  # then an endpoint that is away has missed it
RESTS = (5, 30, 120, 600, 1800, 3600)  # seconds after the first, second … failure in a row
HELD = timedelta(seconds=60)  # one worker's turn with an endpoint
BATCH = 50
# What the receiver says about this one notice. Anything else says that it is away or busy.
_ABOUT_THE_NOTICE = frozenset(range(400, 500)) - {401, 403, 404, 408, 410, 425, 429}
GONE = 410


def put(events: Iterable[Event]) -> None:
    """Write down what endpoints are to be told of these events, in the events' own transaction."""
    told = [event for event in events if event.action in TYPES and event.shop_id is not None]
    if not told:
        return
    listeners = Endpoint.objects.filter(
        shop_id__in={event.shop_id for event in told}, disabled_at__isnull=True
    ).select_related("shop")
    Notice.objects.bulk_create(
        _notice(event, endpoint)
        for endpoint in sorted(listeners, key=lambda one: one.pk)
        for event in told
        if event.shop_id == endpoint.shop_id
    )


def list_due(*, now: datetime) -> list[int]:
    """The endpoints that have something to be told and do not rest."""
    waiting = Notice.objects.filter(delivered_at__isnull=True, given_up_at__isnull=True)
    due = Endpoint.objects.filter(_rested(now), disabled_at__isnull=True)
    return list(
        due.filter(pk__in=waiting.values("endpoint")).order_by("pk").values_list("pk", flat=True)
    )


def deliver(*, endpoint_id: int) -> int:
    """Tell one endpoint what waits for it, oldest first, until one fails; how many were taken.

    Never inside a transaction. Of two workers at once one finds nothing to do.
    """
    now = timezone.now()
    with transaction.atomic(durable=True):
        turn = Endpoint.objects.filter(_rested(now), pk=endpoint_id, disabled_at__isnull=True)
        if turn.update(rests_until=now + HELD) != 1:
            return 0
        endpoint = Endpoint.objects.select_related("shop").get(pk=endpoint_id)
        waiting = endpoint.notices.filter(delivered_at__isnull=True, given_up_at__isnull=True)
        notices = list(waiting.order_by("pk")[:BATCH])
    taken = 0
    until = now + HELD - timedelta(seconds=2 * TIMEOUT)
    for notice in notices:
        if timezone.now() > until or not _tell(endpoint, notice):
            break
        taken += 1
    Endpoint.objects.filter(pk=endpoint_id, failures=0).update(rests_until=None)
    return taken


def _tell(endpoint: Endpoint, notice: Notice) -> bool:
    """Send one notice and record how it went; False when the endpoint should be left alone."""
    answer = _post(endpoint, notice)
    now = timezone.now()
    with transaction.atomic(durable=True):
        if answer.isdigit() and 200 <= int(answer) < 300:
            _settle(notice, answer, delivered_at=now)
            Endpoint.objects.filter(pk=endpoint.pk).update(failures=0)
            return True
        if answer == str(GONE):
            _settle(notice, answer, given_up_at=now)
            endpoints.disable(endpoint, "system", now)
            return False
        if _is_hopeless(notice, answer, now):
            _settle(notice, answer, given_up_at=now)
            endpoints.record(endpoint, "notice_given_up", "system", now, notice=notice)
            return True
        _settle(notice, answer)
        _rest(endpoint, now)
        return False


def _post(endpoint: Endpoint, notice: Notice) -> str:
    """The status of the answer, or the name of what went wrong."""
    headers = {"Content-Type": "application/cloudevents+json"} | signed_headers(endpoint, notice)
    try:
        answer = wire.write(
            "POST", endpoint.url, headers=headers, body=notice.body.encode(), timeout=TIMEOUT
        )
    except wire.NotSentError:
        return "unreachable"
    except wire.BrokenError as exc:
        return exc.kind
    return str(answer.status)


def signed_headers(endpoint: Endpoint, notice: Notice) -> dict[str, str]:
    """The three headers of Standard Webhooks, signed with every secret that counts now."""
    now = timezone.now()
    secrets = [endpoint.secret_encrypted]
    if endpoint.former_until is not None and endpoint.former_until > now:
        secrets.append(endpoint.former_secret_encrypted)
    signatures = (
        Webhook(decrypt(secret)).sign(notice.public_id, now, notice.body) for secret in secrets
    )
    return {
        "webhook-id": notice.public_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _notice(event: Event, endpoint: Endpoint) -> Notice:
    """The event's facts in an envelope of CloudEvents 1.0 (structured mode, JSON)."""
    notice = Notice(
        endpoint=endpoint, event_id=event.pk, type=event.action, created_at=event.at, attempts=0
    )
    facts = {
        "task": event.task_id,
        "ticket": event.ticket_id,
        "order_id": event.order_id or None,
        "tool": event.tool or None,
        "outcome": event.outcome or None,
        "amount": event.amount,
        "currency": event.currency or None,
        "actor": event.actor.partition(":")[0],
    }
    envelope = {
        "specversion": "1.0",
        "id": notice.public_id,
        "source": f"{settings.PUBLIC_URL}/shops/{endpoint.shop.slug}",
        "type": f"countersign.{event.action}",
        "subject": event.subject,
        "time": event.at.isoformat(),
        "datacontenttype": "application/json",
        "data": {name: value for name, value in facts.items() if value is not None},
    }
    notice.body = json.dumps(envelope, separators=(",", ":"))
    return notice


def _is_hopeless(notice: Notice, answer: str, now: datetime) -> bool:
    is_refused = answer.isdigit() and int(answer) in _ABOUT_THE_NOTICE
    if is_refused and notice.attempts + 1 >= MAX_ATTEMPTS:
        return True
    return now - notice.created_at > MAX_AGE


def _settle(
    notice: Notice,
    answer: str,
    *,
    delivered_at: datetime | None = None,
    given_up_at: datetime | None = None,
) -> None:
    Notice.objects.filter(pk=notice.pk, delivered_at__isnull=True).update(
        attempts=F("attempts") + 1,
        last_answer=answer,
        delivered_at=delivered_at,
        given_up_at=given_up_at,
    )


def _rest(endpoint: Endpoint, now: datetime) -> None:
    seconds = RESTS[min(endpoint.failures, len(RESTS) - 1)]
    Endpoint.objects.filter(pk=endpoint.pk).update(
        failures=F("failures") + 1, rests_until=now + timedelta(seconds=seconds)
    )


def _rested(now: datetime) -> Q:
    return Q(rests_until__isnull=True) | Q(rests_until__lte=now)

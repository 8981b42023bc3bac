"""Events by the million, as true as recorded ones: their digests hold, and they wait for their seal.

As a program (`python -m bench.audit_rows --rows N --key FILE`): fills the trail to so many sealed events,
and writes the public key that checks them.
"""

import argparse
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import django
from django.db import connection, transaction
from psycopg.types.json import Jsonb

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()


from audit import sealer
from audit.bundle import public_pem
from audit.canonical import content_digest, event_digest, rfc3339
from audit.keys import get_signer
from audit.models import CustomerKey, Event, Unsealed

START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = (
    ("agent", "step.finished", "", None),
    ("customer:{customer}", "message.received", "", None),
    ("agent", "refund.proposed", "awaiting_approval", 4_000),
    ("customer:{customer}", "approval.granted", "approved", 4_000),
    ("agent", "refund.succeeded", "succeeded", 4_000),
)
_EVENTS = (
    "id, at, shop_id, actor, action, subject, task_id, ticket_id, customer, order_id, tool, outcome, "
    "amount, currency, data, personal_digest, digest"
)
_TYPES = (
    "int8", "timestamptz", "int8", "text", "text", "text", "int8", "int8", "text", "text", "text",
    "text", "int8", "text", "jsonb", "bytea", "bytea",
)  # fmt: skip


def add_events(count: int, *, shop_id: int, together: int = 50_000) -> None:
    """Add so many events of one shop, every fifth with words beside it, by COPY."""
    key, _ = CustomerKey.objects.get_or_create(
        shop_id=shop_id, customer="benchmark", defaults={"wrapped_key": b"not a key"}
    )
    for first in range(0, count, together):
        with transaction.atomic(), connection.cursor() as cursor:
            numbers = range(first, min(first + together, count))
            cursor.execute(
                "SELECT nextval('audit_event_id_seq') FROM generate_series(1, %s)", [len(numbers)]
            )
            ids = [row[0] for row in cursor.fetchall()]
            with cursor.copy(f"COPY audit_event ({_EVENTS}) FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(_TYPES)
                for row in _rows(ids, numbers, shop_id):
                    copy.write_row(row)
            with cursor.copy("COPY audit_personal_text (event_id, key_id, ciphertext) FROM STDIN") as copy:  # fmt: skip
                for event_id, number in zip(ids, numbers, strict=True):
                    if number % 5 == 1:
                        copy.write_row((event_id, key.pk, bytes(140)))


def _rows(ids: list[int], numbers: range, shop_id: int) -> Iterator[tuple[object, ...]]:
    for event_id, number in zip(ids, numbers, strict=True):
        content = _content(number, shop_id)
        digest = event_digest(event_id, content_digest(content))
        personal = content.pop("personal_digest")
        data = Jsonb(content.pop("data"))
        moment = START + timedelta(seconds=number)
        yield (
            event_id,
            moment,
            *list(content.values())[1:],
            data,
            bytes.fromhex(str(personal)) if personal else None,
            digest,
        )


def _content(number: int, shop_id: int) -> dict[str, object]:
    """What the event says, in the order of the columns."""
    actor, action, outcome, amount = STEPS[number % 5]
    task, customer = number // 20 + 1, f"customer-{number // 20 % 10_000}"
    return {
        "at": rfc3339(START + timedelta(seconds=number)),
        "shop_id": shop_id,
        "actor": actor.format(customer=customer),
        "action": action,
        "subject": f"operation:task-{task}-step-{number % 20}" if amount else f"task:{task}",
        "task_id": task,
        "ticket_id": task,
        "customer": customer,
        "order_id": str(1_000 + task),
        "tool": "refund_order" if amount else "",
        "outcome": outcome,
        "amount": amount,
        "currency": "USD" if amount else "",
        "data": {
            "role": "customer",
            "n": number % 20,
            "rule": "refund_window",
            "digest": "ab" * 32,
        },
        "personal_digest": "cd" * 32 if number % 5 == 1 else None,
    }


def fill(rows: int) -> None:
    """Add events until the trail has so many, and wait until all are sealed, by us or by a sealer."""
    missing = rows - Event.objects.count()
    if missing > 0:
        add_events(missing, shop_id=1)
    while Unsealed.objects.exists():
        if sealer.seal_once() is None:
            time.sleep(0.2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--key", type=Path, required=True)
    options = parser.parse_args()
    fill(options.rows)
    options.key.write_bytes(public_pem(get_signer()))

"""Writing the trail. One call beside each change, in the same transaction: no audit, no action."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction
from django.utils import timezone

from audit import personal_text
from audit.canonical import (
    MAX_INTEGER,
    NotCanonicalError,
    canonical_json,
    check_exact,
    content_digest,
    event_digest,
)
from audit.models import (
    ACTION_PATTERN,
    ACTOR_PATTERN,
    NAME_LENGTH,
    SUBJECT_PATTERN,
    CustomerKey,
    Event,
    PersonalText,
)
from audit.signals import recorded

_SHAPES = {
    "action": (re.compile(ACTION_PATTERN), 100),
    "actor": (re.compile(ACTOR_PATTERN, re.DOTALL), NAME_LENGTH),
    "subject": (re.compile(SUBJECT_PATTERN, re.DOTALL), NAME_LENGTH),
}
_LENGTHS = {"customer": NAME_LENGTH, "order_id": NAME_LENGTH, "tool": 100, "outcome": 100}


class AuditOutsideTransactionError(RuntimeError):
    """An event outside the transaction of its change could outlive a rollback, or be lost by one."""


class InvalidEntryError(ValueError):
    """The entry cannot be recorded as it is; nothing was written."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is to be recorded.

    actor: `customer:ada`, `staff:dana`, `agent`, `system`. action: `noun.past_tense`.
    subject: `operation:12`. amount: minor units, with its currency. data: JSON without floats and
    without personal text. personal: a person's words, kept beside the chain under the customer's key;
    needs shop_id and customer.
    """

    actor: str
    action: str
    subject: str
    at: datetime
    shop_id: int | None = None
    task_id: int | None = None
    ticket_id: int | None = None
    customer: str = ""
    order_id: str = ""
    tool: str = ""
    outcome: str = ""
    amount: int | None = None
    currency: str = ""
    data: Mapping[str, object] = field(default_factory=dict)
    personal: str | None = None


def record(
    *,
    actor: str,
    action: str,
    subject: str,
    at: datetime,
    shop_id: int | None = None,
    task_id: int | None = None,
    ticket_id: int | None = None,
    customer: str = "",
    order_id: str = "",
    tool: str = "",
    outcome: str = "",
    amount: int | None = None,
    currency: str = "",
    data: Mapping[str, object] | None = None,
    personal: str | None = None,
) -> Event:
    """Record one event in the current transaction; see Entry for the fields.

    Raises AuditOutsideTransactionError, or InvalidEntryError naming the field.
    """
    entry = Entry(
        actor=actor,
        action=action,
        subject=subject,
        at=at,
        shop_id=shop_id,
        task_id=task_id,
        ticket_id=ticket_id,
        customer=customer,
        order_id=order_id,
        tool=tool,
        outcome=outcome,
        amount=amount,
        currency=currency,
        data=data or {},
        personal=personal,
    )
    return record_many([entry])[0]


def record_many(entries: Sequence[Entry]) -> list[Event]:
    """Record all entries, in this order, with one INSERT, in the current transaction.

    All or none. Raises AuditOutsideTransactionError, or InvalidEntryError naming the entry and field.
    """
    if not connection.in_atomic_block:
        raise AuditOutsideTransactionError(
            "record() must share the transaction of the change it records"
        )
    for index, entry in enumerate(entries):
        _check(entry, index)
    if not entries:
        return []
    secrets = personal_text.encrypt(
        [(entry.shop_id, entry.customer, entry.personal) for entry in entries]
    )
    events = [
        _event(entry, secret.commitment if secret else None)
        for entry, secret in zip(entries, secrets, strict=True)
    ]
    _insert(events)
    personal_text.store(
        [(event.pk, secret) for event, secret in zip(events, secrets, strict=True) if secret]
    )
    recorded.send(sender=Event, events=events)
    return events


def read_personal(event: Event) -> str | None:
    """The personal text recorded with the event; None when there was none or it has been erased.

    Raises personal_text.PersonalTextError when the text is not the one that the chain holds.
    """
    return personal_text.read(event)


def erase_customer(*, shop_id: int, customer: str, actor: str, at: datetime) -> int:
    """Destroy the customer's keys: their personal text in the trail can never be read again.

    The chain still verifies. Returns how many keys were destroyed; 0 when nothing was left to erase,
    and then records nothing.
    """
    with transaction.atomic():
        keys = CustomerKey.objects.select_for_update().filter(
            shop_id=shop_id, customer=customer, destroyed_at=None
        )
        key_ids = sorted(key.pk for key in keys)
        if not key_ids:
            return 0
        CustomerKey.objects.filter(pk__in=key_ids).update(wrapped_key=b"", destroyed_at=at)
        record(
            actor=actor,
            action="customer.erased",
            subject=f"customer:{customer}",
            at=at,
            shop_id=shop_id,
            customer=customer,
            data={"keys": key_ids},
        )
    return len(key_ids)


def erase_texts(
    *, shop_id: int, ticket_ids: Sequence[int], customer: str, actor: str, at: datetime
) -> int:
    """Empty the personal texts of these tickets' events; the customer's others stay readable.

    Records it for each ticket first, since the database empties only what the trail says is erased.
    The chain still verifies. In the caller's transaction; returns how many texts were emptied.
    """
    record_many(
        [
            Entry(
                actor=actor,
                action="texts.erased",
                subject=f"ticket:{ticket_id}",
                at=at,
                shop_id=shop_id,
                ticket_id=ticket_id,
                customer=customer,
            )
            for ticket_id in ticket_ids
        ]
    )
    mine = Event.objects.filter(
        shop_id=shop_id, ticket_id__in=ticket_ids, personal_digest__isnull=False
    ).order_by()
    texts = PersonalText.objects.filter(event_id__in=mine.values("pk"))
    return texts.exclude(ciphertext=b"").update(ciphertext=b"")


def _check(entry: Entry, index: int) -> None:
    """Raises InvalidEntryError for the first field that the table or the digest could not hold exactly."""
    for name, (pattern, length) in _SHAPES.items():
        value = getattr(entry, name)
        if not pattern.fullmatch(value):
            raise InvalidEntryError(f"entry {index}: {name} {value!r} has the wrong shape")
        _check_text(index, name, value, length)
    for name, length in _LENGTHS.items():
        _check_text(index, name, getattr(entry, name), length)
    _check_data(index, entry.data)
    for name in ("shop_id", "task_id", "ticket_id", "amount"):
        _check_number(index, name, getattr(entry, name))
    if timezone.is_naive(entry.at):
        raise InvalidEntryError(f"entry {index}: at has no time zone")
    if (entry.amount is None) != (entry.currency == "") or len(entry.currency) not in {0, 3}:
        raise InvalidEntryError(
            f"entry {index}: an amount and its currency of three letters go together"
        )
    if entry.personal is not None and (entry.shop_id is None or not entry.customer):
        raise InvalidEntryError(f"entry {index}: personal text needs its shop_id and customer")


def _check_text(index: int, name: str, value: str, length: int) -> None:
    if len(value) > length:
        raise InvalidEntryError(f"entry {index}: {name} is longer than {length} characters")
    try:
        check_exact(value)
        value.encode()
    except (NotCanonicalError, UnicodeEncodeError) as exc:
        raise InvalidEntryError(f"entry {index}: {name}: {exc}") from exc


def _check_data(index: int, data: Mapping[str, object]) -> None:
    try:
        canonical_json(dict(data))
    except NotCanonicalError as exc:
        raise InvalidEntryError(f"entry {index}: data: {exc}") from exc


def _check_number(index: int, name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_INTEGER:
        raise InvalidEntryError(f"entry {index}: {name} is not an exact whole number")


def _event(entry: Entry, personal_digest: bytes | None) -> Event:
    return Event(
        at=entry.at,
        shop_id=entry.shop_id,
        actor=entry.actor,
        action=entry.action,
        subject=entry.subject,
        task_id=entry.task_id,
        ticket_id=entry.ticket_id,
        customer=entry.customer,
        order_id=entry.order_id,
        tool=entry.tool,
        outcome=entry.outcome,
        amount=entry.amount,
        currency=entry.currency,
        data=dict(entry.data),
        personal_digest=personal_digest,
    )


# What is sent, and its type; id and digest are made in the statement.
_COLUMNS = {
    "at": "timestamptz",
    "shop_id": "bigint",
    "actor": "text",
    "action": "text",
    "subject": "text",
    "task_id": "bigint",
    "ticket_id": "bigint",
    "customer": "text",
    "order_id": "text",
    "tool": "text",
    "outcome": "text",
    "amount": "bigint",
    "currency": "text",
    "data": "jsonb",
}
# The id is drawn and hashed in one round trip. The inner SELECT has a volatile column, so PostgreSQL
# evaluates it once for each row. One JSON document costs the client far less than an array a column.
_INSERT = """
    INSERT INTO audit_event (id, {names}, personal_digest, digest)
    SELECT id, {names}, decode(personal_digest, 'hex'), sha256(int8send(id) || decode(content, 'hex'))
    FROM (
        SELECT nextval(pg_get_serial_sequence('audit_event', 'id')) AS id, given.*
        FROM json_to_recordset(%s::json) AS given ({typed}, personal_digest text, content text)
    ) AS numbered
    RETURNING id
""".format(  # noqa: S608 - only names from above enter the text
    names=", ".join(_COLUMNS), typed=", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
)


def _insert(events: Sequence[Event]) -> None:
    """Write the events, and set their id and digest."""
    documents = [event.content() for event in events]
    contents = [content_digest(document) for document in documents]
    rows = [
        document | {"content": content.hex()}
        for document, content in zip(documents, contents, strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [json.dumps(rows)])
        ids = [row[0] for row in cursor.fetchall()]
    for event, event_id, content in zip(events, ids, contents, strict=True):
        event.pk = event_id
        event.digest = event_digest(event_id, content)
        event._state.adding = False
        event._state.db = connection.alias

"""The verifier's look at the personal text beside the chain."""

from collections.abc import Iterable, Iterator

from django.db.models import Exists, OuterRef

from audit.models import CustomerKey, Event, PersonalText
from audit.personal_text import PersonalTextError, open_text


class PersonalChecker:
    """Checks personal texts against the commitments in their events, and counts the erased ones."""

    def __init__(self) -> None:
        self.erased = 0
        self._erasures: dict[int, bool] = {}

    def check(self, events: Iterable[Event]) -> dict[int, str]:
        """What is wrong with the personal text of these events, by event id."""
        known = {event.pk: event for event in events}
        # select_related would hide a text whose key was deleted; it must be seen as missing instead.
        rows = {row.pk: row for row in PersonalText.objects.filter(pk__in=list(known))}
        keys = CustomerKey.objects.in_bulk({row.key_id for row in rows.values()})
        faults = {}
        for event_id, event in known.items():
            what = self._fault(event, rows.get(event_id), keys)
            if what:
                faults[event_id] = what
        return faults

    def orphans(self, limit: int) -> Iterator[tuple[str, str]]:
        """Texts whose event is gone, as (where, what)."""
        stray = PersonalText.objects.filter(~Exists(Event.objects.filter(pk=OuterRef("pk"))))
        for row in stray.order_by("pk")[:limit]:
            yield f"personal text of event {row.pk}", "its event is missing"

    def _fault(
        self, event: Event, row: PersonalText | None, keys: dict[int, CustomerKey]
    ) -> str | None:
        if row is None:
            return None if event.personal_digest is None else "its personal text is missing"
        key = keys.get(row.key_id)
        if key is None:
            return "the key of its personal text is missing"
        if event.personal_digest is None:
            return "a personal text was added to it"
        if (key.shop_id, key.customer) != (event.shop_id, event.customer):
            return "its personal text is under the key of somebody else"
        if key.destroyed_at is not None:
            self.erased += 1
            return (
                None if self._has_erasure(key) else "its personal text was erased without a record"
            )
        if not row.ciphertext:
            self.erased += 1
            return (
                None
                if self._has_text_erasure(event)
                else "its personal text was emptied without a record"
            )
        row.key = key
        try:
            open_text(row, event.personal_digest)
        except PersonalTextError as exc:
            return str(exc)
        return None

    def _has_text_erasure(self, event: Event) -> bool:
        """Whether the trail says, after this event, that the texts of its ticket were erased."""
        return (
            event.ticket_id is not None
            and Event.objects.filter(
                action="texts.erased",
                shop_id=event.shop_id,
                ticket_id=event.ticket_id,
                pk__gt=event.pk,
            ).exists()
        )

    def _has_erasure(self, key: CustomerKey) -> bool:
        """Whether the trail says that this key was destroyed. Remembered for the latest keys only."""
        if key.pk not in self._erasures:
            if len(self._erasures) >= 10_000:
                self._erasures.clear()
            self._erasures[key.pk] = Event.objects.filter(
                action="customer.erased",
                shop_id=key.shop_id,
                customer=key.customer,
                data__keys__contains=[key.pk],
            ).exists()
        return self._erasures[key.pk]

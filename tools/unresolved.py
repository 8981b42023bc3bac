"""Reads of what nobody can say the end of yet: for the desk, its counts, and the metrics."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, QuerySet

from tools.models import Inquiry, Operation, Reversal, State

UNRESOLVED = (State.UNKNOWN, State.NEEDS_PERSON)
OVERDUE = timedelta(hours=24)


def list_unresolved(*, shop_id: int | None) -> QuerySet[Operation]:
    """Operations whose outcome is not known, first sent first. Without a shop: of every shop."""
    operations = Operation.objects.filter(state__in=UNRESOLVED)
    if shop_id is not None:
        operations = operations.filter(shop_id=shop_id)
    return operations.select_related("customer__shop", "shop").order_by("first_sent_at", "pk")


def list_open_cases(*, shop_id: int | None) -> QuerySet[Reversal]:
    """Money that came back and that nobody has dealt with, oldest first."""
    cases = Reversal.objects.filter(closed_at__isnull=True)
    if shop_id is not None:
        cases = cases.filter(operation__shop_id=shop_id)
    return cases.select_related("operation__customer__shop", "operation__shop").order_by(
        "opened_at", "pk"
    )


def list_asked_about(*, shop_id: int | None) -> QuerySet[Operation]:
    """Changes that have ended and that only a person can find the truth about, oldest first.

    Money that came back is not among them while its case is open: it lies there already.
    """
    asked = Inquiry.objects.filter(operation=OuterRef("pk"), closed_at=None)
    cases = Reversal.objects.filter(operation=OuterRef("pk"), closed_at=None)
    operations = Operation.objects.filter(Exists(asked), ~Exists(cases))
    if shop_id is not None:
        operations = operations.filter(shop_id=shop_id)
    return operations.select_related("customer__shop", "shop").order_by("finished_at", "pk")


def count_for_people(*, shop_id: int | None) -> int:
    """How much waits at the desk for a person; what is still being looked up does not."""
    waiting = list_unresolved(shop_id=shop_id).filter(state=State.NEEDS_PERSON)
    cases = list_open_cases(shop_id=shop_id).count()
    return waiting.count() + cases + list_asked_about(shop_id=shop_id).count()


def count_overdue(*, now: datetime) -> dict[str, int]:
    """By state, how many were first sent more than 24 hours ago and still have no end."""
    overdue = Operation.objects.filter(
        state__in=UNRESOLVED, first_sent_at__lte=now - OVERDUE
    ).values_list("state")
    counted: Sequence[tuple[str, int]] = list(overdue.annotate(Count("pk")))
    return {state: dict(counted).get(state, 0) for state in UNRESOLVED}

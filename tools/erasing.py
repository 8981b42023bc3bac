"""What is left of operations once their words are gone: digest, order, amount, times and outcome."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from accounts.models import ERASED
from tools.models import Attempt, Operation, Reversal, Settlement, Verdict
from tools.seal import open_seal

# What a person or the other side wrote about an outcome.
WORDS = ["reason", "detail"]


def is_erased(operation: Operation) -> bool:
    return not operation.seal


def content_of(operation: Operation) -> dict[str, Any]:
    """The sealed content, or what stands of it after an erasure.

    Raises tools.seal.BrokenSealError when there are bytes and they are not the approved ones.
    """
    if not is_erased(operation):
        return open_seal(operation.seal, operation.digest)
    return {
        "customer": operation.customer.external_id,
        "kind": operation.kind,
        "order": operation.order_id,
        "amount": operation.amount,
        "currency": operation.currency,
        "request": {"recipient": ERASED, "subject": ERASED, "text": ERASED},
        "shown": {},
    }


def erase_operations(*, ticket_ids: Sequence[int], task_ids: Sequence[int]) -> int:
    """Take the words out of the operations of these tickets, which are erased on record.

    In the caller's transaction; the database refuses without the record. Returns how many operations.
    """
    mine = Operation.objects.filter(ticket_id__in=ticket_ids).exclude(seal=b"")
    count = mine.update(seal=b"", intent="", reason="")
    of_mine = {"operation__ticket_id__in": ticket_ids}
    Attempt.objects.filter(**of_mine).exclude(detail="").exclude(outcome="").update(detail="")
    said = Settlement.objects.filter(**of_mine).exclude(evidence=ERASED)
    said.update(evidence=ERASED, reason="")
    cases = Reversal.objects.filter(**of_mine)
    cases.filter(closed_at=None).exclude(reason="").update(reason="")
    cases.exclude(closed_at=None).exclude(note=ERASED).update(reason="", note=ERASED)
    Verdict.objects.filter(task_id__in=task_ids).exclude(inputs={}).update(inputs={})
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tools_observation SET body = body - %s FROM tools_operation o"
            " WHERE operation_id = o.id AND o.ticket_id = ANY (%s) AND body ?| %s",
            [WORDS, list(ticket_ids), WORDS],
        )
    return count

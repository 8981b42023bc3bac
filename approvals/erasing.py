"""What is left of decisions once their words are gone: who decided what, when, about which digest."""

from collections.abc import Sequence

from accounts.models import ERASED
from approvals.models import Approval, ApprovalStatus


def erase_reasons(*, ticket_ids: Sequence[int]) -> None:
    """Take people's reasons out of the decisions about these tickets, which are erased on record.

    In the caller's transaction; the database refuses without the record.
    """
    mine = Approval.objects.filter(operation__ticket_id__in=ticket_ids).exclude(
        status=ApprovalStatus.OPEN
    )
    mine.filter(reason="").exclude(decision_id="").update(decision_id="")
    mine.exclude(reason__in=("", ERASED)).update(reason=ERASED, decision_id="")

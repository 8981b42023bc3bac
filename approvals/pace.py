"""How fast one person may say yes to money. Whoever approves without looking is made to stop.

So many yeses in so many seconds (COUNTERSIGN_APPROVALS_IN_A_ROW and …_ROW_SECONDS), counted from the
approvals themselves, over every door and shop. A no is never slowed, and neither is a kill switch.
"""

import math
from datetime import datetime, timedelta

from django.conf import settings

from accounts.models import User
from approvals.models import STAFF_ROLES, Approval, ApprovalStatus
from audit import services as audit
from audit.selectors import EventFilter, filter_events

PAUSED = "approver.paused"


def seconds_to_wait(*, user_id: int, now: datetime) -> int:
    """After how many seconds this person may say yes to money again; 0: now.

    Locks the person until the transaction ends, so that two yeses at once are both counted.
    """
    User.objects.select_for_update(no_key=True).get(pk=user_id)
    row = timedelta(seconds=settings.APPROVALS_ROW_SECONDS)
    given = (
        Approval.objects.filter(
            role__in=STAFF_ROLES,
            status=ApprovalStatus.APPROVED,
            decided_by_user_id=user_id,
            decided_at__gt=now - row,
            operation__amount__isnull=False,
        )
        .order_by("-decided_at")
        .values_list("decided_at", flat=True)[: settings.APPROVALS_IN_A_ROW]
    )
    times = list(given)
    if len(times) < settings.APPROVALS_IN_A_ROW or times[-1] is None:
        return 0
    return max(1, math.ceil((times[-1] + row - now).total_seconds()))


def note_pause(*, user_id: int, shop_id: int, now: datetime) -> None:
    """Put it on the trail that somebody was stopped, once for each stretch of time.

    In a transaction of its own: the one that was refused is rolled back.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    row = timedelta(seconds=settings.APPROVALS_ROW_SECONDS)
    wanted = EventFilter(shop_id=shop_id, actor=user.actor, action=PAUSED, since=now - row)
    if filter_events(wanted).exists():
        return
    audit.record(
        actor=user.actor,
        action=PAUSED,
        subject=f"user:{user.pk}",
        at=now,
        shop_id=shop_id,
        data={"approvals": settings.APPROVALS_IN_A_ROW, "seconds": settings.APPROVALS_ROW_SECONDS},
    )

"""Reads of approvals used in more than one place."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from approvals.models import STAFF_ROLES, Approval, ApprovalStatus
from tools.models import Operation, State


def list_open_for_staff(*, shop_id: int | None) -> QuerySet[Approval]:
    """What staff are asked now, oldest deadline first. Without a shop: of every shop."""
    approvals = (
        Approval.objects.filter(role__in=STAFF_ROLES, status=ApprovalStatus.OPEN)
        .select_related("operation__customer", "operation__shop")
        .order_by("expires_at", "id")
    )
    return approvals if shop_id is None else approvals.filter(operation__shop_id=shop_id)


def list_of_operation(*, operation_id: int) -> list[Approval]:
    """The questions about an operation, in the order they were asked."""
    return list(Approval.objects.filter(operation_id=operation_id).order_by("id"))


def get_of_step(*, task_id: int, step_n: int, role: str) -> Approval | None:
    """The question put to one role about the operation of one step."""
    return (
        Approval.objects.filter(operation__task_id=task_id, operation__step_n=step_n, role=role)
        .select_related("operation")
        .first()
    )


def get_of_step_for_staff(*, task_id: int, step_n: int, user_id: int) -> Approval | None:
    """The question to staff about a step's operation: the one that this person answered, so that
    the same answer sent again finds it; else the one asked last.
    """
    asked = Approval.objects.filter(
        operation__task_id=task_id, operation__step_n=step_n, role__in=STAFF_ROLES
    ).select_related("operation")
    return asked.filter(decided_by_user_id=user_id).first() or asked.order_by("-id").first()


def get_for_staff(*, public_id: UUID, shop_id: int | None) -> Approval | None:
    """A question put to staff, if this shop's (None: any shop's)."""
    approvals = Approval.objects.filter(public_id=public_id, role__in=STAFF_ROLES)
    if shop_id is not None:
        approvals = approvals.filter(operation__shop_id=shop_id)
    return approvals.select_related("operation__customer__shop", "operation__shop").first()


def list_for_staff(*, public_ids: Sequence[UUID], shop_id: int | None) -> list[Approval]:
    """These questions put to staff, as far as they are this shop's (None: any shop's)."""
    approvals = Approval.objects.filter(public_id__in=public_ids, role__in=STAFF_ROLES)
    if shop_id is not None:
        approvals = approvals.filter(operation__shop_id=shop_id)
    return list(approvals.select_related("operation").order_by("expires_at", "id"))


def successor_of(operation: Operation) -> Operation | None:
    """What was proposed instead of a superseded operation: the next of its kind for its order."""
    if operation.state != State.SUPERSEDED or not operation.order_id:
        return None
    return (
        Operation.objects.filter(
            shop_id=operation.shop_id,
            customer_id=operation.customer_id,
            order_id=operation.order_id,
            kind=operation.kind,
            pk__gt=operation.pk,
        )
        .order_by("pk")
        .first()
    )

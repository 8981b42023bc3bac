"""Whether this member of staff may give this answer: their right, what it reaches to, and one voice each.

Asked when they answer, again before anything is sent, and when they are shown or given a question.
"""

from enum import Enum

from django.db.models import Case, CharField, Exists, OuterRef, Q, QuerySet, Value, When

from accounts.models import Role, User
from accounts.rights import get_countersigner, is_same_person, same_people
from approvals.models import STAFF_ROLES, Approval
from tools import money
from tools.models import Operation


class Bar(Enum):
    """What stands between a person and an answer."""

    NO_RIGHT = "no_right"
    SAME_PERSON = "same_person"
    OTHER_KIND = "other_kind"
    TOO_MUCH = "too_much"


def bar_to(user_id: int | None, operation: Operation, *, role: str, is_yes: bool) -> Bar | None:
    """Why this person may not answer so as this role (`staff` or `second_staff`); None when they may.

    A sum beyond their right bars the yes alone; a no needs only the right to that kind of change.
    """
    user = get_countersigner(user_id, customer=operation.customer)
    if user is None:
        return Bar.NO_RIGHT
    if not user.may_decide_kind(operation.kind):
        return Bar.OTHER_KIND
    if _has_spoken(user, operation, role):
        return Bar.SAME_PERSON
    if is_yes and not user.may_approve_sum(operation.amount):
        return Bar.TOO_MUCH
    return None


def with_bars(questions: QuerySet[Approval], user: User) -> QuerySet[Approval]:
    """The same questions to staff, each with a `bar`: what keeps this person from any answer, else "".

    For lists and numbers of many: what stands between them and a no as well, as `bar_to` would say
    it, of questions of their shop. Whoever may decide nothing at all only reads, and so is barred
    from none; a second factor that is still to be set up is theirs to set up.
    """
    if not user.can_approve:
        return questions.annotate(bar=Value("", output_field=CharField()))
    bars = []
    if address := user.email.strip():
        is_theirs = Q(operation__customer__email__iexact=address)
        bars.append(When(is_theirs, then=Value(Bar.NO_RIGHT.value)))
    if user.approve_kinds:
        is_other = ~Q(operation__kind__in=user.approve_kinds)
        bars.append(When(is_other, then=Value(Bar.OTHER_KIND.value)))
    spoken = Approval.objects.filter(
        operation_id=OuterRef("operation_id"),
        role__in=STAFF_ROLES,
        decided_by_user_id__in=same_people(user).values("pk"),
    ).exclude(role=OuterRef("role"))
    bars.append(When(Exists(spoken), then=Value(Bar.SAME_PERSON.value)))
    return questions.annotate(bar=Case(*bars, default=Value(""), output_field=CharField()))


def in_words(bar: Bar, operation: Operation, *, user_id: int) -> str:
    """The bar in a sentence or two, to the person whom it stops."""
    match bar:
        case Bar.SAME_PERSON:
            return "You gave the first yes. The second has to come from another member of staff."
        case Bar.OTHER_KIND:
            kind = operation.get_kind_display().lower()
            return f"Your right to decide does not reach to this kind of change ({kind})."
        case Bar.TOO_MUCH:
            return _too_much(operation, User.objects.get(pk=user_id))
        case _:
            return "You may not answer this question."


def _too_much(operation: Operation, user: User) -> str:
    limit = money.show(user.approve_up_to or 0, operation.currency)
    amount = money.show(operation.amount or 0, operation.currency)
    return f"You may say yes to {limit} at most, and this is {amount}. You may say no."


def _has_spoken(user: User, operation: Operation, role: str) -> bool:
    """Has this person, by whatever account, answered about it in the other role of staff?"""
    others = set(STAFF_ROLES) - {role} if Role.SECOND_STAFF in operation.required_roles else set()
    spoken = Approval.objects.filter(
        operation=operation, role__in=others, decided_by_user_id__isnull=False
    ).values("decided_by_user_id")
    return bool(others) and any(
        is_same_person(user, other) for other in User.objects.filter(pk__in=spoken)
    )

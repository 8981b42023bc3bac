"""What every page of the console stands on: who is signed in, and what they may do there."""

from enum import Enum

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from accounts.models import Role, User


class Right(Enum):
    """What a page asks of whoever opens it. Which shop's rows they see is another question."""

    READ = "read"
    WORK = "work"  # speak to customers
    DECIDE = "decide"  # countersign for the shop
    EXPORT = "export"  # take the trail away in a file
    SWITCH = "switch"  # stop tools
    UNREDACT = "unredact"  # with people's own words in it
    KEEP = "keep"  # copy, hold and erase what is kept of a customer
    TEXTS = "texts"  # write the shop's ready-made answers, and when its staff are reminded
    CONFIGURE = "configure"  # change a shop's settings


def user_of(request: HttpRequest) -> User:
    """The console user behind a request. Raises PermissionDenied for anybody else."""
    user = request.user
    if not isinstance(user, User) or not user.can_read_console:
        raise PermissionDenied
    return user


def may_unredact(request: HttpRequest) -> bool:
    """May whoever asks take people's own words away in a file?"""
    return has_right(user_of(request), Right.UNREDACT)


def has_right(user: User, right: Right) -> bool:
    """Does this person hold the right now? Auditors read and export, and decide nothing."""
    if not user.can_read_console:
        return False
    match right:
        case Right.READ:
            return True
        case Right.WORK:
            return user.role in {Role.STAFF, Role.ADMIN}
        case Right.DECIDE:
            return user.can_approve
        case Right.EXPORT:
            return user.role in {Role.AUDITOR, Role.ADMIN}
        case Right.SWITCH:
            return user.can_approve or user.role == Role.ADMIN
        case Right.KEEP | Right.UNREDACT | Right.TEXTS:
            return user.role == Role.ADMIN
        case Right.CONFIGURE:
            return user.is_admin

"""What comes of a customer's request in the chat.

Each is judged on the identity as it is now, and goes through the same services and checks as the
HTTP API. A refusal is a frame of its own that says what and why; nothing has changed then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from accounts.identity import Identity, IdentityError, recheck_identity, verify_identity
from accounts.models import Customer, Role, Shop, WidgetKey
from accounts.services import DelegationRevokedError, ShopUnavailableError, ensure_delegation
from agents import form_words, forms, services
from agents.chat import frames, own_orders, picture
from agents.chat.allowance import TooFastError, count_look
from agents.chat.frames import After
from agents.chat.picture import Following, Frame
from agents.models import Task
from approvals import services as approvals
from approvals.selectors import get_of_step
from tools import registry
from tools.clients.errors import ShopError, UnauthorizedError
from tools.operations import OperationStateError


class RefusedError(Exception):
    """The request was refused. `code` is for programs, the text for the person."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


@dataclass
class Session:
    """A customer at a door: who they are, by which token, and what they follow."""

    identity: Identity
    token: str
    following: Following

    @property
    def customer_id(self) -> int:
        return self.identity.customer_id

    @property
    def actor(self) -> str:
        return f"{Role.CUSTOMER.value}:{self.identity.external_id}"


def error(asked: str, ref: str, refused: RefusedError) -> Frame:
    """The frame that tells a client of a refusal."""
    return {
        "type": "error",
        "for": asked,
        "ref": ref,
        "code": refused.code,
        "message": str(refused),
        **refused.details,
    }


def enter(
    token: str,
    *,
    key: str | None,
    ticket: int | Literal["new"] | None,
    after: After,
    locale: str | None = None,
) -> tuple[Session, list[Frame]]:
    """Let a customer in, with a snapshot of the conversation asked for, or of their newest.

    Raises IdentityError: the token proves nothing, or not for the shop of this widget.
    """
    identity = verify_identity(token)
    # The leeway that a fresh token is given is not for a connection to live on.
    recheck_identity(identity)
    if key is not None and not WidgetKey.objects.filter(key=key, shop=identity.shop_id).exists():
        raise IdentityError("other_shop")
    ticket_id = ticket if isinstance(ticket, int) else None
    told: list[Frame] = []
    if ticket_id is not None and picture.owned_ticket(identity.customer_id, ticket_id) is None:
        told.append(error("hello", "", _no_such_ticket()))
        ticket = ticket_id = None
    if ticket is None:
        ticket_id, after = picture.newest_ticket(identity.customer_id), After()
    shown, following = picture.snapshot(identity, ticket_id, after, locale or "")
    return Session(identity, token, following), [*told, shown]


def renew(session: Session, token: str) -> None:
    """Go on with a newer token. Raises IdentityError, and then nothing has changed.

    The code `other_customer` says that the token is good, but somebody else's.
    """
    identity = verify_identity(token)
    if identity.customer_id != session.customer_id:
        raise IdentityError("other_customer")
    recheck_identity(identity)
    session.identity, session.token = identity, token


def news(session: Session) -> list[Frame]:
    """What this customer has not been told yet. Raises IdentityError when they may not be told."""
    recheck_identity(session.identity)
    return picture.changes(session.following)


def prepare(session: Session, request: frames.Request, now: datetime) -> list[Frame]:
    """Whatever may keep us waiting for the shop, before `answer`.

    What it returns, a refusal or what the shop has shown, is all that there is to say. Raises
    IdentityError like `news`.
    """
    recheck_identity(session.identity)
    if not isinstance(request, frames.Say | frames.Form | frames.Person | frames.Orders):
        return []
    try:
        _require_delegation(session, now)
        return [_orders(session)] if isinstance(request, frames.Orders) else []
    except RefusedError as exc:
        return [error(request.type, frames.ref_of(request), exc)]


def answer(session: Session, request: frames.Request, now: datetime) -> list[Frame]:
    """Do what is asked once `prepare` had nothing against it, and say what came of it.

    Raises IdentityError like `news`.
    """
    recheck_identity(session.identity)
    ref = frames.ref_of(request)
    try:
        return _ANSWERS[type(request)](session, request, now)
    except RefusedError as exc:
        return [error(request.type, ref, exc)]


def _done(request: frames.Request, **details: Any) -> Frame:
    return {"type": "done", "for": request.type, "ref": frames.ref_of(request), **details}


def _say(session: Session, request: frames.Say, now: datetime) -> list[Frame]:
    is_new = request.ticket == "new"
    ticket_id = session.following.ticket_id if request.ticket is None else request.ticket
    submitted = _submitting(
        lambda: services.submit(
            customer_id=session.customer_id,
            text=request.text,
            client_message_id=request.client_message_id,
            now=now,
            ticket_id=None if isinstance(ticket_id, str) else ticket_id,
            opens_new_ticket=is_new,
            locale=session.following.locale,
        )
    )
    return _taken(session, request, submitted)


def _form(session: Session, request: frames.Form, now: datetime) -> list[Frame]:
    shop = Shop.objects.get(pk=session.identity.shop_id)
    try:
        form = forms.read(request.tool, request.arguments, currency=shop.currency)
    except forms.FormError as exc:
        message = "Please look at the form again."
        raise RefusedError("bad-form", message, faults=exc.faults) from exc
    ticket_id = session.following.ticket_id if request.ticket is None else request.ticket
    locale = session.following.locale
    submitted = _submitting(
        lambda: services.submit(
            customer_id=session.customer_id,
            text=form_words.asked(form, locale or session.identity.locale),
            client_message_id=request.client_message_id,
            now=now,
            ticket_id=None if isinstance(ticket_id, str) else ticket_id,
            opens_new_ticket=request.ticket == "new",
            locale=locale,
            form=form,
        )
    )
    return _taken(session, request, submitted)


def _taken(
    session: Session, request: frames.Say | frames.Form, submitted: services.Submitted
) -> list[Frame]:
    done = _done(
        request,
        ticket=submitted.ticket.pk,
        seq=submitted.message.seq,
        task=submitted.task.pk if submitted.task else None,
    )
    return [done, *_follow(session, submitted.ticket.pk)]


def _person(session: Session, request: frames.Person, now: datetime) -> list[Frame]:
    """A closed conversation does not keep anybody from a person: it goes to another one then."""
    ticket_id = session.following.ticket_id
    if ticket_id is not None and picture.is_closed(ticket_id):
        ticket_id = None
    submitted = _submitting(
        lambda: services.ask_for_person(
            customer_id=session.customer_id,
            ticket_id=ticket_id,
            now=now,
            locale=session.following.locale,
        )
    )
    return [_done(request, ticket=submitted.ticket.pk), *_follow(session, submitted.ticket.pk)]


def _decide(session: Session, request: frames.Decide, now: datetime) -> list[Frame]:
    task = _own_task(session, request.task)
    approval = get_of_step(task_id=task.pk, step_n=request.step, role=Role.CUSTOMER)
    if approval is None:
        raise RefusedError("not-found", "There is nothing to decide here.")
    decider = approvals.by_customer(customer_id=session.customer_id, actor=session.actor)
    try:
        decided = approvals.decide(
            approval_id=approval.pk,
            decider=decider,
            is_yes=request.decision == "yes",
            digest=request.digest,
            decision_id=request.decision_id,
        )
    except approvals.DecisionError as exc:
        code, message = _DECISION_ERRORS[type(exc)]
        raise RefusedError(code, message, status=exc.approval.status) from exc
    except OperationStateError as exc:
        raise RefusedError(*_DECISION_ERRORS[approvals.SupersededError]) from exc
    return [_done(request, task=task.pk, step=request.step, status=decided.status)]


def _cancel(session: Session, request: frames.Cancel, now: datetime) -> list[Frame]:
    task = _own_task(session, request.task)
    cancelled = services.cancel(task_id=task.pk, by=session.actor, now=now)
    return [_done(request, task=task.pk, status=cancelled.status)]


def _open(session: Session, request: frames.Open, _now: datetime) -> list[Frame]:
    ticket_id = None if request.ticket == "new" else request.ticket
    if ticket_id is not None and picture.owned_ticket(session.customer_id, ticket_id) is None:
        raise _no_such_ticket()
    return [_turn_to(session, ticket_id)]


def _tickets(session: Session, _request: frames.Tickets, _now: datetime) -> list[Frame]:
    return [{"type": "tickets", "tickets": picture.list_tickets(session.customer_id)}]


def _orders(session: Session) -> Frame:
    """The customer's orders as the shop shows them now. Raises RefusedError."""
    customer = Customer.objects.select_related("shop").get(pk=session.customer_id)
    if registry.is_off(tool="find_orders", shop_id=customer.shop_id):
        raise RefusedError("unavailable", "Looking orders up is switched off at the moment.")
    try:
        count_look(customer.pk)
        return own_orders.look(customer, session.following.locale or session.identity.locale)
    except TooFastError as exc:
        message = "That was a lot at once. Please wait a minute."
        raise RefusedError("too-many-requests", message) from exc
    except (UnauthorizedError, DelegationRevokedError) as exc:
        raise _not_let() from exc
    except (ShopError, ShopUnavailableError) as exc:
        raise _not_reached() from exc


def _follow(session: Session, ticket_id: int) -> list[Frame]:
    """Turn to the ticket that a message went to, if it is not the one being followed."""
    if session.following.ticket_id == ticket_id:
        return picture.changes(session.following)
    return [_turn_to(session, ticket_id)]


def _earlier(session: Session, request: frames.Earlier, _now: datetime) -> list[Frame]:
    return [picture.earlier(session.following, request.before)]


def _turn_to(session: Session, ticket_id: int | None) -> Frame:
    shown, session.following = picture.snapshot(
        session.identity, ticket_id, After(), session.following.locale
    )
    return shown


def _require_delegation(session: Session, now: datetime) -> None:
    try:
        ensure_delegation(customer_id=session.customer_id, token=session.token, now=now)
    except DelegationRevokedError as exc:
        raise _not_let() from exc
    except ShopUnavailableError as exc:
        raise _not_reached() from exc


def _not_let() -> RefusedError:
    message = "The shop does not let us act for you. Please sign in again."
    return RefusedError("delegation-revoked", message)


def _not_reached() -> RefusedError:
    message = "The shop cannot be reached right now. Please try again."
    return RefusedError("shop-unavailable", message)


def _submitting(submit: Callable[[], services.Submitted]) -> services.Submitted:
    try:
        return submit()
    except services.TicketNotFoundError as exc:
        raise _no_such_ticket() from exc
    except services.TicketClosedError as exc:
        message = "This conversation is closed. A new message starts a new one."
        raise RefusedError("ticket-closed", message) from exc
    except services.TooManyOpenTasksError as exc:
        message = "You have several requests under way. Please wait for one of them."
        raise RefusedError("too-many-open-tasks", message, task=exc.task.pk) from exc
    except services.TooManyRequestsError as exc:
        message = f"That was a lot at once. Please wait {exc.retry_after} seconds."
        raise RefusedError("too-many-requests", message, retry_after=exc.retry_after) from exc
    except services.MessageReusedError as exc:
        message = "This message id was used for another text."
        raise RefusedError("message-id-reused", message) from exc


def _own_task(session: Session, task_id: int) -> Task:
    task = Task.objects.filter(customer_id=session.customer_id, pk=task_id).first()
    if task is None:
        raise RefusedError("not-found", "There is nothing here.")
    return task


def _no_such_ticket() -> RefusedError:
    return RefusedError("not-found", "There is no such conversation.")


_ANSWERS: dict[type[Any], Callable[[Session, Any, datetime], list[Frame]]] = {
    frames.Say: _say,
    frames.Form: _form,
    frames.Person: _person,
    frames.Decide: _decide,
    frames.Cancel: _cancel,
    frames.Open: _open,
    frames.Earlier: _earlier,
    frames.Tickets: _tickets,
}
_DECISION_ERRORS: dict[type[approvals.DecisionError], tuple[str, str]] = {
    approvals.AlreadyDecidedError: ("decided-otherwise", "This was decided before."),
    approvals.SupersededError: (
        "superseded",
        "This is no longer what would be done. Please look at it again.",
    ),
    approvals.ExpiredError: ("expired", "The time to answer is over."),
    approvals.NotAllowedError: ("wrong-role", "This question is not yours to answer."),
    approvals.ReasonNeededError: ("invalid", "A reason is needed."),
}

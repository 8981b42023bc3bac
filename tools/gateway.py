"""The gateway: every call a model proposes passes six gates, in code, in this order.

offered → shape → scope → policy → approval → execute. `examine` takes a call through the first
three and, for a read, to its result; it may call the shop, so it runs outside any transaction.
`propose` takes a change through policy and approval inside the caller's transaction, under a lock
on the customer. The sixth gate is in `sending.py`. Every verdict is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from accounts.models import Customer, Shop
from accounts.services import DelegationRevokedError
from tools import operations, policy, registry, strictjson, tickets
from tools.access import ask
from tools.catalogue.base import (
    Arguments,
    DocumentTool,
    EffectTool,
    HandOffTool,
    OrderTool,
    Reading,
    ReadTool,
    TicketTool,
    Tool,
)
from tools.clients.errors import NotFoundError, UnauthorizedError
from tools.clients.shapes import Order
from tools.clients.shop import ShopClient
from tools.models import Finding, Gate, Operation, State, Verdict
from tools.policy import DeniedError, Ruled, Ruling
from tools.seal import open_seal
from tools.text import clean
from tools.tickets import TicketFacts

UNKNOWN_TOOL = "There is no such tool."
NOT_FOUND = "There is no order with that number in this customer's account."


@dataclass(frozen=True)
class Caller:
    """On whose behalf a call is made. Comes from the verified identity, never from a text."""

    shop: Shop
    customer: Customer
    ticket_id: int
    task_id: int
    step_n: int


@dataclass(frozen=True)
class Call:
    """One tool call as the model proposed it; `arguments` is the raw text."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Refused:
    """A gate said no. `error` is a code; both go to the model."""

    error: str
    message: str
    verdicts: Sequence[Ruled]

    @property
    def result(self) -> dict[str, Any]:
        return {"error": self.error, "message": self.message}


@dataclass(frozen=True)
class Answered:
    """A read's result for the model."""

    result: dict[str, Any]
    verdicts: Sequence[Ruled]


@dataclass(frozen=True)
class Proposal:
    """A change with the facts of its order or ticket as just read, ready for `propose`."""

    tool: EffectTool[Any, Any]
    arguments: Arguments
    subject: Order | TicketFacts
    verdicts: Sequence[Ruled]


@dataclass(frozen=True)
class HandOffAsked:
    reason: str
    verdicts: Sequence[Ruled]


@dataclass(frozen=True)
class Accepted:
    """The change is an operation now, new or known already (`is_new`)."""

    operation: Operation
    is_new: bool
    verdicts: Sequence[Ruled]


def examine(
    call: Call, caller: Caller, *, offered: frozenset[str], now: datetime
) -> Refused | Answered | Proposal | HandOffAsked:
    """Take a call through the gates that need no lock. Writes nothing.

    Raises UnavailableError or ThrottledError (tools.clients.errors) and ShopUnavailableError when
    the shop cannot be asked now: the caller tries the step again later.
    """
    ruling = Ruling()
    try:
        tool = _offered(call, caller, offered, now, ruling)
        arguments = _shape(tool, call, ruling)
        if isinstance(tool, HandOffTool):
            return HandOffAsked(
                reason=str(arguments.model_dump()["reason"]), verdicts=ruling.verdicts
            )
        if isinstance(tool, DocumentTool):
            return _from_documents(tool, arguments, caller, now, ruling)
        if isinstance(tool, TicketTool):
            return _about_the_ticket(tool, arguments, caller, ruling)
        if not isinstance(tool, ReadTool | OrderTool):
            raise TypeError(tool)
        return _with_the_shop(tool, arguments, caller, ruling)
    except DeniedError as exc:
        return Refused(exc.code, exc.message, ruling.verdicts)


def _offered(
    call: Call, caller: Caller, offered: frozenset[str], now: datetime, ruling: Ruling
) -> Tool[Any]:
    """Gate 1."""
    gate = Gate.OFFERED
    tool = registry.TOOLS.get(call.name)
    if tool is None:
        ruling.deny(gate, "tool_is_known", code="unknown_tool", message=UNKNOWN_TOOL)
    ruling.require(
        "tool_is_offered",
        gate=gate,
        holds=tool.name in offered,
        code="unknown_tool",
        message=UNKNOWN_TOOL,
    )
    ruling.require(
        "tool_is_on",
        gate=gate,
        holds=not registry.is_off(tool=tool.name, shop_id=caller.shop.id),
        code="tool_off",
        message="This is switched off at the moment; a person can help.",
    )
    recent = Verdict.objects.filter(
        customer=caller.customer,
        tool=tool.name,
        rule="within_rate",
        at__gt=now - timedelta(minutes=1),
    ).count()
    ruling.require(
        "within_rate",
        gate=gate,
        holds=recent < tool.calls_per_minute,
        code="rate_limited",
        message="Too many of these in a short time; wait a minute.",
        calls_last_minute=recent,
        limit=tool.calls_per_minute,
    )
    return tool


def _shape(tool: Tool[Any], call: Call, ruling: Ruling) -> Arguments:
    """Gate 2."""
    try:
        arguments: Arguments = tool.arguments.model_validate(
            strictjson.parse_object(call.arguments)
        )
    except strictjson.StrictJSONError as exc:
        ruling.deny(
            Gate.SHAPE,
            "arguments_parse",
            code="bad_arguments",
            message=f"The arguments cannot be read: {exc}.",
        )
    except ValidationError as exc:
        faults = [
            {"field": ".".join(str(part) for part in error["loc"])[:80], "fault": error["type"]}
            for error in exc.errors(include_input=False, include_context=False, include_url=False)
        ][:8]
        told = "; ".join(f"{fault['field']}: {fault['fault']}" for fault in faults)
        ruling.deny(
            Gate.SHAPE,
            "arguments_fit_schema",
            code=tool.bad.get(faults[0]["field"].split(".")[0], "bad_arguments"),
            message=f"The arguments do not fit the schema ({told}).",
            faults=faults,
        )
    ruling.allow(Gate.SHAPE, "arguments_fit_schema")
    return arguments


def _from_documents(
    tool: DocumentTool[Any], arguments: Arguments, caller: Caller, now: datetime, ruling: Ruling
) -> Answered:
    """Gates 3 and 4 for what we keep ourselves: only the caller's shop, only what holds today."""
    today = now.astimezone(ZoneInfo(caller.shop.time_zone)).date()
    ruling.allow(Gate.SCOPE, "shop_of_the_caller")
    ruling.allow(Gate.POLICY, "reads_are_allowed")
    return Answered(tool.read(arguments, caller.shop, today), ruling.verdicts)


def _about_the_ticket(
    tool: TicketTool[Any], arguments: Arguments, caller: Caller, ruling: Ruling
) -> Proposal:
    """Gate 3 for the ticket that the task itself belongs to: there is no other to name."""
    facts = tickets.desk().look(ticket_id=caller.ticket_id, closure="")
    ruling.allow(Gate.SCOPE, "ticket_of_the_task", ticket=facts.ticket)
    return Proposal(tool, arguments, facts, ruling.verdicts)


def _with_the_shop(
    tool: ReadTool[Any] | OrderTool[Any], arguments: Arguments, caller: Caller, ruling: Ruling
) -> Answered | Proposal:
    """Gate 3, and gate 4 for reads: whatever the customer's own token does not show is not there."""

    def look(client: ShopClient) -> Answered | Proposal:
        if isinstance(tool, ReadTool):
            return _read(tool, arguments, client, ruling)
        order = client.get_order(tool.order_id(arguments))
        ruling.allow(Gate.SCOPE, "customer_owns_it", order=order.id, version=order.version)
        return Proposal(tool, arguments, order, ruling.verdicts)

    try:
        return ask(caller.customer, look)
    except NotFoundError:
        ruling.deny(Gate.SCOPE, "customer_owns_it", code="not_found", message=NOT_FOUND)
    except (UnauthorizedError, DelegationRevokedError):
        ruling.deny(
            Gate.SCOPE,
            "delegation_is_valid",
            code="not_authorised",
            message="The shop no longer lets us act for this customer; they need to sign in again.",
        )


def _read(
    tool: ReadTool[Any], arguments: Arguments, client: ShopClient, ruling: Ruling
) -> Answered:
    try:
        result = tool.read(arguments, Reading(client))
    except DeniedError as exc:
        ruling.allow(Gate.SCOPE, "customer_owns_it")
        ruling.deny(Gate.POLICY, exc.code, code=exc.code, message=exc.message)
    ruling.allow(Gate.SCOPE, "customer_owns_it")
    ruling.allow(Gate.POLICY, "reads_are_allowed")
    return Answered(result, ruling.verdicts)


def propose(proposal: Proposal, caller: Caller, *, now: datetime) -> Refused | Accepted:
    """Gates 4 and 5: decide on a change and, when it may be asked for, make it an operation.

    Runs in the caller's transaction and locks the customer's row, so that totals are counted one
    proposal at a time. The same proposal made again resolves to the operation it already is.
    """
    customer = Customer.objects.select_for_update().get(pk=caller.customer.pk)
    shop = Shop.objects.get(pk=caller.shop.pk)
    ruling = Ruling(list(proposal.verdicts))
    try:
        known = _known_operation(proposal, customer, shop, caller, now, ruling)
        if known is not None:
            return Accepted(known, is_new=False, verdicts=ruling.verdicts)
        intent = proposal.tool.decide(proposal.arguments, proposal.subject, shop, now, ruling)
        if isinstance(proposal.subject, Order):
            policy.require_our_refunds_shown(intent, proposal.subject, shop=shop, ruling=ruling)
        else:
            policy.require_nothing_is_open(ticket_id=proposal.subject.ticket, ruling=ruling)
    except DeniedError as exc:
        return Refused(exc.code, exc.message, ruling.verdicts)
    total = policy.get_rolling_total(customer_id=customer.pk, shop=shop, now=now, before_id=None)
    roles = policy.required_roles(intent, shop=shop, rolling_total=total, ruling=ruling)
    operation = operations.create(
        intent,
        shop=shop,
        customer=customer,
        subject=proposal.subject,
        arguments=proposal.arguments.model_dump(mode="json"),
        required_roles=roles,
        ticket_id=caller.ticket_id,
        task_id=caller.task_id,
        step_n=caller.step_n,
        now=now,
    )
    return Accepted(operation, is_new=True, verdicts=ruling.verdicts)


def _known_operation(
    proposal: Proposal,
    customer: Customer,
    shop: Shop,
    caller: Caller,
    now: datetime,
    ruling: Ruling,
) -> Operation | None:
    """The operation that this proposal already is, if any.

    Raises DeniedError when another change of the order is under way, or when the same one was
    already turned down in this task.
    """
    current = operations.get_open(shop_id=shop.pk, subject=proposal.subject)
    earlier = operations.list_of_task(task_id=caller.task_id)
    if current is None and not earlier:
        return None
    try:
        # Its own ruling: this looks only for sameness, the verdicts follow in `propose`.
        key = proposal.tool.decide(proposal.arguments, proposal.subject, shop, now, Ruling()).key(
            customer=customer.external_id
        )
    except DeniedError:
        key = ""
    if current is not None:
        ruling.require(
            "no_other_change_under_way",
            holds=current.intent == key or _asks_the_same(proposal, current),
            code="another_change_in_progress",
            message="Another change of this is still in progress.",
            operation=current.idempotency_key,
            state=current.state,
        )
        return current
    for operation in earlier:
        if operation.intent != key:
            continue
        if operation.state == State.SUCCEEDED:
            ruling.allow(Gate.POLICY, "already_done", operation=operation.idempotency_key)
            return operation
        ruling.require(
            "not_turned_down_before",
            holds=operation.state not in {State.REJECTED, State.EXPIRED, State.CANCELLED},
            code="already_rejected",
            message=f"This was already {operation.state}; do not propose it again.",
            operation=operation.idempotency_key,
            state=operation.state,
        )
    return None


def _asks_the_same(proposal: Proposal, operation: Operation) -> bool:
    """Is this the call that the operation came from, in the same words but for the reason?

    The intent alone does not tell once the order has moved on, for instance because the operation
    itself has taken effect and nobody knows it yet.
    """
    content = open_seal(operation.seal, operation.digest)
    asked, before = (
        {name: value for name, value in said.items() if name not in {"order_id", "reason"}}
        for said in (proposal.arguments.model_dump(mode="json"), content["arguments"])
    )
    return operation.kind == proposal.tool.kind and asked == before


def keep_verdicts(
    verdicts: Sequence[Ruled], caller: Caller, *, tool: str, policy_version: int, now: datetime
) -> None:
    """Store every gate's finding for this step, in the caller's transaction."""
    Verdict.objects.bulk_create(
        Verdict(
            shop=caller.shop,
            customer=caller.customer,
            task_id=caller.task_id,
            step_n=caller.step_n,
            tool=clean(tool, 64)[:64],
            gate=ruled.gate,
            rule=ruled.rule,
            finding=ruled.finding,
            inputs=ruled.inputs,
            policy_version=policy_version,
            at=now,
        )
        for ruled in verdicts
    )


def summary(verdicts: Sequence[Ruled]) -> str:
    """The verdict in a word, for a step's line: allow, ask or deny with the rule that decided."""
    for finding in (Finding.DENY, Finding.ASK):
        rules = [ruled.rule for ruled in verdicts if ruled.finding == finding]
        if rules:
            return f"{finding}: {', '.join(rules)}"
    return str(Finding.ALLOW)

"""The oracle: what must never be otherwise, each invariant by its number, judged from evidence.

An invariant yields a sentence for each thing that is wrong. `ALWAYS` holds at every moment,
`AT_REST` once nothing is left to be done but by people. Nothing here uses the product's own
judgement of what is true: it counts effects at the shop and letters at the mail server.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from agents.models import ENDED, DayBudget, StepKind, StepStatus, Task
from approvals.models import DECIDED, ApprovalStatus
from audit import sealer
from audit.verify import verify
from tests.crash.evidence import Evidence
from tools.models import AUTHORISED, OPEN, AttemptOutcome, Kind, Operation, State
from tools.seal import request_body

Invariant = Callable[[Evidence], Iterator[str]]
MAX_SENDS = 5
EMAIL = "email"


def i01_one_effect_for_one_yes(seen: Evidence) -> Iterator[str]:
    """I-01, I-10, I-47: an operation takes effect at most once, and never for more than approved."""
    for operation in seen.operations:
        count = seen.happened(operation)
        if count > 1:
            yield f"{operation} took effect {count} times"
        paid = sum(effect["amount"] or 0 for effect in seen.effects_of(operation))
        if operation.kind == Kind.REFUND and paid > (operation.amount or 0):
            yield f"{operation} paid {paid} of {operation.amount} approved"


def i02_no_more_than_was_paid(seen: Evidence) -> Iterator[str]:
    """I-02: refunds of an order stay within what was captured, and its lines within their count."""
    for order_id in {effect["order_id"] for effect in seen.effects}:
        order = seen.order(order_id)
        refunded = sum(refund["amount"] for refund in order["refunds"])
        captured = sum(p["amount"] for p in order["payments"] if p["status"] != "voided")
        if refunded > captured and refunded:
            yield f"order {order_id}: {refunded} refunded of {captured}"
        for line in order["lines"]:
            if line["refunded_quantity"] > line["quantity"]:
                yield f"line {line['id']}: more refunded than bought"


def i03_no_effect_before_its_yes(seen: Evidence) -> Iterator[str]:
    """I-03, I-24: every effect under a key has its operation, with every yes it needs before it."""
    known = {operation.idempotency_key: operation for operation in seen.operations}
    for effect in seen.effects:
        key = effect["idempotency_key"]
        if key is None:
            continue  # made by the shop's own people
        operation = known.get(key)
        if operation is None:
            yield f"effect {effect['id']} has a key that no operation has: {key}"
            continue
        at = datetime.fromisoformat(effect["at"])
        yields = {
            approval.role
            for approval in seen.approvals_of(operation)
            if approval.status == ApprovalStatus.APPROVED
            and approval.digest == operation.digest
            and approval.decided_at is not None
            and approval.decided_at < at
        }
        missing = set(operation.required_roles) - yields
        if missing:
            yield f"{operation} took effect without the yes of {', '.join(sorted(missing))}"
    for operation in seen.operations:
        if operation.state in AUTHORISED and not set(operation.required_roles) <= set(
            operation.granted_roles
        ):
            yield f"{operation} is {operation.state} without its yes"


def i04_exactly_what_was_sealed(seen: Evidence) -> Iterator[str]:
    """I-04, I-28, I-48: what happened outside is what people said yes to, to the letter."""
    for operation in seen.operations:
        sealed = seen.sealed(operation)
        request = sealed["request"]
        for effect in seen.effects_of(operation):
            if (effect["kind"], effect["order_id"]) != (operation.kind, operation.order_id):
                yield f"{operation}: another order or another deed"
            got = _as_request(effect, operation.kind)
            if {name: value or "" for name, value in request.items()} != got:
                yield f"{operation}: {got} happened, {request} was approved"
        for mail in seen.mails_of(operation):
            wanted = ((request["recipient"],), request["subject"], request["text"])
            if (mail.recipients, mail.subject, mail.text) != wanted:
                yield f"{operation}: another e-mail than the approved one"


def i05_the_state_is_the_truth(seen: Evidence) -> Iterator[str]:
    """I-05, I-39: succeeded means it happened, every other final state that it did not."""
    for operation in seen.operations:
        count = seen.happened(operation)
        if operation.state == State.SUCCEEDED and count == 0:
            yield f"{operation} is said to have succeeded and nothing happened"
        is_unsent = operation.is_final and operation.state != State.SUCCEEDED
        if (is_unsent or operation.state in {State.AWAITING_APPROVAL, State.APPROVED}) and count:
            yield f"{operation} is {operation.state} and took effect"


def i06_told_the_truth(seen: Evidence) -> Iterator[str]:
    """I-06: no reply says done of what did not happen, nor the opposite of what did."""
    for message in seen.messages:
        if message.author != "agent":
            continue
        of_ticket = [one for one in seen.operations if one.ticket_id == message.ticket_id]
        done = {one.kind for one in of_ticket if seen.happened(one)}
        if Kind.CLOSE_TICKET in done:
            done.add(EMAIL)
        if any(one.pk == message.ticket_id and one.closed_at for one in seen.tickets):
            done.add(Kind.CLOSE_TICKET)
        for kind, pattern in _SAYS_DONE.items():
            if pattern.search(message.text) and kind not in done:
                yield f"{message} tells of a {kind} that never was: {message.text!r}"
        for effect in seen.effects:
            is_before = datetime.fromisoformat(effect["at"]) < message.at
            is_of_ticket = effect["idempotency_key"] in {one.idempotency_key for one in of_ticket}
            if is_before and is_of_ticket and _denies(message.text, effect):
                yield f"{message} denies {effect['id']}: {message.text!r}"


def i07_nothing_is_left_unknown(seen: Evidence) -> Iterator[str]:
    """I-07: at rest every operation is final, waits for people, or lies with a person."""
    for operation in seen.operations:
        held = operation.state == State.APPROVED and seen.switches
        if operation.state in {State.SENDING, State.UNKNOWN, State.APPROVED} and not held:
            yield f"{operation} was left {operation.state}"


def i08_few_sends_of_the_same_bytes(seen: Evidence) -> Iterator[str]:
    """I-08: no operation is sent more than five times, and always under one key with one body."""
    sent = Counter(call["idempotency_key"] for call in seen.sends)
    for operation in seen.operations:
        body = hashlib.sha256(request_body(seen.sealed(operation))).hexdigest()
        attempts = seen.attempts_of(operation)
        if any(attempt.request_digest != body for attempt in attempts):
            yield f"{operation}: a try with other bytes"
        tried = sum(attempt.outcome != AttemptOutcome.NOT_SENT for attempt in attempts)
        if max(tried, sent[operation.idempotency_key]) > MAX_SENDS:
            yield f"{operation} was sent more than {MAX_SENDS} times"
        if sent[operation.idempotency_key] > len(attempts):
            yield f"{operation} reached the shop more often than it was tried"
    unknown = set(sent) - {operation.idempotency_key for operation in seen.operations}
    if unknown:
        yield f"sends under keys of no operation: {unknown}"


def i09_one_change_at_a_time(seen: Evidence) -> Iterator[str]:
    """I-09: an order has at most one operation that is not final."""
    live = Counter(
        (operation.order_id or f"ticket {operation.ticket_id}")
        for operation in seen.operations
        if operation.state in OPEN
    )
    yield from (f"{order}: {count} open operations" for order, count in live.items() if count > 1)


def i12_no_finished_step_runs_again(seen: Evidence) -> Iterator[str]:
    """I-12, I-39: a finished step was recorded once, and the model asked once for each try of it."""
    finished = Counter(event.subject for event in seen.events if event.action == "step.finished")
    for step in seen.steps:
        if finished[f"step:{step}"] > 1:
            yield f"{step} was finished {finished[f'step:{step}']} times"
    tries = sum(step.attempts for step in seen.steps if step.kind == StepKind.MODEL)
    if seen.model_calls is not None and len(seen.model_calls) > tries:
        yield f"the model was called {len(seen.model_calls)} times in {tries} tries"


def i15_steps_are_numbered_without_a_gap(seen: Evidence) -> Iterator[str]:
    """I-15: steps are 1…n, and only the last may be unfinished."""
    for task in seen.tasks:
        mine = [step for step in seen.steps if step.task_id == task.pk]
        if [step.n for step in mine] != list(range(1, len(mine) + 1)):
            yield f"{task}: steps {[step.n for step in mine]}"
        if any(step.status != StepStatus.FINISHED for step in mine[:-1]):
            yield f"{task}: a step after an unfinished one"


def i20_epochs_only_grow(seen: Evidence) -> Iterator[str]:
    """I-20: each try of an operation belongs to a later claim than the one before."""
    for operation in seen.operations:
        epochs = [attempt.epoch for attempt in seen.attempts_of(operation)]
        if epochs != sorted(set(epochs)):
            yield f"{operation}: tries under the epochs {epochs}"
        task = next((task for task in seen.tasks if task.pk == operation.task_id), None)
        if task is not None and max([operation.epoch, *epochs]) > task.epoch:
            yield f"{operation}: an epoch that its task never had"


def i23_each_question_is_answered_once(seen: Evidence) -> Iterator[str]:
    """I-23, I-27: one decision for each question, and no question left open about what is over."""
    asked = Counter((approval.operation_id, approval.role) for approval in seen.approvals)
    for (operation_id, role), count in asked.items():
        if count > 1:
            yield f"operation {operation_id}: {role} was asked {count} times"
    for approval in seen.approvals:
        told = seen.events_about(f"approval:{approval.public_id}")
        decisions = sum(action in {"approval.granted", "approval.rejected"} for action in told)
        if decisions != (approval.status in DECIDED):
            yield f"{approval.public_id} is {approval.status} with {decisions} decisions recorded"
        operation = _by_id(seen, approval.operation_id)
        if operation.is_final and approval.status == ApprovalStatus.OPEN:
            yield f"{approval.public_id} is open about {operation}, which is {operation.state}"


def i36_budgets_hold(seen: Evidence) -> Iterator[str]:
    """I-36: what is spent and reserved stays within every cap."""
    rows: list[Task | DayBudget] = [*seen.tasks, *seen.days]
    for row in rows:
        if row.tokens_spent + row.tokens_reserved > row.max_tokens:
            yield f"{row}: too many tokens"
        if row.cost_spent + row.cost_reserved > row.max_cost:
            yield f"{row}: too much money"


def i38_reservations_are_settled_once(seen: Evidence) -> Iterator[str]:
    """I-38, I-39: at rest nothing is reserved, and task, steps and day tell the same sum.

    What the model's server has counted is charged in full: an unknown charge is never let go.
    """
    rows: list[Task | DayBudget] = [*seen.tasks, *seen.days]
    for row in rows:
        if row.tokens_reserved or row.cost_reserved:
            yield f"{row}: {row.tokens_reserved} tokens are still reserved"
    for task in seen.tasks:
        steps = sum(step.cost for step in seen.steps if step.task_id == task.pk)
        if steps != task.cost_spent:
            yield f"{task} cost {task.cost_spent}, its steps {steps}"
    tokens = sum(task.tokens_spent for task in seen.tasks)
    if sum(day.tokens_spent for day in seen.days) != tokens:
        yield f"the days tell another sum than the tasks' {tokens} tokens"
    if seen.model_calls is not None:
        used = sum((call["usage"] or {}).get("total_tokens", 0) for call in seen.model_calls)
        if used > tokens:
            yield f"the model counted {used} tokens, {tokens} were charged"


def i41_every_change_has_its_event(seen: Evidence) -> Iterator[str]:
    """I-41: each state that an operation was in is in the trail, and each end of a task."""
    for operation in seen.operations:
        told = seen.events_about(f"operation:{operation.idempotency_key}")
        wanted = [f"{operation.kind}.proposed"]
        if operation.is_final or operation.state in {State.UNKNOWN, State.NEEDS_PERSON}:
            wanted.append(f"{operation.kind}.{operation.state}")
        wanted += [f"{operation.kind}.sending"] * len(seen.attempts_of(operation))
        missing = Counter(wanted) - Counter(told)
        if missing:
            yield f"{operation}: no event for {dict(missing)}"
    for task in seen.tasks:
        told = seen.events_about(f"task:{task.pk}")
        ends = sum(action == f"task.{task.status}" for action in told)
        if task.status in ENDED and ends != 1:
            yield f"{task} is {task.status} with {ends} events of it"


def told_exactly_once(seen: Evidence) -> Iterator[str]:
    """A task that has ended has said one thing to its customer, one that lives nothing yet."""
    for task in seen.tasks:
        said = sum(
            message.task_id == task.pk and message.author == "agent" for message in seen.messages
        )
        if said != (task.status in ENDED):
            yield f"{task} is {task.status} and has spoken {said} times"


def every_task_rests(seen: Evidence) -> Iterator[str]:
    """I-19: nothing is under way any more but what waits for a person's yes."""
    for task in seen.tasks:
        if task.status not in {*ENDED, "waiting_approval"}:
            yield f"{task} is still {task.status}"
        if task.lease_until is not None:
            yield f"{task} rests with a lease"


ALWAYS: tuple[Invariant, ...] = (
    i01_one_effect_for_one_yes,
    i02_no_more_than_was_paid,
    i03_no_effect_before_its_yes,
    i04_exactly_what_was_sealed,
    i05_the_state_is_the_truth,
    i06_told_the_truth,
    i08_few_sends_of_the_same_bytes,
    i09_one_change_at_a_time,
    i12_no_finished_step_runs_again,
    i15_steps_are_numbered_without_a_gap,
    i20_epochs_only_grow,
    i23_each_question_is_answered_once,
    i36_budgets_hold,
    i41_every_change_has_its_event,
    told_exactly_once,
)
AT_REST: tuple[Invariant, ...] = (
    *ALWAYS,
    i07_nothing_is_left_unknown,
    i38_reservations_are_settled_once,
    every_task_rests,
)


def wrong(seen: Evidence, invariants: tuple[Invariant, ...] = AT_REST) -> list[str]:
    """Everything that is not as it must be, each with the name of its invariant."""
    return [f"{check.__name__}: {what}" for check in invariants for what in check(seen)]


def require(seen: Evidence, invariants: tuple[Invariant, ...] = AT_REST) -> None:
    """Raise AssertionError with everything that is wrong."""
    found = wrong(seen, invariants)
    if found:
        raise AssertionError("\n".join(found))


def trail_faults() -> list[str]:
    """Seal what waits, and verify the whole trail."""
    while sealer.seal_once() is not None:
        pass
    return [str(fault) for fault in verify().faults]


_SAYS_DONE = {
    Kind.REFUND: re.compile(r"\b(?:have|has been|is|was) refunded\b|refund .*\bis done\b", re.I),
    Kind.CANCEL: re.compile(
        r"\b(?:I have|I've|has been) cancelled\b|cancellation .*\bis done\b", re.I
    ),
    Kind.CHANGE_ADDRESS: re.compile(
        r"\b(?:I have|I've) changed\b|address .*\bhas been changed\b|address change .*\bis done\b",
        re.I,
    ),
    Kind.CLOSE_TICKET: re.compile(r"\b(?:I have|I've) closed\b|is closed\b", re.I),
    EMAIL: re.compile(
        r"\b(?:have|has been|was) e-?mailed\b|\b(?:have|'ve) sent you an e-?mail\b", re.I
    ),
}
_DENIES = {
    Kind.REFUND: re.compile(r"\bnot (?:been )?refunded\b|\brefund\b[^.]*\bwas not made\b", re.I),
    Kind.CANCEL: re.compile(
        r"\bnot (?:been )?cancelled\b|\bcancellation\b[^.]*\bwas not made\b", re.I
    ),
    Kind.CHANGE_ADDRESS: re.compile(
        r"\bnot (?:been )?changed\b|\baddress change\b[^.]*\bwas not made\b", re.I
    ),
}
_NOTHING = re.compile(r"\bnothing has been changed\b", re.I)


def _denies(text: str, effect: dict[str, Any]) -> bool:
    """Does a sentence about this order, or about none, say that this did not happen?"""
    return any(
        _NOTHING.search(sentence)
        or (
            _DENIES[effect["kind"]].search(sentence)
            and (effect["order_id"] in sentence or not re.search(r"\d{4,}", sentence))
        )
        for sentence in re.split(r"\n|(?<=[.!?]) ", text)
    )


def _as_request(effect: dict[str, Any], kind: str) -> dict[str, Any]:
    """What must have been asked for, for the shop to have done this."""
    detail = effect["detail"]
    if kind == Kind.CHANGE_ADDRESS:
        return dict(detail["to"])
    if kind == Kind.CANCEL:
        return {"reason": detail["reason"]}
    names = ("amount", "currency")
    return {name: effect[name] for name in names} | {
        "lines": detail["lines"] or "",
        "reason": detail["reason"],
    }


def _by_id(seen: Evidence, operation_id: int) -> Operation:
    return next(operation for operation in seen.operations if operation.pk == operation_id)

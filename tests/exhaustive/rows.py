"""What one transaction does to the operation's row: the decisions of the product, in miniature.

Beside each stands the function that it mirrors; test_model_follows_code.py holds the two together.
"""

from tests.exhaustive.world import (
    APPROVED,
    ENDED,
    FAILED,
    NEEDS_PERSON,
    NEVER,
    NOT_SENT,
    OPEN,
    REFUSED,
    SENDING,
    SUCCEEDED,
    TURNED_AWAY,
    UNDECIDED,
    UNKNOWN,
    Guards,
    Operation,
    Setting,
)


def begin(row: Operation, epoch: int, guards: Guards, *, forbidden: bool) -> tuple[Operation, bool]:
    """`sending._begin`: decide again, commit the intent. Returns the row and whether to send."""
    if row.state != APPROVED or (guards.epoch and row.epoch > epoch):
        return row, False
    if forbidden:
        return row._replace(state=ENDED), False
    if not guards.intent_first:
        return row, True
    return _intend(row, epoch), True


def _intend(row: Operation, epoch: int) -> Operation:
    """`Operation.start`, `Operation.start_again` and `sending.new_attempt`."""
    first = 0 if row.first_sent == NEVER else row.first_sent
    attempts = (*row.attempts, OPEN)
    return row._replace(
        state=SENDING, epoch=epoch, first_sent=first, attempts=attempts, since_news=0
    )


def settle(row: Operation, outcome: str, epoch: int, attempt: int, guards: Guards) -> Operation:
    """`sending.settle`: commit an outcome as this claim's, else keep it as evidence."""
    if not guards.intent_first and row.state == APPROVED:
        row, attempt = _intend(row, epoch), len(row.attempts)
    row, attempt = _close(row, outcome, attempt)
    is_stale = guards.epoch and row.epoch != epoch
    if is_stale or (guards.state_condition and row.state not in UNDECIDED):
        return row._replace(evidence=row.evidence or outcome == SUCCEEDED)
    state = state_after(row.attempts, attempt, outcome)
    return row._replace(state=state, first_sent=NEVER if state == APPROVED else row.first_sent)


def _close(row: Operation, outcome: str, attempt: int) -> tuple[Operation, int]:
    """Write the outcome to the attempt, unless it was given up as lost meanwhile."""
    if attempt == NEVER or row.attempts[attempt] != OPEN:
        return row, attempt
    before, after = row.attempts[:attempt], row.attempts[attempt + 1 :]
    if outcome == NOT_SENT:
        return row._replace(attempts=before + after, since_news=0), NEVER
    return row._replace(attempts=(*before, outcome, *after), since_news=0), attempt


def state_after(attempts: tuple[str, ...], attempt: int, outcome: str) -> str:
    """`sending._move`: what this try showed, and what earlier ones may have done."""
    if outcome == SUCCEEDED:
        return SUCCEEDED
    earlier = any(
        other not in {REFUSED, TURNED_AWAY} for n, other in enumerate(attempts) if n != attempt
    )
    if outcome == UNKNOWN or earlier:
        return UNKNOWN
    return APPROVED if outcome == NOT_SENT else FAILED


def take_over(row: Operation, epoch: int, guards: Guards) -> tuple[Operation, bool]:
    """`reconcile._take_over`: a send left open by a lost worker is unknown from here on."""
    if row.state not in UNDECIDED or (guards.epoch and row.epoch > epoch):
        return row, False
    return _give_up_open_attempts(row)._replace(state=UNKNOWN, epoch=epoch), True


def _give_up_open_attempts(row: Operation) -> Operation:
    if OPEN not in row.attempts:
        return row
    attempts = tuple(UNKNOWN if outcome == OPEN else outcome for outcome in row.attempts)
    return row._replace(attempts=attempts, since_news=0)


def should_send_again(row: Operation, epoch: int, setting: Setting) -> tuple[Operation, bool]:
    """`reconcile._should_send_again`: nothing was found, or nothing can be looked up."""
    if not _is_held(row, epoch, setting.guards):
        return row, False
    if setting.provider.look_up and not is_credible(row, setting):
        return row, False
    last = row.attempts[-1]
    if last in {REFUSED, TURNED_AWAY}:
        is_definite = last == REFUSED and can_believe_refusal(setting)
        return row._replace(state=FAILED if is_definite else NEEDS_PERSON), False
    if not may_resend(row, setting):
        return row._replace(state=NEEDS_PERSON), False
    return row, True


def can_believe_refusal(setting: Setting) -> bool:
    """`reconcile._end_refused`: the earlier sends left no trace, and none of them can any more."""
    keeps = setting.provider.keeps_refusals or not setting.guards.kept_refusals
    return setting.provider.look_up and keeps


def is_credible(row: Operation, setting: Setting) -> bool:
    """`reconcile._is_credible`: a miss says something only once the provider's lag has passed."""
    return row.since_news >= setting.provider.known_lag or not setting.guards.wait_for_lag


def may_resend(row: Operation, setting: Setting) -> bool:
    """`reconcile._may_resend`: inside the key window, and not for ever."""
    if row.first_sent == NEVER:
        return False
    if setting.guards.send_cap and len(row.attempts) >= setting.max_sends:
        return False
    return can_resend(setting.provider.known_window, row.first_sent) or not setting.guards.window


def can_resend(window: int | None, age: int) -> bool:
    """`Capabilities.can_resend`: a tenth of the window is kept as a margin."""
    return window is not None and 0 <= age < window * 0.9


def begin_again(
    row: Operation, epoch: int, guards: Guards, *, forbidden: bool
) -> tuple[Operation, bool]:
    """`reconcile._begin_again`: decide again; what forbids it now is for a person to weigh."""
    if not _is_held(row, epoch, guards):
        return row, False
    if forbidden:
        return row._replace(state=NEEDS_PERSON), False
    return _intend(row, epoch), True


def wait_or_give_up(row: Operation, epoch: int, setting: Setting) -> Operation:
    """`reconcile._wait_or_give_up`: the provider could not be asked."""
    if _is_held(row, epoch, setting.guards) and row.first_sent >= setting.give_up_after:
        return row._replace(state=NEEDS_PERSON)
    return row


def leave_to_person(row: Operation, epoch: int, guards: Guards) -> Operation:
    """`reconcile._leave_to_person`: mail is never sent again."""
    return row._replace(state=NEEDS_PERSON) if _is_held(row, epoch, guards) else row


def hand_over(row: Operation, epoch: int, guards: Guards) -> Operation:
    """`reconcile.hand_over`: its step is given up, so a person takes what may have been sent."""
    if not guards.hand_over or (guards.epoch and row.epoch > epoch):
        return row
    if row.state == APPROVED:
        return row._replace(state=ENDED)
    if row.state in UNDECIDED:
        return _give_up_open_attempts(row)._replace(state=NEEDS_PERSON, epoch=epoch)
    return row


def _is_held(row: Operation, epoch: int, guards: Guards) -> bool:
    """The condition of every write of a reconciler: still unknown, still this claim's."""
    is_ours = not guards.epoch or row.epoch == epoch
    return is_ours and (row.state == UNKNOWN or not guards.state_condition)

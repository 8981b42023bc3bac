"""What must hold of every step, by the names of the reliability contract."""

from tests.exhaustive.checker import Invariants
from tests.exhaustive.life import TOLD
from tests.exhaustive.world import APPROVED, ENDED, FAILED, FINAL, SUCCEEDED, Setting, World


def at_most_one_effect(_: World, after: World) -> bool:
    """I-01"""
    return after.ledger.effects <= 1


def no_effect_before_its_intent(_: World, after: World) -> bool:
    """I-03: whatever happened at the provider, the row said `sending` before."""
    return after.ledger.effects == 0 or after.operation.state not in {APPROVED, ENDED}


def states_tell_the_truth(_: World, after: World) -> bool:
    """I-05, in every later state too: what appears after a `failed` breaks it then."""
    if after.operation.state == SUCCEEDED:
        return after.ledger.effects >= 1
    return after.operation.state not in {FAILED, ENDED} or after.ledger.effects == 0


def nobody_is_told_a_thing_that_is_not_so(_: World, after: World) -> bool:
    """I-06"""
    if after.task.told == TOLD[SUCCEEDED]:
        return after.ledger.effects >= 1
    return after.task.told not in {TOLD[FAILED], TOLD[ENDED]} or after.ledger.effects == 0


def final_states_are_final(before: World, after: World) -> bool:
    """I-11"""
    state = before.operation.state
    return state not in FINAL or after.operation.state == state


def invariants(setting: Setting) -> Invariants[World]:
    """All of them but I-07, which speaks of what follows and not of a step."""

    def sends_are_few_and_share_one_key(_: World, after: World) -> bool:
        """I-08"""
        sends = after.ledger.sends
        return sends <= setting.max_sends and (setting.guards.stable_key or sends <= 1)

    return {
        "I-01": at_most_one_effect,
        "I-03": no_effect_before_its_intent,
        "I-05": states_tell_the_truth,
        "I-06": nobody_is_told_a_thing_that_is_not_so,
        "I-08": sends_are_few_and_share_one_key,
        "I-11": final_states_are_final,
    }

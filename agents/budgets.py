"""A task's budget: reserved before a model call, settled after it, never refilled.

Tokens are tokens, costs are millionths of a US dollar. The CHECK constraints of the task hold
`spent + reserved <= cap` whatever this code does.
"""

from django.db.models import F

from agents.models import Step, Task


def reserve(step: Step, *, tokens: int, cost: int) -> bool:
    """Set the worst case of a model call aside, in the caller's transaction.

    False when the task's caps do not allow it; nothing has changed then.
    """
    allowed = Task.objects.filter(
        pk=step.task_id,
        max_tokens__gte=F("tokens_spent") + F("tokens_reserved") + tokens,
        max_cost__gte=F("cost_spent") + F("cost_reserved") + cost,
    ).update(tokens_reserved=F("tokens_reserved") + tokens, cost_reserved=F("cost_reserved") + cost)
    if not allowed:
        return False
    step.tokens_reserved = tokens
    step.cost_reserved = cost
    step.save(update_fields=["tokens_reserved", "cost_reserved"])
    return True


def settle(step: Step, *, tokens: int, cost: int) -> None:
    """Turn a step's reservation into what was really spent, never more than was reserved.

    Called in the transaction that records the step; the caller saves the step.
    """
    tokens = min(tokens, step.tokens_reserved)
    cost = min(cost, step.cost_reserved)
    Task.objects.filter(pk=step.task_id).update(
        tokens_spent=F("tokens_spent") + tokens,
        cost_spent=F("cost_spent") + cost,
        tokens_reserved=F("tokens_reserved") - step.tokens_reserved,
        cost_reserved=F("cost_reserved") - step.cost_reserved,
    )
    step.cost += cost
    step.tokens_reserved = 0
    step.cost_reserved = 0


def charge_unknown(step: Step) -> None:
    """A call whose charge nobody knows is charged at all that was reserved for it."""
    settle(step, tokens=step.tokens_reserved, cost=step.cost_reserved)

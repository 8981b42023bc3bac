"""Kill switches: stop every change, those of one shop, or those of one tool, at once."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from accounts.models import Shop
from audit import services as audit
from tools import registry
from tools.models import Switch

MAX_REASON = 500


class SwitchError(Exception):
    """The switch cannot be set like this; nothing was changed."""


def throw(*, shop: Shop | None, tool: str, reason: str, by: str, now: datetime) -> Switch:
    """Switch a tool off: for one shop, or without one for all; without a tool's name all tools.

    Holds from its commit on: no call is taken and no send starts; one already on its way is not
    interrupted. Raises SwitchError for a tool that does not exist and without a reason.
    """
    return _set(is_off=True, shop=shop, tool=tool, reason=reason, by=by, now=now)


def release(*, shop: Shop | None, tool: str, reason: str, by: str, now: datetime) -> Switch:
    """Take back exactly the switch that was thrown for this shop and tool.

    A wider or narrower one stays (`list_thrown`). Raises SwitchError, also when it is not thrown.
    """
    return _set(is_off=False, shop=shop, tool=tool, reason=reason, by=by, now=now)


def list_thrown() -> list[Switch]:
    """Every switch that is thrown now, the widest first."""
    thrown = Switch.objects.filter(is_off=True).select_related("shop")
    return sorted(thrown, key=lambda switch: (switch.shop_id or 0, switch.tool))


def in_words(switch: Switch) -> str:
    """What a switch is about, e.g. "refund_order in every shop"."""
    where = switch.shop.slug if switch.shop else "every shop"
    return f"{switch.tool or 'every tool'} in {where}"


@dataclass(frozen=True)
class ToolState:
    """One tool in one shop: does it work now, and if not, by which switch."""

    name: str
    switch: Switch | None


def states_of(shop: Shop) -> list[ToolState]:
    """Every tool, as it is for this shop now."""
    thrown = [each for each in list_thrown() if each.shop_id in {None, shop.pk}]
    return [
        ToolState(name, next((each for each in thrown if each.tool in {"", name}), None))
        for name in registry.TOOLS
    ]


@transaction.atomic
def _set(
    *, is_off: bool, shop: Shop | None, tool: str, reason: str, by: str, now: datetime
) -> Switch:
    reason = reason.strip()
    if tool and tool not in registry.TOOLS:
        raise SwitchError(f"There is no tool {tool}; there are {', '.join(registry.TOOLS)}")
    if not 0 < len(reason) <= MAX_REASON:
        raise SwitchError(f"A reason has 1 to {MAX_REASON} characters")
    changes = {"is_off": is_off, "reason": reason, "changed_by": by, "changed_at": now}
    known = Switch.objects.select_for_update().filter(shop=shop, tool=tool).first()
    if not is_off and (known is None or not known.is_off):
        raise SwitchError("This switch is not thrown")
    switch, _ = Switch.objects.update_or_create(shop=shop, tool=tool, defaults=changes)
    audit.record(
        actor=by,
        action=f"kill_switch.{'thrown' if is_off else 'released'}",
        subject=f"kill_switch:{shop.slug if shop else '*'}/{tool or '*'}",
        at=now,
        shop_id=shop.pk if shop else None,
        tool=tool,
        data={"reason": reason},
    )
    return switch

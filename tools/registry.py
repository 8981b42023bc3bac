"""The registry: every tool there is, its schema for the model, and whether it is switched on."""

from typing import Any

from django.db.models import Q

from tools.catalogue.address import CHANGE_ADDRESS
from tools.catalogue.base import EffectTool, Tool, schema
from tools.catalogue.cancel import CANCEL_ORDER
from tools.catalogue.close_ticket import CLOSE_TICKET
from tools.catalogue.hand_off import HAND_OFF
from tools.catalogue.orders import FIND_ORDERS, TRACK_PARCEL
from tools.catalogue.policy_search import SEARCH_POLICY
from tools.catalogue.refund import REFUND_ORDER
from tools.models import Kind, Switch

_ALL: tuple[Tool[Any], ...] = (
    FIND_ORDERS,
    TRACK_PARCEL,
    CHANGE_ADDRESS,
    CANCEL_ORDER,
    REFUND_ORDER,
    SEARCH_POLICY,
    CLOSE_TICKET,
    HAND_OFF,
)
TOOLS: dict[str, Tool[Any]] = {tool.name: tool for tool in _ALL}
EFFECTS: dict[str, EffectTool[Any, Any]] = {
    tool.kind: tool for tool in _ALL if isinstance(tool, EffectTool)
}

# The same bytes for every task and shop, so that a provider's prompt cache hits.
SCHEMAS: list[dict[str, Any]] = [schema(tool) for tool in _ALL]


def effect_tool(kind: Kind | str) -> EffectTool[Any, Any]:
    """The tool behind an operation's kind."""
    return EFFECTS[kind]


def is_off(*, tool: str, shop_id: int) -> bool:
    """Is the kill switch thrown: for everything, for this shop, or for this tool?

    Asked again in the transaction that starts a send, so a switch holds from its commit on.
    """
    scope = (Q(shop__isnull=True) | Q(shop_id=shop_id)) & (Q(tool="") | Q(tool=tool))
    return Switch.objects.filter(scope, is_off=True).exists()

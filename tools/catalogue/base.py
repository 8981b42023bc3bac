"""What a tool is: its schema for the model, its authority, and its rules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from accounts.models import Shop
from tools.clients.shapes import Order
from tools.clients.shop import ShopClient
from tools.models import Kind
from tools.policy import Ruling
from tools.seal import Intent
from tools.tickets import TicketFacts


class Arguments(BaseModel):
    """A tool's arguments: no extra fields, no coercion of one type into another."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


A = TypeVar("A", bound=Arguments)
F = TypeVar("F", Order, TicketFacts)


@dataclass(frozen=True)
class Tool(Generic[A]):
    """A tool's name, schema and authority.

    `permission` is the scope its token needs at the shop; `calls_per_minute` holds per customer.
    `bad` gives an argument its own error code for when it does not fit the schema.
    """

    name: str
    description: str
    arguments: type[A]
    permission: str
    calls_per_minute: int
    bad: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def has_side_effects(self) -> bool:
        return False


@dataclass(frozen=True)
class Reading:
    """What a read may use: the customer's own client."""

    client: ShopClient


@dataclass(frozen=True)
class ReadTool(Tool[A]):
    """A tool that looks at the shop and changes nothing. `read` returns the result for the model."""

    read: Callable[[A, Reading], dict[str, Any]]


@dataclass(frozen=True)
class DocumentTool(Tool[A]):
    """A tool that answers from what we keep ourselves; the shop is not asked."""

    read: Callable[[A, Shop, date], dict[str, Any]]


@dataclass(frozen=True)
class EffectTool(Tool[A], Generic[A, F]):
    """A tool that changes something.

    `decide` applies the rules to the facts of what it changes: it returns the intent or raises
    DeniedError. It is pure, so that the same decision is made again at sending.
    """

    kind: Kind
    decide: Callable[[A, F, Shop, datetime, Ruling], Intent]

    @property
    @override
    def has_side_effects(self) -> bool:
        return True


@dataclass(frozen=True)
class OrderTool(EffectTool[A, Order]):
    """A tool that changes one of the customer's orders at the shop."""

    order_id: Callable[[A], str]


@dataclass(frozen=True)
class TicketTool(EffectTool[A, TicketFacts]):
    """A tool that changes the ticket it is called in."""


@dataclass(frozen=True)
class HandOffTool(Tool[A]):
    """The model's way to say that a person should take over."""


def schema(tool: Tool[Any]) -> dict[str, Any]:
    """The tool as the OpenAI API wants it: strict, so every property is required and none is extra."""
    parameters = tool.arguments.model_json_schema()
    _make_strict(parameters)
    for definition in parameters.get("$defs", {}).values():
        _make_strict(definition)
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters,
            "strict": True,
        },
    }


def _make_strict(node: dict[str, Any]) -> None:
    node.pop("title", None)
    node.pop("description", None)
    if "properties" not in node:
        return
    node["additionalProperties"] = False
    node["required"] = list(node["properties"])
    for value in node["properties"].values():
        value.pop("default", None)
        value.pop("title", None)

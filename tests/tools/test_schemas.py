import json
from typing import Any

import pytest
from pydantic import ValidationError

from tools import registry
from tools.catalogue.base import schema

SCHEMAS = {schema["function"]["name"]: schema["function"] for schema in registry.SCHEMAS}
GOOD: dict[str, dict[str, Any]] = {
    "find_orders": {"order_id": "1042", "status": None},
    "track_parcel": {"order_id": "1042"},
    "change_address": {
        "order_id": "1042",
        "address": {
            "name": "Ada",
            "line1": "1 Road",
            "line2": None,
            "city": "Town",
            "region": None,
            "postal_code": "1",
            "country": "US",
        },
    },
    "cancel_order": {"order_id": "1042", "reason": "other"},
    "refund_order": {
        "order_id": "1042",
        "items": [{"item_id": "1042-1", "quantity": 1}],
        "amount": "40.00",
        "reason": "damaged",
    },
    "search_policy": {"question": "May I return a mug?"},
    "close_ticket": {"resolution": "The mug was refunded."},
    "hand_off": {"reason": "The customer asked for a person."},
}
AUTHORITY = [
    "customer_id",
    "customer",
    "shop",
    "role",
    "limit",
    "approved",
    "force",
    "as_user",
    "idempotency_key",
    "currency",
    "destination",
]


def objects_in(node):
    """Every object schema inside a schema, itself included."""
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for value in node.values():
            yield from objects_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from objects_in(value)


def test_every_tool_of_the_contract_is_offered_under_its_name():
    assert set(SCHEMAS) == set(GOOD)


@pytest.mark.parametrize("name", GOOD)
def test_a_schema_is_strict_at_every_level(name):
    assert SCHEMAS[name]["strict"] is True
    found = list(objects_in(SCHEMAS[name]["parameters"]))
    assert found
    for node in found:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


@pytest.mark.parametrize("name", GOOD)
def test_the_arguments_are_those_of_the_contract(name):
    assert set(SCHEMAS[name]["parameters"]["properties"]) == set(GOOD[name])


@pytest.mark.parametrize("name", GOOD)
def test_good_arguments_are_taken(name):
    assert registry.TOOLS[name].arguments.model_validate(GOOD[name])


@pytest.mark.parametrize("field", AUTHORITY)
@pytest.mark.parametrize("name", GOOD)
def test_authority_is_never_an_argument(name, field):
    with pytest.raises(ValidationError) as caught:
        registry.TOOLS[name].arguments.model_validate(GOOD[name] | {field: "x"})

    assert [error["type"] for error in caught.value.errors()] == ["extra_forbidden"]


def test_the_bytes_sent_to_a_model_are_the_same_each_time():
    again = [schema(tool) for tool in registry.TOOLS.values()]

    assert json.dumps(again) == json.dumps(registry.SCHEMAS)

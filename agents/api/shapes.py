"""What may come in. A field that is not named here is refused, never ignored."""

import re
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from accounts.validators import LOCALE
from agents.forms import FORM_TOOLS
from agents.services import MAX_MESSAGE

MAX_ID = 2**53


# Refuses unknown fields: a body that says more than it may is not half obeyed.
# (A docstring here would be told as that of every shape.)
class StrictSerializer(serializers.Serializer[Any]):
    @override
    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError(
                {name: ["There is no such field here."] for name in unknown[:20]}
            )
        return super().to_internal_value(data)


# Something that can be seen: not only blanks, as Unicode has them, and control characters.
VISIBLE = r"[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
SAID = rf"[^\u0000]*{VISIBLE}[^\u0000]*"
ANY_TEXT = r"[^\u0000]*"


class PatternField(serializers.CharField):
    """A JSON string, and nothing that could be made into one, all of which fits a pattern.

    Judged as it came, so that the OpenAPI document can say exactly what is taken; blanks around it
    go afterwards.
    """

    default_error_messages = {"form": "This does not have the right form."}

    def __init__(self, pattern: str, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)
        self.pattern = pattern

    @override
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if re.fullmatch(self.pattern, data) is None:
            self.fail("form")
        return super().to_internal_value(data)

    @override
    def run_validation(self, data: Any = serializers.empty) -> Any:
        value = super().run_validation(data)
        return value.strip() if isinstance(value, str) else value


class PatternFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = "agents.api.shapes.PatternField"

    @override
    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        field: PatternField = self.target
        schema: dict[str, Any] = {"type": "string", "pattern": f"^(?:{field.pattern})$"}
        if field.max_length is not None:
            schema["maxLength"] = field.max_length
        return schema


class WordField(serializers.ChoiceField):
    """One of some words, exactly."""

    @override
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", input="This value")
        return data


@extend_schema_field(
    {"oneOf": [{"type": "integer", "minimum": 1, "maximum": MAX_ID}, {"const": "new"}]}
)
class TicketField(serializers.Field[Any, Any, Any, Any]):
    """A ticket's id, or "new"."""

    default_error_messages = {"invalid": 'This is neither the id of a ticket nor "new".'}

    @override
    def to_internal_value(self, data: Any) -> int | str:
        if isinstance(data, float) and data.is_integer():
            data = int(data)  # 1.0 is an integer to JSON Schema
        is_id = isinstance(data, int) and not isinstance(data, bool) and 1 <= data <= MAX_ID
        if not is_id and data != "new":
            self.fail("invalid")
        return data  # type: ignore[no-any-return]

    @override
    def to_representation(self, value: Any) -> Any:
        return value


def _locale() -> PatternField:
    about = "A language tag like `de-AT`: in this language code answers in the conversation."
    return PatternField(LOCALE, max_length=20, required=False, default="", help_text=about)


class MessageIn(StrictSerializer):
    message = PatternField(SAID, max_length=MAX_MESSAGE, help_text="What the customer says.")


class TaskIn(MessageIn):
    ticket = TicketField(
        required=False,
        help_text="The conversation it belongs to; without it the customer's open one.",
    )
    locale = _locale()


class RunIn(StrictSerializer):
    goal = PatternField(
        SAID, max_length=MAX_MESSAGE, help_text="What is to be done, in plain words."
    )
    agent = WordField(choices=["support"], default="support")
    ticket = TicketField(required=False)
    locale = _locale()


class ObjectField(serializers.DictField):
    """A JSON object, as it is."""


class FormIn(StrictSerializer):
    tool = WordField(choices=list(FORM_TOOLS))
    arguments = ObjectField(help_text="The arguments of the tool, as the customer filled them in.")
    ticket = TicketField(
        required=False,
        help_text="The conversation it belongs to. It opens its own where another task is under way.",
    )
    locale = _locale()


class DecisionIn(StrictSerializer):
    decision = WordField(choices=["yes", "no"])
    digest = PatternField("[0-9a-f]{64}", help_text="The digest of the action as it was shown.")
    reason = PatternField(ANY_TEXT, max_length=500, required=False, default="", allow_blank=True)
    decision_id = PatternField(
        "[!-~]{0,80}",
        required=False,
        default="",
        allow_blank=True,
        help_text="The client's own id of this decision, for sending it again.",
    )
    code = PatternField(
        "[0-9 ]{0,10}",
        required=False,
        default="",
        allow_blank=True,
        help_text="Of staff who sign in with an authenticator app: a fresh code, for a yes about money.",
    )


class RunDecisionIn(DecisionIn):
    decision = WordField(choices=["approve", "reject"])


class NothingIn(StrictSerializer):
    """No field at all."""

"""What may come in. A field that is not named here is refused, never ignored."""

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

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


class TextField(serializers.CharField):
    """A JSON string and nothing that could be made into one."""

    @override
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class PatternField(TextField):
    """A JSON string that fits a pattern, blanks around it included."""

    def __init__(self, pattern: str, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)
        self.validators.append(RegexValidator(pattern, "This does not have the right form."))


class WordField(serializers.ChoiceField):
    """One of some words, exactly."""

    @override
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", input="This value")
        return data


@extend_schema_field({"oneOf": [{"type": "integer", "minimum": 1}, {"const": "new"}]})
class TicketField(serializers.Field[Any, Any, Any, Any]):
    """A ticket's id, or "new"."""

    default_error_messages = {"invalid": 'This is neither the id of a ticket nor "new".'}

    @override
    def to_internal_value(self, data: Any) -> int | str:
        is_id = isinstance(data, int) and not isinstance(data, bool) and 1 <= data <= MAX_ID
        if not is_id and data != "new":
            self.fail("invalid")
        return data  # type: ignore[no-any-return]

    @override
    def to_representation(self, value: Any) -> Any:
        return value


class MessageIn(StrictSerializer):
    message = TextField(max_length=MAX_MESSAGE, help_text="What the customer says.")


class TaskIn(MessageIn):
    ticket = TicketField(
        required=False,
        help_text="The conversation it belongs to; without it the customer's open one.",
    )


class RunIn(StrictSerializer):
    goal = TextField(max_length=MAX_MESSAGE, help_text="What is to be done, in plain words.")
    agent = WordField(choices=["support"], default="support")
    ticket = TicketField(required=False)


class DecisionIn(StrictSerializer):
    decision = WordField(choices=["yes", "no"])
    digest = PatternField(
        r"\A[0-9a-f]{64}\Z", help_text="The digest of the action as it was shown."
    )
    reason = TextField(max_length=500, required=False, default="", allow_blank=True)
    decision_id = PatternField(
        r"\A[!-~]{1,80}\Z",
        required=False,
        default="",
        help_text="The client's own id of this decision, for sending it again.",
    )


class RunDecisionIn(DecisionIn):
    decision = WordField(choices=["approve", "reject"])


class NothingIn(StrictSerializer):
    """No field at all."""

"""What comes out, described for the OpenAPI document. The answers themselves are made elsewhere."""

from typing import Any

from drf_spectacular.drainage import set_override
from pydantic import BaseModel
from rest_framework import serializers
from typing_extensions import override

from agents.models import Author, Outcome, Speaker, StepKind, StepStatus, TaskStatus, TicketStatus
from approvals.models import ApprovalStatus
from tools import evidence
from tools.models import Kind, State

ROLES = ["customer", "staff", "second_staff"]


# A docstring here would be told as that of every document.
class Document(serializers.Serializer[Any]):
    @classmethod
    @override
    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Their names in the OpenAPI document go without this word.
        set_override(cls, "component_name", cls.__name__.removesuffix("Document"))


def word(choices: list[str], **options: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=choices, **options)


def text(about: str = "", **options: Any) -> serializers.CharField:
    return serializers.CharField(help_text=about, **options)


def whole(about: str = "", **options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(help_text=about, **options)


def moment(**options: Any) -> serializers.DateTimeField:
    return serializers.DateTimeField(**options)


class StepDocument(Document):
    n = whole("Its number in the task, from 1, without a gap.")
    kind = word(StepKind.values)
    tool = text("Which tool a tool step calls.", allow_blank=True)
    status = word(StepStatus.values)
    verdict = text("What the gateway found, in short.", allow_blank=True)
    outcome = text("In one word: ok, an error, or the state of its operation.", allow_blank=True)
    order_id = text(allow_blank=True)
    attempts = whole()
    started_at = moment(allow_null=True)
    finished_at = moment(allow_null=True)


class OperationDocument(Document):
    kind = word(Kind.values)
    order_id = text()
    state = word(State.values)
    amount = whole("In minor units of the currency.", allow_null=True)
    currency = text("ISO 4217; empty where no money moves.", allow_blank=True)
    idempotency_key = text("With which the shop is told, once.")
    reference = text("The shop's own, once it has happened.", allow_blank=True)
    pending = serializers.BooleanField(
        help_text="It has happened, and the shop has not said yet that the money was paid out."
    )
    required_roles = serializers.ListField(child=word(ROLES))
    granted_roles = serializers.ListField(child=word(ROLES))


class ActionDocument(Document):
    """A sealed action that waits for somebody's yes, exactly as it would be sent."""

    step = whole("The step to answer under …/approvals/{step}.")
    approval = serializers.UUIDField()
    role = word(
        ROLES,
        help_text="Who is asked. second_staff: a member of staff other than the first who said yes.",
    )
    status = word(ApprovalStatus.values)
    digest = text("SHA-256 of the sealed bytes: send it back with the decision.")
    kind = word(Kind.values)
    order_id = text()
    title = text()
    lines = serializers.ListField(child=serializers.CharField())
    amount = whole("In minor units of the currency.", allow_null=True)
    currency = text(allow_blank=True)
    amount_text = text(allow_blank=True)
    reason = text(allow_blank=True)
    expires_at = moment()
    also_staff = serializers.BooleanField(help_text="A member of staff is asked after this yes.")
    state = word(State.values)

    @override
    def get_fields(self) -> dict[str, Any]:
        """`from` is a word of Python, so these two cannot be attributes."""
        addresses = {
            name: serializers.ListField(child=serializers.CharField()) for name in ("from", "to")
        }
        return {**super().get_fields(), **addresses}


class TaskBrief(Document):
    id = whole()
    ticket = whole("The conversation it belongs to.")
    agent = text()
    status = word(TaskStatus.values)
    outcome = word(["", *Outcome.values], help_text="What a succeeded task came to.")
    reason = text("Why it was handed off, failed or cancelled.", allow_blank=True)
    created_at = moment()
    finished_at = moment(allow_null=True)


class TaskDocument(TaskBrief):
    reply = text("The last thing the agent said in it.", allow_blank=True)
    model_calls = whole()
    tokens = whole()
    cost = whole("In millionths of a US dollar.")
    steps = StepDocument(many=True)
    action = ActionDocument(allow_null=True, help_text="What waits for somebody's yes.")
    operations = OperationDocument(many=True)


class RunDocument(TaskDocument):
    goal = text("What was asked.")


class Page(Document):
    next_cursor = text("Where the next page begins; null on the last.", allow_null=True)


class TaskPage(Page):
    tasks = TaskBrief(many=True)


class RunPage(Page):
    runs = TaskBrief(many=True)


class TicketDocument(Document):
    id = whole()
    subject = text()
    status = word(TicketStatus.values)
    speaker = word(Speaker.values, help_text="Who answers the customer.")
    version = whole()
    last_seq = whole("The number of its newest message.")
    opened_at = moment()
    updated_at = moment()
    closed_at = moment(allow_null=True)


class TicketPage(Page):
    tickets = TicketDocument(many=True)


class MessageDocument(Document):
    seq = whole("Its number in the conversation.")
    author = word(Author.values)
    author_name = text(allow_blank=True)
    text = serializers.CharField()
    task = whole("The task it belongs to.", allow_null=True)
    at = moment()


class TicketWithMessages(TicketDocument):
    messages = MessageDocument(many=True)
    has_more = serializers.BooleanField(help_text="Ask again after the last of these messages.")


class DecisionDocument(Document):
    task = whole()
    step = whole()
    approval = serializers.UUIDField()
    role = word(ROLES)
    decision = word(["yes", "no"])
    status = word(ApprovalStatus.values)
    digest = text()
    decided_at = moment(allow_null=True)
    operation = OperationDocument()


class RunDecisionDocument(DecisionDocument):
    decision = word(["approve", "reject"])


class ProblemDetail(Document):
    pointer = text("Where in the body (RFC 6901).", required=False)
    parameter = text("Which parameter of the query.", required=False)
    detail = text()


class ProblemDocument(Document):
    """RFC 9457. `type` says which problem it is; /docs/problems/ lists them all."""

    type = serializers.URLField()
    title = text()
    status = whole()
    detail = text()
    instance = text("The path that was asked.")
    errors = ProblemDetail(many=True)  # type: ignore[assignment]
    request_id = text()
    task = whole("too-many-open-tasks: the newest open one.", required=False)
    action = ActionDocument(
        required=False, allow_null=True, help_text="superseded: what waits for a yes now."
    )
    expires_at = moment(required=False)
    decision = word(ApprovalStatus.values, required=False)
    decided_at = moment(required=False, allow_null=True)
    decided_by = text("decided-otherwise, to staff: by whom.", required=False)
    reason = text(required=False, allow_blank=True)


def shop_event() -> dict[str, Any]:
    """What a shop may send, from the very shapes that it is read with."""
    moment = {"description": "When it happened (RFC 3339). Not used."}
    known: dict[type[BaseModel], tuple[str, ...]] = {
        evidence.RefundTold: evidence.REFUND_TOLD,
        evidence.OrderTold: (evidence.ORDER_CHANGED,),
    }
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string"}, "timestamp": moment},
        "anyOf": [
            *(
                {
                    "required": ["data"],
                    "properties": {"type": {"enum": list(kinds)}, "data": _inlined(shape)},
                }
                for shape, kinds in known.items()
            ),
            {
                "description": "Any other kind is taken note of and left alone.",
                "properties": {"type": {"not": {"enum": list(evidence.KINDS)}}},
            },
        ],
    }


def _inlined(shape: type[BaseModel]) -> dict[str, Any]:
    """A pydantic model's schema without references of its own."""
    schema = shape.model_json_schema()
    named = {f"#/$defs/{name}": found for name, found in schema.pop("$defs", {}).items()}

    def resolve(part: Any) -> Any:
        if isinstance(part, list):
            return [resolve(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return resolve(named[part["$ref"]])
        return {name: resolve(value) for name, value in part.items()}

    found: dict[str, Any] = resolve(schema)
    return found


class EventTakenDocument(Document):
    taken = word(["accepted", "repeated", "unmatched", "ignored"])

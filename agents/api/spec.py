"""The OpenAPI description of each view: its request, its answers and every error."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)
from rest_framework import serializers

from accounts.validators import KEY_ID
from agents.api import documents, idempotency, paging, problems, shapes, stream
from agents.api.problems import MEDIA_TYPE, ProblemType

V = TypeVar("V", bound=Callable[..., Any])
Shape = type[serializers.Serializer[Any]]

SSE = "text/event-stream"
# The last message that a conversation can have.
MAX_SEQ = 10**9 - 1
# What the server itself may answer, whatever is asked.
ANY = (problems.BAD_REQUEST, problems.TOO_SLOW, problems.TOO_LARGE)
READ = (
    *ANY,
    problems.UNAUTHENTICATED,
    problems.FORBIDDEN,
    problems.INVALID,
    problems.TOO_MANY_REQUESTS,
    problems.INTERNAL,
    problems.UNAVAILABLE,
)
WRITE = (
    *READ,
    problems.MALFORMED_JSON,
    problems.UNSUPPORTED_MEDIA,
)
SUBMIT = (
    *WRITE,
    problems.KEY_MISSING,
    problems.KEY_MALFORMED,
    problems.KEY_REUSED,
    problems.IN_FLIGHT,
    problems.NOT_FOUND,
    problems.TICKET_CLOSED,
    problems.TOO_MANY_OPEN,
    problems.DELEGATION_REVOKED,
    problems.SHOP_UNAVAILABLE,
    problems.BAD_EVENT_ID,
    problems.TOO_MANY_STREAMS,
)
DECIDE = (
    *WRITE,
    problems.CROSS_SITE,
    problems.WRONG_ROLE,
    problems.NOT_FOUND,
    problems.SUPERSEDED,
    problems.DECIDED_OTHERWISE,
    problems.EXPIRED,
    problems.CODE_NEEDED,
    problems.REASON_NEEDED,
    problems.TOO_FAST,
)


@dataclass(frozen=True)
class Noun:
    """One of the two names of the resource."""

    one: str
    many: str
    events: str
    document: Shape
    page: Shape
    shape: Shape
    decision: Shape
    decided: Shape


TASK = Noun(
    one="task",
    many="tasks",
    events=(
        "step.started, approval.needed, operation.checking, step.finished, task.done, and "
        "reply.delta, without an id: the checked beginning of a reply that is being written"
    ),
    document=documents.TaskDocument,
    page=documents.TaskPage,
    shape=shapes.TaskIn,
    decision=shapes.DecisionIn,
    decided=documents.DecisionDocument,
)
RUN = Noun(
    one="run",
    many="runs",
    events=(
        "step.started, approval.needed, operation.checking, tool.called (a tool step has ended), "
        "step.finished (any other has), done, and reply.delta, without an id: the checked beginning "
        "of a reply that is being written"
    ),
    document=documents.RunDocument,
    page=documents.RunPage,
    shape=shapes.RunIn,
    decision=shapes.RunDecisionIn,
    decided=documents.RunDecisionDocument,
)

CUSTOMERS_ONLY: Any = [{"customerToken": []}]


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^(?:{pattern})$"}


def _number(minimum: int, maximum: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum, "maximum": maximum}


EVENT_ID = _text(f"({stream.EVENT_ID})?")
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID", EVENT_ID, OpenApiParameter.HEADER, description="Go on after this event."
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    _text(idempotency.KEY_PATTERN),
    OpenApiParameter.HEADER,
    required=True,
    description=(
        "A quoted string of 1 to 255 printable ASCII characters, new for every new request. "
        "The same key with the same request gives the first answer again, for 24 hours."
    ),
)
SIGNATURE = [
    OpenApiParameter(name, shape, OpenApiParameter.HEADER, required=True, description=about)
    for name, shape, about in (
        (
            "webhook-id",
            {"type": "string", "pattern": KEY_ID},
            "The event's id: the same each time that it is sent.",
        ),
        ("webhook-timestamp", _text("[0-9]{1,12}"), "When this was sent, in seconds since 1970."),
        ("webhook-signature", {"type": "string"}, "One or more signatures, with a blank between."),
    )
]
# As OpenAPI 3.2 reads it: each event of the stream, by its fields.
EVENT = {
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": _text(stream.EVENT_ID),
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
PAGING = [
    OpenApiParameter("limit", {**_number(1, paging.MAX_LIMIT), "default": paging.DEFAULT_LIMIT}),
    OpenApiParameter(
        "cursor", _text(paging.CURSOR_PATTERN), description="`next_cursor` of the page before."
    ),
]
CSRF = OpenApiParameter(
    "X-CSRFToken", str, OpenApiParameter.HEADER, description="In a session of the console."
)


def list_and_submit(noun: Noun) -> Callable[[V], V]:
    by_ticket = OpenApiParameter(
        "ticket", _number(1, paging.MAX_ID), description="Only those of this conversation."
    )
    return extend_schema_view(
        get=extend_schema(
            operation_id=f"list_{noun.many}",
            summary=f"List your {noun.many}, newest first",
            tags=[noun.many],
            parameters=[*PAGING, by_ticket],
            responses=_answers({200: noun.page}, (*READ, problems.BAD_PAGE, problems.NOT_FOUND)),
        ),
        post=_submit(
            noun, f"start_{noun.one}", f"Start a {noun.one}, or join the one under way", noun.shape
        ),
    )


def submit_form() -> Callable[[V], V]:
    summary = "Fill in a form: a change or a look-up that needs no model"
    return extend_schema_view(post=_submit(TASK, "submit_form", summary, shapes.FormIn))


def say(noun: Noun) -> Callable[[V], V]:
    summary = f"Say more in the conversation of a {noun.one}"
    return extend_schema_view(
        post=_submit(noun, f"say_in_{noun.one}", summary, shapes.MessageIn, [_task_id(noun)])
    )


def look(noun: Noun) -> Callable[[V], V]:
    return extend_schema_view(
        get=extend_schema(
            operation_id=f"get_{noun.one}",
            summary=f"Look at a {noun.one}: its steps, and any action waiting for a yes",
            tags=[noun.many],
            parameters=[_task_id(noun)],
            responses=_answers({200: noun.document}, (*READ, problems.NOT_FOUND)),
        )
    )


def follow(noun: Noun) -> Callable[[V], V]:
    after = OpenApiParameter(
        "after", EVENT_ID, description="As Last-Event-ID, for clients without it."
    )
    told = OpenApiResponse(EVENT, description=_about_events(noun))
    gone = OpenApiResponse(description=f"The {noun.one} is done and nothing is left to tell.")
    kinds = (*READ, problems.NOT_FOUND, problems.BAD_EVENT_ID, problems.TOO_MANY_STREAMS)
    return extend_schema_view(
        get=extend_schema(
            operation_id=f"follow_{noun.one}",
            summary=f"Follow a {noun.one} as it happens",
            tags=[noun.many],
            parameters=[_task_id(noun), LAST_EVENT_ID, after],
            responses={(200, SSE): told, 204: gone} | _errors(kinds),
        )
    )


def cancel(noun: Noun) -> Callable[[V], V]:
    return extend_schema_view(
        post=extend_schema(
            operation_id=f"cancel_{noun.one}",
            summary=f"Stop a {noun.one}; what is already being sent is not called back",
            tags=[noun.many],
            parameters=[_task_id(noun)],
            request=None,
            auth=CUSTOMERS_ONLY,
            responses=_answers({200: noun.document}, (*WRITE, problems.NOT_FOUND)),
        )
    )


def decide(noun: Noun) -> Callable[[V], V]:
    return extend_schema_view(
        post=extend_schema(
            operation_id=f"decide_in_{noun.one}",
            summary="Answer the question put to you about the sealed action of one step",
            tags=[noun.many],
            parameters=[
                _task_id(noun),
                _path_number("step", "The action's step.", 10**9 - 1),
                CSRF,
            ],
            request=noun.decision,
            responses=_answers({200: noun.decided}, DECIDE),
        )
    )


def list_tickets() -> Callable[[V], V]:
    return extend_schema_view(
        get=extend_schema(
            operation_id="list_tickets",
            summary="List your conversations, newest first",
            tags=["tickets"],
            auth=CUSTOMERS_ONLY,
            parameters=PAGING,
            responses=_answers({200: documents.TicketPage}, (*READ, problems.BAD_PAGE)),
        )
    )


def look_at_ticket() -> Callable[[V], V]:
    after = OpenApiParameter(
        "after", _number(0, MAX_SEQ), description="Only messages after this number."
    )
    kinds = (*READ, problems.NOT_FOUND, problems.BAD_PAGE)
    return extend_schema_view(
        get=extend_schema(
            operation_id="get_ticket",
            summary="Read a conversation",
            tags=["tickets"],
            auth=CUSTOMERS_ONLY,
            parameters=[_path_number("ticket_id", "The conversation."), after],
            responses=_answers({200: documents.TicketWithMessages}, kinds),
        )
    )


def take_event() -> Callable[[V], V]:
    about = (
        "Standard Webhooks: `webhook-signature` is `v1,` and the base64 of the HMAC-SHA256, under a "
        "secret of the shop, of `{webhook-id}.{webhook-timestamp}.{body}`. Send an event again "
        "under the same id until it is answered with 200: it is taken once. Kinds that mean "
        "something here: refund.succeeded, refund.failed, refund.reversed, order.changed."
    )
    kinds = (
        *ANY,
        problems.NOT_SIGNED,
        problems.NOT_FOUND,
        problems.MALFORMED_JSON,
        problems.UNSUPPORTED_MEDIA,
        problems.INVALID,
        problems.INTERNAL,
        problems.UNAVAILABLE,
    )
    slug = OpenApiParameter(
        "shop", _text("[A-Za-z0-9_-]+"), OpenApiParameter.PATH, description="The shop's slug."
    )
    return extend_schema_view(
        post=extend_schema(
            operation_id="take_event",
            summary="Tell us that something has happened at your shop",
            description=about,
            tags=["webhooks"],
            parameters=[slug, *SIGNATURE],
            request={"application/json": documents.shop_event()},
            responses=_answers({200: documents.EventTakenDocument}, kinds),
        )
    )


def _submit(
    noun: Noun,
    operation_id: str,
    summary: str,
    shape: Shape,
    parameters: list[OpenApiParameter] | None = None,
) -> Any:
    bodies: dict[int, Shape] = {
        200: noun.document,
        201: noun.document,
        202: documents.TicketDocument,
    }
    streams = {(status, SSE): EVENT for status in (200, 201)}
    told = {
        200: f"The message joined the {noun.one} under way.",
        201: f"A new {noun.one}.",
        202: f"A member of staff answers in this conversation: no {noun.one} was started.",
    }
    about = f"With `Accept: {SSE}`, 200 and 201 bring the {noun.one}'s events instead. "
    return extend_schema(
        operation_id=operation_id,
        summary=summary,
        description=about + _about_events(noun),
        tags=[noun.many],
        parameters=[
            *(parameters or []),
            IDEMPOTENCY_KEY,
            LAST_EVENT_ID,
            _response_header("Location", "Where it is from now on.", [200, 201]),
            _response_header("Idempotency-Replayed", "`true` on an answer given again.", [*bodies]),
        ],
        request=shape,
        auth=CUSTOMERS_ONLY,
        responses=_answers(bodies, SUBMIT, told) | streams,
    )


def _about_events(noun: Noun) -> str:
    return (
        f"Server-sent events: {noun.events}. Ids grow; after a break, go on with Last-Event-ID "
        f"and nothing is lost or told twice. Ends when the {noun.one} is done."
    )


def _answers(
    bodies: dict[int, Shape], kinds: tuple[ProblemType, ...], told: dict[int, str] | None = None
) -> dict[Any, Any]:
    good = {
        (status, "application/json"): OpenApiResponse(
            body, description=(told or {}).get(status, "As asked.")
        )
        for status, body in bodies.items()
    }
    return good | _errors(kinds)


def _errors(kinds: tuple[ProblemType, ...]) -> dict[Any, Any]:
    """One answer for each status, saying which problems come under it."""
    by_status: dict[int, list[str]] = {}
    for kind in kinds:
        by_status.setdefault(kind.status, []).append(f"`{kind.code}`: {kind.title}")
    return {
        (status, MEDIA_TYPE): OpenApiResponse(
            documents.ProblemDocument, description=" ".join(about)
        )
        for status, about in sorted(by_status.items())
    }


def _task_id(noun: Noun) -> OpenApiParameter:
    return _path_number("task_id", f"The {noun.one}.")


def _path_number(name: str, about: str, maximum: int = paging.MAX_ID) -> OpenApiParameter:
    shape = _number(1, maximum)
    return OpenApiParameter(name, shape, OpenApiParameter.PATH, description=about)


def _response_header(name: str, about: str, statuses: list[int]) -> OpenApiParameter:
    return OpenApiParameter(
        name, str, OpenApiParameter.HEADER, description=about, response=statuses
    )


def close_requests(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Hook of drf-spectacular: a request body may hold what is named, and nothing else."""
    for name, schema in result["components"]["schemas"].items():
        for described in schema["properties"].values():
            described.pop("x-spec-enum-id", None)
            described.get("items", {}).pop("x-spec-enum-id", None)
        if issubclass(getattr(shapes, name, object), shapes.StrictSerializer):
            schema["additionalProperties"] = False
    return result

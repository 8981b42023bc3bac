"""What a chat client may say: the shape of each frame, and nothing of its meaning."""

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from accounts.validators import LOCALE
from agents.services import MAX_MESSAGE
from tools.strictjson import StrictJSONError, parse_object

MAX_FRAME = 64 * 1024  # bytes
MAX_TOKEN = 8192  # characters

Id = Annotated[int, Field(ge=1)]
CLIENT_ID = r"^[A-Za-z0-9_.:-]{1,80}$"
ClientId = Annotated[str, Field(pattern=CLIENT_ID)]
Language = Annotated[str, Field(pattern=LOCALE, max_length=20)]


class FrameError(ValueError):
    """The text is no frame that we know; nothing came of it.

    `asked` and `ref` are of the request that it was meant to be, as far as it says so.
    """

    def __init__(self, message: str, asked: str = "", ref: str = "") -> None:
        super().__init__(message)
        self.asked = asked
        self.ref = ref


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class After(Shape):
    """What a client has seen of a ticket: its last message, and a step event `task:step.phase`."""

    message: int = Field(default=0, ge=0)
    event: str = Field(default="", max_length=80)


class Hello(Shape):
    """The first frame. `key` is the widget's; the shop that it names must be the token's.

    Without a `ticket` the newest open conversation is followed; with "new" none is, as yet. Code
    speaks to this client in `locale`, without one in the customer's own.
    """

    type: Literal["hello"]
    token: str = Field(max_length=MAX_TOKEN)
    key: str | None = Field(default=None, max_length=60)
    ticket: Id | Literal["new"] | None = None
    after: After = After()
    locale: Language | None = None


class Token(Shape):
    type: Literal["token"]
    token: str = Field(max_length=MAX_TOKEN)


class Say(Shape):
    """A message. Without `ticket` it goes to the conversation that is open."""

    type: Literal["say"]
    text: str = Field(min_length=1, max_length=MAX_MESSAGE, pattern=r"\S")
    client_message_id: ClientId
    ticket: Id | Literal["new"] | None = None


class Form(Shape):
    """A form as it was filled in: the call of one tool, to be done without a model."""

    type: Literal["form"]
    tool: str = Field(max_length=64)
    arguments: dict[str, Any]
    client_message_id: ClientId
    ticket: Id | Literal["new"] | None = None


class Decide(Shape):
    """A yes or no to exactly the action with this digest."""

    type: Literal["decide"]
    task: Id
    step: Id
    digest: str = Field(max_length=64)
    decision: Literal["yes", "no"]
    decision_id: ClientId


class Cancel(Shape):
    type: Literal["cancel"]
    task: Id


class Person(Shape):
    type: Literal["person"]


class Open(Shape):
    """Follow another conversation of one's own, or none yet."""

    type: Literal["open"]
    ticket: Id | Literal["new"]


class Earlier(Shape):
    """Messages of the followed conversation from before the first one known."""

    type: Literal["earlier"]
    before: Id


class Tickets(Shape):
    """One's own conversations, newest first."""

    type: Literal["tickets"]


class Orders(Shape):
    """One's own orders at the shop, to choose from."""

    type: Literal["orders"]


class Ping(Shape):
    type: Literal["ping"]


Request = Say | Form | Decide | Cancel | Person | Open | Earlier | Tickets | Orders


class Exchange(Shape):
    """A hello and at most one request, where no socket can be had."""

    key: str | None = Field(default=None, max_length=60)
    ticket: Id | Literal["new"] | None = None
    after: After = After()
    locale: Language | None = None
    frame: Annotated[Request, Field(discriminator="type")] | None = None


Frame = Hello | Token | Request | Ping
_FRAME: TypeAdapter[Frame] = TypeAdapter(Annotated[Frame, Field(discriminator="type")])
_EXCHANGE: TypeAdapter[Exchange] = TypeAdapter(Exchange)
S = TypeVar("S")
_REFS = {"say": "client_message_id", "form": "client_message_id", "decide": "decision_id"}


def parse(text: str) -> Frame:
    """The frame that the text is. Raises FrameError, which quotes nothing of it."""
    return _read(_FRAME, text)


def parse_exchange(text: str) -> Exchange:
    """The body of a request over HTTP. Raises FrameError."""
    return _read(_EXCHANGE, text)


def _read(shape: TypeAdapter[S], text: str) -> S:
    try:
        found = parse_object(text, max_bytes=MAX_FRAME)
    except StrictJSONError as exc:
        raise FrameError(f"The frame is {exc}.") from exc
    try:
        return shape.validate_python(found)
    except ValidationError as exc:
        raise FrameError(_first_fault(exc), *_meant(found)) from exc


def _meant(found: dict[str, Any]) -> tuple[str, str]:
    """The type and the reference of a frame, alone or in an exchange, that has a shape of its own."""
    inner = found.get("frame", found)
    asked = inner.get("type") if isinstance(inner, dict) else None
    if not isinstance(asked, str) or asked not in _REFS:
        return "", ""
    ref = inner.get(_REFS[asked])
    return asked, ref if isinstance(ref, str) and re.fullmatch(CLIENT_ID, ref) else ""


def ref_of(frame: Frame) -> str:
    """What an answer refers to, so that a client can tell its requests apart."""
    if isinstance(frame, Say | Form):
        return frame.client_message_id
    return frame.decision_id if isinstance(frame, Decide) else ""


def _first_fault(exc: ValidationError) -> str:
    fault = exc.errors(include_url=False, include_context=False, include_input=False)[0]
    # Names of our own fields only: an unknown one is the client's text.
    where = [part for part in fault["loc"] if isinstance(part, str)]
    if fault["type"] in {"extra_forbidden", "union_tag_invalid", "union_tag_not_found"}:
        return "The frame has a type or a field that is not known here."
    return f"{'.'.join(where)}: {fault['msg']}."

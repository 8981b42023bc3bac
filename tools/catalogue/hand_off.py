"""hand_off: the model's way to call a person."""

from pydantic import Field

from tools.catalogue.base import Arguments, HandOffTool


class HandOff(Arguments):
    reason: str = Field(min_length=1, max_length=300)


HAND_OFF = HandOffTool(
    name="hand_off",
    description="Hand the conversation to a member of staff, with the reason in one sentence.",
    arguments=HandOff,
    permission="",
    calls_per_minute=10,
)

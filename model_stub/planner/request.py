"""A request of the customer as the conversation so far has shaped it."""

from dataclasses import dataclass, field

from model_stub.planner import slots
from model_stub.planner.addresses import Address


@dataclass
class Request:
    """One thing to do. `texts` are the customer's words about it, oldest first.

    `since` is the place in the transcript where it took its present form: only what was called
    after it counts as done for it. `withdrawn` means that the customer took it back, `replaced`
    that a correction took its place. `with_refund` asks to cancel or refund, whichever is possible.
    `is_complaint` marks a refund that was offered after a complaint.
    """

    kind: str
    order_id: str | None = None
    texts: list[str] = field(default_factory=list)
    address: Address = field(default_factory=dict)
    since: int = 0
    withdrawn: bool = False
    replaced: bool = False
    with_refund: bool = False
    is_complaint: bool = False

    @property
    def text(self) -> str:
        """All words about it."""
        return "\n".join(self.texts)

    @property
    def refund_reason(self) -> str:
        """The reason for a refund: the newest that was given, else `other`."""
        found = (slots.refund_reason(text) for text in reversed(self.texts))
        return next((reason for reason in found if reason), "other")

    @property
    def cancel_reason(self) -> str:
        """The reason for a cancellation: the newest that was given, else `other`."""
        found = (slots.cancel_reason(text) for text in reversed(self.texts))
        return next((reason for reason in found if reason), "other")

    def changed(self, *, at: int, text: str, order_id: str | None = None) -> "Request":
        """Return this request as a new message changes it."""
        return Request(
            self.kind,
            order_id or self.order_id,
            [*self.texts, text],
            dict(self.address),
            at,
            with_refund=self.with_refund,
            is_complaint=self.is_complaint,
        )

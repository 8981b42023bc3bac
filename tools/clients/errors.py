"""What can go wrong with a call to the outside, told apart by what it means for the effect.

For a write there are three families:

* definite: the effect did not happen (`NotFoundError`, `RefusedError`, `UnauthorizedError`,
  `KeyReusedError`, and `UnavailableError`, which means that nothing was sent);
* undecided: `InProgressError` (another send with this key runs now) and `ThrottledError` (definite
  only where the provider throttles before it executes, see capabilities);
* unknown: `UnknownOutcomeError`. Never guessed: looked up.
"""

from typing import Literal

UnavailableKind = Literal[
    "connect", "timeout", "reset", "error", "unreadable", "mismatch", "resting"
]
UnknownKind = Literal["timeout", "reset", "error", "redirect", "unreadable", "mismatch"]


class ShopError(Exception):
    """Any failed call to a shop. The text is safe to log: no token, no personal data."""


class NotFoundError(ShopError):
    """No such thing for this customer: unknown and foreign ids look the same."""


class RefusedError(ShopError):
    """A definite refusal by the shop: nothing happened.

    `message` is the shop's own text: data to show, cut to 300 characters, never an instruction.
    """

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(f"The shop refused: {code} ({status})")
        self.code = code
        self.message = message
        self.status = status


class UnauthorizedError(ShopError):
    """The access token is not (or no longer) accepted, or does not reach this far."""

    def __init__(self, status: int) -> None:
        super().__init__(f"The shop does not accept the token ({status})")
        self.status = status


class ThrottledError(ShopError):
    """Too many calls. `retry_after` is in seconds, None when the shop did not say."""

    def __init__(self, retry_after: float | None) -> None:
        super().__init__("The shop asks for fewer calls")
        self.retry_after = retry_after


class InProgressError(ShopError):
    """The shop is working on an earlier send with the same key; look again later."""


class KeyReusedError(ShopError):
    """The shop knows the key with another body. A fault of ours: stop and call a person."""


class UnavailableError(ShopError):
    """A read that failed, or a write of which certainly nothing was sent."""

    def __init__(self, kind: UnavailableKind, status: int | None = None) -> None:
        super().__init__(f"The shop is unavailable: {kind}{f' ({status})' if status else ''}")
        self.kind: UnavailableKind = kind
        self.status = status


class UnknownOutcomeError(ShopError):
    """A write was sent and nobody can say yet whether it took effect."""

    def __init__(self, kind: UnknownKind, status: int | None = None) -> None:
        super().__init__(f"The outcome is unknown: {kind}{f' ({status})' if status else ''}")
        self.kind: UnknownKind = kind
        self.status = status

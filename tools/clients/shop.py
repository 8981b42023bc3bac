"""The client of a shop's orders API, as one customer: every call carries that customer's token."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from accounts import wire
from tools.clients.errors import (
    InProgressError,
    KeyReusedError,
    NotFoundError,
    RefusedError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
    UnknownOutcomeError,
)
from tools.clients.shapes import ErrorBody, Order, OrderPage, Receipt, Shape, Tracking
from tools.trigger import Point, reach

PAGE_LIMIT = 50

_ORDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")

S = TypeVar("S", bound=Shape)


@dataclass(frozen=True)
class ShopClient:
    """Speaks to one shop as one customer; cheap to make, connections are shared underneath.

    `timeout` is in seconds. Nothing is retried here: whoever calls decides, by the error's class.
    """

    base_url: str
    token: str = field(repr=False)
    timeout: float

    # --- Reads. Each raises UnauthorizedError, ThrottledError or UnavailableError -------------

    def list_orders(self, status: str | None = None, limit: int = 20) -> list[Order]:
        """The newest orders, at most `limit` of at most 50. Ask for one more to see if there is more."""
        params = {"limit": str(max(1, min(limit, PAGE_LIMIT)))}
        if status:
            params["status"] = status
        page = self._read("/api/orders", OrderPage, params)
        return list(page.orders[:limit])

    def get_order(self, order_id: str) -> Order:
        """Raises NotFoundError, also (without a call) for what cannot be an order's id."""
        order = self._read(f"/api/orders/{_order_path(order_id)}", Order)
        if order.id != order_id:
            raise UnavailableError("mismatch")
        return order

    def get_tracking(self, order_id: str) -> Tracking:
        """Raises NotFoundError: unknown order, or nothing shipped yet."""
        tracking = self._read(f"/api/orders/{_order_path(order_id)}/tracking", Tracking)
        if tracking.order_id != order_id:
            raise UnavailableError("mismatch")
        return tracking

    def find_effect(self, key: str) -> Receipt | None:
        """The effect sent with this key, or None when the shop shows none (yet: look-ups may lag)."""
        try:
            answer = self._get(f"/api/effects/{quote(_checked_key(key), safe='')}", {})
        except NotFoundError:
            return None
        receipt = _receipt(answer)
        if receipt is None:
            raise UnavailableError("unreadable", answer.status)
        if receipt.raw.get("idempotency_key") != key:
            raise UnavailableError("mismatch", answer.status)
        return receipt

    # --- Writes. `body` goes out byte for byte; see errors.py for what each error means -------

    def refund(self, order_id: str, body: bytes, key: str) -> Receipt:
        """Give money back. The receipt repeats the body's amount and currency, or it is unknown.

        The shop may have taken it and call it pending: `is_pending`. Any other status is unknown.
        """
        asked = json.loads(body)
        receipt = self._write("POST", order_id, "refunds", body, key)
        fits = receipt.fits(
            kind="refund",
            order_id=order_id,
            amount=asked["amount"],
            currency=asked["currency"],
        )
        if not fits or not (receipt.is_pending or receipt.raw.get("status") == "succeeded"):
            raise UnknownOutcomeError("mismatch")
        return receipt

    def cancel(self, order_id: str, version: int, body: bytes, key: str) -> Receipt:
        """Cancel the order as it stands at `version`."""
        receipt = self._write("POST", order_id, "cancel", body, key, version)
        fits = receipt.fits(kind="cancel", order_id=order_id)
        if not fits or receipt.raw["order"].get("status") != "cancelled":
            raise UnknownOutcomeError("mismatch")
        return receipt

    def change_address(self, order_id: str, version: int, body: bytes, key: str) -> Receipt:
        """Send the parcel of the order as it stands at `version` somewhere else."""
        receipt = self._write("PUT", order_id, "address", body, key, version)
        if not receipt.fits(kind="change_address", order_id=order_id):
            raise UnknownOutcomeError("mismatch")
        return receipt

    # --- Underneath -----------------------------------------------------------------------------

    def _read(self, path: str, shape: type[S], params: dict[str, str] | None = None) -> S:
        answer = self._get(path, params or {})
        try:
            return shape.model_validate(answer.json())
        except (ValidationError, ValueError) as exc:
            raise UnavailableError("unreadable", answer.status) from exc

    def _get(self, path: str, params: dict[str, str]) -> wire.Answer:
        try:
            answer = wire.read(
                self.base_url + path, headers=self._headers(), params=params, timeout=self.timeout
            )
        except wire.NotSentError as exc:
            raise UnavailableError("connect") from exc
        except wire.BrokenError as exc:
            raise UnavailableError(exc.kind) from exc
        if answer.status == 200:
            return answer
        _raise_gate_errors(answer)
        if answer.status == 404 and _error(answer) is not None:
            raise NotFoundError
        raise UnavailableError("error", answer.status)

    def _write(
        self,
        method: str,
        order_id: str,
        what: str,
        body: bytes,
        key: str,
        version: int | None = None,
    ) -> Receipt:
        headers = self._headers() | {
            "Content-Type": "application/json",
            "Idempotency-Key": _checked_key(key),
        }
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        url = f"{self.base_url}/api/orders/{_order_path(order_id)}/{what}"
        try:
            answer = wire.write(method, url, headers=headers, body=body, timeout=self.timeout)
        except wire.NotSentError as exc:
            raise UnavailableError("connect") from exc
        except wire.BrokenError as exc:
            raise UnknownOutcomeError(exc.kind) from exc
        reach(Point.C15)
        return _judge_write(answer, key)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def _judge_write(answer: wire.Answer, key: str) -> Receipt:
    if answer.status in {200, 201}:
        receipt = _receipt(answer)
        if receipt is None:
            raise UnknownOutcomeError("unreadable", answer.status)
        if receipt.raw.get("idempotency_key") != key:
            raise UnknownOutcomeError("mismatch", answer.status)
        return receipt
    _raise_gate_errors(answer)
    if 300 <= answer.status < 400:
        raise UnknownOutcomeError("redirect", answer.status)
    if answer.status == 408:
        raise UnknownOutcomeError("timeout", answer.status)
    if 400 <= answer.status < 500:
        _raise_refusal(answer)
    raise UnknownOutcomeError("unreadable" if answer.status < 300 else "error", answer.status)


def _raise_gate_errors(answer: wire.Answer) -> None:
    """Refusals before the request was looked at, whatever stands in front of the shop says them."""
    if answer.status in {401, 403}:
        raise UnauthorizedError(answer.status)
    if answer.status == 429:
        raise ThrottledError(answer.retry_after())


def _raise_refusal(answer: wire.Answer) -> NoReturn:
    """A refusal counts as definite only in the shop's own words: a stray proxy page does not."""
    error = _error(answer)
    if error is None:
        raise UnknownOutcomeError("unreadable", answer.status)
    match answer.status, error.error:
        case 404, _:
            raise NotFoundError
        case 409, "idempotency_in_progress":
            raise InProgressError
        case 422, "idempotency_key_reused":
            raise KeyReusedError
        case _:
            raise RefusedError(error.error, error.message, answer.status)


def _error(answer: wire.Answer) -> ErrorBody | None:
    try:
        return ErrorBody.model_validate(answer.json())
    except (ValidationError, ValueError):
        return None


def _receipt(answer: wire.Answer) -> Receipt | None:
    """The receipt in the answer; None when it is not one."""
    try:
        raw = answer.json()
    except ValueError:
        return None
    if not isinstance(raw, dict):
        return None
    fields: dict[str, Any] = {"id": raw.get("id"), "kind": raw.get("kind"), "raw": raw}
    if raw.get("kind") == "refund":
        fields |= {name: raw.get(name) for name in ("order_id", "amount", "currency")}
    else:
        order = raw.get("order")
        fields["order_id"] = order.get("id") if isinstance(order, dict) else None
    fields["replayed"] = answer.headers.get("idempotency-replayed") == "true"
    try:
        return Receipt.model_validate(fields)
    except ValidationError:
        return None


def _order_path(order_id: str) -> str:
    if _ORDER_ID.fullmatch(order_id) is None:
        raise NotFoundError
    return quote(order_id, safe="")


def _checked_key(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise ValueError("An idempotency key is 1 to 200 letters, digits and . _ : -")
    return key

"""The bytes of the trail: what is hashed, how, and in which order.

Pure: no database and no Django, so that the trail can be recomputed anywhere.

* Event: digest = SHA-256(id as 8 bytes, big-endian || SHA-256(JCS(content))), where the content is
  every other column as RFC 8785 canonical JSON. JCS frames each value, so text cannot move across
  a field border unseen; the id is hashed in the INSERT itself, where it is drawn.
* Tree: the Merkle tree of RFC 6962. Leaf = SHA-256(0x00 || event digest), node =
  SHA-256(0x01 || left || right), split at the largest power of two below the number of leaves.
* Seal: digest = SHA-256(JCS(seal document)); the signature is Ed25519 over that digest.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import rfc8785

DIGEST_BYTES = 32
GENESIS = bytes(DIGEST_BYTES)
# Integers beyond this are not exact in every JSON reader, and RFC 8785 refuses them.
MAX_INTEGER = 2**53 - 1

EVENT_FORMAT = "countersign.event/1"
SEAL_FORMAT = "countersign.seal/1"


class NotCanonicalError(ValueError):
    """The value has no exact JSON form: a float, a huge integer, NUL, a lone surrogate, an odd type."""


def rfc3339(moment: datetime) -> str:
    """The instant in UTC with exactly six fractional digits: `2026-03-01T12:00:00.000000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def canonical_json(value: object) -> bytes:
    """RFC 8785 bytes of a value made of dicts, lists, text, exact integers, booleans and null.

    Raises NotCanonicalError for anything else.
    """
    try:
        check_exact(value)
        if _keys_are_ascii(value):
            # For such values the C encoder gives the same bytes, at a tenth of the time: the two differ
            # in floats, which are refused, and in the order of keys beyond the basic plane.
            return _ENCODER.encode(value).encode()
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # check_exact has just shown that it fits
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as exc:
        raise NotCanonicalError(str(exc)) from exc


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def _keys_are_ascii(value: object) -> bool:
    if isinstance(value, dict):
        return all(key.isascii() and _keys_are_ascii(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_keys_are_ascii, value))
    return True


def check_exact(value: object, path: str = "$") -> None:
    """Raises NotCanonicalError, naming the place, when the value cannot be stored and read back exactly."""
    match value:
        case None | bool():
            return
        case str():
            if "\x00" in value:
                raise NotCanonicalError(f"{path}: text with a NUL character")
        case int():
            if abs(value) > MAX_INTEGER:
                raise NotCanonicalError(f"{path}: integer beyond 2^53 - 1")
        case dict():
            _check_exact_keys(value, path)
            for key, item in value.items():
                check_exact(item, f"{path}.{key}")
        case list() | tuple():
            for index, item in enumerate(value):
                check_exact(item, f"{path}[{index}]")
        case _:
            raise NotCanonicalError(f"{path}: {type(value).__name__} is not allowed")


def _check_exact_keys(value: Mapping[object, object], path: str) -> None:
    for key in value:
        if not isinstance(key, str):
            raise NotCanonicalError(f"{path}: key {key!r} is not text")
        check_exact(key, f"{path}.{key} (key)")


def content_digest(content: Mapping[str, object]) -> bytes:
    """SHA-256 of an event's columns without its id. Raises NotCanonicalError."""
    return hashlib.sha256(canonical_json({"format": EVENT_FORMAT, **content})).digest()


def event_digest(event_id: int, content: bytes) -> bytes:
    """The digest that the event's row must carry, from its id and its content digest."""
    return hashlib.sha256(event_id.to_bytes(8, "big", signed=True) + content).digest()


def commitment(nonce: bytes, text: bytes) -> bytes:
    """What the chain holds of a personal text: says nothing about it once the nonce is gone."""
    return hmac.digest(nonce, text, "sha256")


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Root of the RFC 6962 tree over these event digests, at least one, in this order."""
    if not leaves:
        raise ValueError("a tree has at least one leaf")
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    # Pairing neighbours and carrying an odd last one up gives the same tree as RFC 6962's split.
    while len(level) > 1:
        paired = [
            hashlib.sha256(b"\x01" + level[i] + level[i + 1]).digest()
            for i in range(0, len(level) - 1, 2)
        ]
        level = paired + level[len(paired) * 2 :]
    return level[0]


@dataclass(frozen=True)
class SealContent:
    """What a seal says and signs."""

    number: int
    previous: bytes
    event_ids: Sequence[int]
    root: bytes
    signed_at: datetime
    key_id: str

    def document(self) -> dict[str, object]:
        """The JSON object that is hashed. The ids enter as one digest, so it stays small."""
        ids = b"".join(event_id.to_bytes(8, "big", signed=True) for event_id in self.event_ids)
        return {
            "format": SEAL_FORMAT,
            "number": self.number,
            "previous": self.previous.hex(),
            "count": len(self.event_ids),
            "members": hashlib.sha256(ids).hexdigest(),
            "root": self.root.hex(),
            "signed_at": rfc3339(self.signed_at),
            "key_id": self.key_id,
        }


def seal_digest(document: Mapping[str, object]) -> bytes:
    """SHA-256 of a seal document. Raises NotCanonicalError."""
    return hashlib.sha256(canonical_json(document)).digest()

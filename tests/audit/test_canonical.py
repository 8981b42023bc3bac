"""What is hashed: the tree of RFC 6962, and bytes that cannot be read in two ways."""

import hashlib

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from audit.canonical import NotCanonicalError, canonical_json, content_digest, merkle_root


def rfc6962(leaves):
    """The definition in RFC 6962, 2.1, word for word: split at the largest power of two below n."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + rfc6962(leaves[:split]) + rfc6962(leaves[split:])).digest()


@pytest.mark.parametrize("count", [*range(1, 20), 31, 32, 33, 100])
def test_the_root_is_that_of_rfc_6962(count):
    leaves = [hashlib.sha256(bytes([n])).digest() for n in range(count)]

    assert merkle_root(leaves) == rfc6962(leaves)


def test_the_root_depends_on_the_order():
    leaves = [bytes([n]) * 32 for n in range(3)]

    assert merkle_root(leaves) != merkle_root(leaves[::-1])


def test_a_tree_without_leaves_is_refused():
    with pytest.raises(ValueError, match="at least one leaf"):
        merkle_root([])


def test_text_moved_across_a_field_border_changes_the_digest():
    assert content_digest({"a": "ab", "b": "c"}) != content_digest({"a": "a", "b": "bc"})


def test_canonical_json_sorts_keys_and_spends_no_blanks():
    assert (
        canonical_json({"b": [1, True, None], "a": "é\n"})
        == '{"a":"é\\n","b":[1,true,null]}'.encode()
    )


@pytest.mark.parametrize(
    "value", [1.0, float("nan"), 2**53, "\x00", "\udc00", b"x", {1: 2}, {"a": {1}}]
)
def test_what_json_cannot_hold_exactly_is_refused(value):
    with pytest.raises(NotCanonicalError):
        canonical_json(value)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
INTEGERS = st.integers(-(2**53) + 1, 2**53 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT | st.text("ab~\x7f"), inner),
    max_leaves=12,
)


@given(JSON)
def test_canonical_json_is_that_of_rfc_8785(value):
    assert canonical_json(value) == rfc8785.dumps(value)


def test_keys_are_sorted_as_utf_16():
    assert canonical_json({"\ufb33": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ufb33":1}'.encode()

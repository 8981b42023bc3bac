"""Whatever text a client sends: a frame of ours, or an error that repeats nothing of it."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.chat import frames

TYPES = [
    "hello",
    "token",
    "say",
    "decide",
    "cancel",
    "person",
    "open",
    "tickets",
    "orders",
    "ping",
    "receipt",
]
FIELDS = [
    *("type", "token", "key", "ticket", "after", "message", "event", "text", "client_message_id"),
    *("task", "step", "digest", "decision", "decision_id", "customer", "role", "frame"),
]
WORDS = ["yes", "no", "new", "m-1", "0" * 64, "1.1", "x" * 4001, "", "\x00", " "]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMED = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4), VALUES, max_size=5)
TEXTS = st.one_of(
    st.tuples(NAMED, st.sampled_from(TYPES)).map(
        lambda pair: json.dumps(pair[0] | {"type": pair[1]})
    ),
    NAMED.map(json.dumps),
    VALUES.map(json.dumps),
    st.text(),
)
MARK = "zebra-4711"


@settings(max_examples=400, deadline=None, derandomize=True)
@given(text=TEXTS)
def test_whatever_is_sent_is_a_frame_or_a_frame_error(text: str):
    for parse in (frames.parse, frames.parse_exchange):
        with suppress(frames.FrameError):
            assert parse(text) is not None


@settings(max_examples=200, deadline=None, derandomize=True)
@given(fields=NAMED, kind=st.sampled_from(TYPES), where=st.sampled_from(FIELDS))
def test_an_error_repeats_nothing_of_what_was_sent(
    fields: dict[str, object], kind: str, where: str
):
    odd = json.dumps({"type": kind} | fields | {where: [MARK], MARK: MARK})

    for parse in (frames.parse, frames.parse_exchange):
        with pytest.raises(frames.FrameError) as told:
            parse(odd)
        assert MARK not in str(told.value)
        assert len(str(told.value)) < 300

import pytest

from tools import strictjson
from tools.strictjson import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, StrictJSONError, parse_object


def nested(levels: int) -> str:
    """An object whose deepest bracket stands at this level."""
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        '{"order_id": "1042"',
        '{"order_id": "1042",}',
        "{'order_id': '1042'}",
        '{"order_id": "1042"} {"order_id": "1043"}',
        '{"note": "line\nbreak"}',
        "\ufeff{}",
    ],
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(StrictJSONError, match=r"^not JSON$"):
        parse_object(text)


@pytest.mark.parametrize("text", ["[]", "null", "true", "1", '"text"'])
def test_json_that_is_no_object_is_refused(text):
    with pytest.raises(StrictJSONError, match=r"^not an object$"):
        parse_object(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_escape_comparison_are_refused(number):
    with pytest.raises(StrictJSONError, match="number"):
        parse_object(f'{{"amount": {number}}}')


def test_numbers_are_as_long_as_eighteen_digits_and_no_longer():
    longest = "9" * MAX_DIGITS

    assert parse_object(f'{{"n": -{longest}}}') == {"n": -int(longest)}
    with pytest.raises(StrictJSONError, match="too long"):
        parse_object(f'{{"n": {longest}9}}')
    with pytest.raises(StrictJSONError, match="too long"):
        parse_object('{"n": ' + "9" * 5000 + "}")


@pytest.mark.parametrize(
    "text",
    [
        '{"approved": false, "approved": true}',
        '{"a": {"force": 1, "force": 2}}',
        '{"amount": 1, "\\u0061mount": 2}',
    ],
)
def test_a_repeated_key_is_refused_at_any_depth_and_spelling(text):
    with pytest.raises(StrictJSONError, match="repeated"):
        parse_object(text)


def test_nesting_is_as_deep_as_allowed_and_no_deeper():
    assert parse_object(nested(MAX_DEPTH))
    with pytest.raises(StrictJSONError, match="nested too deeply"):
        parse_object(nested(MAX_DEPTH + 1))


def test_a_bracket_bomb_is_refused_before_the_recursive_parser_sees_it():
    with pytest.raises(StrictJSONError, match="nested too deeply"):
        parse_object("[" * (MAX_BYTES - 1))


def test_brackets_and_quotes_inside_strings_do_not_count_as_nesting():
    text = '{"a": "' + "[" * 100 + '\\"' + "{" * 100 + '"}'

    assert parse_object(text) == {"a": "[" * 100 + '"' + "{" * 100}


def test_size_is_counted_in_bytes_of_utf8():
    room = MAX_BYTES - len('{"a":""}')

    assert parse_object('{"a":"' + "x" * room + '"}')["a"] == "x" * room
    with pytest.raises(StrictJSONError, match=r"^too large$"):
        parse_object('{"a":"' + "x" * (room + 1) + '"}')
    with pytest.raises(StrictJSONError, match=r"^too large$"):
        parse_object('{"a":"' + "é" * (room // 2 + 1) + '"}')


def test_a_megabyte_is_refused_without_being_parsed(monkeypatch):
    monkeypatch.setattr(strictjson, "_check_depth", pytest.fail)

    with pytest.raises(StrictJSONError, match=r"^too large$"):
        parse_object('{"a":"' + "x" * 1_000_000 + '"}')


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "\\u0000"}',
        '{"\\u0000": 1}',
        '{"a": ["\\ud800"]}',
        '{"a": {"\\udfff": 1}}',
        '{"a": "\ud800"}',
    ],
)
def test_characters_that_no_text_column_holds_are_refused(text):
    with pytest.raises(StrictJSONError, match="text holds"):
        parse_object(text)


def test_a_character_written_as_a_surrogate_pair_is_one_character():
    assert parse_object('{"a": "\\ud83d\\ude00"}') == {"a": "\N{GRINNING FACE}"}


def test_an_ordinary_call_comes_back_as_it_was_written():
    text = '{"order_id": "1042", "items": [{"item_id": "1042-1", "quantity": 2}], "amount": null}'

    assert parse_object(text) == {
        "order_id": "1042",
        "items": [{"item_id": "1042-1", "quantity": 2}],
        "amount": None,
    }

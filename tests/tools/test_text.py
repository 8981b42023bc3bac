import pytest

from tools.text import clean, normalise_order_id


@pytest.mark.parametrize("text", ["1042", "#1042", " 1042 ", " # 1042\n", "\t#1042"])
def test_one_hash_and_blanks_around_a_number_do_not_matter(text):
    assert normalise_order_id(text) == "1042"


@pytest.mark.parametrize(
    "text",
    [
        "1О42",  # noqa: RUF001 - Cyrillic O
        "１０４２",  # noqa: RUF001 - full-width digits
        "10\N{ZERO WIDTH SPACE}42",
        "1042\N{ZERO WIDTH SPACE}",
        "٤٢",
        "##1042",
        "1042 1043",
        "1042/../1043",
        "1042%00",
        "1042\x00",
        "",
        "#",
        "x" * 41,
    ],
)
def test_a_look_alike_is_no_order_number(text):
    assert normalise_order_id(text) == "-"


def test_case_is_part_of_an_order_number():
    assert normalise_order_id("ab-1") == "ab-1"
    assert normalise_order_id("AB-1") == "AB-1"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Leave at the door", "Leave at the door"),
        ("two\nlines\tand\ra tab", "two lines and a tab"),
        ("abc\N{RIGHT-TO-LEFT OVERRIDE}def", "abc[U+202E]def"),
        ("pay\N{ZERO WIDTH SPACE}pal", "pay[U+200B]pal"),
        ("hi\U000e0041\U000e0042", "hi[U+E0041][U+E0042]"),
        ("bell\x07 escape\x1b[31m", "bell[U+0007] escape[U+001B][31m"),
        ("line\N{LINE SEPARATOR}end", "line[U+2028]end"),
        ("<b>bold</b>", "<b>bold</b>"),
        ("naïve café 東京", "naïve café 東京"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(text, shown):
    assert clean(text, 100) == shown


def test_a_long_text_is_cut_and_says_so():
    assert clean("x" * 101, 100) == "x" * 100 + "…"
    assert clean("x" * 100, 100) == "x" * 100

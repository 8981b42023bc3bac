"""What is installed is what was locked: every package, by version and by the hash of its file."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from script.lib import bootstrap, lock
from script.lib.bootstrap import ROOT

SERVED, TESTED = ((ROOT / name).read_text() for name in bootstrap.DEVELOPMENT)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def entries(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each package's first line and the lines of its hashes."""
    for block in re.split(r"^(?=[^\s#])", text, flags=re.MULTILINE)[1:]:
        first, *rest = block.rstrip("\n").split("\n")
        yield first.removesuffix(" \\"), rest


def pins(text: str) -> dict[str, str]:
    """The locked version of each package, by its canonical name."""
    found = [Requirement(first) for first, _ in entries(text)]
    return {canonicalize_name(one.name): str(one.specifier) for one in found}


def listed(*extras: str) -> list[Requirement]:
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("text", [SERVED, TESTED], ids=bootstrap.DEVELOPMENT)
def test_every_package_is_pinned_with_the_hashes_of_its_files(text):
    assert text.startswith(lock.HEAD)
    found = list(entries(text))
    assert len(found) > 80
    for first, hashes in found:
        assert re.fullmatch(r"[a-z0-9.-]+==[^ ;]+( ; [^\\]+)?", first), first
        assert hashes, first
        assert [line for line in hashes if not HASH.fullmatch(line)] == [], first
    assert len(pins(text)) == len(found)


@pytest.mark.parametrize(
    ("text", "extras"),
    [(SERVED, ("local",)), (TESTED, ("local", "dev"))],
    ids=bootstrap.DEVELOPMENT,
)
def test_the_lock_holds_what_the_list_names(text, extras):
    locked = pins(text)

    for one in listed(*extras):
        version = locked[canonicalize_name(one.name)].removeprefix("==")
        assert one.specifier.contains(version), f"{one} is locked as {version}: run script/lock"


def test_what_is_tested_is_what_is_served():
    assert dict(entries(SERVED)).items() <= dict(entries(TESTED)).items()


def test_no_package_that_another_needs_is_left_out():
    """Along what the installed packages say that they need, from the list down."""
    locked, waiting, seen = pins(TESTED), listed("local", "dev"), set()
    while waiting:
        one = waiting.pop()
        key = (canonicalize_name(one.name), frozenset(one.extras))
        if key in seen:
            continue
        seen.add(key)
        assert key[0] in locked, f"{one.name} is not locked: run script/lock"
        waiting += needed_by(one)

    assert {name for name, _ in seen} <= locked.keys()
    assert len(seen) > 100


def needed_by(one: Requirement) -> list[Requirement]:
    try:
        lines = requires(one.name) or []
    except PackageNotFoundError:
        return []
    found = [Requirement(line) for line in lines]
    sets = [{"extra": extra} for extra in one.extras] or [{"extra": ""}]
    return [each for each in found if each.marker is None or any(map(each.marker.evaluate, sets))]


def test_pip_is_told_to_refuse_any_other_file(tmp_path, monkeypatch):
    called: list[list[str]] = []

    def run(words: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        called.append(words)
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(bootstrap, "write_stamp", lambda path, text: None)
    for name in bootstrap.DEVELOPMENT:
        (tmp_path / name).write_text("")
    bootstrap.install(tmp_path, dev=True)

    assert "--require-hashes" in called[0]
    image = (ROOT / "Dockerfile").read_text()
    assert [line for line in image.splitlines() if "pip install" in line and "--require-hashes" not in line] == []  # fmt: skip


def test_a_condition_that_always_holds_is_left_out_and_others_stay():
    always, sometimes = " and ".join(sorted(lock.ALWAYS)), "implementation_name != 'pypy'"

    shown = lock.plain(
        f"{lock.HEAD}a==1 ; {always} \\\nb==2 ; {sometimes} and {always} \\\n    --hash\n"
    )

    assert shown == f"a==1 \\\nb==2 ; {sometimes} \\\n    --hash\n"

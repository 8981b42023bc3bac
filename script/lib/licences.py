"""`script/licences`: writes docs/licences.md from the locks and what each package says of itself."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import cast

from script.lib.bootstrap import DEVELOPMENT, ROOT, SetupError

PAGE = ROOT / "docs" / "licences.md"
START, END = "<!-- made by script/licences -->\n", "<!-- to here -->\n"
HELP = """usage: script/licences

Write the tables of docs/licences.md anew: every library of requirements.txt and requirements-dev.txt
with the licence and the address that it names itself. No network is needed."""
# Read by a person: installed on other machines than most, or silent about its licence but for a file.
BY_HAND = {
    "async-timeout": ("Apache-2.0", "https://github.com/aio-libs/async-timeout"),
    "axe-playwright-python": ("MIT", "https://github.com/pamelafox/axe-playwright-python"),
}
# Where a package says only what a licence's family is called, or its whole text.
SAYS_NOTHING = {"", "Dual License"}
LONGEST = 60
COPYLEFT = re.compile(
    r"\b(A?L?GPL|MPL|Mozilla|General Public|EPL|CDDL|EUPL|SSPL|CC-BY-SA|Affero)", re.IGNORECASE
)
PAGES = ("homepage", "home-page", "home", "source", "repository", "code", "source code", "documentation")  # fmt: skip


@dataclass(frozen=True)
class Library:
    """A package with what it says of itself."""

    name: str
    licence: str
    page: str

    @property
    def is_copyleft(self) -> bool:
        return bool(COPYLEFT.search(self.licence))


def main(arguments: Sequence[str]) -> int:
    """0 when the page was written."""
    if arguments:
        print(HELP)
        return 0 if {"-h", "--help"} & set(arguments) else 2
    try:
        PAGE.write_text(filled(PAGE.read_text()))
    except SetupError as exc:
        print(f"script/licences: {exc}", file=sys.stderr)
        return 1
    return 0


def filled(page: str) -> str:
    """The page with its tables as they should be now. Raises SetupError for a package that says nothing."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    served, tested = (locked(ROOT / name) for name in DEVELOPMENT)
    more = [name for name in tested if name not in set(served)]
    parts = (_table("What is served", served), _table("What only the tests need", more))
    return before + START + "\n".join(parts) + END + after


def locked(path: Path) -> list[str]:
    """The names of a lock, as they stand there."""
    return re.findall(r"^([a-z0-9.-]+)==", path.read_text(), re.MULTILINE)


def _table(heading: str, names: list[str]) -> str:
    lines = [f"## {heading}\n", "| library | licence, as it says itself |", "|---|---|"]
    for each in map(look_up, names):
        licence = f"**{each.licence}**" if each.is_copyleft else each.licence
        lines.append(f"| [{each.name}]({each.page}) | {licence} |")
    return "\n".join([*lines, ""])


def look_up(name: str) -> Library:
    """What this package says. Raises SetupError when it says nothing and nobody has looked."""
    if name in BY_HAND:
        return Library(name, *BY_HAND[name])
    try:
        found = cast(Message, metadata(name))
    except PackageNotFoundError as exc:
        raise SetupError(f"{name} is locked and not installed here: add it to BY_HAND") from exc
    licence = _licence(found)
    if not licence:
        raise SetupError(f"{name} names no licence: look into its files and add it to BY_HAND")
    return Library(name, licence, _page(found))


def _licence(found: Message) -> str:
    """Its expression, or its own short words, or the classifiers that it chose."""
    if found.get("License-Expression"):
        return str(found["License-Expression"])
    words = str(found.get("License") or "").strip()
    if words not in SAYS_NOTHING and "\n" not in words and len(words) <= LONGEST:
        return words
    classes = [str(each) for each in found.get_all("Classifier") or []]
    named = [each.rpartition(" :: ")[2] for each in classes if each.startswith("License ::")]
    return " or ".join(named)


def _page(found: Message) -> str:
    told = [str(line).partition(",") for line in found.get_all("Project-URL") or []]
    named = {label.strip().lower(): url.strip() for label, _, url in told}
    if found.get("Home-page"):
        named.setdefault("homepage", str(found["Home-page"]))
    pages = [named[label] for label in PAGES if label in named]
    return pages[0] if pages else f"https://pypi.org/project/{found['Name']}/"

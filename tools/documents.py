"""A shop's policy documents: Markdown files with dates of effect, read strictly and loaded once.

A file begins with `slug`, `title`, `version`, `effective_from` and, where it ends, `effective_to`
(the first day on which it no longer holds) between two lines of `---`. Each `## Heading` begins a
passage, which is what a search finds.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path

from django.db import transaction

from accounts.models import Shop
from audit import services as audit
from tools.models import PolicyDocument, PolicyPassage

DEMO_FOLDER = Path(__file__).with_name("policies") / "demo"
MAX_BYTES = 256 * 1024
# What a search shows of a passage, so that no part of a rule is ever cut off.
MAX_PASSAGE = 1500
MAX_HEADING = 200

_REQUIRED = ("slug", "title", "version", "effective_from")
_FIELDS = (*_REQUIRED, "effective_to")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VERSION = re.compile(r"[1-9][0-9]{0,5}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FENCE = "---"


class DocumentError(Exception):
    """Documents that were refused; each of `problems` names its place. Nothing was changed."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True)
class Passage:
    heading: str
    text: str


@dataclass(frozen=True)
class Document:
    """One version of one document. It holds from `effective_from` until before `effective_to`."""

    source: str
    slug: str
    title: str
    version: int
    effective_from: date
    effective_to: date | None
    passages: tuple[Passage, ...]

    @property
    def name(self) -> str:
        return f"{self.slug} version {self.version}"


@dataclass
class Loaded:
    """How many documents were new, got another end, or were there already as they are."""

    added: int = 0
    ended: int = 0
    unchanged: int = 0

    def summary(self) -> str:
        return f"{self.added} added, {self.ended} given another end, {self.unchanged} unchanged"


@dataclass
class _Section:
    heading: str
    line: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def read_folder(folder: Path) -> list[Document]:
    """Every `*.md` of a folder. Raises DocumentError with the faults of all of them."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".md")
    except OSError as exc:
        raise DocumentError([f"{folder}: {exc.strerror}"]) from exc
    if not paths:
        raise DocumentError([f"{folder}: there is no .md file"])
    documents: list[Document] = []
    problems: list[str] = []
    for path in paths:
        try:
            documents.append(read_file(path))
        except DocumentError as exc:
            problems += exc.problems
    if problems:
        raise DocumentError(problems)
    return documents


def read_file(path: Path) -> Document:
    """One document. Raises DocumentError."""
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise DocumentError([f"{path.name}: larger than {MAX_BYTES} bytes"])
        text = data.decode("utf-8")
    except OSError as exc:
        raise DocumentError([f"{path.name}: {exc.strerror}"]) from exc
    except UnicodeDecodeError as exc:
        raise DocumentError([f"{path.name}: not UTF-8"]) from exc
    return parse(text, source=path.name)


def parse(text: str, *, source: str) -> Document:
    """A document from its text; `source` names it in problems. Raises DocumentError."""
    lines = text.splitlines()
    if any(ord(char) < 32 and char not in "\n\r\t" for char in text):
        raise DocumentError([f"{source}: holds a control character"])
    if not lines or lines[0] != _FENCE or _FENCE not in lines[1:]:
        raise DocumentError([f"{source}: begins with its fields between two lines of ---"])
    end = lines.index(_FENCE, 1)
    problems: list[str] = []
    given = _read_fields(lines[1:end], source, problems)
    passages = tuple(_read_passages(lines[end + 1 :], end + 2, source, problems))
    document = None if problems else _document(given, passages, source, problems)
    if document is None or problems:
        raise DocumentError(problems)
    return document


def _read_fields(lines: list[str], source: str, problems: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for n, line in enumerate(lines, start=2):
        name, colon, value = line.partition(":")
        if not colon or name not in _FIELDS:
            problems.append(f"{source}:{n}: a field is one of {', '.join(_FIELDS)}")
        elif name in given:
            problems.append(f"{source}:{n}: {name} stands here twice")
        elif not value.strip():
            problems.append(f"{source}:{n}: {name} is empty")
        else:
            given[name] = value.strip()
    problems += [f"{source}: {name} is missing" for name in _REQUIRED if name not in given]
    return given


def _read_passages(
    lines: list[str], first: int, source: str, problems: list[str]
) -> Iterator[Passage]:
    section: _Section | None = None
    sections: list[_Section] = []
    for n, line in enumerate(lines, start=first):
        if line.startswith("## "):
            section = _Section(line.removeprefix("## ").strip(), n)
            sections.append(section)
        elif line.startswith("#"):
            problems.append(f"{source}:{n}: a heading is written ## Heading")
        elif section is not None:
            section.lines.append(line)
        elif line.strip():
            problems.append(f"{source}:{n}: text stands under a ## Heading")
    if not sections:
        problems.append(f"{source}: has no ## Heading")
    for section in sections:
        _check_section(section, source, problems)
        yield Passage(section.heading, section.text)


def _check_section(section: _Section, source: str, problems: list[str]) -> None:
    place = f"{source}:{section.line}"
    if not 0 < len(section.heading) <= MAX_HEADING:
        problems.append(f"{place}: a heading has 1 to {MAX_HEADING} characters")
    if not section.text:
        problems.append(f"{place}: nothing stands under this heading")
    elif len(section.text) > MAX_PASSAGE:
        problems.append(f"{place}: more than {MAX_PASSAGE} characters; make it two passages")


def _document(
    given: dict[str, str], passages: tuple[Passage, ...], source: str, problems: list[str]
) -> Document | None:
    if _SLUG.fullmatch(given["slug"]) is None or len(given["slug"]) > 50:
        problems.append(f"{source}: slug is small letters, digits and hyphens, 50 at most")
    if len(given["title"]) > 200:
        problems.append(f"{source}: title has more than 200 characters")
    if _VERSION.fullmatch(given["version"]) is None:
        problems.append(f"{source}: version is a whole number from 1")
    begins = _date(given["effective_from"], "effective_from", source, problems)
    ends = None
    if "effective_to" in given:
        ends = _date(given["effective_to"], "effective_to", source, problems)
    if begins and ends and ends <= begins:
        problems.append(f"{source}: effective_to is not after effective_from")
    if problems or begins is None:
        return None
    return Document(
        source, given["slug"], given["title"], int(given["version"]), begins, ends, passages
    )


def _date(text: str, name: str, source: str, problems: list[str]) -> date | None:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    problems.append(f"{source}: {name} is a day like 2025-07-01")
    return None


def load(documents: list[Document], *, shop: Shop, actor: str, now: datetime) -> Loaded:
    """Make these documents the shop's, beside those it has; all or none. Safe to do again.

    A version that was loaded before keeps its words: people have been told them. Only its end may
    change. Raises DocumentError, also when two versions of a document would hold on the same day.
    """
    loaded = Loaded()
    problems: list[str] = []
    with transaction.atomic():
        Shop.objects.select_for_update().get(pk=shop.pk)
        for document in documents:
            _load_one(document, shop, loaded, problems, actor=actor, now=now)
        problems += _overlaps(shop, {document.slug for document in documents})
        if problems:
            raise DocumentError(problems)
    return loaded


def _load_one(
    document: Document,
    shop: Shop,
    loaded: Loaded,
    problems: list[str],
    *,
    actor: str,
    now: datetime,
) -> None:
    known = PolicyDocument.objects.filter(
        shop=shop, slug=document.slug, version=document.version
    ).first()
    if known is None:
        _add(document, shop)
        loaded.added += 1
        _record("loaded", document, shop, actor=actor, now=now)
    elif not _says_the_same(known, document):
        problems.append(
            f"{document.source}: {document.name} is loaded with other words;"
            " give the new text the next version"
        )
    elif known.effective_to != document.effective_to:
        known.effective_to = document.effective_to
        known.save(update_fields=["effective_to"])
        loaded.ended += 1
        _record("ended", document, shop, actor=actor, now=now)
    else:
        loaded.unchanged += 1


def _add(document: Document, shop: Shop) -> None:
    row = PolicyDocument.objects.create(
        shop=shop,
        slug=document.slug,
        title=document.title,
        version=document.version,
        effective_from=document.effective_from,
        effective_to=document.effective_to,
        source=document.source[:200],
    )
    PolicyPassage.objects.bulk_create(
        PolicyPassage(document=row, n=n, heading=passage.heading, text=passage.text)
        for n, passage in enumerate(document.passages, start=1)
    )


def _says_the_same(known: PolicyDocument, document: Document) -> bool:
    passages = known.passages.order_by("n").values_list("heading", "text")
    return (
        known.title == document.title
        and known.effective_from == document.effective_from
        and [Passage(*passage) for passage in passages] == list(document.passages)
    )


def _overlaps(shop: Shop, slugs: set[str]) -> Iterator[str]:
    """Neighbouring versions of a document that both hold on some day."""
    rows = list(
        PolicyDocument.objects.filter(shop=shop, slug__in=slugs).order_by("slug", "effective_from")
    )
    for earlier, later in pairwise(rows):
        ends = earlier.effective_to
        if earlier.slug == later.slug and (ends is None or ends > later.effective_from):
            yield (
                f"{earlier.slug}: versions {earlier.version} and {later.version} both hold on"
                f" {later.effective_from}; end one with effective_to"
            )


def _record(what: str, document: Document, shop: Shop, *, actor: str, now: datetime) -> None:
    ends = document.effective_to
    audit.record(
        actor=actor,
        action=f"policy_document.{what}",
        subject=f"policy_document:{document.slug}/{document.version}",
        at=now,
        shop_id=shop.pk,
        data={
            "title": document.title,
            "effective_from": document.effective_from.isoformat(),
            "effective_to": ends.isoformat() if ends else None,
        },
    )

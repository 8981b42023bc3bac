"""A model's text made plain: what reaches a page or an e-mail has no image, no HTML, no foreign link.

The result is plain text for people. A page still escapes it; this only makes sure that nothing in
it is more than text for whatever shows it, and that a person sees all that is there.
"""

import re
import unicodedata
from collections.abc import Callable
from urllib.parse import urlsplit

from tools.text import clean

MAX_CHARACTERS = 4_000
LINK_REMOVED = "(link removed)"

_ROUNDS = 8
_BLOCK = re.compile(r"<(script|style)\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_AUTOLINK = re.compile(r"<([a-z][a-z0-9+.-]{1,31}:[^\s<>]*)>", re.IGNORECASE)
_TAG = re.compile(r"<[a-z/!?][^<>]*>", re.IGNORECASE)
_TAG_START = re.compile(r"<(?=[a-z/!?])", re.IGNORECASE)

_DEFINITION = re.compile(r"^[ \t]{0,3}\[[^\[\]\n]{1,200}\]:[^\n]*$", re.MULTILINE)
_IMAGE = re.compile(r"!\[([^\[\]]*)\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\[\]]*\])")
_LINK = re.compile(r"\[([^\[\]]*)\]\([ \t]*<?([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?[^()\n]*\)")
_REFERENCE = re.compile(r"\[([^\[\]\n]+)\]\[[^\[\]\n]*\]")
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^\n]*?\S)\1")
_CODE = re.compile(r"`+([^`\n]+)`+")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n?", re.MULTILINE)

# Top-level domains that text without a space after a full stop does not look like by accident.
_DOMAINS = "app|biz|cc|cn|com|dev|edu|eu|example|gov|info|io|link|live|net|online|org|page|ru|shop|site|store|top|uk|vip|xyz"
_TARGET = re.compile(
    rf"""
    \b[a-z][a-z0-9+.-]{{1,31}}://[^\s<>"]*            # any scheme with an authority
    | \b(?:javascript|vbscript|livescript)\s*:[^\s<>"]*
    | \bdata:[\w/+.;=-]*,[^\s<>"]*
    | \b(?:blob|file|intent|tel|sms):[^\s<>"]+
    | (?<![\w@.:/])//[a-z0-9-]+(?:\.[a-z0-9-]+)+[^\s<>"]*
    | (?<![\w@.-])www\.[^\s<>"]+
    | (?<![\w@.-])(?:[a-z0-9-]+\.)+(?:{_DOMAINS})(?![\w@-])(?:[:/?][^\s<>"]*)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MAILTO = re.compile(r"\bmailto:", re.IGNORECASE)
_PLAIN_URL = re.compile(
    r"https?://[A-Za-z0-9.-]+(:\d{1,5})?(?:[/?#][A-Za-z0-9/?#&=%._~+,;:!*()-]*)?"
)
_AFTER_URL = ".,;:!?)]}*_'"

_ZERO_WIDTH_NON_JOINER, _ZERO_WIDTH_JOINER = "\u200c", "\u200d"


def plain(text: str, *, allowed_hosts: frozenset[str]) -> str:
    """Text for people from what a model wrote: at most 4,000 characters, line breaks kept.

    Images, HTML and marks of emphasis go. A link to one of `allowed_hosts` (lower case, no port)
    is shown as its words and its address; of any other link only the words stay. Control,
    direction and zero-width characters become visible, except where a script or an emoji needs
    them.
    """
    text = _visible(text[: 2 * MAX_CHARACTERS])
    text = _until_stable(text, lambda now: _without_marks(now, allowed_hosts))
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    if len(text) > MAX_CHARACTERS:
        text = text[: MAX_CHARACTERS - 1].rstrip() + "…"
    return text


def _until_stable(text: str, change: Callable[[str], str]) -> str:
    """Taking something out may put its surroundings together to something new."""
    for _ in range(_ROUNDS):
        changed = change(text)
        if changed == text:
            return text
        text = changed
    # Nested deeper than anybody writes by chance: without these characters nothing is a mark.
    return change(re.sub(r"[<>\[\]()!:/`*_]", " ", text))


def _without_marks(text: str, allowed_hosts: frozenset[str]) -> str:
    for pattern in (_BLOCK, _COMMENT, _DEFINITION, _FENCE, _HEADING):
        text = pattern.sub("", text)
    text = _AUTOLINK.sub(r"\1", text)
    text = _TAG.sub("", text)
    text = _TAG_START.sub("< ", text)
    text = _IMAGE.sub(r"\1", text)
    text = _LINK.sub(lambda found: _shown_link(found[1], found[2], allowed_hosts), text)
    text = _REFERENCE.sub(r"\1", text)
    text = _STRONG.sub(r"\2", text)
    text = _CODE.sub(r"\1", text)
    text = _MAILTO.sub("", text)
    return _TARGET.sub(lambda found: _shown_target(found[0], allowed_hosts), text)


def _shown_link(words: str, target: str, allowed_hosts: frozenset[str]) -> str:
    if not _is_allowed(target, allowed_hosts):
        return words
    return target if words.strip() in ("", target) else f"{words} ({target})"


def _shown_target(found: str, allowed_hosts: frozenset[str]) -> str:
    target = found.rstrip(_AFTER_URL)
    while target.count("(") > target.count(")") and found[len(target) :].startswith(")"):
        target += ")"
    rest = found[len(target) :]
    if _is_allowed(target, allowed_hosts) or (
        "://" not in target and _is_allowed(f"https://{target}", allowed_hosts)
    ):
        return found
    return LINK_REMOVED + rest


def _is_allowed(url: str, allowed_hosts: frozenset[str]) -> bool:
    """Only addresses that every reader splits alike: no user part, backslash or odd character."""
    if not _PLAIN_URL.fullmatch(url):
        return False
    return urlsplit(url).hostname in allowed_hosts


def _visible(text: str) -> str:
    lines = re.split(r"\r\n|\r|\n", text)
    return "\n".join(_visible_line(line) for line in lines)


def _visible_line(line: str) -> str:
    """As tools.text.clean, but with the joiners that emoji and some scripts are written with."""
    if line.isascii() and line.isprintable():
        return line
    parts = []
    start = 0
    for at, char in enumerate(line):
        if char in (_ZERO_WIDTH_JOINER, _ZERO_WIDTH_NON_JOINER) and _is_needed(line, at):
            parts += [clean(line[start:at], len(line)), char]
            start = at + 1
    parts.append(clean(line[start:], len(line)))
    return "".join(parts)


def _is_needed(line: str, at: int) -> bool:
    before, after = line[at - 1 : at], line[at + 1 : at + 2]
    if not before or not after:
        return False
    is_emoji = line[at] == _ZERO_WIDTH_JOINER and unicodedata.category(after) == "So"
    if is_emoji and (unicodedata.category(before) in ("So", "Sk") or before == "\ufe0f"):
        return True
    return _joins(before) and _joins(after)


def _joins(char: str) -> bool:
    """Whether a letter or mark is of a script that is written with joiners (Arabic to Mongolian)."""
    return "\u0600" <= char <= "\u18af" and unicodedata.category(char)[0] in "LM"

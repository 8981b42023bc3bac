"""Text from outside: made safe to store, to show and to hand on as data."""

import re
import unicodedata

_ORDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def normalise_order_id(text: str) -> str:
    """The one normalisation of an order number: surrounding blanks and one leading '#' go.

    Anything that then is not plain ASCII matches no order: it comes back as a text that no shop
    has as an id, so that a look-alike gets the same answer as an unknown number.
    """
    text = text.strip().removeprefix("#").strip()
    return text if _ORDER_ID.fullmatch(text) else "-"


def clean(text: str, limit: int) -> str:
    """Cut to `limit` characters, with control, bidi, tag and zero-width characters made visible.

    Line breaks and tabs become a blank. A person reading the result sees what is there.
    """
    out: list[str] = []
    for char in text[:limit]:
        if char in "\n\r\t":
            out.append(" ")
        elif unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
            out.append(f"[U+{ord(char):04X}]")
        else:
            out.append(char)
    if len(text) > limit:
        out.append("…")
    return "".join(out)

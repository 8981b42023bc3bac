"""How the console's templates show things: text made visible, money, times, costs.

Loaded as `console`. Every filter takes a value of ours or a text of anybody's and gives plain text,
which the template escapes.
"""

import json
import re
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tools import money
from tools.text import clean

register = template.Library()

NAME = 200
WORDS = 10_000
MILLION = 1_000_000
_CODE = re.compile(r"[a-z_]{1,40}", re.ASCII)


@register.filter
def visible(text: object) -> str:
    """One line: control, bidi and zero-width characters shown as what they are."""
    return clean(str(text), NAME)


@register.filter
def visible_text(text: object) -> str:
    """Several lines, each made visible; the line breaks stay."""
    shown = visible_all(str(text)[:WORDS])
    return f"{shown}…" if len(str(text)) > WORDS else shown


@register.filter
def visible_all(text: object) -> str:
    """The same, however long it is."""
    lines = str(text).replace("\r\n", "\n").split("\n")
    return "\n".join(clean(line, len(line)) for line in lines)


@register.filter
def amount(value: int | None, currency: str) -> str:
    """Minor units as money, from the integer alone."""
    return "" if value is None else money.show(value, currency)


@register.filter
def cost(micros: int) -> str:
    """Millionths of a US dollar as $0.0012."""
    if 0 < micros < 100:
        return "<$0.0001"
    return f"${micros / MILLION:.4f}"


@register.filter
def when(moment: datetime | None) -> SafeString | str:
    """A time in the zone of the page, exact to the reader of the markup."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        local.strftime("%A %d %B %Y, %H:%M:%S %Z"),
        local.strftime("%d %b %Y, %H:%M"),
    )


@register.filter
def when_exact(moment: datetime | None) -> SafeString | str:
    """A time to the millisecond."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    text = f"{local:%d %b %Y, %H:%M:%S}.{local.microsecond // 1000:03d}"
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), text)


@register.filter
def span(length: timedelta | None) -> str:
    """A length of time in its two largest units: 23 h 58 min."""
    if length is None:
        return ""
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    if hours < 48:
        return f"{hours} h {minutes_left} min"
    return f"{hours // 24} d {hours % 24} h"


@register.filter
def milliseconds(value: int) -> str:
    return span(timedelta(milliseconds=value))


@register.filter
def grouped(value: int) -> str:
    """A count with its thousands apart: 1,000,000."""
    return f"{value:,}"


@register.filter
def plain_number(value: float) -> str:
    """A number as SVG reads it, whatever the locale."""
    return f"{value:g}"


@register.filter
def until(moment: datetime) -> str:
    """How long until then, to the minute; "over" when it is past."""
    seconds = (moment - timezone.now()).total_seconds()
    if seconds <= 0:
        return "over"
    if seconds < 60:
        return "less than a minute left"
    return f"{span(timedelta(seconds=seconds - seconds % 60)).removesuffix(' 0 s')} left"


@register.filter
def since(moment: datetime) -> str:
    """How long ago that was, to the minute."""
    seconds = max(0.0, (timezone.now() - moment).total_seconds())
    if seconds < 60:
        return "less than a minute ago"
    return f"{span(timedelta(seconds=seconds - seconds % 60)).removesuffix(' 0 s')} ago"


@register.filter
def pretty(value: Any) -> str:
    """A JSON value, indented, every character of its texts visible."""
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return "\n".join(clean(line, len(line)) if line.strip() else line for line in text.split("\n"))


@register.filter
def short(digest: str) -> str:
    """The first twelve hex digits of a digest."""
    return digest[:12]


@register.filter
def tone(code: str) -> str:
    """A code of ours as the class that colours it; nothing for a text of anybody else's."""
    return code if _CODE.fullmatch(code) else ""


@register.filter
def words(code: str) -> str:
    """A code of ours as words: waiting_approval is "waiting approval"."""
    return str(code).replace("_", " ").replace(".", " ")


@register.filter
def zone_name(moment: datetime) -> str:
    """The name of the page's zone at that time: EST."""
    return timezone.localtime(moment).strftime("%Z")

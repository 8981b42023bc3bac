"""In which language people are told things, and how amounts are written for them."""

from functools import lru_cache

from babel import Locale, UnknownLocaleError

# A text in each language that code itself speaks: English first, which is for everybody else.
Text = tuple[str, str]
LANGUAGES = ("en", "de")
FALLBACK = "en_US"


def pick(text: Text, locale: str) -> str:
    """The text in the language of a locale, "de-AT" or "de_AT"; English for all that we do not speak."""
    language = locale.replace("_", "-").split("-")[0].lower()
    return text[LANGUAGES.index(language)] if language in LANGUAGES else text[0]


@lru_cache(maxsize=256)
def known_locale(locale: str) -> str:
    """A locale as Babel knows it, "de_AT"; American English for one that nobody knows."""
    for name in (locale.replace("-", "_"), locale.replace("_", "-").split("-")[0]):
        try:
            return str(Locale.parse(name))
        except (ValueError, TypeError, UnknownLocaleError):
            continue
    return FALLBACK

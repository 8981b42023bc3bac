"""Country names and codes as customers write them, to ISO 3166 alpha-2."""

_NAMES = {
    "AR": "argentina", "AT": "austria|österreich", "AU": "australia", "BE": "belgium",
    "BG": "bulgaria", "BR": "brazil", "CA": "canada", "CH": "switzerland|schweiz|suisse",
    "CL": "chile", "CN": "china", "CZ": "czech republic|czechia", "DE": "germany|deutschland",
    "DK": "denmark", "EE": "estonia", "ES": "spain|españa", "FI": "finland", "FR": "france",
    "GB": "united kingdom|uk|u.k.|great britain|england|scotland|wales|northern ireland",
    "GR": "greece", "HR": "croatia", "HU": "hungary", "IE": "ireland", "IL": "israel",
    "IN": "india", "IS": "iceland", "IT": "italy|italia", "JP": "japan", "KR": "south korea",
    "LT": "lithuania", "LU": "luxembourg", "LV": "latvia", "MT": "malta", "MX": "mexico",
    "NL": "netherlands|the netherlands|holland", "NO": "norway", "NZ": "new zealand",
    "PL": "poland", "PT": "portugal", "RO": "romania", "SE": "sweden", "SG": "singapore",
    "SI": "slovenia", "SK": "slovakia", "TR": "turkey", "UA": "ukraine",
    "US": "usa|u.s.|u.s.a.|united states|united states of america|america",
    "ZA": "south africa",
}  # fmt: skip

BY_NAME = {name: code for code, names in _NAMES.items() for name in names.split("|")}
CODES = frozenset(_NAMES)


def country(text: str) -> str | None:
    """Return the code of a country named alone in `text`; a code counts in capitals only."""
    text = text.strip(" .,")
    if text in CODES:
        return text
    return BY_NAME.get(text.lower()) or BY_NAME.get(text.lower() + ".")

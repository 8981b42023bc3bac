"""Does a reply ask the customer for what nobody may ask for?"""

import re

from agents.claims.sentences import sentences

_SECRET = re.compile(
    r"\b(?:(?:credit |debit |bank |payment )?card(?:'s)?(?: |-)?(?:numbers?|details|info\w*|data)|"
    r"(?:card|account) (?:and )?(?:expiry|expiration)|expir(?:y|ation) date|"
    r"(?:digits|number) (?:of|on) (?:your|the) (?:credit |debit |bank )?card|"
    r"cvv2?|cvc2?|security code|card verification|pass ?words?|pass ?codes?|pass ?phrases?|"
    r"pin(?: code| number)?|one[- ]time (?:code|password)|otp|verification code|"
    r"(?:two|2)[- ]factor code|sms code|iban|sort code|routing number|"
    r"(?:bank )?account (?:number|details)|social security|ssn|login (?:details|data)|credentials)\b"
)
_FOREIGN_SECRET = re.compile(
    r"\b(?:kartennummer|kreditkarten(?:nummer|daten)|passwort|kennwort|prüfziffer|sicherheitscode|"
    r"kontonummer|número de (?:su |tu |la )?tarjeta|contraseña|código de seguridad|"
    r"numéro de (?:votre |la )?carte|mot de passe|cryptogramme|code de sécurité|"
    r"numero (?:della |di )?(?:tua |sua )?carta|codice di sicurezza|número do (?:seu )?cartão|senha|"
    r"kaartnummer|wachtwoord|beveiligingscode)\b"
)
_ASKING = re.compile(
    r"\b(?:send|give|share|provide|tell|enter|type|confirm|reply|respond|need|needed|require|"
    r"required|supply|verify|submit|write|what|which|please|could|can|would|let|include|message|"
    r"text|read|have|want|dictate|post|upload|attach|fill)\b"
)
_NOT_ASKING = re.compile(
    r"\b(?:never|not|n't|don't|cannot|can't|won't|without|no|nicht|nie|keine?|jamais|pas|nunca|"
    r"non|não|niet|geen)\b|n't\b"
)


_PARTS = re.compile(r"[,;:\u2013\u2014]|\bbut\b|\band (?=i\b|please|then|send|give)")


def asks_for_secrets(text: str) -> bool:
    """Whether a reply asks the customer for card data, a password or a code.

    A warning not to send them is no request.
    """
    return any(
        _asks_in_other_words(sentence) or _asks_in_english(sentence) for sentence in sentences(text)
    )


def _asks_in_other_words(sentence: str) -> bool:
    return bool(_FOREIGN_SECRET.search(sentence)) and not _NOT_ASKING.search(sentence)


def _asks_in_english(sentence: str) -> bool:
    if not (_ASKING.search(sentence) or sentence.endswith("?")):
        return False
    return any(
        _SECRET.search(part) and not _NOT_ASKING.search(part) for part in _PARTS.split(sentence)
    )

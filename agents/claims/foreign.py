"""Claims in other languages than English, as a best effort.

The participles of refunding, cancelling and so on count as a claim when no negation, modal or
condition stands in the same clause, so that no language is a free pass.
"""

from collections.abc import Iterator

from agents.claims.patterns import (
    ADDRESS,
    CANCEL,
    CLOSE,
    EMAIL,
    REFUND,
    Pattern,
    Words,
    patterns,
    words_of,
)
from agents.claims.sentences import PUNCTUATION, Word

_GAP = r"(?:(?:[^.?!\n]|\.(?=\d)){0,70}?)"


def _foreign(
    *,
    marks: str,
    refund: str,
    cancel: str,
    address: tuple[str, str],
    ticket: tuple[str, str],
    mail: tuple[str, str],
    negations: str,
    modals: str,
    conditions: str,
    breaks: str,
) -> Words:
    """A language by its participles: of refunding, of cancelling, and pairs of noun and verb."""

    def pair(kind: str, noun: str, verb: str) -> tuple[Pattern, ...]:
        return patterns(
            kind,
            rf"\b(?:{noun})\b{_GAP}\b(?P<v>{verb})\b",
            rf"\b(?P<v>{verb})\b{_GAP}\b(?:{noun})\b",
        )

    return Words(
        claims=(
            *patterns(REFUND, rf"\b(?P<v>{refund})\b"),
            *patterns(CANCEL, rf"\b(?P<v>{cancel})\b"),
            *pair(ADDRESS, *address),
            *pair(CLOSE, *ticket),
            *pair(EMAIL, *mail),
        ),
        marks=words_of(marks),
        negations=words_of(negations),
        modals=words_of(modals),
        conditions=words_of(conditions),
        breaks=words_of(breaks),
    )


GERMAN = _foreign(
    marks="der die das den dem ist sind wurde wurden ich habe haben hat ihre ihr ihren ihnen und für wir sie die zu auf",
    refund=r"(?:zurück|rück)?erstattet\w*|zurück(?:gezahlt|überwiesen|gebucht)\w*|gutgeschrieben\w*|"
    r"(?:rück)?erstattung\b[^?!\n]{0,60} (?:ist|wurde) (?:jetzt |nun |bereits |schon )?"
    r"(?:veranlasst|ausgeführt|erfolgt|abgeschlossen|unterwegs|erledigt|durch)|"
    r"geld ist (?:bereits |schon )?unterwegs",
    cancel=r"storniert\w*|annulliert\w*|stornierung\b[^?!\n]{0,60} (?:ist|wurde) (?:jetzt |nun |bereits |"
    r"schon )?(?:erfolgt|abgeschlossen|bestätigt|erledigt|ausgeführt|durch)",
    address=(
        r"\w*(?:adresse|anschrift)|adressänderung",
        r"geändert|aktualisiert|angepasst|korrigiert|hinterlegt|erledigt|ausgeführt",
    ),
    ticket=(
        r"ticket|fall|anfrage|vorgang|anliegen|unterhaltung",
        r"geschlossen|abgeschlossen|beendet|erledigt",
    ),
    mail=(r"e-?mail|mail|bestätigung", r"gesendet|geschickt|verschickt|versendet|versandt"),
    negations="nicht nie niemals kein keine keinen keiner keinem ohne weder nichts",
    modals="kann können könnte könnten möchte möchten möchtest soll sollen sollte würde würden muss "
    "müssen darf dürfen werde werden wollen will willst",
    conditions="wenn sobald falls ob bevor nachdem bis",
    breaks="aber sondern denn weil daher deshalb",
)
SPANISH = _foreign(
    marks="el la los las su tu es ha he hemos han sido una un para por que se con fue le del al ya y",
    refund=r"reembolsad[oa]s?|reembols(?:é|ó|amos|aron)|reintegrad[oa]s?|reintegr(?:é|ó|amos)|"
    r"devuelto (?:el|su|tu|los|\$)[^.?!\n]{0,20}(?:dinero|importe|\d)|devolví|devolvimos|"
    r"abonad[oa]s?|reembolso [^.?!\n]{0,40}(?:procesado|realizado|emitido|completado|en camino|hecho)|"
    r"dinero (?:ya )?(?:está|va) (?:de vuelta|en camino)",
    cancel=r"cancelad[oa]s?|cancel(?:é|ó|amos|aron)|anulad[oa]s?|anul(?:é|ó|amos|aron)",
    address=(
        r"direcci[oó]n(?:es)?|domicilio",
        (
            r"cambiad[oa]s?|cambi(?:é|ó|amos)|actualizad[oa]s?|actualic(?:é|emos)|actualiz(?:ó|amos)|"
            r"modificad[oa]s?|modifi(?:qué|có|camos)|corregid[oa]s?|corregí"
        ),
    ),
    ticket=(
        r"ticket|tique|caso|solicitud|consulta",
        r"cerrad[oa]s?|cerr(?:é|ó|amos)|resuelt[oa]s?",
    ),
    mail=(
        r"correo|e-?mail|confirmación|mensaje",
        r"enviad[oa]s?|envi(?:é|ó|amos|aron)|mandad[oa]s?",
    ),
    negations="no nunca ningún ninguna ninguno sin tampoco jamás nada",
    modals="puede puedo pueden puedes podría podrían podemos quiere quieres quisiera será serán sería "
    "serían debe deben va voy ser",
    conditions="si cuando una vez antes después hasta",
    breaks="pero sino porque aunque así",
)
FRENCH = _foreign(
    marks="le la les votre vos vous est a été je j'ai nous avons et pour un une du des au l'adresse ce",
    refund=r"remboursée?s?|recréditée?s?|créditée?s?|reversée?s?|remboursement [^.?!\n]{0,40}"
    r"(?:effectué|traité|émis|validé|en cours|en route|envoyé)|argent est (?:déjà )?en route",
    cancel=r"annulée?s?|résiliée?s?|annulation [^.?!\n]{0,30}(?:effectuée|confirmée|validée)",
    address=(r"adresses?", r"modifiée?s?|changée?s?|mise? à jour|corrigée?s?|actualisée?s?"),
    ticket=(r"ticket|dossier|demande|cas", r"clôturée?s?|fermée?s?|clos|résolue?s?"),
    mail=(r"e-?mail|courriel|mail|confirmation|message", r"envoyée?s?|expédiée?s?|transmise?s?"),
    negations="pas jamais aucun aucune sans rien ni",
    modals="peut peux peuvent pourrait pourrais pouvons pourra sera seront serait voulez souhaitez "
    "voudriez veux doit doivent être vais va",
    conditions="si lorsque quand une fois avant après dès jusqu'à",
    breaks="mais car donc parce cependant",
)
ITALIAN = _foreign(
    marks="il lo la è ho abbiamo stato stata suo tuo sua tua che per di del una un le gli ha",
    refund=r"rimborsat[oaie]|riaccreditat[oaie]|accreditat[oaie]",
    cancel=r"annullat[oaie]|cancellat[oaie]",
    address=(r"indirizz[oi]", r"cambiat[oa]|aggiornat[oa]|modificat[oa]|corrett[oa]"),
    ticket=(r"ticket|caso|richiesta", r"chius[oa]|risolt[oa]"),
    mail=(r"e-?mail|mail|conferma|messaggio", r"inviat[oaie]|mandat[oaie]|spedit[oaie]"),
    negations="non mai nessun nessuna senza niente nulla né",
    modals="può posso possono potrebbe potremmo possiamo vuole vuoi desidera sarà saranno sarebbe deve essere",
    conditions="se quando una volta prima dopo appena",
    breaks="ma perché però quindi",
)
PORTUGUESE = _foreign(
    marks="o a os as seu sua foi eu você que para com do da um uma já está no na ao",
    refund=r"reembolsad[oa]s?|reembolsei|reembolsamos|reembolsou|estornad[oa]s?|estornei|devolvid[oa]s?",
    cancel=r"cancelad[oa]s?|cancelei|cancelou|cancelamos|anulad[oa]s?",
    address=(
        r"endereços?|morada",
        r"alterad[oa]s?|alterei|alterou|alteramos|atualizad[oa]s?|atualizei|atualizamos|mudei|mudad[oa]",
    ),
    ticket=(r"ticket|chamado|caso|pedido", r"fechad[oa]|fechei|encerrad[oa]|encerrei|resolvid[oa]"),
    mail=(r"e-?mail|confirmação|mensagem", r"enviad[oa]s?|enviei|enviamos|enviou"),
    negations="não nunca nenhum nenhuma sem nada nem",
    modals="pode posso podem poderia podemos quer gostaria será serão seria deve ser vou vai",
    conditions="se quando uma vez antes depois assim",
    breaks="mas porque porém então",
)
DUTCH = _foreign(
    marks="de het een is ik heb hebben we uw je en voor werd van zijn op aan",
    refund=r"terugbetaald|teruggestort|vergoed|gecrediteerd|terugbetaling is (?:verwerkt|gedaan|onderweg)",
    cancel=r"geannuleerd\w*",
    address=(r"\w*adres", r"gewijzigd|aangepast|bijgewerkt|veranderd|gecorrigeerd"),
    ticket=(r"ticket|zaak|verzoek|aanvraag", r"gesloten|afgesloten|opgelost"),
    mail=(r"e-?mail|mail|bevestiging", r"verzonden|gestuurd|verstuurd"),
    negations="niet nooit geen zonder noch niets",
    modals="kan kunnen kunt zou zouden wil wilt moet moeten mag zal zullen worden",
    conditions="als zodra wanneer indien of voordat nadat tot",
    breaks="maar want dus omdat",
)

FOREIGN = (GERMAN, SPANISH, FRENCH, ITALIAN, PORTUGUESE, DUTCH)


def languages(said: list[Word]) -> list[Words]:
    """The languages that a sentence may be in: those most of its small words belong to."""
    scores = [sum(word.text in language.marks for word in said) for language in FOREIGN]
    best = max(scores)
    return [language for language, score in zip(FOREIGN, scores, strict=True) if score == best]


def foreign_claims(sentence: str, said: list[Word], language: Words) -> Iterator[tuple[str, int]]:
    for pattern in language.claims:
        for match in pattern.regex.finditer(sentence):
            start = match.start("v")
            clause = list(_clause(said, start, language))
            if not any(
                word in language.negations or word in language.modals or word in language.conditions
                for word in clause
            ):
                yield pattern.kind, start


def _clause(said: list[Word], at: int, language: Words) -> Iterator[str]:
    """The words around a verb, both ways up to the end of its clause."""
    for side in (
        [word.text for word in reversed(said) if word.start < at][:8],
        [word.text for word in said if word.start >= at][:4],
    ):
        for word in side:
            if word in PUNCTUATION or word in language.breaks:
                break
            yield word


def foreign_denials(sentence: str, said: list[Word], language: Words) -> set[str]:
    return {
        pattern.kind
        for pattern in language.claims
        for match in pattern.regex.finditer(sentence)
        if any(word in language.negations for word in _clause(said, match.start("v"), language))
        and not any(
            word in language.conditions for word in _clause(said, match.start("v"), language)
        )
    }

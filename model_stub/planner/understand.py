"""From a customer's message to wishes: what is asked for, about which orders, in which words."""

import re
from dataclasses import dataclass, field

from model_stub.planner import addresses, intents, slots
from model_stub.planner.addresses import Address
from model_stub.planner.intents import Hit
from model_stub.planner.words import normalised

_SPLIT = re.compile(
    r"(?<=[.!?;])\s+|\n+|\s*;\s*"
    r"|,\s+(?:(?:and|then|also|but|so|please)\s+)*"
    r"|\s+-\s+"
    r"|\s+(?:(?:and|then|also|plus|but|as well as)\s+)+(?:then\s+|also\s+|please\s+)?"
)
# "refund 1042, no wait, 1043": the number before is taken back in the same breath.
_REPLACED_ID = re.compile(
    r"(?:order )?#?\b\d{4,8}\b[ ,.-]*\b(?:no,? wait|wait,? no|no,? sorry|sorry|i mean|scratch that|or rather)\b"
    r"[ ,.-]*(?:(?:i meant?|it's|it is|not that one)[ ,]*)?(?=(?:order )?#?\d{4,8}\b)",
    re.I,
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_GREETING = re.compile(
    r"^(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening|day)|greetings|dear)\b[^,.!?]{0,20}[,.!]*\s*",
    re.I,
)
_THANKS = re.compile(
    r"\b(?:thanks?|thank you|thx|ty|cheers|much appreciated|appreciate it)\b", re.I
)
_BYE = re.compile(
    r"\b(?:bye|goodbye|see you|that's all|that is all|that'll be all|nothing else|all good now)\b",
    re.I,
)
_YES = re.compile(
    r"^(?:yes|yep|yeah|yup|sure|ok|okay|k|alright|all right|please do|go ahead|do it|do that|correct|right|exactly|"
    r"sounds good|fine|agreed|that's right|that would be great|perfect|great|i confirm|confirm(?:ed)?|please|approved?)"
    r"(?:[ ,.!]+(?:yes|please|thanks?|thank you|go ahead|do (?:it|that|so)|sure|i (?:do|would|agree|confirm)|ok|okay|"
    r"that (?:is|would be) (?:fine|great|right)|great|good|fine|correct))*[ .!]*$",
    re.I,
)
_SAYS_YES = re.compile(r"^(?:yes|yep|yeah|yup|sure|ok|okay|please do|go ahead)\b", re.I)
_NO = re.compile(
    r"^(?:no|nope|nah|not now|no way|rather not|i'd rather not|not really)(?:[ ,.!]+(?:thanks?|thank you|please|"
    r"not now|i don't|leave it|it's (?:fine|ok|okay)|that's (?:fine|ok|okay|all)))*[ .!]*$",
    re.I,
)
_STOP = re.compile(
    r"(?:^|[,.!;] *|\b(?:please|no|actually|oh) )(?:stop|wait|hold on|hang on|abort|halt)\b(?! order)"
    r"|\bnever ?mind\b|\bforget (?:it|that|about it|about that|what i said)\b|\bleave it\b|\bscrap (?:that|it)\b"
    r"|\b(?:don't|do not) (?:do (?:it|that|anything)|bother|proceed|go ahead|continue)\b"
    r"|\b(?:i(?:'ve| have)?|actually i) changed my mind\b|\bon second thought\b|\bi('ll| will) keep (?:it|them|the)\b",
    re.I,
)
_CORRECTION = re.compile(
    r"^(?:no|sorry|oops|wait|actually|i mean|rather)\b|\bi meant?\b|\bactually\b|\binstead\b|\bcorrection\b"
    r"|\bmy mistake\b|\bwrong (?:order )?number\b|\bmake (?:it|that)\b|\bnot (?:order )?#?\d{4}|\bjust\b|\bonly\b",
    re.I,
)
_CONDITION = re.compile(
    r"\bif\b(?! (?:at all )?(?:possible|you|that's|that is|this is|it's ok|it is ok|it's possible|it is possible|it's not too|need))",
    re.I,
)
_ADDITION = re.compile(r"^(?:and|also|plus|as well)\b|\b(?:too|as well|also)[.! ]*$", re.I)
_ALL_OF_THEM = re.compile(r"\b(?:both|all|them|they|each|these|those)\b")
_POINTING = re.compile(
    r"\b(?:it|that|this|them|they|these|those|the order|that order|this order|same order|the same)\b",
    re.I,
)
_QUESTION = re.compile(
    r"\?\s*$|^(?:what|how|when|why|who|which|can|could|do|does|is|are|am|may|will|would|should)\b",
    re.I,
)
_SMALL_TALK = (
    (
        "how_are_you",
        re.compile(r"\bhow (?:are|r) (?:you|u)\b|\bhow's it going\b|\bhow do you do\b", re.I),
    ),
    (
        "who",
        re.compile(
            r"\bwho are you\b|\bare you (?:a |an )?(?:\w+ )?(?:bot|robot|human|person|real|ai|machine)\b|\bwhat are you\b|\byour name\b",
            re.I,
        ),
    ),
    (
        "help",
        re.compile(
            r"\bwhat (?:else )?can you (?:do|help)\b|\bhow can you help\b|\bhelp\b.{0,20}\b(?:my|an) order\b|^(?:please )?(?:help|i need (?:some )?help|can you help(?: me)?)\b[^,]{0,12}$",
            re.I,
        ),
    ),
    ("joke", re.compile(r"\bjoke\b|\bsing\b|\bweather\b|\bpoem\b", re.I)),
    ("sorry", re.compile(r"^(?:i'm |i am )?sorry[.! ]*$", re.I)),
)


@dataclass
class Wish:
    """One thing asked for: its kind, the orders it is about, and the words that belong to it."""

    kind: str
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    refused: bool = False
    with_refund: bool = False

    @property
    def text(self) -> str:
        """The words of the wish."""
        return ", ".join(self.texts)

    @property
    def points_back(self) -> bool:
        """Tell whether the words point at an order named before: it, that, the order."""
        return bool(_POINTING.search(self.text))


@dataclass
class Utterance:
    """An understood message. `ids` are the order numbers in it, whether a wish took them or not."""

    text: str
    wishes: list[Wish] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    address: Address | None = None
    greets: bool = False
    thanks: bool = False
    leaves: bool = False
    agrees: bool = False
    says_yes: bool = False
    declines: bool = False
    stops: bool = False
    corrects: bool = False
    adds: bool = False
    asks: bool = False
    small_talk: str | None = None
    complains: bool = False


def understand(text: str) -> Utterance:
    """Return what a message of the customer says."""
    text = normalised(text)
    found = addresses.find(text)
    body = text if found is None else f"{text[: found.start]}<address>{text[found.end :]}"
    body = _REPLACED_ID.sub("", body)
    said = Utterance(text=text, address=found.address if found else None)
    said.greets = bool(_GREETING.match(body))
    body = _GREETING.sub("", body, count=1).strip() or ("" if said.greets else body)
    said.thanks = bool(_THANKS.search(body))
    said.leaves = bool(_BYE.search(body))
    said.agrees = bool(_YES.match(body))
    said.says_yes = said.agrees or bool(_SAYS_YES.match(body))
    said.declines = bool(_NO.match(body))
    said.stops = bool(_STOP.search(body))
    said.corrects = bool(_CORRECTION.search(body))
    said.adds = bool(_ADDITION.search(body))
    said.asks = bool(_QUESTION.search(body)) and len(body.split()) > 1
    said.small_talk = next((kind for kind, p in _SMALL_TALK if p.search(body)), None)
    said.ids = [order.id for order in slots.order_ids(body)]
    said.complains = slots.refund_reason(body) in ("damaged", "wrong_item", "not_as_described")
    said.wishes = _wishes(body, said)
    return said


def _wishes(body: str, said: Utterance) -> list[Wish]:
    clauses = _clauses(body)
    strong = any(
        hit.kind in intents.EFFECTS and not hit.refused for _, found in clauses for hit in found
    )
    builder = _Builder(strong=strong)
    for clause, found in clauses:
        builder.add(clause, found)
    wishes = builder.finish()
    if _CONDITION.search(body):
        _ask_instead(wishes, body)
    for wish in wishes:
        if wish.kind == intents.POLICY and len(wishes) == 1:
            wish.texts = [_sentence(body, wish.texts[0])]
    if wishes or said.says_yes or said.declines or said.stops:
        return wishes
    if said.complains or intents.is_late(body.lower()):
        kind = intents.COMPLAINT if said.complains else intents.TRACK
        return [Wish(kind, list(said.ids), [body])]
    if intents.is_unhappy(body.lower()):
        return [Wish(intents.UNSUPPORTED, list(said.ids), [body])]
    return wishes


def _ask_instead(wishes: list[Wish], body: str) -> None:
    """A refund wished for under a condition is a question about the rules, not yet a request."""
    for wish in wishes:
        if wish.kind == intents.REFUND and not wish.refused:
            wish.kind, wish.ids, wish.texts = intents.POLICY, [], [body]


def _clauses(body: str) -> list[tuple[str, list[Hit]]]:
    """Return the clauses with their hits; a clause that asks for two things is cut between them."""
    result = []
    for clause in _SPLIT.split(body):
        clause = clause.strip()
        if not clause:
            continue
        found = intents.hits(clause.lower(), has_id=bool(slots.order_ids(clause)))
        if len(found) < 2 or not slots.order_ids(clause[found[0].start : found[1].start]):
            result.append((clause, found))
            continue
        cut = found[1].start
        result.append((clause[:cut], found[:1]))
        result.append((clause[cut:], [Hit(found[1].kind, 0, found[1].refused)]))
    return result


def _sentence(body: str, clause: str) -> str:
    """Return the whole sentence around a clause: a better question than the clause alone."""
    for match in _SENTENCE.finditer(body):
        if clause in match.group():
            return match.group().strip()
    return clause


class _Builder:
    """Gathers clauses into wishes: which order numbers and which side remarks belong where."""

    def __init__(self, *, strong: bool) -> None:
        self._strong = strong
        self._wishes: list[Wish] = []
        self._loose_ids: list[str] = []
        self._loose_texts: list[str] = []
        self._last_id: str | None = None

    def add(self, clause: str, found: list[Hit]) -> None:
        """Take one clause."""
        ids = [order.id for order in slots.order_ids(clause)]
        late = self._strong and intents.is_late(clause.lower())
        if found and not (found[0].kind in (intents.TRACK, intents.STATUS) and late):
            self._open(clause, found, ids)
        elif ids:
            self._attach_ids(clause, ids)
        elif self._wishes:
            self._remark(clause)
        else:
            self._loose_texts.append(clause)
        if ids:
            self._last_id = ids[-1]

    def _open(self, clause: str, found: list[Hit], ids: list[str]) -> None:
        kinds = {hit.kind for hit in found}
        both = {intents.REFUND, intents.CANCEL} <= kinds and not any(hit.refused for hit in found)
        wish = Wish(
            intents.CANCEL if both else found[0].kind,
            list(ids),
            [*self._loose_texts, clause],
            refused=found[0].refused,
            with_refund=both,
        )
        if not wish.ids and wish.kind in intents.NEEDS_ORDER:
            wish.ids = self._loose_ids or self._pointed(wish)
        self._loose_ids, self._loose_texts = [], []
        if not both:
            for hit in found[1:]:
                self._wishes.append(Wish(hit.kind, list(ids), [clause], refused=hit.refused))
        self._wishes.append(wish)

    def _pointed(self, wish: Wish) -> list[str]:
        """An order named earlier in the message, when the clause names none itself."""
        if _ALL_OF_THEM.search(wish.texts[-1].lower()) and len(self._wishes) > 1:
            return list(dict.fromkeys(i for other in self._wishes for i in other.ids))
        return [self._last_id] if self._last_id and wish.points_back else []

    def _attach_ids(self, clause: str, ids: list[str]) -> None:
        last = self._wishes[-1] if self._wishes else None
        if last is None or last.kind not in intents.NEEDS_ORDER:
            self._loose_ids += ids
            self._loose_texts.append(clause)
        elif not last.ids:
            last.ids = ids
            last.texts.append(clause)
        elif set(ids) <= set(last.ids):
            last.texts.append(clause)
        else:
            self._wishes.append(Wish(last.kind, ids, [clause], refused=last.refused))

    def _remark(self, clause: str) -> None:
        """A side remark belongs to the last wish; "both were broken" to all of its kind."""
        last = self._wishes[-1]
        everyone = _ALL_OF_THEM.search(clause.lower())
        for wish in self._wishes:
            if wish is last or (everyone and wish.kind == last.kind):
                wish.texts.append(clause)

    def finish(self) -> list[Wish]:
        """Return the wishes; a cancel and a refund of one order become one wish."""
        if self._wishes and (self._loose_ids or self._loose_texts):
            self._wishes[-1].texts += self._loose_texts
        return _joined(self._wishes)


def _joined(wishes: list[Wish]) -> list[Wish]:
    result: list[Wish] = []
    for wish in wishes:
        earlier = result[-1] if result else None
        if (
            earlier is not None
            and {earlier.kind, wish.kind} == {intents.CANCEL, intents.REFUND}
            and not (earlier.refused or wish.refused)
            and (not earlier.ids or not wish.ids or earlier.ids == wish.ids)
            and (not earlier.ids or not wish.ids or earlier.ids == wish.ids)
        ):
            earlier.kind, earlier.with_refund = intents.CANCEL, True
            earlier.ids = earlier.ids or wish.ids
            earlier.texts += wish.texts
        else:
            result.append(wish)
    return result

"""The patterns that tell what a clause asks for."""

import re
from dataclasses import dataclass

REFUND, CANCEL, ADDRESS = "refund", "cancel", "change_address"
TRACK, STATUS, LIST = "track", "status", "list"
POLICY, CLOSE, HAND_OFF = "policy", "close", "hand_off"
COMPLAINT, UNSUPPORTED = "complaint", "unsupported"
EFFECTS = (REFUND, CANCEL, ADDRESS)
NEEDS_ORDER = (*EFFECTS, TRACK, STATUS, COMPLAINT)


@dataclass(frozen=True)
class Hit:
    """A request found in a clause. `refused` means that the customer says not to do it."""

    kind: str
    start: int
    refused: bool = False


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_PERSON = (
    r"(?:a |an |the |your |some )?(?:real |live |actual |human |customer )*"
    r"(?:person|people|human(?: being)?|agent|representative|rep|advisor|operator|manager|"
    r"supervisor|someone|somebody|staff|colleague|support team|member of staff|team member)"
)
_HAND_OFF = _any(
    rf"\b(?:talk|speak|chat|connect(?: me)?|transfer(?: me)?|put me through|escalate|pass me|"
    rf"hand me over|get me|give me|want|need|like|call me|contact)\b.{{0,25}}?\b{_PERSON}\b",
    rf"^(?:(?:please|a|real|live|human)\s+)*{_PERSON}(?:\s+please)?[.!? ]*$",
    r"\b(?:lawyer|attorney|sue you|legal action|police|fraud|hacked|chargeback)\b",
    r"\bhand (?:me|this|it) (?:off|over)\b",
    r"\bcan (?:someone|somebody|anyone|a person)\b.{0,20}\b(?:call|help|contact|phone|answer)\b",
)
_RESTORE = re.compile(r"\b(?:undo|revoke|restore|reactivate|reinstate|un-?cancel)\b")
_UNHAPPY = _any(
    r"\bcomplain(?:t|ing)?\b|\b(?:terrible|awful|horrible|worst|bad) (?:service|experience|shop)\b",
    r"\buseless\b|\bangry\b|\bdisappoint\w+|\bunacceptable\b|\bridiculous\b|\boutrageous\b",
)
_NOT_A_PERSON = re.compile(r"\b(?:don't|do not|no)\b.{0,20}$")
_CLOSE = _any(
    r"\b(?:close|end|finish)\b (?:this|the|my|it|our)?\s*(?:ticket|case|chat|conversation|issue|request)\b",
    r"\b(?:please |you can |can you |could you )close (?:this|it)\b",
    r"\bclose (?:this|it)(?: now| please)?[.! ]*$",
    r"\bmark\b.{0,20}\b(?:solved|resolved|closed|done)\b",
)
_ADDRESS = _any(
    r"\b(?:chang\w*|updat\w*|correct\w*|fix\w*|edit\w*|modify\w*|wrong|new|different|replace|set|mistake in)\b"
    r".{0,40}\b(?:address|destination)\b",
    r"\bchange\b.{0,15}\bwhere\b",
    r"\baddress\b.{0,30}\b(?:is|was|should|chang\w*|updat\w*|wrong|incorrect)\b",
    r"\b(?:send|ship|deliver|redirect|reroute|forward)\b(?! (?:it |this |that |them )?back).{0,40}"
    r"\b(?:to|at)\b.{0,30}(?:<address>|address|instead|new place|different|neighbou?r|office|work|friend|parents)",
    r"\bi(?:'ve| have)? (?:just )?moved\b",
    r"\bto <address>",
)
_POLICY_WORDS = _any(
    r"\bpolic(?:y|ies)\b",
    r"\b(?:refund|return|cancell?ation|shipping|delivery|exchange)s?"
    r" (?:rules?|terms|conditions|windows?|periods?|process|fees?|costs?|times?|options)\b",
    r"\bwarranty\b|\bguarantee\b|\brestocking\b|\bfine print\b|\bterms and conditions\b",
    r"\bhow (?:do|does|can|long|many days|much time|much is|much does)\b.{0,30}"
    r"\b(?:returns?|refunds?|exchang\w+|cancellations?|shipping|delivery|send .* back)\b",
    r"\bwhen (?:do|are) refunds\b|\bdo refunds\b",
    r"\bwhat (?:happens|if)\b",
    r"\bdo you (?:accept|offer|take|allow|ship|deliver|refund|give|charge|do|sell|have|provide|support)\b",
    r"\b(?:are|is) (?!it possible).{0,40}\b(?:returnable|refundable|free|allowed|possible)\b",
    r"\bam i (?:allowed|able|entitled|eligible)\b",
    r"\bwho pays\b",
)
_GENERAL = _any(
    r"\b(?:can|could|may|do|am|would|will|how|when|is it possible|possible)\b.{0,30}"
    r"\b(?:return|refund|exchange|cancel|send back|send)\b(?:.{0,12}\b(?:a|an|any|something|items?|things|"
    r"orders|goods|clothes|products|shoes|worn|used|opened|sale|unwanted)\b)",
)
_PAST = _any(
    r"\b(?:did|have|has|had|was|were|is|are)(?:n't| not)?\b.{0,30}\b(?:refunded|cancell?ed|refund\b.{0,12}"
    r"(?:gone|been|through|sent|done|complete\w*|process\w*)|money back yet)\b",
    r"\bdid(?:n't| not)? (?:you|the shop|they|my|i)\b.{0,25}\b(?:refund|cancel)\b",
    r"\b(?:where|what|when|how)\b.{0,30}\b(?:my|the) (?:refund|money)\b",
    r"\b(?:already|just) (?:got|received|had|have)\b.{0,20}\brefund",
    r"\b(?:my|the|this) refund\b.{0,30}(?:n't|\bnot|\bnever)\b.{0,12}"
    r"\b(?:arrived?|come|came|received?|got|here|through|shown?)\b",
    r"\bstatus of (?:my|the) (?:refund|return|cancell?ation)\b",
    r"\b(?:check|track) (?:on )?my refund\b",
    r"\bwhen (?:will|do|can) i (?:get|see|receive|have)\b.{0,15}\b(?:refund|money)\b",
)
_THING = r"(refund|return|cancell?ation|address change)"
_GAP = r"(?:\s+(?!(?:forget|i|so|please|but|because|just|give)\b)[\w']+){0,5}"
_UNDO = re.compile(
    r"\b(?:cancel|stop|withdraw|scrap|forget(?: about)?|abort|don't (?:want|need))\b"
    rf" (?:the |my |that |this |a |any )?{_THING}\b"
    rf"|\b(?:don't|dont|do not|never|no longer)(?: think (?:that )?i)?{_GAP}"
    rf"\s+(?:the|my|that|this|any|a)\s+{_THING}\b"
    rf"|\b{_THING}\b.{{0,30}}\b(?:to be|be|is to be|should be) (?:stopped|cancell?ed|withdrawn|undone|halted)\b"
)
_REFUND = _any(
    r"\b(?:refund|refnd|refudn|refun|refound|reffund)(?:s|ed|ing)?\b",
    r"\bmoney back\b|\breimburse\w*\b|\bpay me back\b|\bcredit me\b|\bcompensat\w+\b",
    r"\bget\b.{0,20}\b(?:my|the|some) money\b",
    r"(?:[$\u20ac\u00a3]\s?\d[\d.,]*|\b\d[\d.,]* ?(?:dollars?|bucks|usd|eur|euros?|pounds?)) (?:back|off)\b",
    r"(?:\bhalf|%|\bpercent)(?: of (?:it|that|the price))? (?:back|off)\b",
    r"\breturn(?:ing)?\b (?:my|the|this|that|it|them|these|those|order|orders|both|all|one|two|#?\d)",
    r"\b(?:send|bring|take)\b.{1,40}\bback\b|\bgive (?:it|this|that|them|these|the \w+|my \w+) back\b",
    r"\b(?:make|file|start) a return\b|\bwant to return\b|\blike to return\b",
)
_CANCEL = _any(
    r"\bcancell?(?:ed|ing|ation)?\b|\bcanc(?:le|l|al)\b|\bcall off\b",
    r"\bstop (?:my |the )?order\b",
    r"\b(?:don't|do not|no longer) (?:want|need) (?:my |the |this |that )?order\b",
    r"\b(?:don't|do not|no longer) (?:want|need) #?\d{4}",
)
_LIST = _any(
    r"\b(?:list|show|see|view|display|find|give me|tell me|check)\b.{0,20}\borders\b",
    r"\b(?:what|which)\b.{0,25}\borders\b",
    r"^(?:please )?(?:my|all|all my|all of my|recent|open) orders\b",
    r"\b(?:do|did|have) i\b.{0,20}\borders\b",
    r"\border history\b|\bmy (?:recent |past |previous |last |open |pending |\w+ )?orders\b",
    r"\bwhat (?:have|did) i (?:order|buy|bought|ordered|purchase)\w*(?! (?:in|on) (?:order )?#?\d)",
)
_TRACK = _any(
    r"\bwhere(?:'s| is| are|s)?\b(?!.{0,30}\brefund)",
    r"\btrack(?:ing)?\b",
    r"\bwhen (?:will|does|do|is|are|can|should|would|might|did|was)\b.{0,40}\b(?:arriv\w*|com(?:e|ing)|deliver\w*|here|receiv\w*|due|expect\w*|get (?:it|my|the)|ship\w*)\b",
    r"(?<!\bi )\b(?:has|have|did|is|was|will)\b.{0,30}\b(?:shipped|ship|sent|dispatched|delivered|arrived?|left|on its way|"
    r"out for delivery)\b",
    r"\bhow long\b.{0,40}\b(?:arriv\w*|get here|deliver\w*|come|take)\b",
    r"\beta\b|\b(?:delivery|arrival|expected) (?:date|time|status)\b",
    r"\bstill waiting\b|\bwaiting for\b",
    r"\b(?:parcel|package|shipment|delivery)\b",
)
_LATE = _any(
    r"\b(?:not|n't|never)\b.{0,20}\b(?:arriv\w+|came|come|receiv\w+|got|get|turned up|shown up|showed up|delivered|here)\b",
    r"\b(?:is|are|it's|running) (?:very |so |really )?late\b|\bdelayed\b|\bmissing\b|\blost\b",
)
_STATUS = _any(
    r"\bstatus\b",
    r"\bwhat(?:'s| is) (?:happening|going on|up|the matter)\b",
    r"\b(?:details?|info|information|summary)\b.{0,12}\b(?:of|for|about|on)\b",
    r"\bwhat(?:'s| is| was)? in\b|\bwhat did i (?:order|buy)\b",
    r"\b(?:tell me about|look up|look at|look into|check|show|find|open|about)\b.{0,20}(?:\border\b|#?\d{4})",
    r"\bhow(?:'s| is| are) (?:my|the) order\b|\bhow much (?:was|did|is)\b.{0,20}(?:\border\b|\d{4})",
    r"\b(?:any )?(?:news|update|progress)\b",
)
_UNSUPPORTED = _any(
    r"\bexchang\w+|\breplac(?:e|ement|ing)\b|\bswap\b|\bsend (?:me )?(?:a new|another)\b",
    r"\binvoice\b|\breceipt\b|\bpassword\b|\blog ?in\b|\bmy account\b|\bsubscription\b",
    r"\bdiscount\b|\bcoupon\b|\bvoucher\b|\bpromo\w*\b|\bgift card\b",
    r"\b(?:place|make) (?:a|an|another|new)\b.{0,10}\border\b|\bbuy\b|\bpayment method\b|\bcredit card\b",
    r"\bcharged (?:me )?(?:twice|double|wrong\w*|too much)\b|\bovercharged\b|\bdouble charge\b",
    r"\badd\b.{0,30}\bto (?:my |the )?order\b",
    r"\b(?:change|modify|edit|amend)\b.{0,20}\border\b",
)
_NEGATION = re.compile(
    r"\b(?:don't|dont|do not|not|never|no|without|rather than|instead of|no need (?:for|to))\b"
    r"(?:\s+(?:want|need|you|me|to|a|an|the|any|please|my|ask|asking|for|actually|really|just|yet|have|get|"
    r"like|wish|go|ahead|with|bother|that))*\s*$"
)
_NEGATION_PASSIVE = re.compile(
    r"\b(?:don't|dont|do not|not|never)\b(?:\s+(?:want|need|like|wish|have|get|to|be|it|this|that|them|my|the|order"
    r"|#?\d{4,8}))*\s*$"
)
_ASKING = re.compile(
    r"\b(?:why don't|why not|can't|couldn't|won't|wouldn't|can not|could not) (?:you|we|i)\b"
)


def hits(clause: str, *, has_id: bool) -> list[Hit]:
    """Return what a lower-case clause asks for, in order of mention; mostly one thing or nothing."""
    whole = _whole_clause(clause)
    if whole:
        return whole
    money = _money_hits(clause, has_id=has_id)
    if money:
        return money
    for kind, pattern in ((POLICY, _POLICY_WORDS), (LIST, _LIST)):
        if pattern.search(clause) and not has_id:
            return [Hit(kind, 0)]
    for kind, pattern in ((UNSUPPORTED, _UNSUPPORTED), (TRACK, _TRACK), (STATUS, _STATUS)):
        match = pattern.search(clause)
        if match:
            return [Hit(kind, match.start())]
    return []


def _whole_clause(clause: str) -> list[Hit]:
    if _RESTORE.search(clause):
        return [Hit(UNSUPPORTED, 0)]
    person = _HAND_OFF.search(clause)
    if person and not _NOT_A_PERSON.search(clause[: person.start()]):
        return [Hit(HAND_OFF, person.start())]
    close = _CLOSE.search(clause)
    if close:
        return [Hit(CLOSE, 0, refused=bool(_NEGATION.search(clause[: close.start()])))]
    undo = _UNDO.search(clause)
    if undo:
        return [Hit(_undone(next(filter(None, undo.groups()))), undo.start(), refused=True)]
    match = _ADDRESS.search(clause)
    if match:
        return [Hit(ADDRESS, match.start(), refused=_is_refused(clause, match))]
    return []


def _undone(word: str) -> str:
    if word.startswith("cancel"):
        return CANCEL
    return ADDRESS if word.startswith("address") else REFUND


def _money_hits(clause: str, *, has_id: bool) -> list[Hit]:
    found = [
        Hit(kind, match.start(), _is_refused(clause, match))
        for kind, pattern in ((REFUND, _REFUND), (CANCEL, _CANCEL))
        if (match := pattern.search(clause))
    ]
    if not found and not (_GENERAL.search(clause) and not has_id):
        return []
    if not has_id and "how long" in clause:
        return [Hit(POLICY, 0)]
    if _PAST.search(clause):
        return [Hit(STATUS, 0)]
    if not has_id and (_POLICY_WORDS.search(clause) or _GENERAL.search(clause)):
        return [Hit(POLICY, 0)]
    return sorted(found, key=lambda hit: hit.start)


def _is_refused(clause: str, match: re.Match[str]) -> bool:
    before = clause[: match.start()]
    if _ASKING.search(before):
        return False
    passive = match.group().endswith("ed")
    return bool((_NEGATION_PASSIVE if passive else _NEGATION).search(before)) or bool(
        _NEGATION.search(before)
    )


def is_late(clause: str) -> bool:
    """Tell whether a clause complains that something has not come."""
    return bool(_LATE.search(clause))


def is_unhappy(text: str) -> bool:
    """Tell whether a text complains of the service as such."""
    return bool(_UNHAPPY.search(text))

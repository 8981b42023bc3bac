"""The words by which an English reply claims that something was done."""

from agents.claims.patterns import (
    ADDRESS,
    ANY,
    CANCEL,
    CLOSE,
    EMAIL,
    REFUND,
    Words,
    patterns,
    words_of,
)

_GAP = r"(?:(?:[^.?!\n]|\.(?=\d)){0,70}?)"  # within a sentence
_NEAR = r"(?:(?:[^.?!,;:\n]|[.,](?=\d)){0,45}?)"  # within a clause
_SUM = r"(?:[$€£¥]\s?\d[\d.,]*|\d[\d.,]*\s?(?:dollars?|euros?|pounds?|usd|eur|gbp|[$€£]))"
_CARD = r"(?:card|account|bank|payment method|paypal|wallet)"

_ENDED = (
    r"(?P<v>processed|issued|completed?|done|finali[sz]ed|finished|sent|made|granted|given|"
    r"initiated|started|triggered|confirmed|approved|authori[sz]ed|arranged|executed|successful|"
    r"through|gone through|put through|on (?:its|the|their) way|under ?way|in pro(?:gress|cess)|applied|"
    r"credited|placed|released|registered|booked|cleared|queued|set up|in place|posted|taken care of|"
    r"sorted(?: out)?|all set|good to go|submitted|scheduled|carried out|performed|effected|"
    r"fulfilled|settled|paid(?: out)?|returned|transferred)\b"
)
_ADVERBS = r"(?: (?:now|just|already|all|been|being|both|then|since|indeed|also|gone|\w+ly))*"
_AUX = r"(?:\b(?:is|are|was|were|has|have|had|got|been|being|be)|'s|'re|'ve|n't)"


def _done(noun: str) -> tuple[str, ...]:
    """A noun and what became of it: "the refund has now been issued", "Refund issued", ..."""
    return (
        rf"{noun}{_GAP}{_AUX}{_ADVERBS}(?: \w+ed and)? {_ENDED}",
        rf"{noun}(?: (?:of|for|to|on|over) (?:[^.?!\n]|\.(?=\d)){{0,40}}?)?(?: as)?\s?[:,\u2013\u2014-]?{_ADVERBS} {_ENDED}",
        rf"{noun}{_GAP}\b(?P<v>succeeded|went through|came through|cleared|worked)\b",
    )


_DID = (
    r"\b(?P<v>processed|issued|completed|finali[sz]ed|finished|sent|made|granted|gave|given|"
    r"initiated|started|triggered|confirmed|approved|authori[sz]ed|arranged|executed|put through|"
    r"went ahead with|gone ahead with|applied|placed|released|registered|booked|set up|posted|"
    r"done|did|took care of|taken care of|sorted(?: out)?|submitted|scheduled|carried out|"
    r"performed|effected|fulfilled|settled|accepted|secured|got|gotten|entered|logged|recorded)\b"
)
_BACK = (
    r"(?P<v>back|returned|credited|on (?:its|the|their) way|paid(?: back| out)?|sent(?: back)?|"
    r"transferred|released|reversed|reimbursed|repaid|going (?:back )?to|heading (?:back )?to|"
    r"headed (?:back )?to|coming back|reinstated|restored)\b"
)
_REFUND_NOUN = r"\b(?:refund|reimbursement|repayment|chargeback|money[- ]back)s?\b"
_MONEY = rf"(?:\b(?:money|amount|payment|funds|full price|purchase price|balance)\b|{_SUM})"
_BE = r"(?:\b(?:is|are|was|were|has|have|had|been|being|got)\b|'s\b|'ve\b|'re\b)"

_CHANGED = (
    r"(?P<v>changed|updated|corrected|replaced|switched|amended|modified|edited|fixed|saved|"
    r"swapped|adjusted|redirected|re-?routed|revised|altered|set|moved|entered|recorded|"
    r"overwritten|put|added)\b"
)
_ADDRESS_NOUN = (
    r"\b(?:address(?:es)?|destination|recipient|(?:the|your) (?:house number|street(?: name| number)?|"
    r"post(?:al)? ?code|zip(?: code)?|apartment number)|(?:delivery|shipping) "
    r"(?:details|info|information|location|name))\b"
)
_CHANGED_ORDER = (
    r"\b(?P<v>changed|updated|corrected|amended|modified)\b"
    + _NEAR
    + r"\border\b"
    + _NEAR
    + r"\b(?:details|address|information|street)\b"
)
_TICKET = r"\b(?:ticket|case|conversation|chat|request|inquiry|enquiry|query|thread)\b"
_MAIL = r"\b(?:e-?mails?|confirmation|receipt|inbox|written summary)\b"

_MANAGED = (
    r"\b(?P<v>(?:was|were|been) able to|managed to|took the liberty of|took care of|succeeded in|ended up|got around to|"
    r"have finished|'ve finished)\b"
)
_DOING = r"(?:\bi'm|\bi am|\bwe're|\bwe are)(?: now| just| currently| already| also)* "
# What follows a bare "Refunding ..." that says what goes on, and not how such things go.
_OBJECT = (
    r"(?! (?:an?|any|orders|items|takes)\b)"
    r"(?![^.?!]*\b(?:takes?|is|are|can|may|will|would|requires?|needs?|means|works|isn't)\b)[^?]{0,60}"
)
_FINISHED = (
    r"done|all set|all done|all sorted|sorted(?: out)?|taken care of|complete|completed|handled|"
    r"processed|arranged|fixed|finished|settled|carried out|dealt with|saved|in place"
)
_OPENER = (
    r"(?:(?:and|so|ok|okay|great|perfect|alright|all right|yes|sure|good news|well|there|great news)"
    r"\b\W*)*"
)
_ALL = r"(?:(?:all|now|already|successfully|consider it)\b )?"
_THAT = (
    r"(?:it|that|this|everything|all of (?:it|that|this)|you|your request|the change|your order)"
    r"(?:'s|'re| is| are| has| have| was| were)(?: now| all| already| just| been| successfully)* "
)

_ENGLISH = (
    *patterns(
        REFUND,
        r"\b(?P<v>refunded|reimbursed|repaid|re-?credited|compensated)\b",
        *_done(r"\bcredit\b(?! card)"),
        _DID + _NEAR + r"\bcredit\b(?! card)",
        _MONEY + _NEAR + r"\b(?P<v>went|gone|came|bounced) back\b",
        *_done(_REFUND_NOUN),
        _DID + _NEAR + _REFUND_NOUN,
        _MONEY + _NEAR + _BE + _NEAR + r"\b" + _BACK,
        r"\b(?P<v>returned|sent|paid|put|transferred|credited|gave|given|got|released|reversed|"
        rf"moved|wired)\b{_NEAR}{_MONEY}{_NEAR}\b(?:back|to (?:you|your|the))\b",
        rf"\b(?P<v>credited|reversed|returned)\b{_NEAR}{_MONEY}",
        rf"\b(?P<v>credited|paid back|reversed)\b{_NEAR}\b(?:you|your|{_CARD})\b",
        rf"\b(?:charge|payment)\b{_NEAR}{_BE}{_NEAR}\b(?P<v>reversed|voided|undone|cancell?ed)\b",
        rf"{_BE}{_NEAR}\b(?P<v>paid back|given back)\b",
        rf"\b{_CARD}{_NEAR}{_BE}{_NEAR}\b(?P<v>credited)\b",
        r"\b(?P<v>reversed|voided|undone|undid)\b" + _NEAR + r"\b(?:charge|payment|transaction)\b",
        _MANAGED + _NEAR + r"\b(?:refund\w*|reimburs\w*|repay\w*)\b",
        _DOING + r"(?P<v>refunding|reimbursing)\b",
        _DOING + r"(?P<v>issuing|processing|making|sending|arranging)\b" + _NEAR + _REFUND_NOUN,
        r"\b(?P<v>made good|made you whole)\b",
        r"\b(?P<v>you(?:'ve| have) (?:got|received|gotten)) (?:a|your|the) (?:full |partial )?refund",
    ),
    *patterns(
        REFUND,
        r"\b(?P<v>you(?:'ll|'re|'re going to| will| should| are| can expect to)? (?:now )?"
        r"(?:soon |shortly )?(?:see|receive|get|have|find|expect|be seeing|be getting|getting|"
        rf"receiving))\b{_NEAR}"
        rf"(?:{_REFUND_NOUN}|\bmoney\b|\bfunds\b|\bcredit\b|{_SUM})",
        rf"(?:{_REFUND_NOUN}|{_MONEY}){_NEAR}(?P<v>(?:\bwill|\bshould|'ll)(?: now| soon| then)? "
        r"(?:arrive|appear|show|be (?:back|in|on|with|available|visible)|reach|land|hit|take))\b",
        rf"\b(?P<v>expect)\b (?:the|your|a) (?:{_REFUND_NOUN}|money|funds|{_SUM})",
        rf"{_SUM}{_NEAR}\b(?P<v>(?:is|are) (?:back|yours again))\b",
        rf"\b{_CARD}{_NEAR}\b(?P<v>will show|should show|shows)\b{_NEAR}{_REFUND_NOUN}",
        rf"(?P<v>\bfor (?:the|your))\b[^.?!,;\n]{{0,20}}(?:{_REFUND_NOUN}|{_MONEY}){_NEAR}"
        r"\bto (?:appear|show|arrive|reach|be|get|land|clear)\b",
        rf"{_REFUND_NOUN}{_NEAR}\b(?P<v>is|are)\b{_NEAR}\b(?:in|on) (?:your|the) {_CARD}\b",
        r"\b(?P<v>here(?:'s| is)) (?:your|the) (?:full |partial )?refund\b(?! \w)",
        rf"\b(?P<v>we'll have|i'll have)\b{_NEAR}(?:money|{_SUM}){_NEAR}\bback\b",
        # Where there is a reference, something was done.
        r"\b(?P<v>refund (?:reference|confirmation|number|id|receipt))\b(?! (?:if|when|once))",
        is_implied=True,
    ),
    *patterns(
        REFUND,
        rf"^{_OPENER}(?P<v>refunding|reimbursing)\b{_OBJECT}$",
        rf"^{_OPENER}(?P<v>processing|issuing|sending|making)\b (?:the|your|a) refund\b{_OBJECT}$",
    ),
    *patterns(
        CANCEL,
        rf"^{_OPENER}(?P<v>cancell?ing)\b{_OBJECT}$",
        r"\b(?P<v>cancell?ed)\b",
        *_done(r"\bcancell?ations?\b"),
        _DID + _NEAR + r"\bcancell?ation\b",
        _MANAGED + _NEAR + r"\bcancel\w*\b",
        _DOING + r"(?P<v>cancell?ing)\b",
        _DOING + r"(?P<v>processing|making|arranging)\b" + _NEAR + r"\bcancell?ation\b",
        r"\b(?P<v>put (?:a|an) (?:stop|end|halt) to|removed|deleted|dropped|killed|got rid of)\b"
        + _NEAR
        + r"\border\b(?! (?:from|note))",
        r"\border\b(?: \S+)? is(?P<v> off)\b(?! to)",
        r"\b(?P<v>stopped|halted|called off|voided|annulled|withdrawn|withdrew|pulled|scrapped|"
        rf"revoked|undone|undid|rescinded){_NEAR}\b(?:order|shipment|purchase)\b",
        r"\b(?:order|shipment|purchase)\b" + _NEAR + _BE + _NEAR + r"\b(?P<v>stopped|halted|"
        r"called off|voided|annulled|withdrawn|pulled|scrapped|revoked|rescinded|undone|removed|"
        r"deleted)\b",
    ),
    *patterns(
        CANCEL,
        r"\b(?:order|it)\b" + _NEAR + r"\b(?P<v>will nolonger|is nolonger going to|won't now)"
        r" (?:be )?(?:ship|sent|go out|deliver)",
        r"\b(?:order|it)\b" + _NEAR + r"\b(?P<v>won't|will not) (?:be )?(?:shipp?(?:ed)?|sent out|"
        r"dispatched|charged|billed)\b",
        r"\byou(?P<v> won't| will not) be (?:charged|billed)\b",
        is_implied=True,
    ),
    *patterns(
        ADDRESS,
        r"\b" + _CHANGED + _NEAR + _ADDRESS_NOUN,
        _ADDRESS_NOUN + _NEAR + _BE + _NEAR + r"\b" + _CHANGED,
        *_done(_ADDRESS_NOUN + r" (?:change|update|correction|changes)\b"),
        *_done(
            r"\b(?:change|update|correction) (?:of|to) (?:the |your )?(?:new )?" + _ADDRESS_NOUN
        ),
        _DID + _NEAR + _ADDRESS_NOUN + r" (?:change|update|correction)",
        _DID + _NEAR + r"\b(?:change|update|correction) (?:of|to) (?:the |your )?" + _ADDRESS_NOUN,
        r"\b(?P<v>redirected|re-?routed|re-?addressed)\b",
        _ADDRESS_NOUN + r"(?: (?:of|for|on) [^.?!\n]{0,30}?)?\s?[:,\u2013\u2014-]?(?: \w+ly| now)* "
        r"(?P<v>changed|updated|corrected|replaced|amended|saved|redirected)\b",
        _MANAGED
        + _NEAR
        + r"\b(?:chang|updat|correct|replac|switch|amend|set)\w*"
        + _NEAR
        + _ADDRESS_NOUN,
        _DOING
        + r"(?P<v>changing|updating|correcting|replacing|switching|amending)\b"
        + _NEAR
        + _ADDRESS_NOUN,
        r"\border\b" + _NEAR + r"\b(?P<v>has the (?:new|updated|corrected)) " + _ADDRESS_NOUN,
        _CHANGED_ORDER,
        r"\b(?:will|'ll) (?:be )?(?:go|ship|shipped|sent|delivered) to\b"
        + _NEAR
        + r"\b(?P<v>now)\b",
        r"\b(?P<v>have|got)\b"
        + _NEAR
        + r"\bnew "
        + _ADDRESS_NOUN
        + _NEAR
        + r"\b(?:on file|in place|on the order|in the system|saved)\b",
        r"\bnew " + _ADDRESS_NOUN + r"(?P<v> is)(?: now)? (?:on|in)\b",
        _ADDRESS_NOUN + _NEAR + r"\b(?:is|reads|shows|says)(?P<v> now)\b",
        _ADDRESS_NOUN + _NEAR + r"\b(?P<v>now (?:is|reads|shows|says))\b",
        r"\bnew "
        + _ADDRESS_NOUN
        + _NEAR
        + _BE
        + _NEAR
        + r"\b(?P<v>in place|on file|saved|active)\b",
    ),
    *patterns(
        ADDRESS,
        r"\b(?P<v>(?:will|'ll|is|'s|are|has been) now (?:be )?(?:going|go|shipp?(?:ing|ed)?|"
        r"deliver(?:ed|ing)?|sent|headed|heading|set to (?:go|ship)|addressed))\b"
        + _NEAR
        + r"\bto\b",
        r"\b(?P<v>now (?:going|goes|ships|shipping|heading|headed|addressed)) to\b",
        r"\b(?P<v>will now (?:be )?\w+) to\b",
        r"\b(?P<v>going|on (?:its|the) way|headed|heading|addressed|routed|sent|shipped) to "
        r"(?:the|your) (?:new|updated|changed|other|corrected)\b",
        _ADDRESS_NOUN + r" (?:is|reads)\b[^.?!\n]{0,60} (?P<v>now)\W*$",
        r"\b(?P<v>(?:will|'ll) (?:be )?(?:ship|shipped|sent|go|delivered|arrive)) (?:to|at) "
        r"(?:your|the) (?:new|updated|changed|other|corrected)\b",
        is_implied=True,
    ),
    *patterns(
        CLOSE,
        *_done(r"\b(?:closing|closure)\b"),
        r"\b(?P<v>closed|archived|wrapped up)\b" + _NEAR + _TICKET,
        _TICKET + _NEAR + r"\b(?P<v>closed|archived|wrapped up)\b",
        r"\b(?P<v>consider)\b" + _NEAR + r"\bclosed\b",
        r"\b(?P<v>marked)\b" + _NEAR + r"\b(?:closed|resolved|solved|done|complete|completed)\b",
        _DOING + r"(?P<v>closing|archiving)\b" + _NEAR + _TICKET,
        _MANAGED + _NEAR + r"\bclos\w*" + _NEAR + _TICKET,
        r"\b(?P<v>resolved|solved|completed)\b" + _NEAR + r"\b(?:ticket|case)\b",
        r"\b(?:ticket|case)\b" + _NEAR + _BE + _NEAR + r"\b(?P<v>resolved|solved|completed)\b",
    ),
    *patterns(
        EMAIL,
        r"\b(?P<v>e-?mailed)\b",
        _DOING + r"(?P<v>e-?mailing)\b",
        _DOING + r"(?P<v>sending)\b(?: \S+){0,5}? ?" + _MAIL,
        r"\b(?P<v>sent|dispatched|forwarded|mailed|dropped)\b(?: \S+){0,5}? ?" + _MAIL,
        _MAIL + _NEAR + r"\b(?P<v>sent|dispatched|on (?:its|the) way|delivered|gone out|"
        r"went out|mailed)\b",
        r"\binbox\b" + _GAP + r"\b(?P<v>sent)\b",
        _MAIL + _NEAR + r"\b(?:is|are|'s)\b(?P<v> (?:now )?(?:in your inbox|out))\b",
    ),
    *patterns(
        EMAIL,
        r"\b(?P<v>you(?:'ll|'re going to| will| should)(?: now| soon| shortly| also)? "
        r"(?:receive|get|find|have|see))\b(?: \S+){0,4}? ?\b(?:e-?mail|confirmation|inbox)\b",
        r"\be-?mail\b" + _NEAR + r"\b(?P<v>will (?:arrive|follow|reach|be with))\b",
        is_implied=True,
    ),
    *patterns(
        ANY,
        r"^(?:it|that|this|everything|(?:the |your )?(?:changes?|operation|request|action|update))"
        r"(?: has| have| was| were)?(?: all)? (?P<v>worked(?: out)?|went through|gone through|"
        r"succeeded|successful)\W*$",
        rf"^{_OPENER}{_ALL}(?P<v>{_FINISHED})(?: for you| now| then)?\W*$",
        rf"^{_OPENER}{_THAT}(?P<v>{_FINISHED})(?: for you| now| then| as (?:you )?\w+)?(?:, [a-z]+)?\W*$",
        r"\b(?:request|change|changes|update)\b(?: (?:has|have|is|are|was|were|been|now|already|"
        rf"just|successfully|fully|all))+ (?P<v>{_FINISHED}|made|granted|applied|executed|fulfilled)\b",
        r"\bi(?:'ve| have)?(?: just| already| now| gone ahead and| went ahead and)* "
        r"(?P<v>done|did|made|completed|processed|taken care of|took care of|sorted(?: out)?|handled|"
        r"fixed|executed|fulfilled|carried out) (?:it|that|this|the (?:requested )?changes?|your "
        r"(?:request|changes?)|everything|all|what you asked)\b",
    ),
)

ENGLISH = Words(
    claims=_ENGLISH,
    marks=frozenset(),
    negations=words_of(
        "not never no nothing none nobody neither nor cannot without unable failed failing fails "
        "declined refused hardly impossible unsuccessful unless instead nolonger"
    ),
    modals=words_of("can could may might would will shall must ought should"),
    conditions=words_of("if once when whenever after until till before unless whether assuming"),
    breaks=words_of("but so because although though however therefore thus"),
)
# What may stand between a modal and the verb that it governs: "can then be refunded".
ENGLISH_ASIDE = words_of(
    "be been being have has get to also then now only still soon first automatically gladly always "
    "probably partially partly fully it you either usually normally of course happily"
)
WISHES = words_of(
    "want wants wanted like likes wish wishes prefer hope hoped ask asked asking request requested "
    "propose proposed offer offered waiting awaiting pending trying try plan intend let"
)

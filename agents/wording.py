"""What code itself says to customers, in each language that it speaks (tools/language.py).

Pure. That nothing here claims more than is so is held by tests, against `agents.claims`.
"""

from tools.language import Text, pick

_DAY_IS_SPENT: Text = (
    "I can't look into more today, so I've passed this to a colleague. They'll reply to you here.",
    (
        "Heute kann ich mir nichts weiter ansehen, daher habe ich das an das Team weitergegeben. "
        "Sie bekommen hier eine Antwort."
    ),
)
HAND_OFF: dict[str, Text] = {
    "customer_day_budget_spent": _DAY_IS_SPENT,
    "shop_day_budget_spent": _DAY_IS_SPENT,
    "asked_for_a_person": (
        "I've passed this to a colleague. They'll reply to you here.",
        "Ich habe das an das Team weitergegeben. Sie bekommen hier eine Antwort.",
    ),
    "outcome_needs_person": (
        (
            "I can't confirm yet what became of this, so a colleague is checking it with the shop. "
            "They'll reply to you here; there is nothing you need to do."
        ),
        (
            "Ich kann noch nicht bestätigen, was daraus geworden ist; jemand aus dem Team klärt es mit "
            "dem Shop. Sie bekommen hier eine Antwort und müssen nichts tun."
        ),
    ),
    "mail_outcome_unknown": (
        (
            "Your request is closed. I can't tell whether the e-mail about it has arrived; a colleague "
            "knows of it, and it will not be sent twice by itself."
        ),
        (
            "Ihre Anfrage ist beendet. Ich kann nicht sagen, ob die E-Mail dazu angekommen ist; das Team "
            "weiß davon, und von selbst geht sie nicht zweimal hinaus."
        ),
    ),
    "model_unavailable": (
        (
            "I can't work on this at the moment, so I've passed it to a colleague. "
            "They'll reply to you here."
        ),
        (
            "Ich kann daran gerade nicht arbeiten, daher habe ich es an das Team weitergegeben. "
            "Sie bekommen hier eine Antwort."
        ),
    ),
}
HANDED_OFF: Text = (
    (
        "I could not finish this myself, so I've passed it to a colleague. They can see our whole "
        "conversation and will reply to you here."
    ),
    (
        "Das konnte ich nicht selbst zu Ende bringen, daher habe ich es an das Team weitergegeben. Dort "
        "ist die ganze Unterhaltung zu sehen; Sie bekommen hier eine Antwort."
    ),
)
CANCELLED: Text = (
    "I've stopped working on this, as you asked.",
    "Ich habe damit aufgehört, wie Sie es wollten.",
)
FORM_INSTEAD: Text = (
    "You've filled in a form instead, so I go by that.",
    "Sie haben stattdessen ein Formular ausgefüllt; danach richte ich mich.",
)
TAKEN_OVER: Text = (
    "A colleague has taken over and will reply to you here.",
    "Jemand aus dem Team hat übernommen und antwortet Ihnen hier.",
)
ALREADY_SENDING: Text = (
    "I've stopped, but a change was already being sent to the shop and could not be called back. ",
    (
        "Ich habe aufgehört, aber eine Änderung war schon auf dem Weg zum Shop und ließ sich nicht "
        "zurückholen. "
    ),
)
ASKED_FOR_SECRETS: Text = (
    "I can't take card numbers or passwords here, and I never need them. How else can I help?",
    (
        "Kartennummern und Passwörter nehme ich hier nicht an, und ich brauche sie nie. Wie kann ich "
        "sonst helfen?"
    ),
)
CARD_HIDDEN: Text = (
    (
        "I've hidden what looks like a card number in your message, so it is kept nowhere. I never "
        "need one: what you paid with is known to the shop."
    ),
    (
        "Ich habe in Ihrer Nachricht etwas verdeckt, das wie eine Kartennummer aussieht; sie ist nirgends "
        "gespeichert. Ich brauche nie eine: Der Shop weiß, womit Sie bezahlt haben."
    ),
)
CHECKED: Text = (
    "A colleague has checked this with the shop.",
    "Jemand aus dem Team hat das mit dem Shop geklärt.",
)
CAME_BACK: Text = (
    (
        "The shop has told us that the refund of {amount} for order {order} did not stay with you: the "
        "money came back to the shop. A colleague is looking into it and will reply to you here; there "
        "is nothing you need to do."
    ),
    (
        "Der Shop hat uns mitgeteilt, dass die Erstattung von {amount} für Bestellung {order} nicht bei "
        "Ihnen geblieben ist: Das Geld kam an den Shop zurück. Jemand aus dem Team sieht sich das an und "
        "antwortet Ihnen hier; Sie müssen nichts tun."
    ),
)
AFTER_ALL: Text = (
    (
        "You were told that a change to order {order} was not made. The shop tells us now that it was "
        "made after all. A colleague is looking into it and will reply to you here; there is nothing "
        "you need to do."
    ),
    (
        "Es hieß, eine Änderung an Bestellung {order} sei nicht ausgeführt worden. Der Shop teilt uns "
        "jetzt mit, dass sie doch ausgeführt wurde. Jemand aus dem Team sieht sich das an und "
        "antwortet Ihnen hier; Sie müssen nichts tun."
    ),
)
PERSON_PLEASE: Text = (
    "I'd like to talk to a person, please.",
    "Ich möchte bitte mit einem Menschen sprechen.",
)


def hand_off(reason: str, locale: str) -> str:
    """What a customer is told when their task goes to a person for this reason."""
    return pick(HAND_OFF.get(reason, HANDED_OFF), locale)

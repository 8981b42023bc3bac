"""Which sentences are claims: a large table, both ways."""

import pytest

from agents import claims

NOTHING: frozenset[str] = frozenset()

CLAIMED = {
    "refund": [
        "I've refunded order 1042.",
        "I\u2019ve refunded $40.00 for you.",
        "I have refunded the blue mug.",
        "I refunded it just now.",
        "Refunded!",
        "Order 1042 has been refunded.",
        "Your order was refunded today.",
        "Your order is refunded.",
        "The full amount is now refunded to your card.",
        "You have been refunded $40.00.",
        "You've been fully refunded.",
        "I've issued a refund of $40.00 for order 1042.",
        "I have just issued your refund.",
        "I went ahead and processed the refund.",
        "The refund of $40 has been processed.",
        "Your refund, $40.00, has been processed.",
        "Your refund has now been issued.",
        "Your refund is complete.",
        "Your refund is on its way.",
        "Your refund is being processed.",
        "Your refund was successful.",
        "Your refund has gone through.",
        "The refund went through without a problem.",
        "The refund has been approved.",
        "Refund issued: $40.00.",
        "Refund processed.",
        "Your money is on its way back.",
        "Your money is on the way back to your card.",
        "The $40.00 has been returned to your card.",
        "I've sent your money back.",
        "I sent you your $40 back.",
        "We have paid back the full amount.",
        "$40.00 was credited to your account.",
        "I credited $40.00 to your card.",
        "You'll see $40.00 back on your card in 3-5 days.",
        "You will receive your refund within five days.",
        "The money will be back on your card in 5 days.",
        "You should see the money in your account soon.",
        "I've reimbursed you for the mug.",
        "You have been reimbursed.",
        "The charge has been reversed.",
        "A colleague has refunded order 1042.",
        "If it helps, I've refunded order 1042.",
        "As requested, I've refunded it.",
        "The refund you asked for has been issued.",
        "The requested refund was issued.",
        "Good news: refunded.",
        "I was not able to cancel the order so I refunded it.",
        "I've not only refunded the mug but added a note.",
        "No problem, I've refunded it.",
        "I can confirm that order 1042 has been refunded.",
        "I'm happy to have refunded your order.",
        "I've refunded it, is there anything else?",
        "When you wrote I refunded it at once.",
        "I **refunded** order 1042.",
        "I re\u200bfunded order 1042.",
        "I r\u0435funded order 1042.",
        "ORDER 1042 HAS BEEN REFUNDED",
        "Your refund should now be complete.",
        "Done! I made the refund for you.",
        "We've arranged your refund.",
        "It's done: the $40.00 refund has been put through.",
        "I got the refund processed for you.",
        "The refund is all set.",
        "Your refund has been successfully completed.",
        "Both mugs are now refunded.",
        "Hello!I refunded your order.",
    ],
    "cancel": [
        "I've cancelled order 1042.",
        "I have canceled your order.",
        "Order 1042 is now cancelled.",
        "Your order has been cancelled.",
        "Your order was successfully canceled.",
        "It's cancelled.",
        "Cancelled!",
        "The cancellation has been processed.",
        "The cancellation is complete.",
        "Your cancellation went through.",
        "I've processed the cancellation.",
        "I've stopped the order for you.",
        "Your order has been called off.",
        "Both orders were cancelled.",
        "All your orders were cancelled.",
        "Orders 1042 and 1043 have been cancelled.",
        "The order will no longer be shipped.",
        "I've gone ahead and cancelled that for you.",
        "Consider it cancelled.",
        "Your order has now been voided.",
        "Let me know if there is anything else, your order is cancelled.",
    ],
    "change_address": [
        "I've changed the address of order 1042.",
        "I have updated your delivery address.",
        "The address has been changed.",
        "The shipping address is now updated.",
        "Your new address is saved.",
        "The address on order 1042 is now 12 Elm Street.",
        "Your parcel will now be delivered to 12 Elm Street.",
        "Order 1042 is now going to 12 Elm Street.",
        "I've redirected your parcel.",
        "The address change is complete.",
        "The address change has been made.",
        "I corrected the delivery details.",
        "I switched the shipping address to the new one.",
        "Your delivery address was updated to 5 High Street.",
        "I've made the address change for you.",
    ],
    "close_ticket": [
        "I've closed this ticket.",
        "Your ticket is now closed.",
        "This conversation has been closed.",
        "I have closed the case.",
        "I've marked this as resolved.",
        "The ticket has been resolved.",
        "Your case was closed today.",
    ],
    "email": [
        "I've emailed you the details.",
        "I e-mailed you a summary.",
        "A confirmation email has been sent.",
        "I've sent you a confirmation.",
        "I sent an email to you.",
        "You'll receive a confirmation email shortly.",
        "An email is on its way.",
        "The confirmation was sent to your inbox.",
    ],
    "change": [
        "Done!",
        "All done.",
        "It's done.",
        "That's all taken care of.",
        "Your request has been processed.",
        "The change has been made.",
        "I've taken care of it.",
        "All set!",
    ],
}

NOT_CLAIMED = [
    # Offers, abilities, the future.
    "I can refund order 1042.",
    "I can get that refunded for you.",
    "I could cancel it for you.",
    "I'll refund order 1042 once you agree.",
    "I will cancel the order.",
    "I'm going to ask for the refund now.",
    "Order 1042 can be refunded.",
    "The order can still be cancelled.",
    "The order can be cancelled or refunded.",
    "The mug will be refunded to your card.",
    "It would be refunded to your card.",
    "It needs to be cancelled before it ships.",
    "Let me get it cancelled.",
    "I'd be happy to refund it.",
    "To have it refunded, please tell me what is wrong with it.",
    "You would receive $40.00 if you agree.",
    "A refund of $40.00 is possible.",
    "I can change the address as long as the order has not shipped.",
    "The refund needs to be approved by staff.",
    "The refund must be approved by a colleague first.",
    # Questions.
    "Would you like me to refund order 1042?",
    "Would you like it refunded?",
    "Do you want the order cancelled?",
    "Should the address be changed to 12 Elm Street?",
    "Has it been refunded before?",
    "Which order should be cancelled?",
    "So, do you want your money back?",
    "Was the order cancelled by you?",
    "What is your new address?",
    # Negations.
    "I have not refunded order 1042.",
    "I haven't cancelled anything.",
    "The order has not been cancelled.",
    "The order hasn't been refunded yet.",
    "The refund could not be completed.",
    "The refund could not be made.",
    "The order can't be cancelled because it has shipped.",
    "No refund has been issued.",
    "No refund of $40.00 has been made.",
    "Nothing has been refunded.",
    "Nothing has been changed.",
    "Your address was not changed.",
    "I was unable to get it refunded.",
    "It was never cancelled.",
    "The ticket has not been closed.",
    "No email was sent.",
    "I can't say yet whether the refund was issued.",
    "Neither order was cancelled.",
    # Conditions.
    "Once it is refunded, you will get a note from the shop.",
    "If the order was cancelled, the money goes back by itself.",
    "When it has been refunded, I will tell you.",
    "As soon as the refund has been issued I'll let you know.",
    "If you like, I can have it cancelled.",
    "Unless it is cancelled today, it will ship tomorrow.",
    "After it has been refunded you can keep the mug.",
    # Rules.
    "Refunded items are paid back within 5 days.",
    "Refunds are issued within 5 days, according to our returns policy.",
    "Under the returns policy (version 3), refunds are made to the original payment method.",
    "Orders that were cancelled are not charged.",
    "Items which have been refunded cannot be returned again.",
    "Orders cancelled within an hour are free of charge.",
    "A cancelled order cannot be changed.",
    "Any order that was cancelled is left out.",
    "If the parcel is lost, your money is refunded.",
    "When you return an item, the price is refunded to your card.",
    "Refund requests over $100.00 are decided by a colleague.",
    "Our refund policy (version 2, effective from 1 March) allows returns within 30 days.",
    "Items must be returned unused within 30 days for a refund.",
    # States that are no effect.
    "Your refund is waiting for approval.",
    "The refund is still being checked.",
    "I've sent the refund to a colleague for approval.",
    "Your refund request has been submitted.",
    "I've passed this to a colleague.",
    "Order 1042 was delivered on 3 July.",
    "Your parcel was sent on Monday.",
    "The order has shipped, so I can't cancel it.",
    "You asked for the order to be cancelled.",
    "You asked me to have it refunded.",
    "You want order 1042 cancelled, is that right?",
    "I found order 1042: one stoneware mug, $40.00.",
    "I looked up order 1042 and it is on its way.",
    "Your parcel is on its way.",
    "It is expected on Friday.",
    "Please send me the corrected address.",
    "I need your new address to go on.",
    "What is the amount that should be refunded?",
    "Sorry to hear that the mug arrived broken.",
    "The delivery address is 12 Elm Street.",
    "I'm waiting for your yes before anything is refunded.",
    "Hello Dana, how can I help?",
    "You're welcome!",
    "Thanks for letting me know.",
    "Which address should it be sent to?",
    "Our shop is closed on Sundays.",
    "The payment for order 1042 was made on 3 July.",
    "Order 1042 was paid by card.",
]

FOREIGN = {
    "refund": [
        "Ich habe die Bestellung 1042 erstattet.",
        "Ihr Geld wurde zurücküberwiesen.",
        "Der Betrag wurde Ihrer Karte gutgeschrieben.",
        "He reembolsado el pedido 1042.",
        "Su pedido ha sido reembolsado.",
        "Le he devuelto el dinero.",
        "J'ai remboursé votre commande.",
        "Votre commande a été remboursée.",
        "Ho rimborsato il suo ordine.",
        "Reembolsei o seu pedido.",
        "Ik heb uw bestelling terugbetaald.",
    ],
    "cancel": [
        "Ich habe Ihre Bestellung storniert.",
        "Die Bestellung wurde storniert.",
        "He cancelado su pedido.",
        "Cancelé el pedido 1042.",
        "J'ai annulé la commande.",
        "La commande est annulée.",
        "Ho annullato il suo ordine.",
        "O seu pedido foi cancelado.",
        "De bestelling is geannuleerd.",
    ],
    "change_address": [
        "Ich habe die Lieferadresse geändert.",
        "He cambiado la dirección de entrega.",
        "J'ai modifié l'adresse de livraison.",
        "Ho cambiato l'indirizzo.",
        "Ik heb het adres gewijzigd.",
    ],
    "close_ticket": [
        "Ich habe das Ticket geschlossen.",
        "El caso está cerrado.",
        "J'ai clôturé votre dossier.",
    ],
    "email": [
        "Ich habe Ihnen eine E-Mail geschickt.",
        "Le he enviado un correo.",
        "Je vous ai envoyé un e-mail.",
    ],
}

FOREIGN_NOT_CLAIMED = [
    "Ich kann die Bestellung stornieren.",
    "Die Bestellung kann storniert werden.",
    "Die Bestellung wurde nicht storniert.",
    "Möchten Sie, dass die Bestellung storniert wird?",
    "Sobald der Betrag erstattet ist, melde ich mich.",
    "Puedo cancelar el pedido.",
    "El pedido no ha sido cancelado.",
    "¿Quiere que el pedido sea cancelado?",
    "El pedido puede ser reembolsado.",
    "Je peux annuler la commande.",
    "La commande n'a pas été annulée.",
    "Souhaitez-vous être remboursé ?",
    "Votre colis est en route.",
    "Posso annullare l'ordine.",
    "L'ordine non è stato annullato.",
    "O pedido não foi cancelado.",
    "De bestelling is niet geannuleerd.",
]


def _rows(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(kind, sentence) for kind, sentences in table.items() for sentence in sentences]


@pytest.mark.parametrize(("kind", "sentence"), _rows(CLAIMED) + _rows(FOREIGN))
def test_a_claim_without_its_operation_is_unproven(kind, sentence):
    assert kind in claims.unproven(sentence, succeeded=NOTHING)


@pytest.mark.parametrize(("kind", "sentence"), _rows(CLAIMED) + _rows(FOREIGN))
def test_a_claim_with_its_operation_is_proven(kind, sentence):
    everything = frozenset({"refund", "cancel", "change_address", "close_ticket", "email"})

    assert claims.unproven(sentence, succeeded=everything) == NOTHING


@pytest.mark.parametrize("sentence", NOT_CLAIMED + FOREIGN_NOT_CLAIMED)
def test_a_sentence_that_claims_nothing_passes(sentence):
    assert claims.unproven(sentence, succeeded=NOTHING) == NOTHING


DENIED = {
    "refund": [
        "I could not refund order 1042.",
        "I couldn't refund it.",
        "I was unable to refund your order.",
        "I'm not able to refund order 1042.",
        "Order 1042 has not been refunded.",
        "Your order was not refunded.",
        "No refund has been issued.",
        "No refund was made.",
        "The refund failed.",
        "The refund was declined by the shop.",
        "The refund did not go through.",
        "The refund could not be completed.",
        "The refund hasn't been processed.",
        "I failed to refund it.",
        "Nothing was refunded.",
        "Nothing has been changed.",
        "Your money has not been returned.",
        "I won't refund order 1042.",
        "It didn't work.",
        "Die Bestellung wurde nicht erstattet.",
        "El pedido no ha sido reembolsado.",
        "La commande n'a pas été remboursée.",
    ],
    "cancel": [
        "Order 1042 has not been cancelled.",
        "I couldn't cancel the order.",
        "The cancellation failed.",
        "The cancellation was not successful.",
        "Your order is still active.",
        "The order was never cancelled.",
    ],
    "change_address": [
        "I couldn't change the address.",
        "The address has not been changed.",
        "The address remains unchanged.",
        "The address change was rejected.",
    ],
    "close_ticket": ["I have not closed this ticket.", "I couldn't close the ticket."],
    "email": ["No email has been sent.", "I couldn't email you."],
}

NOT_DENIED = [
    "I can't confirm yet whether the refund went through.",
    "I don't know yet whether order 1042 was refunded.",
    "The refund is still being checked.",
    "It is not certain yet that the refund was made.",
    "I don't have confirmation of the refund yet.",
    "Your refund will not be sent twice.",
    "I won't refund it a second time.",
    "It can't be refunded again.",
    "Your refund is done.",
    "Order 1042 has been refunded.",
    "If the refund is not there in five days, write to me.",
    "Has the refund not arrived?",
    "You don't need to do anything for the refund.",
    "Don't worry about the refund.",
    "I have not heard back from the shop about the refund.",
    "Nothing else was changed.",
]


@pytest.mark.parametrize(("kind", "sentence"), _rows(DENIED))
def test_a_denial_of_what_may_have_happened_is_found(kind, sentence):
    assert claims.denied(sentence, open_or_unknown=frozenset({kind}), succeeded=NOTHING) == {kind}


@pytest.mark.parametrize(("kind", "sentence"), _rows(DENIED))
def test_a_denial_of_what_happened_is_found(kind, sentence):
    assert claims.denied(sentence, open_or_unknown=NOTHING, succeeded=frozenset({kind})) == {kind}


@pytest.mark.parametrize(("kind", "sentence"), _rows(DENIED))
def test_a_denial_of_what_did_not_happen_is_the_truth(kind, sentence):
    assert claims.denied(sentence, open_or_unknown=NOTHING, succeeded=NOTHING) == NOTHING


@pytest.mark.parametrize("sentence", NOT_DENIED)
def test_a_sentence_that_denies_nothing_passes(sentence):
    kinds = frozenset({"refund", "cancel", "change_address", "close_ticket", "email"})

    assert claims.denied(sentence, open_or_unknown=kinds, succeeded=NOTHING) == NOTHING
    assert claims.denied(sentence, open_or_unknown=NOTHING, succeeded=kinds) == NOTHING


def test_what_is_impossible_is_no_denial_of_what_happened():
    sentence = "Order 1043 can't be refunded because it is too old."

    assert (
        claims.denied(sentence, open_or_unknown=NOTHING, succeeded=frozenset({"refund"})) == NOTHING
    )
    assert claims.denied(sentence, open_or_unknown=frozenset({"refund"}), succeeded=NOTHING) == {
        "refund"
    }


# --- Facts ------------------------------------------------------------------------------------

FACTS = [
    "Order 1031 was cancelled.",
    "Order #1031 is cancelled.",
    "Order 1031 was cancelled on 3 July 2026.",
    "I see that order 1031 has been cancelled.",
    "I can't cancel order 1031 because it is already cancelled.",
    "Orders 1031 and 1032 were cancelled.",
    "I found order 1031. It was cancelled on 3 July.",
    "1031: one mug, $40.00, cancelled",
    "Die Bestellung 1031 wurde storniert.",
]

NO_FACTS = [
    "I've cancelled order 1031.",
    "I have just cancelled order 1031 for you.",
    "Order 1040 was cancelled.",
    "Orders 1031 and 1040 were cancelled.",
    "Your order was cancelled.",
    "I found order 1040. It was cancelled.",
    "Order 1031 is in your list. Your other order was cancelled too.",
    "Ich habe die Bestellung 1031 storniert.",
]


@pytest.mark.parametrize("text", FACTS)
def test_a_looked_up_state_is_a_fact(text):
    known = frozenset({"1031", "1032"})

    assert claims.unproven(text, succeeded=NOTHING) == {"cancel"}
    assert claims.unproven(text, succeeded=NOTHING, known_cancelled=known) == NOTHING


@pytest.mark.parametrize("text", NO_FACTS)
def test_a_looked_up_state_does_not_prove_a_deed_or_another_order(text):
    known = frozenset({"1031", "1032"})

    assert claims.unproven(text, succeeded=NOTHING, known_cancelled=known) == {"cancel"}


def test_a_looked_up_refund_is_a_fact_of_its_order_alone():
    known = frozenset({"A-77"})

    told = claims.unproven("Order A-77 was refunded.", succeeded=NOTHING, known_refunded=known)
    other = claims.unproven("Order A-78 was refunded.", succeeded=NOTHING, known_refunded=known)

    assert told == NOTHING
    assert other == {"refund"}


def test_a_refund_proves_no_cancellation():
    text = "I've refunded order 1042 and cancelled order 1043."

    assert claims.unproven(text, succeeded=frozenset({"refund"})) == {"cancel"}


def test_a_closure_proves_its_email():
    text = "I've closed the ticket and sent you a confirmation email."

    assert claims.unproven(text, succeeded=frozenset({"close_ticket"})) == NOTHING


def test_one_claim_in_a_long_reply_is_found():
    text = (
        "Hello Dana, thanks for waiting. Order 1042 was delivered on 3 July. Sorry that the mug is "
        "broken!\n- Stoneware mug, blue\n- Your refund of $40.00 has been processed\n"
        "Would you like anything else?"
    )

    assert claims.unproven(text, succeeded=NOTHING) == {"refund"}


def test_an_empty_reply_claims_nothing():
    assert claims.unproven("", succeeded=NOTHING) == NOTHING
    assert claims.denied("", open_or_unknown=frozenset({"refund"}), succeeded=NOTHING) == NOTHING


# --- Secrets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Please send me your card number.",
        "Could you tell me the CVV?",
        "What is your password?",
        "I need the last four digits of your card.",
        "To go on, reply with the security code on the back.",
        "Please confirm your credit card details.",
        "Enter the one-time code that you received.",
        "Your card number, please.",
        "Please share your IBAN so that I can refund you.",
        "Can you give me your PIN?",
        "Bitte nennen Sie mir Ihre Kartennummer.",
        "Envíeme su contraseña.",
        "Quel est votre mot de passe ?",
    ],
)
def test_asking_for_secrets_is_found(text):
    assert claims.asks_for_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "Please don't send me your card number.",
        "I never need your password.",
        "Never share your CVV with anyone.",
        "The refund goes back to the card that you paid with.",
        "Please tell me your order number.",
        "Please tell me your new address.",
        "I can't take card numbers here.",
        "Bitte senden Sie mir nie Ihr Passwort.",
        "The code of the parcel is 1Z999.",
        "",
    ],
)
def test_other_texts_ask_for_no_secret(text):
    assert not claims.asks_for_secrets(text)

"""What customers write, and what is done about it: a first message, its calls, its answer."""

from typing import Any

import pytest

from tests.model_stub.talk import HOME, Talk

Calls = list[tuple[str, dict[str, Any]]]


def find(order_id: str) -> tuple[str, dict[str, Any]]:
    return "find_orders", {"order_id": order_id}


def refund(order_id: str, reason: str = "other", **more: Any) -> Calls:
    return [find(order_id), ("refund_order", {"order_id": order_id, "reason": reason, **more})]


def cancel(order_id: str, reason: str = "other") -> Calls:
    return [find(order_id), ("cancel_order", {"order_id": order_id, "reason": reason})]


def item(item_id: str, quantity: int = 1) -> dict[str, Any]:
    return {"item_id": item_id, "quantity": quantity}


def move(order_id: str, **address: str) -> Calls:
    whole = {"name": HOME["name"], "country": "US", **address}
    return [find(order_id), ("change_address", {"order_id": order_id, "address": whole})]


def track(order_id: str) -> Calls:
    return [find(order_id), ("track_parcel", {"order_id": order_id})]


HIGH_STREET = {
    "line1": "12 High Street",
    "city": "Springfield",
    "region": "IL",
    "postal_code": "62704",
}

REFUNDS: list[tuple[str, Calls, str]] = [
    (
        "Please refund order 1042",
        refund("1042"),
        "I have refunded $40.00 for order 1042 (reference re_1)",
    ),
    ("refund #1042", refund("1042"), "refunded $40.00"),
    ("Refund order no. 1042 please.", refund("1042"), "refunded $40.00"),
    ("can you refund order number 1042?", refund("1042"), "refunded $40.00"),
    ("Could I get my money back for 1042?", refund("1042"), "refunded $40.00"),
    ("I'd like to return order 1042", refund("1042"), "refunded $40.00"),
    ("I want to send the mug from 1042 back", refund("1042"), "refunded $40.00"),
    ("Why don't you just refund order 1042", refund("1042"), "refunded $40.00"),
    (
        "Hi! I'd like a refund for order 1042, please. Thanks",
        refund("1042"),
        "Hello Ada! I have refunded",
    ),
    (
        "My mug from order 1042 arrived broken, please refund it",
        refund("1042", "damaged"),
        "I am sorry about that. I have refunded $40.00",
    ),
    (
        "The chair in 1043 is not as described. I want my money back",
        refund("1043", "not_as_described"),
        "$400.00",
    ),
    ("refund 1047, it never arrived", refund("1047", "not_received"), "$60.00"),
    ("order 1047 hasn't arrived, I want a refund", refund("1047", "not_received"), "$60.00"),
    ("You sent me the wrong item in 1047, refund me", refund("1047", "wrong_item"), "$60.00"),
    ("Refund 1047. I changed my mind.", refund("1047", "changed_mind"), "$60.00"),
    ("I don't want it, please refund 1042", refund("1042", "changed_mind"), "$40.00"),
    ("refund 1042, the glaze is cracked", refund("1042", "damaged"), "$40.00"),
    ("refund order 1042, it arrived late", refund("1042"), "$40.00"),
    ("It's not broken, I just regret it. Refund 1042", refund("1042", "changed_mind"), "$40.00"),
    ("$10 back for 1042 please", refund("1042", amount="10.00"), "refunded $10.00"),
    (
        "refund 15 dollars of order 1042, it is chipped",
        refund("1042", "damaged", amount="15.00"),
        "$15.00",
    ),
    ("refund 12.50 for order 1042", refund("1042", amount="12.50"), "refunded $12.50"),
    ("refund 15 for order 1042", refund("1042", amount="15.00"), "refunded $15.00"),
    (
        "I paid $400 for the chair in 1043 but want only $50 back",
        refund("1043", amount="50.00"),
        "$50.00",
    ),
    ("refund half of order 1043", refund("1043", amount="200.00"), "$200.00"),
    ("give me 25% back on 1043", refund("1043", amount="100.00"), "$100.00"),
    ("refund the $40 for order 1042", refund("1042"), "$40.00"),
    ("I paid $40 for order 1042, refund me", refund("1042"), "$40.00"),
    ("refund \u20ac5 on order 1054", refund("1054", amount="5.00"), "I have refunded"),
    ("refund the blue shirt from 1050", refund("1050", items=[item("1050-1")]), "I have refunded"),
    ("refund the blue one from 1050", refund("1050", items=[item("1050-1")]), "I have refunded"),
    (
        "refund both shirts from order 1050",
        refund("1050", items=[item("1050-1"), item("1050-2")]),
        "refunded",
    ),
    (
        "refund the shirts in 1050",
        refund("1050", items=[item("1050-1"), item("1050-2")]),
        "refunded",
    ),
    ("refund one tea glass from 1050", refund("1050", items=[item("1050-3")]), "I have refunded"),
    (
        "refund the red shirt and both glasses from 1050",
        refund("1050", items=[item("1050-2"), item("1050-3", 2)]),
        "",
    ),
    (
        "refund the second one in order 1050",
        refund("1050", items=[item("1050-2")]),
        "I have refunded",
    ),
    (
        "refund one of the two tea bowls in order 1051",
        refund("1051", items=[item("1051-1")]),
        "I have refunded",
    ),
    (
        "refund only one of them, order 1051",
        refund("1051", items=[item("1051-1")]),
        "I have refunded",
    ),
    ("refund the two tea bowls of 1051", refund("1051"), "I have refunded $40.00"),
    ("refund everything in order 1050", refund("1050"), "I have refunded $80.00"),
    ("refund order 1052", [find("1052")], "There is nothing left to refund on order 1052"),
    (
        "refund order 1046",
        [find("1046")],
        "I can't find order 1046 in your account. Please check the number.",
    ),
    (
        "refund order 9999",
        [find("9999")],
        "I can't find order 9999 in your account. Please check the number.",
    ),
    ("refund 5 dollars on 1054", [find("1054")], "How much in EUR should I refund for order 1054?"),
    ("refund $0 for 1042", [find("1042")], "How much should I refund for order 1042?"),
    ("refund the shirt from 1050", [find("1050")], "Cotton shirt (blue) or Cotton shirt (red)?"),
    ("refund the tea bowl from 1051", [find("1051")], "How many of the 2 x Tea bowl in order 1051"),
    (
        "refund the lamp from 1043",
        [find("1043")],
        "I can't see a lamp in order 1043, only this: Oak chair.",
    ),
    (
        "refund the green one from 1050",
        [find("1050")],
        "I can't see a green in order 1050. Which item",
    ),
    ("I want a refund", [], "Which order should I refund"),
    ("Can I get a refund?", [], "Which order should I refund"),
    ("refund it", [], "Which order should I refund"),
    (
        "refund my mug please",
        [("find_orders", {}), ("refund_order", {"order_id": "1042", "reason": "other"})],
        "I have refunded $40.00 for order 1042",
    ),
    (
        "refund my teapot please",
        [("find_orders", {})],
        "Which order should I refund: 1042 (Stoneware mug (blue))",
    ),
]

CANCELS: list[tuple[str, Calls, str]] = [
    ("cancel order 1044", cancel("1044"), "I have cancelled order 1044 (reference ch_1)."),
    (
        "Please cancel my order #1044, I ordered it by mistake",
        cancel("1044", "ordered_by_mistake"),
        "cancelled",
    ),
    (
        "cancel 1044, I don't need it anymore",
        cancel("1044", "no_longer_needed"),
        "I have cancelled",
    ),
    ("I don't want order 1044 anymore", cancel("1044", "no_longer_needed"), "I have cancelled"),
    ("cancel and refund order 1044", cancel("1044"), "I have cancelled order 1044"),
    ("cancel and refund order 1042", refund("1042"), "I have refunded $40.00"),
    (
        "cancel 1053",
        [find("1053")],
        "nothing left to cancel: order 1053 shows as cancelled already.",
    ),
    (
        "I want to cancel my order",
        [("find_orders", {}), ("cancel_order", {"order_id": "1044", "reason": "other"})],
        "I have cancelled order 1044",
    ),
    ("please cancel", [], "Which order should I cancel"),
]

ADDRESSES: list[tuple[str, Calls, str]] = [
    (
        "change the address of order 1044 to 12 High Street, Springfield, IL 62704, US",
        move("1044", **HIGH_STREET),
        (
            "I have changed the delivery address of order 1044 to Ada Lovelace, 12 High Street, Springfield, "
            "IL 62704, US"
        ),
    ),
    (
        "Please send 1044 to Grace King, 12 High Street, Springfield, IL 62704, USA instead",
        move("1044", **HIGH_STREET, name="Grace King"),
        "Grace King",
    ),
    (
        "New address for 1044:\nGrace King\n12 High Street\nApt 4\nSpringfield, IL 62704",
        move("1044", **HIGH_STREET, name="Grace King", line2="Apt 4"),
        "Apt 4",
    ),
    (
        "ship order 1044 to Hauptstra\u00dfe 5, 10115 Berlin, Germany please",
        move("1044", line1="Hauptstra\u00dfe 5", city="Berlin", postal_code="10115", country="DE"),
        "10115",
    ),
    (
        "the address of 1044 should be 221B Baker Street, London NW1 6XE",
        move("1044", line1="221B Baker Street", city="London", postal_code="NW1 6XE", country="GB"),
        "London",
    ),
    ("change the address of order 1044", [find("1044")], "What is the new address for order 1044"),
    (
        "send 1044 to 45 Oak Lane",
        [find("1044")],
        "So far I have: 45 Oak Lane. What is the city and the postal code",
    ),
    ("I moved", [], "Which order is the new address for"),
    (
        "change the address of 1045",
        [find("1045")],
        "cannot be changed any more. It has been shipped.",
    ),
    (
        "change the address of 1044 to 1 Mill Lane, Springfield, IL 62701, US",
        [find("1044")],
        "Order 1044 goes to that address already",
    ),
]

PARCEL = "is in transit and is expected on 3 December 2026. Carrier: Parcel Express, tracking number PX123."
READS: list[tuple[str, Calls, str]] = [
    ("Where is my order 1045?", track("1045"), PARCEL),
    ("where's 1045", track("1045"), "Last seen in Chicago on 29 November 2026, 14:05."),
    ("track order 1045", track("1045"), PARCEL),
    ("when will order 1045 arrive?", track("1045"), PARCEL),
    ("has order 1045 shipped?", track("1045"), PARCEL),
    ("my order 1045 never arrived", track("1045"), "I can ask for a refund: just say so."),
    ("where is my order?", [("find_orders", {}), ("track_parcel", {"order_id": "1045"})], PARCEL),
    ("where is 1044?", [find("1044")], "has not been shipped yet"),
    ("what's the status of order 1042?", [find("1042")], "It was delivered on 2 November 2026."),
    (
        "what did I order in 1050?",
        [find("1050")],
        "Cotton shirt (blue), Cotton shirt (red), 2 x Tea glass",
    ),
    ("did you refund 1042?", [find("1042")], "Refunds so far: none."),
    ("was order 1052 refunded?", [find("1052")], "Refunds so far: $30.00."),
    (
        "where is order 1046?",
        [find("1046")],
        "I can't find order 1046 in your account. Please check the number.",
    ),
    ("1042", [find("1042")], "Order 1042 (Stoneware mug (blue)) was placed on"),
    (
        "list my orders",
        [("find_orders", {})],
        "- 1043: Oak chair, $400.00, delivered 2 November 2026",
    ),
    ("What are my orders?", [("find_orders", {})], "- 1044: Linen towel (white), $25.00, pending"),
    ("which orders are pending?", [("find_orders", {"status": "pending"})], "- 1044"),
    (
        "can I return a worn shirt?",
        [("search_policy", {"question": "can I return a worn shirt?"})],
        "Worn clothes cannot be returned.\nSource: Returns policy (version 2, in effect since 1 March 2026).",
    ),
    (
        "What's your return policy?",
        [("search_policy", {"question": "What's your return policy?"})],
        "Returns policy",
    ),
    (
        "Do you ship to Canada?",
        [("search_policy", {"question": "Do you ship to Canada?"})],
        "Shipping is free",
    ),
    (
        "is there a loyalty programme?",
        [("search_policy", {"question": "is there a loyalty programme?"})],
        "I can't find anything about that in our policies",
    ),
]

TALK: list[tuple[str, Calls, str]] = [
    ("hello", [], "Hello Ada! I can look up your orders"),
    ("thanks!", [], "You're welcome, Ada!"),
    ("that's all, thank you", [], "You're welcome, Ada!"),
    ("yes", [], "please press its button"),
    ("ok", [], "a yes typed in the chat does not confirm it"),
    ("how are you?", [], "I am well, thank you!"),
    ("are you a bot?", [], "I am the shop's automatic assistant, not a person."),
    ("what can you do?", [], "I can look up your orders"),
    ("asdf qwer", [], "I am not sure I understood that."),
    ("never mind", [], "I am not sure I understood that."),
    ("I'd like to exchange the mug from 1042", [], "I can't arrange an exchange or a replacement"),
    (
        "that's all, please close this",
        [("close_ticket", {"resolution": "The customer has no further questions."})],
        "I have closed this ticket.",
    ),
    (
        "I want to talk to a person",
        [("hand_off", {"reason": "The customer asks for a person: I want to talk to a person"})],
        "I have passed this on to a colleague",
    ),
    (
        "agent please",
        [("hand_off", {"reason": "The customer asks for a person: agent please"})],
        "colleague",
    ),
    (
        "my mug arrived broken",
        [("find_orders", {})],
        "Would you like me to ask for a refund of order 1042",
    ),
]

SEVERAL: list[tuple[str, Calls, str]] = [
    (
        "refund 1042 and cancel 1044",
        [*refund("1042"), *cancel("1044")],
        "I have cancelled order 1044",
    ),
    (
        "refund 1042 and 1047, both arrived broken",
        [*refund("1042", "damaged"), *refund("1047", "damaged")],
        "$60.00 for order 1047",
    ),
    (
        "Refund orders 1042, 1047 and cancel 1044",
        [*refund("1042"), *refund("1047"), *cancel("1044")],
        "$40.00 for order 1042 (reference re_1).\n\nI have refunded $60.00 for order 1047",
    ),
    (
        "send 1044 to 12 High Street, Springfield, IL 62704 and refund 1042",
        [*move("1044", **HIGH_STREET), *refund("1042")],
        "I have refunded $40.00",
    ),
    ("don't cancel 1044, refund 1042 instead", refund("1042"), "I have refunded $40.00"),
    (
        "refund 1042, where is 1045, and close the ticket",
        [
            *refund("1042"),
            *track("1045"),
            ("close_ticket", {"resolution": "The customer has no further questions."}),
        ],
        "I have closed this ticket.",
    ),
    (
        "what's your return policy and refund 1042",
        [("search_policy", {"question": "what's your return policy"}), *refund("1042")],
        "I have refunded $40.00",
    ),
    (
        "refund the mug from 1042 and the blue shirt from 1050",
        [*refund("1042"), *refund("1050", items=[item("1050-1")])],
        "for order 1050",
    ),
]


NO_REQUESTS: list[tuple[str, Calls, str]] = [
    ("please don't refund 1042", [], "I will leave it at that."),
    ("I never asked for a refund", [], "I will leave it at that."),
    ("I no longer want a refund for 1042", [], "I will leave it at that."),
    ("I don't think I should get a refund for 1042", [], "I will leave it at that."),
    ("Please do not process the refund for order 1042", [], "I will leave it at that."),
    ("I need the refund for order 1042 to be stopped", [], "I will leave it at that."),
    ("I do not wish to cancel order 1044", [], "I will leave it at that."),
    ("I already got my refund for 1042, thanks", [find("1042")], "Refunds so far: none."),
    ("The refund for 1042 hasn't arrived yet", [find("1042")], "Refunds so far: none."),
    ("When will the refund for 1042 arrive?", [find("1042")], "Refunds so far: none."),
    ("Undo the cancellation of 1053", [], "That is something I can't do here."),
    ("Can I change my order 1044?", [], "That is something I can't do here."),
    ("This is terrible service", [], "I am sorry that you are not happy with us."),
    ("My friend said you refunded her order 1048", [find("1048")], "I can't find order 1048"),
    (
        "If 1045 doesn't arrive tomorrow I want a refund",
        [("search_policy", {"question": "If 1045 doesn't arrive tomorrow I want a refund"})],
        "I can't find anything about that in our policies",
    ),
]

SLIPS: list[tuple[str, Calls, str]] = [
    ("refnd 1042", refund("1042"), "refunded $40.00"),
    ("can u cancl order 1044", cancel("1044"), "I have cancelled"),
    ("refund \uff11\uff10\uff14\uff12", refund("1042"), "refunded $40.00"),
    ("refund 1042 no wait 1047", refund("1047"), "$60.00"),
    ("please refund orders 1042,1047", [*refund("1042"), *refund("1047")], "$60.00"),
    ("refund 1042 $40 and 1047 $10", [*refund("1042"), *refund("1047", amount="10.00")], "$10.00"),
    ("Refund 1042 and 1047 but not 1043", [*refund("1042"), *refund("1047")], "$60.00"),
    ("refund 1042 if possible", refund("1042"), "refunded $40.00"),
    ("Refund 1042, bought in 2025", refund("1042"), "refunded $40.00"),
]


@pytest.mark.parametrize(
    ("message", "calls", "answer"),
    [*REFUNDS, *CANCELS, *ADDRESSES, *READS, *TALK, *SEVERAL, *NO_REQUESTS, *SLIPS],
    ids=lambda value: value.replace("\n", " | ")[:60] if isinstance(value, str) else "",
)
def test_a_first_message_leads_to_these_calls_and_this_answer(message, calls, answer):
    talk = Talk()

    said = talk.say(message)

    assert talk.calls == calls
    assert answer in said

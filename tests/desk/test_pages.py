"""The desk in the console: what lies there, who may do what about it, and what is said when not."""

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Customer, Role, User
from tests.console.desk import PASSWORD, make_person, text_of
from tests.desk.telling import about_refund
from tests.desk.world import lost, of, stuck, told
from tests.factories import make_shop
from tools import settlement
from tools.models import Operation, Reversal, Settlement, State

pytestmark = pytest.mark.django_db

OVER = 40_000


SignIn = Callable[[User], Client]


@pytest.fixture
def sign_in() -> SignIn:
    def sign(user: User) -> Client:
        client = Client(enforce_csrf_checks=True)
        client.force_login(user, backend="accounts.backends.ConsoleBackend")
        return client

    return sign


@pytest.fixture
def dana(shop_row, sign_in: SignIn) -> Client:
    return sign_in(make_person(shop_row, "dana", is_approver=True))


@pytest.fixture
def erin(shop_row, sign_in: SignIn) -> Client:
    return sign_in(make_person(shop_row, "erin", is_approver=True))


@pytest.fixture
def sam(shop_row, sign_in: SignIn) -> Client:
    """Staff without the right to decide."""
    return sign_in(make_person(shop_row, "sam"))


def page_of(operation: Operation) -> str:
    return reverse("console:desk-operation", args=[operation.pk])


def do(client: Client, operation: Operation, what: str, **fields):
    """Send one of the page's forms, with the token of the page itself."""
    token = client.get(page_of(operation)).context["csrf_token"]
    address = reverse(f"console:desk-{what}", args=[operation.pk])
    return client.post(address, {"csrfmiddlewaretoken": token} | fields)


SAID = {
    "outcome": "succeeded",
    "reference": "re_books",
    "evidence": "Line 7 of the books.",
    "password": PASSWORD,
}


# --- The list --------------------------------------------------------------------------------------


def test_a_sensitive_case_has_no_name_in_the_list_but_for_whoever_may_decide(buyer, dana, sam):
    operation = stuck(buyer)
    Customer.objects.filter(pk=buyer.row.pk).update(name="Greta Vipson", is_sensitive=True)

    listed = text_of(sam.get(reverse("console:desk")))
    assert "Sensitive case" in listed
    hidden = ("Greta Vipson", buyer.row.external_id, operation.order_id)
    assert [word for word in hidden if word in listed] == []
    assert "Greta Vipson" in text_of(dana.get(reverse("console:desk")))


def test_what_waits_for_a_person_is_listed_oldest_first_and_counted(buyer, dana):
    older, younger = stuck(buyer), stuck(buyer)
    looking = lost(buyer)

    page = dana.get(reverse("console:desk"))

    desk = page.context["desk"]
    assert [sight.operation.pk for sight in desk.waiting] == [older.pk, younger.pk]
    assert [sight.operation.pk for sight in desk.looking] == [looking.pk]
    assert "2 outcomes wait for a person" in text_of(page)
    assert re.search(r'id="nav-desk">2<', text_of(page))


def test_an_empty_desk_says_so(shop_row, dana):
    page = text_of(dana.get(reverse("console:desk")))

    assert "Nothing waits for a person." in page
    assert re.search(r'id="nav-desk"><', page)


def test_the_approvals_say_how_many_wait_at_the_desk(buyer, dana):
    stuck(buyer)

    assert "1 at the desk" in text_of(dana.get(reverse("console:queue")))


def test_another_shops_desk_is_another_one(buyer, sign_in):
    operation = stuck(buyer)
    stranger = sign_in(make_person(make_shop(), "stranger", is_approver=True))

    assert stranger.get(reverse("console:desk")).context["desk"].waiting == []
    assert stranger.get(page_of(operation)).status_code == 404


def test_an_open_page_hears_of_news_and_of_nothing_else(buyer, dana):
    first = text_of(dana.get(reverse("console:desk")))
    found = re.search(r'id="desk"[^>]* hx-get="([^"]+)"', first)
    assert found is not None
    address = html.unescape(found[1])
    asks = {"HX-Request": "true"}
    assert dana.get(address, headers=asks).status_code == 204

    stuck(buyer)

    news = text_of(dana.get(address, headers=asks))
    assert "<title>(1) Desk · Countersign</title>" in news
    assert 'id="nav-desk" hx-swap-oob="innerHTML">1<' in news


# --- One operation ---------------------------------------------------------------------------------


def test_the_page_shows_all_the_evidence(buyer, teller, dana):
    operation = stuck(buyer, "error_after")
    teller.told(about_refund(operation, amount=1, reason="<b>odd</b>"))
    settlement.check_now(operation_id=lost(buyer).pk, by="staff:dana")

    page = text_of(dana.get(page_of(operation)))

    for shown in (
        "Refund $40.00 for order",
        operation.idempotency_key,
        operation.digest,
        "The step failed too often",
        "Every try at sending it",
        "webhook",
        "re_told",
        "Refunds on the order",
        "What differs from what was approved is marked",
        "refund needs person",
    ):
        assert shown in page
    assert "&lt;b&gt;odd&lt;/b&gt;" in page
    assert "<b>odd" not in page


def test_a_shop_that_is_away_is_told_of(buyer, dana):
    operation = stuck(buyer)
    buyer.shop.fault("error_before", scope={"path": f"/api/orders/{operation.order_id}"})

    page = text_of(dana.get(page_of(operation)))

    assert "The shop cannot be reached at the moment." in page


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("look-up failed: UnavailableError", "The shop could not be asked for a day"),
        ("not sent again: order_changed", "Not sent again: order changed"),
        ("webhook_mismatch", "The shop has told of something else under this key"),
        ("something_new", "something new"),
    ],
)
def test_why_it_lies_here_is_told_in_words(buyer, dana, reason, words):
    operation = stuck(buyer)
    Operation.objects.filter(pk=operation.pk).update(reason=reason)

    assert words in text_of(dana.get(reverse("console:desk")))
    assert words in text_of(dana.get(page_of(operation)))


def test_the_ticket_leads_to_the_desk(buyer, dana):
    operation = stuck(buyer)

    page = text_of(dana.get(reverse("console:ticket", args=[operation.ticket_id])))

    assert page_of(operation) in page


def test_looking_at_it_changes_nothing(buyer, dana):
    operation = stuck(buyer, "error_after")
    buyer.shop.forget_calls()

    dana.get(page_of(operation))

    assert of(operation).state == State.NEEDS_PERSON
    assert not operation.observations.exists()
    assert {call["method"] for call in buyer.shop.calls()} <= {"GET"}


def test_staff_without_the_right_may_check_and_read_and_no_more(buyer, sam):
    operation = stuck(buyer)

    page = text_of(sam.get(page_of(operation)))

    assert "Check with the shop now" in page
    assert "Settle it" not in page
    for what in ("settle", "confirm", "turn-down", "close-case"):
        assert do(sam, operation, what, **SAID).status_code == 403
    assert not Settlement.objects.exists()


def test_an_auditor_reads(buyer, shop_row, sign_in):
    operation = stuck(buyer, "error_after")
    audrey = sign_in(make_person(shop_row, "audrey", role=Role.AUDITOR))

    page = text_of(audrey.get(page_of(operation)))

    assert "Check with the shop now" not in page
    assert do(audrey, operation, "check").status_code == 403
    assert of(operation).state == State.NEEDS_PERSON


def test_check_with_the_shop_now_settles_what_it_proves(buyer, sam):
    operation = stuck(buyer, "error_after")

    answer = do(sam, operation, "check")

    assert answer.status_code == 302
    assert of(operation).state == State.SUCCEEDED
    after = text_of(sam.get(answer.headers["Location"]))
    assert "The shop shows that it happened, so it is settled." in after
    assert "There is nothing to settle here any more." in after


def test_check_with_the_shop_now_says_when_it_proves_nothing(buyer, sam):
    operation = stuck(buyer)

    answer = do(sam, operation, "check")

    assert "shows nothing under this key" in text_of(sam.get(answer.headers["Location"]))
    assert of(operation).state == State.NEEDS_PERSON


def test_what_the_address_claims_was_seen_is_one_of_our_own_sentences(buyer, dana):
    operation = stuck(buyer)

    page = text_of(dana.get(page_of(operation) + "?looked=<script>done</script>"))

    assert "looked-at" not in page


# --- Settling --------------------------------------------------------------------------------------


def test_an_approver_settles_it(buyer, dana):
    operation = stuck(buyer)

    assert do(dana, operation, "settle", **SAID).status_code == 302

    assert (of(operation).state, of(operation).reference) == (State.SUCCEEDED, "re_books")
    assert len(told(operation)) == 1
    page = text_of(dana.get(page_of(operation)))
    assert "Line 7 of the books." in page
    assert "staff:dana" in page


def test_the_shop_is_asked_before_anybody_is_believed(buyer, dana):
    operation = stuck(buyer, "error_after")

    answer = do(dana, operation, "settle", **SAID | {"outcome": "failed", "reference": ""})

    assert answer.headers["Location"].endswith("?looked=done")
    assert of(operation).state == State.SUCCEEDED
    assert not Settlement.objects.exists()


def refused(answer, status, words, operation):
    assert answer.status_code == status
    page = text_of(answer)
    assert words in page
    assert 'role="alert"' in page
    assert of(operation).state == State.NEEDS_PERSON


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_wrong_password_settles_nothing_and_keeps_what_was_written(buyer, dana, password):
    operation = stuck(buyer)

    answer = do(dana, operation, "settle", **SAID | {"password": password})

    refused(answer, 403, "That is not your password.", operation)
    assert "Line 7 of the books." in text_of(answer)
    assert PASSWORD not in text_of(answer)
    assert not Settlement.objects.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"evidence": ""}, "Say how it ended"),
        ({"outcome": ""}, "Say how it ended"),
        ({"outcome": "cancelled"}, "Say how it ended"),
        ({"reference": " "}, "The evidence is missing"),
    ],
)
def test_a_settlement_needs_its_parts(buyer, dana, changes, words):
    operation = stuck(buyer)

    refused(do(dana, operation, "settle", **SAID | changes), 422, words, operation)
    assert not Settlement.objects.exists()


def test_over_the_limit_two_people_settle_it(buyer, dana, erin):
    operation = stuck(buyer, price=OVER)
    assert "somebody else has to confirm it" in text_of(dana.get(page_of(operation)))
    do(dana, operation, "settle", **SAID)
    row = Settlement.objects.get()
    listed = text_of(erin.get(reverse("console:desk")))
    assert "waits for a second person" in listed

    own = text_of(dana.get(page_of(operation)))
    assert "A second person has to confirm it." in own
    again = do(dana, operation, "confirm", settlement=row.pk, password=PASSWORD)
    refused(again, 403, "It takes a second person.", operation)
    page = text_of(erin.get(page_of(operation)))
    assert "Line 7 of the books." in page
    wrong = do(erin, operation, "confirm", settlement=row.pk, password="wrong")
    refused(wrong, 403, "That is not your password.", operation)
    answer = do(erin, operation, "confirm", settlement=row.pk, password=PASSWORD)

    assert answer.status_code == 302
    assert of(operation).state == State.SUCCEEDED
    late = do(erin, operation, "turn-down", settlement=row.pk, reason="Too late.")
    assert late.status_code == 409


def test_a_second_person_turns_it_down(buyer, dana, erin):
    operation = stuck(buyer, price=OVER)
    do(dana, operation, "settle", **SAID)
    row = Settlement.objects.get()
    refused(
        do(erin, operation, "turn-down", settlement=row.pk, reason=" "), 422, "Say why.", operation
    )

    do(erin, operation, "turn-down", settlement=row.pk, reason="Another order's line.")

    page = text_of(dana.get(page_of(operation)))
    assert "Another order&#x27;s line." in page
    assert "Propose to a second person" in page


def test_a_settlement_of_another_operation_is_not_there(buyer, dana, erin):
    operation, other = stuck(buyer, price=OVER), stuck(buyer, price=OVER)
    do(dana, other, "settle", **SAID)
    row = Settlement.objects.get()

    for what, fields in (("confirm", {"password": PASSWORD}), ("turn-down", {"reason": "x"})):
        answer = do(erin, operation, what, settlement=row.pk, **fields)
        assert answer.status_code == 404
    assert Settlement.objects.get().status == "open"


def test_what_the_agent_is_still_looking_up_cannot_be_settled(buyer, dana):
    operation = lost(buyer)

    page = text_of(dana.get(page_of(operation)))

    assert "The agent is still looking." in page
    assert do(dana, operation, "settle", **SAID).status_code == 409
    assert of(operation).state == State.UNKNOWN


def test_words_are_shown_as_words(buyer, dana):
    operation = stuck(buyer, price=OVER)
    evil = "<img src=x onerror=alert(1)>\N{RIGHT-TO-LEFT OVERRIDE}"
    do(dana, operation, "settle", **SAID | {"evidence": evil, "reference": "<i>re</i>"})

    page = text_of(dana.get(page_of(operation)))

    assert "<img" not in page
    assert "<i>re" not in page
    assert "[U+202E]" in page


# --- Money that came back --------------------------------------------------------------------------


@pytest.fixture
def came_back(buyer, teller) -> Operation:
    operation = stuck(buyer, "error_after")
    settlement.check_now(operation_id=operation.pk, by="staff:dana")
    teller.told(about_refund(operation, "reversed", reason="account_closed"))
    return of(operation)


def test_a_case_lies_at_the_desk_until_it_is_closed(came_back, dana):
    listed = text_of(dana.get(reverse("console:desk")))
    assert "money came back" in listed
    assert "account closed" in listed
    page = text_of(dana.get(page_of(came_back)))
    assert "The money came back to the shop." in page

    empty = do(dana, came_back, "close-case", note=" ")
    assert empty.status_code == 422
    do(dana, came_back, "close-case", note="Paid by transfer.")

    case = Reversal.objects.get()
    assert (case.closed_by, case.note) == ("staff:dana", "Paid by transfer.")
    assert dana.get(reverse("console:desk")).context["desk"].waiting == []
    assert "Paid by transfer." in text_of(dana.get(page_of(came_back)))
    again = do(dana, came_back, "close-case", note="Twice.")
    assert again.status_code == 409


def test_a_state_that_changes_under_the_reader_changes_the_forms(buyer, dana):
    operation = stuck(buyer)
    page = text_of(dana.get(page_of(operation)))
    found = re.search(r'id="state"[^>]* hx-get="([^"]+)"', page)
    assert found is not None
    address = html.unescape(found[1])
    asks = {"HX-Request": "true"}
    assert dana.get(address, headers=asks).status_code == 204

    settlement.propose(
        operation_id=operation.pk,
        user_id=User.objects.get(username="dana").pk,
        outcome=State.FAILED,
        reference="",
        evidence="Nothing there.",
    )

    news = text_of(dana.get(address, headers=asks))
    assert 'id="decision"' in news
    assert "There is nothing to settle here any more." in news

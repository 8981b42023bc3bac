"""The approvals queue and the decision: what staff see, and what a click does or does not do."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from approvals.models import Approval
from audit.models import Event
from tests.audit.facts import tamper
from tests.console.desk import (
    changes,
    decide,
    make_person,
    make_question,
    operation_of,
    page_of,
    poll_of,
    text_of,
)
from tests.factories import (
    make_customer,
    make_line,
    make_operation,
    make_order,
    make_shop,
    say_yes,
)
from tests.tools.desk import look

HX = {"HX-Request": "true"}


def undecided(approval: Approval) -> bool:
    """Nothing was decided, granted or sent, and the trail has no decision."""
    approval.refresh_from_db(fields=["decided_by", "decided_at"])
    operation = operation_of(approval)
    decided = Event.objects.filter(
        action__in=["approval.granted", "approval.rejected"],
        subject=f"approval:{approval.public_id}",
    )
    return (
        approval.decided_at is None
        and operation.granted_roles == ["customer"]
        and operation.first_sent_at is None
        and not decided.exists()
    )


def expire_in(approval: Approval, *, minutes: int) -> None:
    """Move a deadline, which nobody but a superuser of the database can."""
    tamper(
        "UPDATE approvals_approval SET expires_at = %s WHERE id = %s",
        [timezone.now() + timedelta(minutes=minutes), approval.pk],
    )


def test_the_queue_shows_what_waits_with_the_oldest_deadline_first(shop, approver, sign_in):
    later = make_question(shop, price=40_000)
    sooner = make_question(shop, price=50_000)
    expire_in(sooner, minutes=30)

    page = text_of(sign_in(approver).get(reverse("console:queue")))

    assert page.index(str(sooner.public_id)) < page.index(str(later.public_id))
    assert "<title>(2) Approvals · Countersign</title>" in page
    assert f"Refund $400.00 for order {later.operation.order_id}" in page
    assert "$400.00 &gt; $100.00" in page
    assert "29 min left" in page


def test_the_rule_that_asked_is_shown_as_the_sum_that_it_was(shop, approver, sign_in):
    customer = make_customer(shop)
    first = make_operation(customer, make_order(make_line(6000)))
    say_yes(first)
    make_question(shop, customer=customer, price=6000)

    page = text_of(sign_in(approver).get(reverse("console:queue")))

    assert "$60.00 + $60.00 &gt; $100.00 in 24 hours" in page


def test_a_poll_is_answered_only_when_something_is_new(shop, approver, sign_in):
    make_question(shop)
    client = sign_in(approver)
    page = client.get(reverse("console:queue"))
    asked_again = poll_of(text_of(page), "queue")

    assert client.get(asked_again, headers=HX).status_code == 204

    second = make_question(shop)
    news = client.get(asked_again, headers=HX)

    assert news.status_code == 200
    assert str(second.public_id) in text_of(news)
    assert "<title>(2) Approvals · Countersign</title>" in text_of(news)
    assert "<html" not in text_of(news)


def test_a_session_that_has_ended_sends_the_poll_to_the_door(client, db):
    answer = client.get(reverse("console:queue"), headers=HX)

    assert answer.headers["HX-Redirect"] == reverse("console:login")


def test_an_empty_queue_says_so(approver, sign_in):
    page = text_of(sign_in(approver).get(reverse("console:queue")))

    assert "Nothing waits for a yes." in page
    assert "<title>Approvals · Countersign</title>" in page


def test_approving_with_the_password_lets_it_be_sent(shop, approver, sign_in):
    approval = make_question(shop)

    answer = decide(sign_in(approver), approval, "approve")

    assert (answer.status_code, answer.headers["Location"]) == (302, page_of(approval))
    assert operation_of(approval).state == "approved"
    approval.refresh_from_db(fields=["decided_by", "decided_at"])
    assert approval.decided_by == "staff:dana"


@pytest.mark.parametrize("password", ["", "wrong"])
def test_without_the_right_password_nothing_is_decided(shop, approver, sign_in, password):
    approval = make_question(shop)

    answer = decide(sign_in(approver), approval, "approve", password=password)

    assert answer.status_code == 403
    assert "That is not your password." in text_of(answer)
    assert undecided(approval)


def test_guessing_the_password_is_stopped_and_the_right_one_does_not_help(
    shop, approver, sign_in, settings
):
    settings.AXES_FAILURE_LIMIT = 3
    approval = make_question(shop)
    client = sign_in(approver)
    for _ in range(3):
        decide(client, approval, "approve", password="wrong")

    answer = decide(client, approval, "approve", headers=HX)

    assert answer.status_code == 429
    assert "Too many wrong passwords" in text_of(answer)
    assert "<html" not in text_of(answer)
    assert undecided(approval)


def test_rejecting_needs_a_reason_and_no_password(shop, approver, sign_in):
    approval = make_question(shop)
    client = sign_in(approver)

    refused = decide(client, approval, "reject", reason="  ")
    assert refused.status_code == 422
    assert "Say why" in text_of(refused)
    assert undecided(approval)

    assert decide(client, approval, "reject").status_code == 302
    operation = operation_of(approval)
    assert (operation.state, operation.reason) == ("rejected", "The photos show normal wear.")


def test_the_second_of_two_deciders_learns_who_was_first(shop, approver, sign_in):
    approval = make_question(shop)
    other = make_person(shop, username="erin", is_approver=True)
    decide(sign_in(approver), approval, "approve")
    events = changes().count()

    answer = decide(sign_in(other), approval, "reject", headers=HX)

    assert answer.status_code == 409
    assert "staff:dana decided" in text_of(answer)
    assert operation_of(approval).state == "approved"
    assert changes().count() == events


def test_sending_the_same_form_again_changes_nothing_and_succeeds(shop, approver, sign_in):
    approval = make_question(shop)
    client = sign_in(approver)
    fields = {"decision_id": "11111111-2222-3333-4444-555555555555"}
    decide(client, approval, "approve", **fields)
    events = changes().count()

    again = decide(client, approval, "approve", **fields)

    assert again.status_code == 302
    assert changes().count() == events


def test_an_expired_question_is_gone(shop, approver, sign_in):
    approval = make_question(shop)
    expire_in(approval, minutes=0)

    answer = decide(sign_in(approver), approval, "approve")

    assert answer.status_code == 410
    assert undecided(approval)


def test_another_digest_is_not_this_question(shop, approver, sign_in):
    approval = make_question(shop)

    answer = decide(sign_in(approver), approval, "approve", digest="0" * 64)

    assert answer.status_code == 409
    assert undecided(approval)


@pytest.mark.parametrize("decision", ["YES ", "1", "true", "null", "[]", "", "Approve"])
def test_whatever_is_not_one_of_the_two_words_is_no_decision(shop, approver, sign_in, decision):
    approval = make_question(shop)

    answer = decide(sign_in(approver), approval, decision)

    assert answer.status_code == 422
    assert undecided(approval)


def test_a_decision_needs_the_csrf_token(shop, approver, sign_in):
    approval = make_question(shop)

    answer = decide(sign_in(approver), approval, "approve", csrfmiddlewaretoken="x")

    assert answer.status_code == 403
    assert "That form was not taken" in text_of(answer)
    assert undecided(approval)


def test_whoever_may_not_decide_reads_and_is_offered_no_form(shop, auditor, sign_in):
    approval = make_question(shop)

    for reader in (auditor, make_person(shop, "sam")):
        page = text_of(sign_in(reader).get(page_of(approval)))
        assert "You may read it, not decide it." in page
        assert reverse("console:decide", args=[approval.public_id]) not in page


def test_a_reason_is_shown_as_text_wherever_it_is_read(shop, approver, sign_in):
    approval = make_question(shop)
    client = sign_in(approver)
    decide(client, approval, "reject", reason="<script>alert(1)</script>\u202eyes")
    operation = operation_of(approval)

    for address in (
        page_of(approval),
        reverse("console:ticket", args=[operation.ticket_id]),
        reverse("console:task", args=[operation.task_id]),
    ):
        page = text_of(client.get(address))
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;[U+202E]yes" in page


def test_getting_the_decision_address_decides_nothing(shop, approver, sign_in):
    approval = make_question(shop)
    address = reverse("console:decide", args=[approval.public_id])

    answer = sign_in(approver).get(address, {"decision": "approve", "digest": approval.digest})

    assert answer.status_code == 405
    assert undecided(approval)


def test_a_right_taken_away_in_mid_session_counts_at_the_click(shop, approver, sign_in):
    approval = make_question(shop)
    client = sign_in(approver)
    client.get(page_of(approval))
    User.objects.filter(pk=approver.pk).update(is_approver=False)

    answer = decide(client, approval, "approve")

    assert answer.status_code == 403
    assert undecided(approval)


def test_nobody_countersigns_for_themselves(shop, sign_in):
    customer = make_customer(shop, email="dana@example.com")
    approval = make_question(shop, customer=customer)
    dana = make_person(shop, username="dana", is_approver=True, email="Dana@Example.com")

    answer = decide(sign_in(dana), approval, "approve")

    assert answer.status_code == 403
    assert undecided(approval)


def test_another_shops_question_is_not_there(shop, sign_in):
    approval = make_question(shop)
    stranger = make_person(make_shop(), username="sam", is_approver=True)
    client = sign_in(stranger)

    assert client.get(page_of(approval)).status_code == 404
    token = client.get(reverse("console:queue")).context["csrf_token"]
    answer = client.post(
        reverse("console:decide", args=[approval.public_id]),
        {
            "csrfmiddlewaretoken": token,
            "decision": "approve",
            "digest": approval.digest,
            "decision_id": "11111111-2222-3333-4444-555555555555",
        },
    )

    assert answer.status_code == 404
    assert undecided(approval)


def test_a_customers_own_question_is_not_for_the_console(shop, approver, sign_in):
    operation = make_operation(make_customer(shop))
    asked = Approval.objects.get(operation=operation)

    assert sign_in(approver).get(page_of(asked)).status_code == 404


def test_the_page_shows_the_sealed_action_and_that_the_shop_was_not_reached(
    shop, approver, sign_in
):
    approval = make_question(shop)

    page = text_of(sign_in(approver).get(page_of(approval)))

    assert approval.digest in page
    assert approval.operation.idempotency_key in page
    assert "original payment method" in page
    assert "The shop no longer lets us act for this customer." in page


def test_the_orders_facts_are_fetched_now_and_differences_are_marked(
    buyer, shop_row, sign_in, pretend_shop
):
    order_id = buyer.order(40_000)
    approval = make_question(shop_row, customer=buyer.row, order=look(buyer, order_id))
    dana = make_person(shop_row, username="dana", is_approver=True)
    client = sign_in(dana)

    unchanged = text_of(client.get(page_of(approval)))
    assert "Nothing has changed since this was sealed." in unchanged
    assert "changed</strong>" not in unchanged

    pretend_shop.refund_by_hand(order_id, 500)
    changed = text_of(client.get(page_of(approval)))
    assert "The order has changed since this was sealed." in changed
    assert "$5.00 USD" in changed

    decide(client, approval, "reject")
    decided = text_of(client.get(page_of(approval)))
    assert "A yes sends nothing" not in decided
    assert "it may be this very change" in decided


def test_a_yes_to_an_order_that_has_changed_sends_nothing_and_shows_the_new_facts(
    buyer, shop_row, sign_in, pretend_shop
):
    order_id = buyer.order(40_000)
    approval = make_question(shop_row, customer=buyer.row, order=look(buyer, order_id))
    client = sign_in(make_person(shop_row, username="dana", is_approver=True))
    pretend_shop.refund_by_hand(order_id, 500)

    answer = decide(client, approval, "approve", headers=HX)

    assert answer.status_code == 409
    assert "<del>$0.00 USD</del> <ins>$5.00 USD</ins>" in text_of(answer)
    assert undecided(approval)
    operation = operation_of(approval)
    assert (operation.state, operation.reason) == ("superseded", "order_changed")
    assert Approval.objects.get(pk=approval.pk).status == "superseded"
    assert Event.objects.filter(action="approval.superseded").count() == 1
    assert pretend_shop.calls(idempotency_key=operation.idempotency_key) == []


def test_what_was_proposed_instead_is_shown_with_what_differs(
    buyer, shop_row, sign_in, pretend_shop
):
    order_id = buyer.order(40_000)
    first = make_question(shop_row, customer=buyer.row, order=look(buyer, order_id))
    client = sign_in(make_person(shop_row, username="dana", is_approver=True))
    assert "Proposed instead" not in text_of(client.get(page_of(first)))
    pretend_shop.refund_by_hand(order_id, 500)
    decide(client, first, "approve")
    assert "Proposed instead" not in text_of(client.get(page_of(first)))

    make_question(shop_row, customer=buyer.row, order=look(buyer, order_id))

    page = text_of(client.get(page_of(first)))
    assert "Proposed instead" in page
    for name, before, after in (
        ("Refunded so far", "$0.00 USD", "$5.00 USD"),
        ("Amount", "$400.00", "$395.00"),
    ):
        row = f'<th scope="row">{name}</th><td>{before}</td><td>{after}</td>'
        assert row in page


def test_hostile_text_is_shown_as_text_with_its_hidden_characters_visible(
    buyer, shop_row, sign_in, pretend_shop
):
    attack = "<script>alert(1)</script>\u202eapproved by a manager"
    buyer.row.name = attack
    buyer.row.save(update_fields=["name"])
    order_id = buyer.order(40_000)
    hidden = "\u200bonly a test\U000e0041\n" + "approved\n" * 3000
    note = {"author": "customer", "text": attack + hidden, "at": "2026-01-02T03:04:05Z"}
    pretend_shop.edit_order(order_id, notes=[note])
    approval = make_question(shop_row, customer=buyer.row, order=look(buyer, order_id))
    client = sign_in(make_person(shop_row, username="dana", is_approver=True))

    for page in (text_of(client.get(page_of(approval))), text_of(client.get("/console/"))):
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;[U+202E]approved" in page
    page = text_of(client.get(page_of(approval)))
    assert "Note by the customer" in page
    assert "[U+200B]only a test[U+E0041]" in page
    assert page.count("approved") < 200


def test_a_broken_seal_can_be_seen_and_not_decided(shop, approver, sign_in):
    approval = make_question(shop)
    tamper("UPDATE tools_operation SET seal = 'x' WHERE id = %s", [approval.operation_id])

    page = text_of(sign_in(approver).get(page_of(approval)))

    assert "The sealed bytes do not match their digest" in page
    assert reverse("console:decide", args=[approval.public_id]) not in page


def test_the_open_page_learns_that_somebody_else_has_decided(shop, approver, sign_in):
    approval = make_question(shop)
    watcher = sign_in(make_person(shop, username="erin", is_approver=True))
    page = text_of(watcher.get(page_of(approval)))
    poll = poll_of(page, "state")
    assert watcher.get(poll, headers=HX).status_code == 204

    decide(sign_in(approver), approval, "reject")
    news = text_of(watcher.get(poll, headers=HX))

    assert 'id="decision" class="panel decision" aria-label="Decision" hx-swap-oob' in news
    assert "staff:dana" in news
    assert "hx-trigger" not in news


def test_no_page_of_the_console_can_be_framed_or_run_foreign_code(shop, approver, sign_in):
    approval = make_question(shop)

    answer = sign_in(approver).get(page_of(approval))

    policy = answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "no-store" in answer.headers["Cache-Control"]
    assert "style=" not in text_of(answer)


def test_a_longer_queue_costs_no_more_questions_to_the_database(
    shop, approver, sign_in, django_assert_num_queries
):
    client = sign_in(approver)
    make_question(shop)
    with CaptureQueriesContext(connection) as one:
        client.get(reverse("console:queue"))
    for _ in range(4):
        make_question(shop)

    with django_assert_num_queries(len(one)):
        client.get(reverse("console:queue"))

"""Money is tightened by one admin and loosened by two, and the database holds it."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import shop_settings
from accounts.models import ChangeStatus, Role, Shop, ShopChange, User
from accounts.shop_settings import CHANGE_LIVES, change_settings, confirm, mark, turn_down
from audit.models import Event
from tests.accounts.factories import make_shop, make_user
from tests.two_people import loosen, make_admin

LOOSER = {
    "staff_limit": 20_000,
    "second_limit": 60_000,
    "staff_also_for_cancel": False,
    "refund_window_days": 31,
    "countries_served": ["US", "CA"],
    "customer_approval_seconds": 3600,
    "staff_approval_seconds": 90_000,
    "max_tokens": 60_001,
    "max_cost": 500_001,
    "customer_day_max_tokens": 400_001,
    "customer_day_max_cost": 2_000_001,
    "shop_day_max_tokens": 1_000_000_001,
    "shop_day_max_cost": 500_000_001,
    "currency": "EUR",
}
TIGHTER = {
    "staff_limit": 5_000,
    "second_limit": 40_000,
    "staff_also_for_cancel": True,
    "refund_window_days": 14,
    "countries_served": ["US"],
    "max_cost": 1,
    "shop_day_max_cost": 0,
}


@pytest.fixture
def shop(db) -> Shop:
    return make_shop(staff_also_for_cancel=True, second_limit=50_000)


@pytest.fixture
def first(shop: Shop) -> User:
    return make_admin(shop)


@pytest.fixture
def second(shop: Shop) -> User:
    return make_admin()


def change(shop: Shop, by: User, **wanted: Any) -> shop_settings.Outcome:
    """Ask for these values as a page does that has just been opened."""
    reason = wanted.pop("reason", "The season begins.")
    seen = wanted.pop("seen", "") or mark(Shop.objects.get(pk=shop.pk), wanted)
    return change_settings(
        shop_id=shop.pk, user_id=by.pk, wanted=wanted, seen=seen, reason=reason, now=timezone.now()
    )


def propose(shop: Shop, by: User, **wanted: Any) -> ShopChange:
    (proposed,) = change(shop, by, **wanted).proposed
    return proposed


def say_yes(proposed: ShopChange, by: User) -> ShopChange:
    return confirm(change_id=proposed.pk, user_id=by.pk, now=timezone.now())


def values_of(shop: Shop) -> dict[str, Any]:
    rows = Shop.objects.filter(pk=shop.pk).values(*Shop.LOOSENED_BY_TWO, "policy_version")
    return dict(rows.get())


def everything(shop: Shop) -> tuple[Any, ...]:
    changes = ShopChange.objects.order_by("pk").values_list("pk", "status", "applied_at")
    return values_of(shop), list(changes), Event.objects.count()


# --- One person, two people ---------------------------------------------------------------------


def test_the_table_of_the_tests_names_every_setting_that_takes_two():
    assert set(LOOSER) == set(Shop.LOOSENED_BY_TWO)


@pytest.mark.parametrize(("name", "value"), LOOSER.items())
def test_a_looser_value_waits_for_a_second_person(shop, first, second, name, value):
    before = getattr(shop, name)

    proposed = propose(shop, first, **{name: value})
    assert values_of(shop)[name] == before

    say_yes(proposed, second)
    assert values_of(shop)[name] == value
    confirmed = ShopChange.objects.get()
    assert confirmed.status == ChangeStatus.CONFIRMED
    assert confirmed.applied_at is not None


@pytest.mark.parametrize(("name", "value"), TIGHTER.items())
def test_a_tighter_value_counts_at_once(shop, first, name, value):
    if name == "countries_served":
        loosen(shop, countries_served=["US", "CA"])
    if name == "staff_also_for_cancel":
        loosen(shop, staff_also_for_cancel=False)

    outcome = change(shop, first, **{name: value}, reason="")

    assert outcome.applied == [name]
    assert outcome.proposed == []
    assert values_of(shop)[name] == value


def test_both_ends_of_a_change_are_on_the_trail_with_both_people(shop, first, second):
    say_yes(propose(shop, first, staff_limit=20_000), second)

    asked, yes, changed = Event.objects.order_by("pk")
    assert (asked.action, asked.actor) == ("shop_change.proposed", first.actor)
    assert asked.data["reason"] == "The season begins."
    assert (yes.action, yes.actor) == ("shop_change.confirmed", second.actor)
    assert (yes.data["from"], yes.data["to"]) == (10_000, 20_000)
    assert changed.action == "shop.changed"
    assert changed.data["changes"] == {"staff_limit": [10_000, 20_000]}
    assert changed.data["people"] == [first.actor, second.actor]
    assert {event.shop_id for event in (asked, yes, changed)} == {shop.pk}


def test_a_change_of_both_kinds_is_split(shop, first):
    outcome = change(shop, first, staff_limit=20_000, refund_window_days=10)

    assert outcome.applied == ["refund_window_days"]
    assert [each.setting for each in outcome.proposed] == ["staff_limit"]
    assert (values_of(shop)["staff_limit"], values_of(shop)["refund_window_days"]) == (10_000, 10)


def test_nobody_confirms_their_own(shop, first):
    proposed = propose(shop, first, staff_limit=20_000)
    before = everything(shop)

    with pytest.raises(shop_settings.SamePersonError):
        say_yes(proposed, first)

    assert everything(shop) == before


def test_nor_from_a_second_account_of_the_same_address(shop):
    first = make_admin(shop, email="dana@example.com")
    double = make_admin(email="Dana@Example.com ")
    proposed = propose(shop, first, staff_limit=20_000)

    with pytest.raises(shop_settings.SamePersonError):
        say_yes(proposed, double)


def test_nor_from_an_account_made_for_it(shop, first):
    proposed = propose(shop, first, staff_limit=20_000)

    with pytest.raises(shop_settings.NewcomerError):
        say_yes(proposed, make_admin())

    assert values_of(shop)["staff_limit"] == 10_000


@pytest.mark.parametrize(
    "fields",
    [
        {"role": Role.STAFF, "is_approver": True},
        {"role": Role.AUDITOR},
        {"is_active": False},
        {"shop": "another"},
    ],
    ids=str,
)
def test_only_an_admin_of_the_shop_proposes_confirms_or_turns_down(shop, first, fields):
    proposed = propose(shop, first, staff_limit=20_000)
    details = {"role": Role.ADMIN, **fields}
    details["shop"] = make_shop() if "shop" in fields else shop
    other = make_user(**details)
    before = everything(shop)

    with pytest.raises(shop_settings.NotAllowedError):
        say_yes(proposed, other)
    with pytest.raises(shop_settings.NotAllowedError):
        turn_down(change_id=proposed.pk, user_id=other.pk, reason="No.", now=timezone.now())
    with pytest.raises(shop_settings.NotAllowedError):
        change(shop, other, refund_window_days=1)

    assert everything(shop) == before


def test_an_admin_who_is_one_no_more_cannot_confirm(shop, first, second):
    proposed = propose(shop, first, staff_limit=20_000)
    User.objects.filter(pk=second.pk).update(is_active=False)

    with pytest.raises(shop_settings.NotAllowedError):
        say_yes(proposed, second)


def test_loosening_needs_a_reason_and_tightening_none(shop, first):
    before = everything(shop)

    with pytest.raises(shop_settings.ReasonNeededError):
        change(shop, first, staff_limit=20_000, reason="  ")

    assert everything(shop) == before


def test_what_is_turned_down_is_never_confirmed(shop, first, second):
    proposed = propose(shop, first, staff_limit=20_000)
    with pytest.raises(shop_settings.ReasonNeededError):
        turn_down(change_id=proposed.pk, user_id=second.pk, reason=" ", now=timezone.now())
    turn_down(change_id=proposed.pk, user_id=second.pk, reason="Too much.", now=timezone.now())

    with pytest.raises(shop_settings.EndedError):
        say_yes(proposed, second)

    assert values_of(shop)["staff_limit"] == 10_000
    assert Event.objects.filter(action="shop_change.turned_down").get().data["note"] == "Too much."


def test_the_proposer_may_take_it_back(shop, first):
    proposed = propose(shop, first, staff_limit=20_000)

    turn_down(change_id=proposed.pk, user_id=first.pk, reason="A typo.", now=timezone.now())

    assert ShopChange.objects.get().status == ChangeStatus.TURNED_DOWN


def test_after_its_time_a_change_is_not_confirmed(shop, first, second):
    proposed = propose(shop, first, staff_limit=20_000)
    late = proposed.proposed_at + CHANGE_LIVES

    with pytest.raises(shop_settings.EndedError):
        confirm(change_id=proposed.pk, user_id=second.pk, now=late)

    assert shop_settings.list_open(shop_id=shop.pk, now=late) == []
    assert shop_settings.list_ended(shop_id=shop.pk, now=late, limit=5) == [proposed]


def test_another_proposal_for_the_same_setting_takes_its_place(shop, first, second):
    older = propose(shop, first, staff_limit=20_000)
    newer = propose(shop, second, staff_limit=15_000)

    with pytest.raises(shop_settings.EndedError):
        say_yes(older, second)
    say_yes(newer, first)

    assert values_of(shop)["staff_limit"] == 15_000
    assert ShopChange.objects.get(pk=older.pk).status == ChangeStatus.SUPERSEDED


def test_the_same_again_is_no_confirmation_and_no_second_proposal(shop, first, second):
    propose(shop, first, staff_limit=20_000)
    before = everything(shop)

    with pytest.raises(shop_settings.AlreadyProposedError):
        change(shop, second, staff_limit=20_000)

    assert everything(shop) == before


def test_a_setting_that_was_tightened_meanwhile_ends_what_was_proposed_for_it(shop, first, second):
    proposed = propose(shop, first, staff_limit=20_000)
    change(shop, second, staff_limit=5_000)

    with pytest.raises(shop_settings.EndedError):
        say_yes(proposed, second)

    assert values_of(shop)["staff_limit"] == 5_000
    assert ShopChange.objects.get().status == ChangeStatus.SUPERSEDED


def test_a_form_filled_in_from_older_values_changes_nothing(shop, first, second):
    seen = mark(shop, {"refund_window_days": 0})
    change(shop, second, refund_window_days=20)
    before = everything(shop)

    with pytest.raises(shop_settings.StaleError):
        change(shop, first, refund_window_days=25, seen=seen)

    assert everything(shop) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time_zone", "Mars/Olympus"),
        ("countries_served", []),
        ("allowed_origins", ["https://shop.example/path"]),
        ("max_steps", 0),
        ("staff_limit", 10**15 + 1),
        ("shop_day_max_cost", 10**15 + 1),
        ("mail_from", "nobody"),
    ],
)
def test_a_value_that_no_shop_can_have_is_refused_by_its_name(shop, first, name, value):
    before = everything(shop)

    with pytest.raises(shop_settings.InvalidSettingError) as refused:
        change(shop, first, **{name: value})

    assert refused.value.errors
    assert everything(shop) == before


def test_removing_the_second_limit_takes_two_people_and_setting_one_does_not(shop, first, second):
    proposed = propose(shop, first, second_limit=None)
    assert (proposed.old_value, proposed.new_value) == (50_000, None)
    assert values_of(shop)["second_limit"] == 50_000

    say_yes(proposed, second)
    assert values_of(shop)["second_limit"] is None
    assert Event.objects.get(action="shop_change.confirmed").data["to"] is None

    outcome = change(shop, first, second_limit=90_000, reason="")
    assert outcome.applied == ["second_limit"]
    assert values_of(shop)["second_limit"] == 90_000


@pytest.mark.parametrize("wanted", [{"second_limit": 9_999}, {"staff_limit": 50_001}], ids=str)
def test_two_are_not_asked_for_where_one_is_not(shop, first, wanted):
    before = everything(shop)

    with pytest.raises(shop_settings.InvalidSettingError) as refused:
        change(shop, first, **wanted)

    assert list(refused.value.errors) == ["second_limit"]
    assert everything(shop) == before


def test_both_limits_are_raised_together_and_confirmed_in_either_order(shop, first, second):
    outcome = change(shop, first, staff_limit=60_000, second_limit=80_000)

    for proposed in outcome.proposed:
        say_yes(proposed, second)

    assert (values_of(shop)["staff_limit"], values_of(shop)["second_limit"]) == (60_000, 80_000)


def test_no_other_way_removes_the_second_limit(shop):
    before = everything(shop)

    with (
        pytest.raises(DatabaseError, match=r"second_limit .* takes two people"),
        transaction.atomic(),
    ):
        Shop.objects.filter(pk=shop.pk).update(second_limit=None)

    assert everything(shop) == before


def test_a_loosened_setting_raises_the_policy_version(shop, first, second):
    say_yes(propose(shop, first, staff_limit=20_000), second)

    assert values_of(shop)["policy_version"] == 2


# --- The database -------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), LOOSER.items())
def test_no_other_way_loosens_money(shop, first, name, value):
    before = everything(shop)
    setattr(shop, name, value)

    with pytest.raises(DatabaseError, match="takes two people"), transaction.atomic():
        shop.save()
    with pytest.raises(DatabaseError, match="takes two people"), transaction.atomic():
        Shop.objects.filter(pk=shop.pk).update(**{name: value})

    assert everything(shop) == before


def test_a_proposal_alone_loosens_nothing(shop, first):
    propose(shop, first, staff_limit=20_000)

    with pytest.raises(DatabaseError, match="takes two people"), transaction.atomic():
        Shop.objects.filter(pk=shop.pk).update(staff_limit=20_000)


def test_a_confirmed_change_is_used_once(shop, first, second):
    say_yes(propose(shop, first, staff_limit=20_000), second)
    change(shop, first, staff_limit=10_000)

    with pytest.raises(DatabaseError, match="takes two people"), transaction.atomic():
        Shop.objects.filter(pk=shop.pk).update(staff_limit=20_000)

    assert values_of(shop)["staff_limit"] == 10_000


BAD_ENDS: dict[str, dict[str, Any]] = {
    "confirmed by the proposer": {"status": "confirmed", "ended_by": "x", "ended_by_user_id": "first"},
    "confirmed by a name of the proposer": {"status": "confirmed", "ended_by": "proposer", "ended_by_user_id": "second"},
    "confirmed by nobody": {"status": "confirmed"},
    "confirmed by somebody of the staff": {"status": "confirmed", "ended_by": "x", "ended_by_user_id": "staff"},
    "applied without a shop": {"applied_at": timezone.now()},
    "another value": {"new_value": 1_000_000},
    "another proposer": {"proposed_by_user_id": "second"},
    "longer": {"expires_at": timezone.now() + timedelta(days=365)},
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD_ENDS)
def test_a_change_cannot_be_written_into_what_it_is_not(shop, first, second, bad):
    proposed = propose(shop, first, staff_limit=20_000)
    people = {
        "first": first.pk,
        "second": second.pk,
        "staff": make_user(shop).pk,
        "proposer": first.actor,
    }
    fields = {name: people.get(str(value), value) for name, value in BAD_ENDS[bad].items()}
    if "status" in fields:
        fields["ended_at"] = timezone.now()
    before = everything(shop)

    with pytest.raises(DatabaseError), transaction.atomic():
        ShopChange.objects.filter(pk=proposed.pk).update(**fields)

    assert everything(shop) == before


def test_a_change_that_has_ended_stays_as_it_ended(shop, first, second):
    proposed = propose(shop, first, staff_limit=20_000)
    turn_down(change_id=proposed.pk, user_id=second.pk, reason="No.", now=timezone.now())
    row = ShopChange.objects.filter(pk=proposed.pk)

    for fields in ({"status": "open", "ended_by": "", "ended_at": None}, {"note": "Yes."}):
        with pytest.raises(DatabaseError), transaction.atomic():
            row.update(**fields)
    with pytest.raises(DatabaseError), transaction.atomic():
        row.delete()

    assert row.get().status == ChangeStatus.TURNED_DOWN


def test_a_change_out_of_time_is_not_confirmed_by_the_database_either(shop, first, second):
    now = timezone.now()
    old = ShopChange.objects.create(
        shop=shop, setting="staff_limit", old_value=10_000, new_value=20_000, reason="x",
        proposed_by=first.actor, proposed_by_user_id=first.pk, proposed_at=now - CHANGE_LIVES,
        expires_at=now,
    )  # fmt: skip

    with pytest.raises(DatabaseError, match="time to confirm is over"), transaction.atomic():
        ShopChange.objects.filter(pk=old.pk).update(
            status="confirmed", ended_by="x", ended_by_user_id=second.pk, ended_at=now
        )


# --- At once ------------------------------------------------------------------------------------


def in_threads(*works: Any) -> list[Any]:
    """What each of these comes to, all begun at the same moment."""
    gate = threading.Barrier(len(works))
    found: list[Any] = [None] * len(works)

    def run(n: int) -> None:
        try:
            gate.wait(10)
            found[n] = works[n]()
        except shop_settings.SettingsError as exc:
            found[n] = type(exc)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return found


@pytest.mark.django_db(transaction=True)
def test_of_two_confirmations_at_once_one_counts():
    shop = make_shop()
    first, second, third = make_admin(shop), make_admin(), make_admin()
    proposed = propose(shop, first, staff_limit=20_000)

    found = in_threads(lambda: say_yes(proposed, second), lambda: say_yes(proposed, third))

    assert found.count(shop_settings.EndedError) == 1
    assert values_of(shop)["staff_limit"] == 20_000
    assert Event.objects.filter(action="shop.changed").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_tightening_and_a_confirmation_at_once_leave_one_clear_end():
    shop = make_shop()
    first, second = make_admin(shop), make_admin()
    proposed = propose(shop, first, staff_limit=20_000)
    seen = mark(shop, {"staff_limit": 0})

    found = in_threads(
        lambda: say_yes(proposed, second), lambda: change(shop, first, staff_limit=5_000, seen=seen)
    )

    status = ShopChange.objects.get().status
    now = values_of(shop)["staff_limit"]
    if found[0] is shop_settings.EndedError:
        assert (now, status) == (5_000, ChangeStatus.SUPERSEDED)
    else:
        assert found[1] is shop_settings.StaleError
        assert (now, status) == (20_000, ChangeStatus.CONFIRMED)


def test_the_shop_is_locked_before_the_change_and_both_before_anything_is_written(
    shop, first, second
):
    proposed = propose(shop, first, staff_limit=20_000)
    with CaptureQueriesContext(connection) as captured:
        say_yes(proposed, second)

    said = [query["sql"] for query in captured]
    locks = [n for n, sql in enumerate(said) if "FOR UPDATE" in sql]
    writes = [n for n, sql in enumerate(said) if sql.startswith("UPDATE")]
    assert 'FROM "accounts_shop" ' in said[locks[0]]
    assert 'FROM "accounts_shopchange" ' in said[locks[1]]
    assert locks[1] < writes[0]

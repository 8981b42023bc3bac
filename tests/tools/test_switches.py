from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from audit.models import Event
from tests.factories import make_shop
from tools import registry, switches
from tools.models import Switch

pytestmark = pytest.mark.django_db


def run(*arguments):
    out = StringIO()
    call_command("kill_switch", *arguments, "--reason", "An incident.", "--by", "dana", stdout=out)
    return out.getvalue()


def off(shop, tool="refund_order"):
    return registry.is_off(tool=tool, shop_id=shop.pk)


def test_a_switch_for_everything_stops_every_tool_of_every_shop():
    shops = make_shop(), make_shop()

    assert run("on") == "every tool in every shop is switched off.\n"

    assert all(off(shop, tool) for shop in shops for tool in registry.TOOLS)


def test_a_switch_for_a_shop_leaves_the_others_alone():
    here, elsewhere = make_shop(), make_shop()

    run("on", "--shop", here.slug)

    assert (off(here), off(elsewhere)) == (True, False)


def test_a_switch_for_a_tool_leaves_the_others_alone():
    shop = make_shop()

    run("on", "--tool", "refund_order")

    assert (off(shop), off(shop, "cancel_order")) == (True, False)


def test_a_tool_can_be_stopped_in_one_shop():
    here, elsewhere = make_shop(slug="here"), make_shop()

    assert run("on", "--shop", "here", "--tool", "refund_order") == (
        "refund_order in here is switched off.\n"
    )

    assert (off(here), off(elsewhere), off(here, "cancel_order")) == (True, False, False)


def test_a_released_switch_stops_nothing():
    shop = make_shop()
    run("on", "--tool", "refund_order")

    assert run("off", "--tool", "refund_order") == "refund_order in every shop may be used again.\n"

    assert not off(shop)
    assert Switch.objects.count() == 1


def test_a_wider_switch_stays_and_is_named():
    shop = make_shop(slug="here")
    run("on")
    run("on", "--shop", "here")

    assert run("off", "--shop", "here") == (
        "every tool in here may be used again.\nAlso switched off: every tool in every shop.\n"
    )

    assert off(shop)


def test_each_change_is_on_record_with_who_and_why():
    shop = make_shop(slug="here")
    run("on", "--shop", "here", "--tool", "refund_order")
    run("off", "--shop", "here", "--tool", "refund_order")

    events = Event.objects.order_by("id").values_list(
        "actor", "action", "subject", "shop_id", "tool", "data"
    )
    assert list(events) == [
        (
            "operator:dana",
            f"kill_switch.{what}",
            "kill_switch:here/refund_order",
            shop.pk,
            "refund_order",
            {"reason": "An incident."},
        )
        for what in ("thrown", "released")
    ]
    switch = Switch.objects.get()
    assert (switch.changed_by, switch.reason) == ("operator:dana", "An incident.")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("on", "--shop", "nowhere"), "There is no shop nowhere."),
        (("off",), "This switch is not thrown."),
        (("off", "--tool", "refund_order"), "This switch is not thrown."),
        (("on", "--tool", "drop_tables"), "invalid choice"),
        (("sideways",), "invalid choice"),
    ],
)
def test_a_command_that_makes_no_sense_changes_nothing(arguments, told):
    with pytest.raises(CommandError, match=told):
        run(*arguments)

    assert not Switch.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tool": "drop_tables"}, "There is no tool drop_tables"),
        ({"reason": "  "}, "A reason has"),
        ({"reason": "x" * 501}, "A reason has"),
    ],
)
def test_a_switch_has_a_known_tool_and_a_reason(fields, told):
    details = {"shop": None, "tool": "", "reason": "x", "by": "admin:root", "now": timezone.now()}

    with pytest.raises(switches.SwitchError, match=told):
        switches.throw(**details | fields)

    assert not Switch.objects.exists()
    assert not Event.objects.exists()

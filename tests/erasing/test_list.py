"""A backup from before an erasure is restored, and the list kept outside says who is to go again."""

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts import keeping
from accounts.models import Customer, ErasedTicket, Erasure, ErasureCause
from agents import jobs
from agents.models import Message, Ticket
from agents.services import erasure_list
from agents.services.erasure import erase_customer
from audit import services as audit
from audit.models import CustomerKey, Event
from tests.audit.facts import tamper
from tests.factories import make_customer, make_shop, make_task, make_ticket

pytestmark = pytest.mark.django_db

NOW = timezone.now()
TABLES = ("accounts_customer", "accounts_erasure", "accounts_erasedticket", "agents_ticket",
          "agents_message", "audit_customer_key")  # fmt: skip


@pytest.fixture
def ada() -> Customer:
    """A customer with words in a ticket and in the trail."""
    ada = make_customer(make_shop(), name="Ada Moreno")
    ticket = make_ticket(ada, subject="wordcanary")
    Message.objects.create(ticket=ticket, seq=1, author="customer", text="wordcanary", at=NOW)
    audit.record(
        actor=ada.actor, action="message.received", subject=f"ticket:{ticket.pk}", at=NOW,
        shop_id=ada.shop_id, ticket_id=ticket.pk, customer=ada.external_id, personal="wordcanary",
    )  # fmt: skip
    return ada


@pytest.fixture
def path(tmp_path: Path, settings) -> Path:
    path = tmp_path / "erasures.jsonl"
    settings.ERASURE_LIST_FILE = str(path)
    return path


def erase(customer: Customer) -> Erasure:
    return erase_customer(
        customer_id=customer.pk, cause=ErasureCause.ASKED, by="admin:root", now=NOW
    )


def back_up() -> None:
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE TEMP TABLE backup_{table} AS TABLE {table}")


def restore() -> None:
    """The tables as they were, as a restore leaves them: no trigger has a say in it."""
    for table in TABLES:
        tamper(f"DELETE FROM {table}")  # noqa: S608
        tamper(f"INSERT INTO {table} SELECT * FROM backup_{table}")  # noqa: S608
    erasure_list._looked_at.clear()


def words() -> list[str]:
    return [
        *Message.objects.values_list("text", flat=True),
        *Ticket.objects.values_list("subject", flat=True),
        *[
            audit.read_personal(event) or ""
            for event in Event.objects.exclude(personal_digest=None)
        ],
    ]


def test_a_restored_backup_is_erased_again_by_itself(ada: Customer, path: Path):
    back_up()
    erase(ada)
    jobs.erase()
    restore()
    assert words().count("wordcanary") == 3
    assert not Erasure.objects.exists()

    jobs.erase()

    assert "wordcanary" not in words()
    assert Customer.objects.get(pk=ada.pk).name == ""
    erasure = Erasure.objects.get()
    assert (erasure.cause, erasure.done_at is not None) == ("replay", True)
    assert CustomerKey.objects.filter(destroyed_at=None).count() == 0


def test_the_command_erases_again_and_does_nothing_the_second_time(ada: Customer, tmp_path: Path):
    back_up()
    erase(ada)
    out = StringIO()
    call_command("erasure_list", stdout=out)
    path = tmp_path / "list"
    path.write_text(out.getvalue())
    restore()
    said = StringIO()

    call_command("replay_erasures", path, stdout=said)
    call_command("replay_erasures", path, stdout=said)

    assert said.getvalue().splitlines() == [
        "Erased again: 1. Waiting: 0.",
        "Erased again: 0. Waiting: 0.",
    ]
    assert "wordcanary" not in words()
    assert Erasure.objects.count() == 1


def test_each_erasure_is_listed_once_under_the_shop_s_number(ada: Customer, path: Path):
    erasure = erase(ada)

    jobs.erase()
    jobs.erase()

    (line,) = path.read_text().splitlines()
    assert json.loads(line) == {
        "format": "countersign.erasure/1",
        "shop": ada.shop.slug,
        "customer": ada.external_id,
        "done_at": erasure.done_at.isoformat() if erasure.done_at else "",
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert Erasure.objects.get().listed_at is not None


def test_a_line_that_a_crash_cut_off_spoils_no_other(ada: Customer, path: Path):
    path.write_text('{"format": "countersign.era')
    erase(ada)

    jobs.erase()

    assert json.loads(path.read_text().splitlines()[1])["customer"] == ada.external_id


def test_who_came_back_after_the_erasure_is_left_alone(ada: Customer, path: Path):
    erase(ada)
    jobs.erase()
    again = make_ticket(ada, subject="New words")

    erasure_list._looked_at.clear()
    jobs.erase()

    assert Ticket.objects.get(pk=again.pk).subject == "New words"
    assert Erasure.objects.count() == 1


def line(whom: Customer, /, **changes: str) -> str:
    told = {
        "format": "countersign.erasure/1",
        "shop": whom.shop.slug,
        "customer": whom.external_id,
        "done_at": (NOW + timedelta(days=1)).isoformat(),
    }
    return json.dumps(told | changes)


def test_a_hold_keeps_even_what_the_list_names_and_the_command_says_so(
    ada: Customer, tmp_path: Path
):
    keeping.place_hold(customer_id=ada.pk, reason="A letter", by="admin:root", now=NOW)
    path = tmp_path / "list"
    path.write_text(line(ada))
    out = StringIO()

    with pytest.raises(SystemExit) as ended:
        call_command("replay_erasures", path, stdout=out)

    assert ended.value.code == 1
    assert out.getvalue() == "Erased again: 0. Waiting: 1.\n"
    assert "wordcanary" in words()


def test_what_is_under_way_is_waited_for(ada: Customer, tmp_path: Path):
    make_task(
        Ticket.objects.get(customer=ada), status="running",
        lease_until=timezone.now() + timedelta(minutes=1),
    )  # fmt: skip

    came = erasure_list.replay([line(ada)], now=NOW)

    assert (came.erased, came.waiting) == (0, 1)
    assert Erasure.objects.get().done_at is None


@pytest.mark.parametrize(
    "bad",
    ["nonsense", "[]", "{}", '"text"', '{"format": "other/1"}', "null"],
)
def test_a_line_that_is_none_of_ours_is_named_and_the_rest_is_done(
    ada: Customer, tmp_path: Path, bad: str
):
    path = tmp_path / "list"
    path.write_text(f"{bad}\n\n{line(ada)}\n")
    errors = StringIO()

    with pytest.raises(SystemExit):
        call_command("replay_erasures", path, stdout=StringIO(), stderr=errors)

    assert errors.getvalue() == "Line 1 is no erasure.\n"
    assert "wordcanary" not in words()


def test_nobody_of_another_shop_with_the_same_number_is_erased(ada: Customer):
    twin = make_customer(make_shop(), external_id=ada.external_id, name="Twin")

    erasure_list.replay(
        [line(ada), line(ada, customer="nobody"), line(ada, shop="nowhere")], now=NOW
    )

    assert Customer.objects.get(pk=twin.pk).name == "Twin"
    assert Customer.objects.get(pk=ada.pk).name == ""
    assert ErasedTicket.objects.count() == 1


def test_without_a_place_for_it_no_list_is_kept(ada: Customer, settings):
    settings.ERASURE_LIST_FILE = ""
    erase(ada)

    jobs.erase()

    assert Erasure.objects.get().listed_at is None


def test_a_file_that_is_not_there_is_said_in_words(tmp_path: Path):
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("replay_erasures", tmp_path / "none")

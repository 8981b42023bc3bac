"""`manage.py audit_verify`: what it says, its exit codes, and heads published elsewhere."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError

from audit import sealer, services
from audit.models import Event, Seal
from tests.audit.facts import NOW, SHOP, plain_entry, record_committed, seal, sealed_trail, tamper


@pytest.fixture
def head(db, tmp_path, settings):
    """The path where the head of a trail of four seals was published."""
    settings.SEAL_HEAD_FILE = str(tmp_path / "head")
    sealed_trail(seals=4)
    sealer.publish()
    return tmp_path / "head"


def run_command(*arguments):
    """Exit code, what it printed, and what it complained about."""
    out, err = StringIO(), StringIO()
    try:
        call_command("audit_verify", *arguments, stdout=out, stderr=err)
    except SystemExit as exc:
        return exc.code, out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_a_whole_chain_with_its_head_exits_0(head):
    record_committed(plain_entry(), plain_entry())

    code, out, _ = run_command("--head", str(head))

    assert code == 0
    assert out.splitlines() == [
        "The chain holds: 12 events in 4 seals.",
        "Not sealed yet: 2 events, since 2026-03-01T12:30:15.123456Z.",
        "Found in the chain: 1 published head.",
        f"Newest: seal 4, {bytes(Seal.objects.get(pk=4).digest).hex()}",
    ]


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_a_cut_tail_holds_in_itself_but_not_against_the_head(head, cut):
    tamper(
        "DELETE FROM audit_event WHERE id IN (SELECT unnest(event_ids) FROM audit_seal WHERE id > %s)",
        [4 - cut],
    )
    tamper("DELETE FROM audit_personal_text WHERE event_id NOT IN (SELECT id FROM audit_event)")
    tamper("DELETE FROM audit_seal WHERE id > %s", [4 - cut])

    assert run_command()[0] == 0
    code, out, _ = run_command("--head", str(head))
    assert code == 1
    assert out.startswith("The chain is broken. seal 4: missing, though it was published on 20")
    assert out.endswith("the tail was cut\n")


def test_a_rewritten_chain_holds_in_itself_but_not_against_the_head(head):
    tamper("DELETE FROM audit_seal")
    tamper("INSERT INTO audit_unsealed SELECT id FROM audit_event")
    seal()
    sealed_trail(seals=4)

    assert run_command()[0] == 0
    code, out, _ = run_command("--head", str(head))
    assert code == 1
    assert out.startswith("The chain is broken. seal 4: not the one published on 20")
    assert out.endswith("the chain was rewritten\n")


def test_erased_texts_are_counted_and_break_nothing(head):
    services.erase_customer(shop_id=SHOP, customer="ada", actor="staff:dana", at=NOW)
    seal()

    code, out, _ = run_command()

    assert code == 0
    assert out.splitlines()[:2] == [
        "The chain holds: 13 events in 5 seals.",
        "Erased on record: 12 personal texts.",
    ]


def test_an_older_head_among_several_is_compared_too(head):
    first = head.read_text()
    sealed_trail(seals=1)
    sealer.publish()
    (head.parent / "log").write_text(first + head.read_text())

    assert (
        "Found in the chain: 2 published heads."
        in run_command("--head", str(head.parent / "log"))[1]
    )


def test_a_broken_chain_exits_1_and_names_the_first_bad_row(head):
    victims = list(Event.objects.order_by("id"))[2:4]
    for victim in victims:
        tamper("UPDATE audit_event SET amount = 1 WHERE id = %s", [victim.pk])

    code, out, _ = run_command()

    assert code == 1
    names = [f"event {victim.pk} (refund.succeeded, 2026-03-01)" for victim in victims]
    assert out.splitlines() == [
        f"The chain is broken. {names[0]}: its content does not match its digest",
        f"  also {names[1]}: its content does not match its digest",
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read"),
        ("", "holds no head"),
        ("{}\n", "line 1: not a published head"),
        ("[1]\n", "line 1: not a published head"),
        ('{"number": NaN}\n', "line 1: not a published head"),
    ],
)
def test_a_head_file_that_says_nothing_exits_2(head, content, complaint):
    path = head.parent / "other"
    if content is not None:
        path.write_text(content)

    code, out, err = run_command("--head", str(path))

    assert (code, out) == (2, "")
    assert complaint in err


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"number":4', '"number":3', "its digest does not match its seal"),
        ('"signature":"', '"signature":"00', "its signature is false"),
    ],
)
def test_a_forged_head_file_exits_2(head, old, new, complaint):
    head.write_text(head.read_text().replace(old, new))

    code, _, err = run_command("--head", str(head))

    assert code == 2
    assert complaint in err


def test_a_database_that_cannot_be_read_exits_2(db, monkeypatch):
    def away(*args, **kwargs):
        raise DatabaseError("the database is away")

    monkeypatch.setattr("audit.verify.Seal.objects.order_by", away)

    code, out, err = run_command()

    assert (code, out) == (2, "")
    assert "The trail could not be checked: the database is away" in err


def test_an_unusable_key_exits_2(db, settings):
    settings.SEAL_KEY = "not base64!"

    code, _, err = run_command()

    assert code == 2
    assert "SEAL_KEY is not base64" in err

"""Unmistakable words in every secret and every personal field, and then a search for them.

A handful of conversations goes well and badly: over the API, with a lost answer, a failing worker, a
refusal and an e-mail. Afterwards each word may be only where the product means to keep it.
"""

import json
import logging
import uuid
import zipfile
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from celery import signature
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from django.utils import timezone
from typing_extensions import override

from accounts import oauth
from accounts.keyring import add_public_key
from accounts.keys import decrypt
from accounts.models import Delegation, Shop
from agents.models import Task
from audit import services
from audit.models import Event
from audit.selectors import EventFilter
from tests.audit.bundles import make_export
from tests.crash import oracle
from tests.crash.faults import Fault, Strike, struck
from tests.crash.world import Case, World
from tests.factories import ADDRESS
from tests.stubs import CLIENT
from tools.trigger import Point

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "Zinnobar"
MAIL = "zinnobar@mailcanary.example"
STREET = "17 Streetcanary Row"
NEW_STREET = "42 Newstreet Canary"
NOTE = "notecanary under the doormat"
PARCEL = "parcelcanary seen in Reno"
MESSAGE = "messagecanary"
REASON = "reasoncanary of the staff"
CARD = "4111 1111 1111 1111"
PERSONAL = {
    "name": NAME,
    "e-mail": MAIL,
    "street": STREET,
    "new street": NEW_STREET,
    "order note": "notecanary",
    "parcel event": "parcelcanary",
    "message": MESSAGE,
    "staff's reason": "reasoncanary",
    "card number": CARD,
}
# Where each word is meant to be: what was said, looked up, agreed and known of the customer.
KEPT = {
    "name": {"accounts_customer", "agents_step", "tools_operation"},
    "e-mail": {"accounts_customer", "tools_operation"},
    "street": {"agents_step", "tools_operation"},
    "new street": {"agents_step", "agents_message", "agents_ticket", "tools_operation"},
    "order note": {"agents_step"},
    "parcel event": {"agents_step"},
    "message": {"agents_message", "agents_ticket"},
    "staff's reason": {"approvals_approval", "tools_operation", "agents_step", "agents_message"},
    "card number": set(),  # hidden at the door
}


@dataclass
class Told:
    """Everything that the product has let out of its hands in the course of the conversations."""

    cases: list[Case]
    secrets: dict[str, str]
    logs: str = ""
    queued: str = ""


class _Ear(logging.Handler):
    """Hears what production would write down, tracebacks included."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "mail.log":  # the test's own mail server
            self.lines.append(self.format(record))


@pytest.fixture(scope="module")
def told(shared_world: World) -> Told:
    """The conversations, held once."""
    world = shared_world
    queue = f"canaries-{uuid.uuid4()}"
    ear = _Ear()
    root = logging.getLogger()
    root.addHandler(ear)
    try:
        with pytest.MonkeyPatch.context() as patch:
            _send_for_real(world, queue, patch)
            found = Told(_talk(world), _secrets())
    finally:
        root.removeHandler(ear)
    found.logs = "\n".join(ear.lines)
    with redis.Redis.from_url(django_settings.REDIS_URL) as broker:
        found.queued = repr(broker.lrange(queue, 0, -1))
        broker.delete(queue)
    return found


def _send_for_real(world: World, queue: str, patch: pytest.MonkeyPatch) -> None:
    """Every message goes to Redis, too, into a queue that no worker reads."""
    kept = world.queue.signature

    def send(name: str, kwargs: dict[str, Any]) -> Any:
        signature(name, kwargs=kwargs).apply_async(queue=queue, retry=False)
        return kept(name, kwargs)

    patch.setattr("agents.dispatch.signature", send)


def _secrets() -> dict[str, str]:
    delegation = Delegation.objects.filter(revoked_at__isnull=True).latest("id")
    return {
        "access token": decrypt(delegation.access_token_encrypted),
        "refresh token": decrypt(delegation.refresh_token_encrypted),
        "client secret": CLIENT[1],
        "secret key": django_settings.SECRET_KEY,
        "encryption key": django_settings.ENCRYPTION_KEYS[0],
        "seal key": django_settings.SEAL_KEY,
        "model key": django_settings.OPENAI_API_KEY,
    }


def _talk(world: World) -> list[Case]:
    Shop.objects.filter(pk=world.row.pk).update(identity_issuer="demo")
    for jwk in oauth.fetch_jwks(world.shop.url):
        add_public_key(shop_id=world.row.pk, jwk=jwk, actor="system", now=timezone.now())
    return [
        _refund_with_a_lost_answer(world),
        _refund_that_staff_refuse(world),
        _new_address_with_a_failing_worker(world),
        _parcel(world),
        _closing(world),
        _refused_at_the_door(world),
    ]


def _case(world: World, kind: str, **fields: Any) -> Case:
    address = ADDRESS | {"name": f"{NAME} Moreno", "line1": STREET}
    notes = [{"author": "customer", "text": NOTE}]
    case = world.case(kind, shipping_address=address, notes=notes, **fields)
    case.customer.name, case.customer.email = f"{NAME} Moreno", MAIL
    case.customer.save(update_fields=["name", "email"])
    return case


def _identity(case: Case) -> dict[str, str]:
    claims = {"name": case.customer.name, "email": case.customer.email}
    token = case.world.shop.sign(case.customer.external_id, claims=claims)
    return {"Authorization": f"Bearer {token}", "Idempotency-Key": f'"{uuid.uuid4()}"'}


def _ask(case: Case, message: str) -> None:
    answer = Client().post(
        "/v1/tasks",
        {"message": message, "ticket": "new"},
        content_type="application/json",
        headers=_identity(case),
    )
    assert answer.status_code == 201, answer.content
    case.task_id = answer.json()["id"]


def _yes(case: Case) -> None:
    question = case.question()
    assert question is not None
    answer = Client().post(
        f"/v1/tasks/{case.task_id}/approvals/{question.operation.step_n}",
        {"decision": "yes", "digest": question.digest},
        content_type="application/json",
        headers=_identity(case),
    )
    assert answer.status_code == 200, answer.content


def _refund_with_a_lost_answer(world: World) -> Case:
    case = _case(world, "refund")
    _ask(case, f"Please refund order {case.order_id}. {MESSAGE}, my card is {CARD}")
    world.work(case.task_id)
    world.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1, ms=2500)
    world.model.fault("error", times=1, status=500)
    _yes(case)
    world.work(case.task_id)
    return case


def _refund_that_staff_refuse(world: World) -> Case:
    case = _case(world, "refund", price=40_000)
    _ask(case, f"Please refund order {case.order_id}")
    world.work(case.task_id)
    _yes(case)
    question = case.question()
    assert question is not None
    case.decide(question, is_yes=False, reason=REASON)
    world.work(case.task_id)
    return case


def _new_address_with_a_failing_worker(world: World) -> Case:
    case = _case(world, "change_address")
    _ask(
        case,
        f"Please send order {case.order_id} to Ada Lovelace, {NEW_STREET}, Springfield, IL 62704, US",
    )
    world.work(case.task_id)
    _yes(case)
    with struck(Strike(case, Point.C15, Fault.RAISED, 1)):
        world.work(case.task_id)
    return case


def _parcel(world: World) -> Case:
    events = [{"at": "-1d", "place": "Reno", "text": PARCEL}]
    tracking = {"carrier": "Heron", "tracking_number": "H1", "status": "in_transit"}
    case = _case(world, "question", status="shipped", tracking=tracking | {"events": events})
    _ask(case, f"Where is my order {case.order_id}?")
    world.work(case.task_id)
    return case


def _closing(world: World) -> Case:
    case = _case(world, "close_ticket")
    _ask(case, "That's all, please close this")
    world.work(case.task_id)
    _yes(case)
    world.work(case.task_id)
    return case


def _refused_at_the_door(world: World) -> Case:
    case = _case(world, "refund")
    bad = {"Authorization": _identity(case)["Authorization"] + "x"}
    for path in ("/v1/tasks", f"/v1/tasks/999999?name={NAME}"):
        Client(raise_request_exception=False).post(
            path, {"message": MESSAGE}, content_type="application/json", headers=bad
        )
    return case


# --- The search ---------------------------------------------------------------------------------


def found_in(text: str, words: dict[str, str]) -> list[str]:
    """The names of the words that are in the text, in clear or in hexadecimal digits."""
    lower = text.lower()
    return [
        name
        for name, word in words.items()
        if word.lower() in lower or word.encode().hex() in lower
    ]


def tables() -> dict[str, str]:
    """Every table's rows as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        names = [name for (name,) in cursor.fetchall()]
        dump = {}
        for name in names:
            cursor.execute(f'SELECT string_agg(t::text, chr(10)) FROM "{name}" AS t')  # noqa: S608
            dump[name] = cursor.fetchone()[0] or ""
    return dump


def test_the_conversations_went_as_they_were_meant_to(told: Told):
    ends = [
        (task.status, task.outcome)
        for task in Task.objects.filter(pk__in=[case.task_id for case in told.cases]).order_by("pk")
    ]

    assert ends == [
        ("succeeded", "done"),
        ("succeeded", "refused"),
        ("succeeded", "done"),
        ("succeeded", "answered"),
        ("succeeded", "done"),
    ]
    assert "Traceback" in told.logs
    assert "InjectedError" in told.logs
    assert all(told.secrets.values())


def test_no_secret_and_nothing_personal_is_in_the_log(told: Told):
    assert found_in(told.logs, told.secrets | PERSONAL) == []


def test_a_message_carries_ids_and_nothing_else(told: Told):
    assert "agents.advance" in told.queued
    assert found_in(told.queued, told.secrets | PERSONAL) == []


def test_every_word_is_only_where_it_is_meant_to_be(told: Told):
    dump = tables()

    assert {name: found_in(text, told.secrets) for name, text in dump.items()} == {
        name: [] for name in dump
    }
    places = {
        word: {name for name, text in dump.items() if word in found_in(text, PERSONAL)}
        for word in PERSONAL
    }
    assert places == KEPT


def test_neither_verdicts_nor_answers_kept_for_later_nor_the_trail_hold_a_word_of_it(told: Told):
    dump = tables()
    kept = {
        "tools_verdict", "tools_attempt", "tools_observation", "agents_idempotencyrecord",
        "audit_event", "audit_personal_text", "audit_customer_key", "audit_seal",
    }  # fmt: skip

    assert kept <= set(dump)
    assert all(dump[name] for name in kept - {"audit_seal", "tools_observation"})
    assert {name: found_in(dump[name], PERSONAL) for name in kept} == {name: [] for name in kept}


def test_exports_and_metrics_hold_none_of_it(told: Told, settings, tmp_path):
    settings.EXPORT_FOLDER = tmp_path
    bundle = make_export(EventFilter(shop_id=None))
    with zipfile.ZipFile(bundle.path) as archive:
        files = {name: archive.read(name).decode("latin-1") for name in archive.namelist()}
    metrics = Client().get("/metrics").content.decode()

    assert '"refund.succeeded"' in files["events.csv"]
    assert '"action":"refund.succeeded"' in files["events.jsonl"]
    assert "countersign" in metrics
    assert found_in("".join(files.values()) + metrics, told.secrets | PERSONAL) == []


def test_what_was_said_to_a_blocked_door_is_nowhere(told: Told):
    last = told.cases[-1]

    assert not Task.objects.filter(customer=last.customer).exists()
    assert not Event.objects.filter(customer=last.customer.external_id).exists()


def test_an_erased_customer_s_words_cannot_be_read_in_the_trail_and_it_still_holds(told: Told):
    case = told.cases[1]
    mine = Event.objects.filter(customer=case.customer.external_id, personal_digest__isnull=False)
    before = [services.read_personal(event) for event in mine]
    assert REASON in json.dumps(before)

    services.erase_customer(
        shop_id=case.customer.shop_id,
        customer=case.customer.external_id,
        actor="admin:root",
        at=timezone.now(),
    )

    assert [services.read_personal(event) for event in mine] == [None] * len(before)
    assert oracle.trail_faults() == []

"""Who may open what: every route of the console against every kind of person.

The routes come from the URL conf, so a new one without a row here fails.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, reverse
from django.utils import timezone

from accounts.models import Role, Shop
from agents.casework import CannedReply, ReviewFlag, SavedView
from audit import services as audit
from audit.selectors import EventFilter
from config import console_urls
from tests.audit.bundles import ask
from tests.console.desk import PASSWORD, make_person, make_question
from tests.factories import make_shop
from tests.two_people import propose_change

SIGN_IN = 302
OK, NO, NOT_THERE, NOT_SO = 200, 403, 404, 405
DONE, NOTED = 302, 204

# What each person gets, in this order. A POST is sent with nothing in it but its CSRF token.
PEOPLE = ("nobody", "staff", "approver", "auditor", "admin", "stranger")
EVERYBODY_READS = (SIGN_IN, OK, OK, OK, OK)
ROUTES: dict[str, tuple[str, tuple[int, ...]]] = {
    "login": ("GET", (OK, DONE, DONE, DONE, DONE, DONE)),
    "logout": ("POST", (DONE, DONE, DONE, DONE, DONE, DONE)),
    "queue": ("GET", (*EVERYBODY_READS, OK)),
    "approval": ("GET", (*EVERYBODY_READS, NOT_THERE)),
    "decide": ("POST", (SIGN_IN, NO, 422, NO, 422, NOT_THERE)),
    "several": ("POST", (SIGN_IN, NO, 422, NO, 422, 422)),
    "watch": ("POST", (SIGN_IN, NOTED, NOTED, NO, NOTED, NOT_THERE)),
    "handle": ("POST", (SIGN_IN, NO, 422, NO, 422, NOT_THERE)),
    "tickets": ("GET", (*EVERYBODY_READS, OK)),
    "ticket": ("GET", (*EVERYBODY_READS, NOT_THERE)),
    # The first takes it; whoever comes next without naming the holder learns who that is.
    "take-over": ("POST", (SIGN_IN, DONE, 409, NO, 409, NOT_THERE)),
    "give-back": ("POST", (SIGN_IN, DONE, DONE, NO, DONE, NOT_THERE)),
    "note": ("POST", (SIGN_IN, 422, 422, NO, 422, NOT_THERE)),
    "canned": ("GET", (*EVERYBODY_READS, OK)),
    "save-canned": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "remove-canned": ("POST", (SIGN_IN, NO, NO, NO, DONE, NO)),
    "save-view": ("POST", (SIGN_IN, 422, 422, 422, 422, 422)),
    "forget-view": ("POST", (SIGN_IN, DONE, NOT_THERE, NOT_THERE, NOT_THERE, NOT_THERE)),
    "attention": ("GET", (*EVERYBODY_READS, OK)),
    "save-attention": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "prompts": ("GET", (*EVERYBODY_READS, OK)),
    "dashboard": ("GET", (*EVERYBODY_READS, OK)),
    "keys": ("GET", (*EVERYBODY_READS, OK)),
    "switch-keys": ("POST", (SIGN_IN, 422, 422, 422, 422, 422)),
    "reply": ("POST", (SIGN_IN, 422, 422, NO, 422, NOT_THERE)),
    "task": ("GET", (*EVERYBODY_READS, NOT_THERE)),
    "flag": ("POST", (SIGN_IN, 422, 422, NO, 422, NOT_THERE)),
    "close-flag": ("POST", (SIGN_IN, 422, 422, NO, 422, NOT_THERE)),
    "task-log": ("GET", (*EVERYBODY_READS, NOT_THERE)),
    "step": ("GET", (*EVERYBODY_READS, NOT_THERE)),
    "desk": ("GET", (*EVERYBODY_READS, OK)),
    "desk-operation": ("GET", (*EVERYBODY_READS, NOT_THERE)),
    "desk-check": ("POST", (SIGN_IN, 409, 409, NO, 409, NOT_THERE)),
    "desk-settle": ("POST", (SIGN_IN, NO, 422, NO, 422, NOT_THERE)),
    "desk-confirm": ("POST", (SIGN_IN, NO, 422, NO, 422, NOT_THERE)),
    "desk-turn-down": ("POST", (SIGN_IN, NO, 422, NO, 422, NOT_THERE)),
    "desk-close-case": ("POST", (SIGN_IN, NO, 422, NO, 422, NOT_THERE)),
    "customers": ("GET", (SIGN_IN, NO, NO, NO, OK, NO)),
    "customer": ("GET", (SIGN_IN, NO, NO, NO, OK, NO)),
    "customer-copy": ("POST", (SIGN_IN, NO, NO, NO, OK, NO)),
    "customer-hold": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "customer-lift": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "customer-erase": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "switches": ("GET", (SIGN_IN, NO, OK, NO, OK, OK)),
    "turn": ("POST", (SIGN_IN, NO, 422, NO, 422, 422)),
    "login-code": ("GET", (SIGN_IN, SIGN_IN, SIGN_IN, SIGN_IN, SIGN_IN, SIGN_IN)),
    "security": ("GET", (*EVERYBODY_READS, OK)),
    "factor-begin": ("POST", (SIGN_IN, NO, NO, NO, NO, NO)),  # the password is missing
    "factor-confirm": ("POST", (SIGN_IN, 422, 422, 422, 422, 422)),
    "factor-codes": ("POST", (SIGN_IN, NO, NO, NO, NO, NO)),
    "factor-remove": ("POST", (SIGN_IN, NO, NO, NO, NO, NO)),
    "sessions": ("POST", (SIGN_IN, DONE, DONE, DONE, DONE, DONE)),
    "password": ("POST", (SIGN_IN, 422, 422, 422, 422, 422)),
    "settings": ("GET", (SIGN_IN, NO, NO, NO, OK, NO)),
    "people": ("GET", (SIGN_IN, NO, NO, NO, OK, NO)),
    "factor-reset": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "shop-settings": ("GET", (SIGN_IN, NO, NO, NO, OK, NO)),
    "shop-change": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "change-confirm": ("POST", (SIGN_IN, NO, NO, NO, NO, NO)),  # the password is missing
    "change-turn-down": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "explain": ("POST", (SIGN_IN, 422, 422, 422, 422, NOT_THERE)),
    "explain-customer": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "sensitive": ("GET", (SIGN_IN, NO, NO, NO, OK, NO)),
    "customer-mark": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "shop-secrets": ("GET", (SIGN_IN, NO, NO, NO, OK, NO)),
    "secret-add": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "secret-retire": ("POST", (SIGN_IN, NO, NO, NO, 422, NO)),
    "audit": ("GET", (*EVERYBODY_READS, OK)),
    "event": ("GET", (*EVERYBODY_READS, NOT_THERE)),
    "public-key": ("GET", (SIGN_IN, NO, NO, OK, OK, NO)),
    "verifier": ("GET", (SIGN_IN, NO, NO, OK, OK, NO)),
    "exports": ("GET", (SIGN_IN, NO, NO, OK, OK, NO)),
    "export": ("POST", (SIGN_IN, NO, NO, 422, 422, NO)),
    # It is the auditor's own: to everybody else it is not there.
    "export-state": ("GET", (SIGN_IN, NO, NO, OK, NOT_THERE, NO)),
    "export-download": ("POST", (SIGN_IN, NO, NO, 410, NOT_THERE, NO)),
    "export-stop": ("POST", (SIGN_IN, NO, NO, DONE, NOT_THERE, NO)),
}


@dataclass
class World:
    """One shop with one of everything, and somebody of every kind."""

    clients: dict[str, Client]
    ids: dict[str, Any]

    def address(self, name: str) -> str:
        (pattern,) = (route for route in routes() if route.name == name)
        wanted = pattern.pattern.converters
        return reverse(f"console:{name}", kwargs={key: self.ids[key] for key in wanted})

    def ask(self, method: str, name: str, person: str, **headers: str) -> Any:
        client = self.clients[person]
        if method == "GET":
            return client.get(self.address(name), headers=headers)
        # The lightest page with a form; who may not see it is led to the one to sign in.
        token = client.get(reverse("console:keys"), follow=True).context["csrf_token"]
        return client.post(self.address(name), {"csrfmiddlewaretoken": token}, headers=headers)


def routes() -> list[URLPattern]:
    found = console_urls.urlpatterns
    assert all(isinstance(route, URLPattern) for route in found)
    return list(found)


@dataclass(frozen=True)
class Scene:
    """What is in the database, and the session of each person who is signed in."""

    sessions: dict[str, str]
    ids: dict[str, Any]


@pytest.fixture(scope="module")
def scene(django_db_setup, django_db_blocker) -> Iterator[Scene]:
    """Written once for a module, whose tests each have a savepoint within this transaction."""
    around: Any = transaction.atomic()
    around._from_testcase = True  # it is no transaction of the product, as those of each test
    with django_db_blocker.unblock(), around:
        yield set_up(make_shop(name="Juniper & Clay"))
        transaction.set_rollback(True)


@pytest.fixture
def world(scene: Scene, db) -> World:
    """The scene as it was written, and browsers that nobody has used yet."""
    clients = {"nobody": Client(enforce_csrf_checks=True)}
    for name, session in scene.sessions.items():
        clients[name] = Client(enforce_csrf_checks=True)
        clients[name].cookies[settings.SESSION_COOKIE_NAME] = session
    return World(clients, dict(scene.ids))


def set_up(shop: Shop) -> Scene:
    approval = make_question(shop)
    operation = approval.operation
    now = timezone.now()
    event = audit.record(
        actor="system", action="shop.changed", subject="shop:1", at=now, shop_id=shop.pk
    )
    people = {
        "staff": make_person(shop, "staff-1"),
        "approver": make_person(shop, "approver-1", is_approver=True),
        "auditor": make_person(shop, "auditor-1", role=Role.AUDITOR),
        "admin": make_person(None, "admin-1", role=Role.ADMIN, is_approver=True),
        "stranger": make_person(make_shop(), "stranger-1", is_approver=True),
    }
    sessions = {}
    for name, user in people.items():
        client = Client()
        client.force_login(user, backend="accounts.backends.ConsoleBackend")
        sessions[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
    ids = {
        "public_id": approval.public_id,
        "ticket_id": operation.ticket_id,
        "customer_id": operation.customer_id,
        "task_id": operation.task_id,
        "n": operation.step_n,
        "flag_id": ReviewFlag.objects.create(
            task_id=operation.task_id, raised_by=people["staff"], reason="Odd", raised_at=now
        ).pk,
        "event_id": event.pk,
        "operation_id": operation.pk,
        "export_id": ask(
            EventFilter(shop_id=shop.pk), owner_id=people["auditor"].pk, actor="auditor:auditor-1"
        ).pk,
        "reply_id": CannedReply.objects.create(shop=shop, name="Hello", text="Hello").pk,
        "view_id": SavedView.objects.create(
            user=people["staff"], page="queue", name="Mine", query="person=mine"
        ).pk,
        "shop_id": shop.pk,
        "user_id": people["staff"].pk,
        "change_id": propose_change(shop).pk,
    }
    return Scene(sessions, ids)


def test_every_route_has_a_row():
    assert {route.name for route in routes()} == set(ROUTES)


@pytest.mark.parametrize("name", ROUTES)
def test_each_person_gets_what_their_role_allows(world: World, name: str):
    method, expected = ROUTES[name]

    got = [world.ask(method, name, person).status_code for person in PEOPLE]

    assert dict(zip(PEOPLE, got, strict=True)) == dict(zip(PEOPLE, expected, strict=True))


@pytest.mark.parametrize("name", [name for name, (method, _) in ROUTES.items() if method == "POST"])
def test_an_action_is_never_done_by_get(world: World, name: str):
    for person in PEOPLE:
        assert world.ask("GET", name, person).status_code == NOT_SO


@pytest.mark.parametrize("name", [name for name, (method, _) in ROUTES.items() if method == "POST"])
def test_an_action_needs_its_csrf_token(world: World, name: str):
    for person in ("nobody", "approver", "auditor", "admin"):
        assert world.clients[person].post(world.address(name), {}).status_code == NO


def test_a_page_is_not_posted_to(world: World):
    for name, (method, _) in ROUTES.items():
        if method == "GET" and name not in {"login", "login-code"}:
            assert world.ask("POST", name, "admin").status_code in {NOT_SO}, name


def test_whoever_is_not_signed_in_comes_back_to_where_they_wanted(world: World):
    answer = world.ask("GET", "ticket", "nobody")

    assert answer.headers["Location"].startswith(reverse("console:login"))
    assert f"next={world.address('ticket').replace('/', '%2F')}" in answer.headers["Location"]


@pytest.mark.parametrize("person", ["nobody", "staff", "admin"])
def test_no_answer_of_any_route_can_be_framed_or_run_foreign_code(world: World, person: str):
    for name, (method, _) in ROUTES.items():
        if name == "logout":
            continue
        answer = world.ask(method, name, person)
        policy = answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy, name
        assert "unsafe" not in policy, name
        assert answer.headers["X-Frame-Options"] == "DENY", name


@pytest.mark.parametrize(
    "asked",
    [
        "https://evil.example/",
        "http://evil.example/console/",
        "//evil.example/",
        "///evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "https:evil.example",
        "http://testserver@evil.example/",
        "http://testserver.evil.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "\thttps://evil.example/",
        "",
    ],
)
def test_the_sign_in_page_sends_nobody_to_a_foreign_site(shop, client, asked):
    make_person(shop, "dana")
    answer = client.post(
        reverse("console:login"),
        {"username": "dana", "password": PASSWORD, "next": asked},
    )

    assert answer.status_code == 302
    assert answer.headers["Location"] == reverse("console:queue")


def test_the_sign_in_page_leads_back_to_where_they_wanted(shop, client):
    make_person(shop, "dana")
    wanted = reverse("console:tickets")

    answer = client.post(
        reverse("console:login"), {"username": "dana", "password": PASSWORD, "next": wanted}
    )

    assert answer.headers["Location"] == wanted


def test_unknown_ids_of_any_size_are_not_there(world: World):
    client = world.clients["admin"]
    for path in (
        f"/console/approvals/{uuid.uuid4()}/",
        "/console/tickets/999999999/",
        "/console/tasks/999999999999999999/",
        "/console/tasks/99999999999999999999999999/",
        f"/console/tasks/{world.ids['task_id']}/steps/999/",
        "/console/desk/999999999/",
        "/console/audit/999999999999/",
    ):
        assert client.get(path).status_code == NOT_THERE, path


def test_a_deactivated_person_is_out_at_once(world: World, shop):
    gone = make_person(shop, "gone")
    client = Client()
    client.force_login(gone, backend="accounts.backends.ConsoleBackend")
    gone.is_active = False
    gone.save(update_fields=["is_active"])

    assert client.get(reverse("console:queue")).status_code == SIGN_IN


def test_the_admin_site_is_for_superusers_and_has_no_door_of_its_own(world: World, shop):
    root = make_person(None, "root", role=Role.ADMIN, is_superuser=True, is_staff=True)
    client = Client()
    client.force_login(root, backend="accounts.backends.ConsoleBackend")

    assert client.get(reverse("admin:index")).status_code == OK
    assert world.clients["admin"].get(reverse("admin:index")).status_code == SIGN_IN
    answer = world.clients["nobody"].get(reverse("admin:login"))
    assert answer.headers["Location"].startswith(reverse("console:login"))


def test_after_too_many_wrong_passwords_the_door_stays_shut(shop, client, settings):
    settings.AXES_FAILURE_LIMIT = 3
    make_person(shop, "dana")
    door = reverse("console:login")
    for _ in range(3):
        client.post(door, {"username": "dana", "password": "wrong"})

    answer = client.post(door, {"username": "dana", "password": PASSWORD})

    assert answer.status_code == 429
    assert "Too many wrong passwords" in answer.content.decode()
    assert client.get(reverse("console:queue")).status_code == SIGN_IN


def test_signing_out_takes_a_post_and_ends_the_session(world: World):
    client = world.clients["staff"]
    assert client.get(reverse("console:logout")).status_code == NOT_SO
    assert client.get(reverse("console:queue")).status_code == OK

    world.ask("POST", "logout", "staff")

    assert client.get(reverse("console:queue")).status_code == SIGN_IN

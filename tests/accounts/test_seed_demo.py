"""The demo's shop and people: made once, made right, and only in a demo."""

import socket
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.test import RequestFactory
from django.utils import timezone

from accounts import demo
from accounts.backends import DEMO_PASSWORD
from accounts.identity import IdentityError, verify_identity
from accounts.keys import decrypt
from accounts.models import Customer, Role, Shop, SigningKey, User, WidgetKey
from accounts.services import access_token, ensure_delegation
from accounts.signals import demo_seeded
from audit.models import Event
from tests.stubs import run_shop

pytestmark = pytest.mark.django_db


@pytest.fixture
def news():
    heard: list[int] = []

    def hear(*, shop_id: int, **_: object) -> None:
        heard.append(shop_id)

    demo_seeded.connect(hear)
    yield heard
    demo_seeded.disconnect(hear)


@pytest.fixture(autouse=True)
def _demo(settings):
    settings.DEMO = True


def seed(url: str, **options: object) -> str:
    output = StringIO()
    call_command("seed_demo", shop_url=url, stdout=output, **options)
    return output.getvalue()


def everything() -> list[object]:
    """All rows that seeding may write, encrypted secrets and password hashes included."""
    rows: list[object] = []
    for model in (Shop, SigningKey, WidgetKey, User, Event):
        rows += model.objects.order_by("pk").values()
    return rows


def test_the_demo_is_ready_for_ada_after_seeding(pretend_shop, news):
    output = seed(pretend_shop.url)

    shop = Shop.objects.get(slug="demo")
    port = pretend_shop.url.rpartition(":")[2]
    assert output == f"The demo shop Juniper & Clay is ready at {pretend_shop.url}.\n"
    assert shop.allowed_origins == [f"http://127.0.0.1:{port}", f"http://localhost:{port}"]
    assert decrypt(shop.oauth_client_secret_encrypted) == "demo-client-secret-of-the-pretend-shop"
    assert WidgetKey.objects.get(key="demo").shop == shop
    assert news == [shop.pk]

    token = pretend_shop.sign("ada")
    identity = verify_identity(token)
    ensure_delegation(customer_id=identity.customer_id, token=token, now=timezone.now())
    assert access_token(customer_id=identity.customer_id)


def test_the_demos_people_can_do_what_their_roles_say(pretend_shop):
    seed(pretend_shop.url)

    shop = Shop.objects.get()
    people = {
        user.username: (user.role, user.shop, user.can_approve, user.is_superuser, user.is_staff)
        for user in User.objects.all()
    }
    assert people == {
        "staff": (Role.STAFF, shop, True, False, True),
        "staff2": (Role.STAFF, shop, True, False, True),
        "auditor": (Role.AUDITOR, shop, False, False, True),
        "admin": (Role.ADMIN, None, False, True, True),
        "admin2": (Role.ADMIN, shop, False, False, True),
    }
    request = RequestFactory().post("/")
    for username in people:
        assert authenticate(request, username=username, password=DEMO_PASSWORD) is not None


def test_seeding_twice_writes_nothing_the_second_time(pretend_shop, news):
    seed(pretend_shop.url)
    before = everything()

    seed(pretend_shop.url)

    assert everything() == before
    assert len(news) == 2


def test_what_was_changed_by_hand_stays(pretend_shop):
    seed(pretend_shop.url)
    Shop.objects.update(name="Our shop", staff_limit=5_000)
    staff = User.objects.get(username="staff")
    staff.set_password("a-password-of-my-own")
    staff.is_approver = False
    staff.save()

    seed(pretend_shop.url)

    shop = Shop.objects.get()
    staff.refresh_from_db()
    assert (shop.name, shop.staff_limit, staff.is_approver) == ("Our shop", 5_000, False)
    assert staff.check_password("a-password-of-my-own")


def test_a_shop_that_moved_and_changed_its_secret_is_followed(pretend_shop, monkeypatch):
    seed(pretend_shop.url)
    monkeypatch.setenv("ORDERS_STUB_CLIENT_SECRET", "another-secret")

    seed(pretend_shop.url.replace("127.0.0.1", "localhost"))

    shop = Shop.objects.get()
    assert shop.base_url.startswith("http://localhost:")
    assert decrypt(shop.oauth_client_secret_encrypted) == "another-secret"
    changed = Event.objects.get(action="shop.changed").data
    assert changed == {"fields": ["base_url", "oauth_client_secret_encrypted"]}


def test_a_shop_with_a_new_key_is_believed_and_the_old_key_runs_out(pretend_shop, tmp_path):
    seed(pretend_shop.url)
    old_key, old_token = SigningKey.objects.get(), pretend_shop.sign("ada")

    with run_shop(tmp_path / "another") as another:
        seed(another.url)
        assert verify_identity(another.sign("bob")).external_id == "bob"

    old_key.refresh_from_db()
    assert old_key.retired_at is not None
    assert old_key.retired_at - timezone.now() > timedelta(minutes=59)
    assert verify_identity(old_token).external_id == "ada"
    SigningKey.objects.filter(pk=old_key.pk).update(retired_at=timezone.now())
    with pytest.raises(IdentityError):
        verify_identity(old_token)

    seed(pretend_shop.url)
    assert verify_identity(old_token).external_id == "ada"


def test_outside_the_demo_nothing_is_seeded(pretend_shop, settings, news):
    settings.DEMO = False

    with pytest.raises(CommandError, match="COUNTERSIGN_DEMO"):
        seed(pretend_shop.url)

    assert everything() == []
    assert news == []


def test_a_shop_that_does_not_come_up_is_named_and_nothing_is_seeded():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

    with pytest.raises(CommandError, match=f"{url}.*cannot be reached"):
        seed(url, wait=0.3)

    assert everything() == []


@pytest.mark.parametrize(
    "url", ["shop.example", "http://shop.example", "ftp://127.0.0.1", "http://"]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(CommandError, match="--shop-url"):
        seed(url)

    assert everything() == []


def test_a_half_seeded_demo_is_not_left_behind(pretend_shop, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("no people today")

    monkeypatch.setattr(demo, "_seed_people", fail)

    with pytest.raises(RuntimeError):
        seed(pretend_shop.url)

    assert everything() == []
    assert not Customer.objects.exists()

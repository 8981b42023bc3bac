"""Who gets in: by a good token or a console session, and by nothing else."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Customer, Delegation, User
from accounts.services import DelegationRevokedError
from agents.models import Task
from tests.accounts.factories import Signer
from tests.api.clients import Api, everything, problem
from tests.factories import make_customer

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x y",
        "Basic YWRhOmFkYQ==",
        "Bearer not.a.token",
        "bearer " + "x" * 9000,
        "Bearer \u00e9",
        "Token {token}",
        "Bearer {token}x",
        "Bearer {token}, Bearer {token}",
    ],
)
def test_a_header_that_proves_nothing_is_a_401(ada: Api, header: str):
    token = ada.headers["Authorization"].removeprefix("Bearer ")
    before = everything()

    answer = Api(headers={"Authorization": header.replace("{token}", token)}).get("/v1/tasks")

    problem(answer, 401, "unauthenticated")
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert everything() == before


def test_all_that_is_wrong_with_a_token_reads_the_same(ada: Api, signer: Signer):
    good = make_customer(signer.shop)
    tokens = [
        signer.sign(sub=good.external_id, exp=1, iat=0),
        signer.sign(sub=good.external_id, aud="somebody else"),
        signer.sign(headers={"kid": "unknown"}, sub=good.external_id),
        "x.y.z",
    ]

    said = {
        (answer.status_code, answer.json()["detail"], answer["WWW-Authenticate"])
        for token in tokens
        for answer in [Api(headers={"Authorization": f"Bearer {token}"}).get("/v1/tasks")]
    }

    assert len(said) == 1


def test_a_bad_token_is_not_made_good_by_a_session(staff: Api):
    staff.headers["Authorization"] = "Bearer x"

    problem(staff.get("/v1/tasks"), 401, "unauthenticated")


def test_a_good_token_counts_before_a_session(ada: Api, staff: Api):
    task = ada.ask()
    staff.headers |= ada.headers

    assert staff.post(f"/v1/tasks/{task.pk}/cancel").status_code == 200


def test_a_session_that_was_ended_is_a_401(staff: Api, dana: User):
    User.objects.filter(pk=dana.pk).update(is_active=False)

    problem(staff.get("/v1/tasks"), 401, "unauthenticated")


def test_a_blocked_customer_is_a_401(ada: Api):
    Customer.objects.filter(pk=ada.row.pk).update(status="blocked")
    before = everything()

    problem(ada.post("/v1/tasks", {"message": "Hi"}), 401, "unauthenticated")

    assert everything() == before


def test_without_the_shops_leave_nothing_is_begun(ada: Api, monkeypatch):
    def refuse(**_: object) -> None:
        raise DelegationRevokedError("no")

    monkeypatch.setattr("agents.api.tasks.ensure_delegation", refuse)
    before = everything()

    problem(ada.post("/v1/tasks", {"message": "Hi"}), 403, "delegation-revoked")

    assert everything() == before


def test_the_first_task_brings_the_customers_leave_from_the_shop(
    shop_row, pretend_shop, sign_for_shop
):
    Customer.objects.create(shop=shop_row, external_id="ada", name="Ada")
    api = sign_for_shop("ada")

    first, second = (api.post("/v1/tasks", {"message": "Hi", "ticket": "new"}) for _ in range(2))

    assert (first.status_code, second.status_code) == (201, 201)
    assert Delegation.objects.get().revoked_at is None
    exchanges = [call for call in pretend_shop.calls() if call["path"] == "/oauth/token"]
    assert len(exchanges) == 1


def test_a_shop_that_cannot_be_asked_is_a_503_and_nothing_is_half_made(
    shop_row, pretend_shop, sign_for_shop
):
    pretend_shop.fault("error_before", scope={"path": "/oauth/token"}, status=500)
    api = sign_for_shop("ada")
    api.get("/v1/tasks")
    before = everything()

    answer = api.post("/v1/tasks", {"message": "Hi"})

    problem(answer, 503, "shop-unavailable")
    assert int(answer["Retry-After"]) > 0
    assert everything() == before
    assert Task.objects.count() == 0


def test_a_shop_that_refuses_is_a_403(shop_row, pretend_shop, sign_for_shop):
    api = sign_for_shop("ada")
    pretend_shop.block("ada")
    try:
        answer = api.post("/v1/tasks", {"message": "Hi"})
    finally:
        pretend_shop.block("ada", blocked=False)

    problem(answer, 403, "delegation-revoked")
    assert (Task.objects.count(), Delegation.objects.count()) == (0, 0)


def test_leave_taken_back_is_asked_for_again_with_a_new_token(ada: Api, monkeypatch):
    Delegation.objects.update(revoked_at=timezone.now(), revoked_reason="by_customer")
    Customer.objects.update(tokens_valid_after=timezone.now() + timedelta(seconds=1))
    before = everything()

    problem(ada.post("/v1/tasks", {"message": "Hi"}), 401, "unauthenticated")

    assert everything() == before

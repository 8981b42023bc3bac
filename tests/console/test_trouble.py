"""What the console shows when it cannot show what was asked for."""

import pytest
from django.test import Client

from approvals import shown
from tests.console.desk import text_of


@pytest.fixture
def broken(monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(shown, "list_inbox", fail)


def test_a_fault_of_ours_is_a_page_with_a_number_and_no_detail(approver, sign_in, broken):
    client: Client = sign_in(approver)
    client.raise_request_exception = False

    answer = client.get("/console/")

    page = text_of(answer)
    assert answer.status_code == 500
    assert "Something went wrong on our side" in page
    assert answer.headers["X-Request-ID"] in page
    assert "disk" not in page
    assert "style=" not in page


def test_a_poll_that_meets_a_fault_leaves_the_page_as_it_was(approver, sign_in, broken):
    client: Client = sign_in(approver)
    client.raise_request_exception = False

    answer = client.get("/console/", headers={"HX-Request": "true"})

    assert answer.status_code == 500  # which htmx is told not to put in


def test_an_address_of_nothing_is_a_page_of_the_console(client, db):
    answer = client.get("/console/nothing/here/")

    assert answer.status_code == 404
    assert "There is no such page" in text_of(answer)
    assert b"There is no such page" not in client.get("/v1/nothing").content


def test_outside_the_console_it_is_dressed_alike_and_the_front_door_leads_in(client, db):
    answer = client.get("/nothing/here")

    assert answer.status_code == 404
    assert "There is no such page" in text_of(answer)
    assert client.get("/").headers["Location"] == "/console/"


def test_a_request_that_cannot_be_read_is_a_page_of_the_console(client, db, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 3

    answer = client.post("/console/login/", {str(n): n for n in range(4)})

    assert answer.status_code == 400
    assert "That request cannot be read" in text_of(answer)

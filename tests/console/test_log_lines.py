"""Whatever somebody types, a line of the log is one line, and its beginning is ours."""

import logging
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import reverse

from tests.console.desk import make_person

FORGED = "dana\r\nCRITICAL audit.sealer The trail is broken\u2028\x1b[2J"


@pytest.fixture
def lines(caplog):
    """What production would write down, by its own format."""
    caplog.set_level(logging.INFO)
    formatters: Any = django_settings.LOGGING["formatters"]
    written = logging.Formatter(formatters["line"]["format"])
    return lambda: [written.format(record) for record in caplog.records]


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize(
    "path",
    [
        "/v1/nothing%0D%0ACRITICAL%20root%20x",
        "/console/nothing%0ACRITICAL%20root%20x",
        "/nothing%0D%0ACRITICAL%20root%20x%1B%5B2J",
    ],
)
def test_an_address_with_line_ends_is_one_line(db, lines, method: str, path: str):
    getattr(Client(raise_request_exception=False), method)(path)

    assert [line for line in lines() if not line.isprintable()] == []


def test_a_name_with_line_ends_at_the_sign_in_is_one_line(shop, lines, settings):
    make_person(shop, "dana")
    settings.AXES_FAILURE_LIMIT = 2
    client = Client()

    for _ in range(3):
        client.post(reverse("console:login"), {"username": FORGED, "password": "wrong"})

    assert lines() != []
    assert [line for line in lines() if not line.isprintable()] == []

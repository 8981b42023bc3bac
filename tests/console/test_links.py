"""A mail scanner, or a browser that fetches ahead, opens every link: nothing is changed or sent.

Each page is opened as each kind of person, and so is every address that it links to or could be asked
for, the ones of actions among them. What may come of it is that a look at a case is on the trail.
"""

import html
import re
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts import looks
from audit.models import Event
from tests.console.test_access import World, routes, scene, world

__all__ = ["scene", "world"]

# What any page of anybody may write: sessions, and that a case was opened.
MAY_GROW = {"django_session", "audit_event", "audit_unsealed", "accounts_look"}
TABLES = """
    SELECT table_name FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
"""


def everything() -> dict[str, str]:
    """A digest of every table's rows."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        names = sorted({row[0] for row in cursor.fetchall()} - MAY_GROW)
        found = {}
        for name in names:
            cursor.execute(
                f"SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {name} t"  # noqa: S608
            )
            found[name] = cursor.fetchone()[0]
    return found


def links_of(page: str, at: str) -> set[str]:
    """Every address of ours in a page: links, forms, parts that are fetched later."""
    named = re.findall(r'(?:href|action|hx-get|hx-post|src)="([^"#][^"]*)"', page)
    paths = {urljoin(at, html.unescape(link)) for link in named}
    return {path for path in paths if path.startswith("/console/") and not urlsplit(path).netloc}


def crawl(client: Client, start: set[str]) -> dict[str, int]:
    """Open everything that can be reached, once. By address, how it was answered."""
    answers: dict[str, int] = {}
    waiting = set(start)
    while waiting:
        address = waiting.pop()
        for headers in ({}, {"HX-Request": "true"}):
            answer: Any = client.get(address, headers=headers)
            answers[address] = answer.status_code
            if not answer.streaming and answer.headers.get("Content-Type", "").startswith(
                "text/html"
            ):
                waiting |= links_of(answer.content.decode(), address) - set(answers)
        assert len(answers) < 2_000
    return answers


@pytest.mark.timeout(600)
@pytest.mark.parametrize("person", ["nobody", "staff", "approver", "auditor", "admin"])
def test_opening_every_link_changes_nothing(world: World, person, monkeypatch):
    sent: list[str] = []
    monkeypatch.setattr(
        "celery.app.task.Task.apply_async", lambda task, *_, **__: sent.append(task.name)
    )
    client = world.clients[person]
    addresses = {world.address(str(route.name)) for route in routes()}
    before, events = everything(), set(Event.objects.values_list("pk", flat=True))

    answers = crawl(client, {reverse("console:queue"), *addresses})

    assert set(answers) >= addresses
    assert not [address for address, status in answers.items() if status >= 500]
    assert everything() == before
    fresh = Event.objects.exclude(pk__in=events)
    assert set(fresh.values_list("action", flat=True)) <= {looks.OPENED}
    assert sent == []
    if person in {"staff", "approver"}:
        assert answers[world.address("decide")] == 405
        assert len(answers) > len(addresses)

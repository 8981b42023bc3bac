"""Whatever is asked of the console, or sent with its forms: never a 5xx, and a refusal changes nothing."""

import re
import string
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.conf import settings as django_settings
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import Role
from tests.api.clients import everything
from tests.console.desk import make_person
from tests.console.test_access import ROUTES, World, scene, world

__all__ = ["scene", "world"]

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(0)]

QUICK = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# These end the session that the rest is asked in.
ENDING = {"login", "logout", "sessions"}
READ = sorted(name for name, (method, _) in ROUTES.items() if method == "GET")
DONE = sorted(
    name for name, (method, _) in ROUTES.items() if method == "POST" and name not in ENDING
)
TEMPLATES = django_settings.BASE_DIR / "templates"
# The name of every field of every form, and of the admin's own parameters.
FIELDS = sorted(
    {
        name
        for path in TEMPLATES.rglob("console/**/*.html")
        for name in re.findall(r'\bname="(\w+)"', path.read_text())
    }
    | {"q", "o", "p", "e", "all", "next", "id__exact", "shop__id__exact", "_popup", "_facets"}
)
ODD = [
    *("", " ", "0", "-1", "1", "1.5", "1e9", "9" * 30, "NaN", "²", "true", "on", "None", "yes"),
    *("\x00", "a\x00b", "\u202e", "%", "'", "' OR 1=1 --", "../../etc", "<script>", "x" * 5000),
    *("2026-02-30", "2026-13-45", "0000-00-00", "2026-01-01T25:61", "99999-01-01", "1-1-1"),
    *("[]", "{}", "null", "http://evil.example", "//evil.example", "javascript:alert(1)"),
]
VALUES = st.sampled_from(ODD) | st.text(max_size=10)
PAIRS = st.lists(st.tuples(st.sampled_from(FIELDS) | st.text(max_size=5), VALUES), max_size=4)
QUERIES = st.one_of(
    PAIRS.map(lambda pairs: urlencode(pairs, errors="replace")),
    st.text(alphabet=string.printable, max_size=20).map(lambda text: quote(text, safe="%&=;+/?#")),
    st.sampled_from(
        ["%FF%FE=%FF", "&&==&%", "page=%ZZ", "page=1;page=2", "a[]=1&a[0][x]=2", "%00=%00"]
    ),
)


@QUICK
@given(name=st.sampled_from(READ), query=QUERIES, is_fragment=st.booleans())
def test_whatever_is_asked(world: World, name: str, query: str, is_fragment: bool):
    for person in ("admin", "nobody"):
        answer = world.clients[person].generic(
            "GET",
            world.address(name),
            QUERY_STRING=query,
            headers={"HX-Request": "true"} if is_fragment else {},
        )

        assert answer.status_code in {200, 204, 302, 400, 403, 404, 409, 410, 422}, (name, query)


@QUICK
@given(name=st.sampled_from(DONE), fields=PAIRS)
def test_whatever_is_sent(world: World, name: str, fields: list[tuple[str, str]]):
    client = world.clients["admin"]
    token = client.get(reverse("console:keys")).context["csrf_token"]
    before = everything()

    answer = client.post(world.address(name), dict(fields) | {"csrfmiddlewaretoken": token})

    assert answer.status_code < 500, (name, fields)
    if answer.status_code >= 400:
        assert everything() == before


@QUICK
@given(fields=PAIRS, query=QUERIES)
def test_whatever_is_typed_at_the_door(world: World, fields: list[tuple[str, str]], query: str):
    client = world.clients["nobody"]
    path = reverse("console:login")
    token = client.get(path).context["csrf_token"]
    typed = dict(fields) | {"csrfmiddlewaretoken": token}

    answer = client.post(f"{path}?{query}", typed)

    assert answer.status_code in {200, 400, 403, 429}


@pytest.fixture
def root(db) -> Client:
    user = make_person(None, "root", role=Role.ADMIN, is_superuser=True, is_staff=True)
    client = Client()
    client.force_login(user, backend="accounts.backends.ConsoleBackend")
    return client


@pytest.mark.parametrize("model", admin.site._registry, ids=lambda model: model._meta.label)
def test_whatever_is_asked_of_the_admin_site(root: Client, model: Any):
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    fields = [field.attname for field in model._meta.concrete_fields]
    queries = [
        *(
            "q=%00",
            "q=%FF",
            "o=99",
            "o=x",
            "p=-1",
            "p=x",
            "all=1",
            "e=1",
            "_to_field=zz",
            "%FF=%FE",
        ),
        *(f"{name}={value}" for name in fields for value in ("%00", "zz", "9" * 30, "[")),
        *(f"{name}__gte={'9' * 30}" for name in fields),
        *(f"{name}__regex=[" for name in fields),
    ]

    answers = {query: root.generic("GET", path, QUERY_STRING=query) for query in queries}

    odd = {query: answer.status_code for query, answer in answers.items()}
    assert set(odd.values()) <= {200, 302, 400, 403}, odd
    assert root.get(path).status_code == 200

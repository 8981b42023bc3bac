from datetime import date, datetime
from io import StringIO
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import Shop
from accounts.signals import demo_seeded
from audit.models import Event
from tests.factories import make_caller, make_customer, make_shop
from tools import documents, gateway
from tools.documents import DocumentError
from tools.models import PolicyDocument, PolicyPassage
from tools.registry import TOOLS

HEAD = """---
slug: returns
title: Returns
version: 2
effective_from: 2025-07-01
effective_to: 2026-01-01
---
"""
GOOD = f"{HEAD}\n## How long\n\nThirty days.\n\nNo more.\n\n## Who pays\nWe do.\n"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=ZoneInfo("America/New_York"))


def problems_of(text):
    with pytest.raises(DocumentError) as caught:
        documents.parse(text, source="a.md")
    return caught.value.problems


# --- Reading ------------------------------------------------------------------------------------


def test_a_document_is_read_with_its_dates_and_passages():
    document = documents.parse(GOOD, source="a.md")

    assert document == documents.Document(
        source="a.md",
        slug="returns",
        title="Returns",
        version=2,
        effective_from=date(2025, 7, 1),
        effective_to=date(2026, 1, 1),
        passages=(
            documents.Passage("How long", "Thirty days.\n\nNo more."),
            documents.Passage("Who pays", "We do."),
        ),
    )


def test_a_document_need_not_end():
    text = GOOD.replace("effective_to: 2026-01-01\n", "")

    assert documents.parse(text, source="a.md").effective_to is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a.md: begins with its fields between two lines of ---"),
        ("## How long\nText", "a.md: begins with its fields between two lines of ---"),
        (GOOD.replace("\n---\n", "\n", 1), "a.md: begins with its fields between two lines of ---"),
        (GOOD.replace("slug: returns\n", ""), "a.md: slug is missing"),
        (GOOD.replace("version: 2\n", ""), "a.md: version is missing"),
        (GOOD.replace("version: 2", "version: 2\nversion: 3"), "a.md:5: version stands here twice"),
        (GOOD.replace("title: Returns", "title:"), "a.md:3: title is empty"),
        (
            GOOD.replace("title:", "author: eve\ntitle:"),
            "a.md:3: a field is one of slug, title, version, effective_from, effective_to",
        ),
        (
            GOOD.replace("title: Returns", "title"),
            "a.md:3: a field is one of slug, title, version, effective_from, effective_to",
        ),
        (GOOD.replace("version: 2", "version: 0"), "a.md: version is a whole number from 1"),
        (GOOD.replace("version: 2", "version: 2.0"), "a.md: version is a whole number from 1"),
        (
            GOOD.replace("slug: returns", "slug: Returns!"),
            "a.md: slug is small letters, digits and hyphens, 50 at most",
        ),
        (
            GOOD.replace("2025-07-01", "1 July 2025"),
            "a.md: effective_from is a day like 2025-07-01",
        ),
        (GOOD.replace("2025-07-01", "2025-02-30"), "a.md: effective_from is a day like 2025-07-01"),
        (GOOD.replace("2026-01-01", "20260101"), "a.md: effective_to is a day like 2025-07-01"),
        (
            GOOD.replace("2026-01-01", "2025-07-01"),
            "a.md: effective_to is not after effective_from",
        ),
        (HEAD, "a.md: has no ## Heading"),
        (HEAD + "Loose text\n" + "## A\ntext", "a.md:8: text stands under a ## Heading"),
        (HEAD + "# Title\n## A\ntext", "a.md:8: a heading is written ## Heading"),
        (HEAD + "## A\n\n## B\ntext", "a.md:8: nothing stands under this heading"),
        (HEAD + "## " + "x" * 201 + "\ntext", "a.md:8: a heading has 1 to 200 characters"),
        (
            HEAD + "## A\n" + "x" * 1501,
            "a.md:8: more than 1500 characters; make it two passages",
        ),
        (GOOD.replace("Thirty", "Thir\x00ty"), "a.md: holds a control character"),
    ],
)
def test_a_document_that_is_not_exact_is_refused_with_the_place(text, problem):
    assert problem in problems_of(text)


def test_all_faults_of_a_folder_are_named_at_once(tmp_path):
    (tmp_path / "a.md").write_text(GOOD.replace("version: 2", "version: x"))
    (tmp_path / "b.md").write_bytes(b"\xff\xfe")
    (tmp_path / "c.md").write_text(GOOD)
    (tmp_path / "notes.txt").write_text("not a document")

    with pytest.raises(DocumentError) as caught:
        documents.read_folder(tmp_path)

    assert caught.value.problems == [
        "a.md: version is a whole number from 1",
        "b.md: not UTF-8",
    ]


def test_a_folder_without_documents_is_a_mistake(tmp_path):
    with pytest.raises(DocumentError, match=r"there is no \.md file"):
        documents.read_folder(tmp_path)
    with pytest.raises(DocumentError, match="No such file"):
        documents.read_folder(tmp_path / "nowhere")


# --- Loading ------------------------------------------------------------------------------------


@pytest.fixture
def shop(db):
    return make_shop(time_zone="America/New_York")


def load(shop, *texts):
    parsed = [documents.parse(text, source=f"{n}.md") for n, text in enumerate(texts)]
    return documents.load(parsed, shop=shop, actor="admin:root", now=timezone.now())


def state_of_documents():
    return (
        list(PolicyDocument.objects.order_by("id").values()),
        list(PolicyPassage.objects.order_by("id").values("id", "heading", "text")),
        Event.objects.count(),
    )


def test_a_document_is_loaded_once_however_often_it_is_loaded(shop):
    first = load(shop, GOOD)
    before = state_of_documents()
    second = load(shop, GOOD)

    assert (first.added, second.added, second.unchanged) == (1, 0, 1)
    assert state_of_documents() == before
    assert list(PolicyPassage.objects.order_by("n").values_list("n", "heading")) == [
        (1, "How long"),
        (2, "Who pays"),
    ]


def test_each_load_is_on_record(shop):
    load(shop, GOOD)

    event = Event.objects.get()
    assert (event.actor, event.action, event.subject) == (
        "admin:root",
        "policy_document.loaded",
        "policy_document:returns/2",
    )
    assert event.data == {
        "title": "Returns",
        "effective_from": "2025-07-01",
        "effective_to": "2026-01-01",
    }


@pytest.mark.parametrize(
    "changed",
    [
        GOOD.replace("Thirty days", "Sixty days"),
        GOOD.replace("## Who pays", "## Who pays for it"),
        GOOD.replace("title: Returns", "title: Refunds"),
        GOOD.replace("2025-07-01", "2025-06-01"),
        GOOD + "\n## More\nText\n",
    ],
)
def test_a_version_that_people_were_told_keeps_its_words(shop, changed):
    load(shop, GOOD)
    before = state_of_documents()

    with pytest.raises(DocumentError, match="returns version 2 is loaded with other words"):
        load(shop, changed)

    assert state_of_documents() == before


def test_a_version_may_be_given_its_end_when_the_next_begins(shop):
    load(shop, GOOD.replace("effective_to: 2026-01-01\n", ""))
    following = GOOD.replace("version: 2", "version: 3").replace("2025-07-01", "2026-01-01")

    loaded = load(shop, GOOD, following.replace("effective_to: 2026-01-01\n", ""))

    assert (loaded.added, loaded.ended) == (1, 1)
    rows = PolicyDocument.objects.order_by("version")
    assert list(rows.values_list("version", "effective_from", "effective_to")) == [
        (2, date(2025, 7, 1), date(2026, 1, 1)),
        (3, date(2026, 1, 1), None),
    ]
    assert Event.objects.filter(action="policy_document.ended").count() == 1


def test_two_versions_never_hold_on_the_same_day(shop):
    later = GOOD.replace("version: 2", "version: 3").replace("2025-07-01", "2025-12-31")

    with pytest.raises(DocumentError) as caught:
        load(shop, GOOD, later)

    assert caught.value.problems == [
        "returns: versions 2 and 3 both hold on 2025-12-31; end one with effective_to"
    ]
    assert state_of_documents() == ([], [], 0)


def test_another_shop_has_its_own_documents(shop):
    other = make_shop()
    load(shop, GOOD)
    load(other, GOOD.replace("Thirty", "Ninety"))

    assert PolicyDocument.objects.count() == 2


# --- The command and the demo -------------------------------------------------------------------


def test_the_command_loads_a_folder(shop, tmp_path):
    (tmp_path / "a.md").write_text(GOOD)
    out = StringIO()

    call_command("load_policies", str(tmp_path), "--shop", shop.slug, stdout=out)

    assert out.getvalue() == f"{shop.slug}: 1 added, 0 given another end, 0 unchanged.\n"
    assert PolicyDocument.objects.get().source == "a.md"


@pytest.mark.parametrize(
    ("slug", "told"), [("nowhere", "There is no shop nowhere."), (None, "slug is missing")]
)
def test_the_command_says_what_is_wrong(shop, tmp_path, slug, told):
    (tmp_path / "a.md").write_text(GOOD.replace("slug: returns\n", ""))

    with pytest.raises(CommandError, match=told):
        call_command("load_policies", str(tmp_path), "--shop", slug or shop.slug)

    assert state_of_documents() == ([], [], 0)


@pytest.fixture
def demo(shop):
    demo_seeded.send(sender=Shop, shop_id=shop.pk)
    return shop


def test_seeding_the_demo_loads_its_documents_and_does_so_once(demo):
    names = PolicyDocument.objects.order_by("slug", "version").values_list("slug", "version")
    assert list(names) == [("cancellations", 1), ("returns", 1), ("returns", 2), ("shipping", 1)]
    before = state_of_documents()

    demo_seeded.send(sender=Shop, shop_id=demo.pk)

    assert state_of_documents() == before


def test_exactly_one_version_of_each_demo_document_holds_on_any_day(demo):
    rows = list(PolicyDocument.objects.all())

    for day in (date(2024, 1, 1), date(2025, 6, 30), date(2025, 7, 1), date(2030, 1, 1)):
        holding = [
            row.slug
            for row in rows
            if row.effective_from <= day and (row.effective_to is None or day < row.effective_to)
        ]
        assert sorted(holding) == ["cancellations", "returns", "shipping"]


def test_the_demo_s_words_agree_with_the_demo_s_rules(demo):
    returns = " ".join(
        PolicyPassage.objects.filter(document__slug="returns", document__version=2).values_list(
            "text", flat=True
        )
    )
    shipping = " ".join(
        PolicyPassage.objects.filter(document__slug="shipping").values_list("text", flat=True)
    )

    assert f"within {demo.refund_window_days} days after your order was delivered" in returns
    assert f"more than ${demo.staff_limit // 100} within 24\nhours" in returns
    assert "original payment method" in returns
    assert demo.countries_served == ["US"]
    assert "United States" in shipping


# --- Searching ----------------------------------------------------------------------------------


def search(shop, question, now=NOW):
    caller = make_caller(make_customer(shop))
    text = f'{{"question": "{question}"}}'
    found = gateway.examine(
        gateway.Call("search_policy", text), caller, offered=frozenset(TOOLS), now=now
    )
    assert isinstance(found, gateway.Answered)
    return found.result["passages"]


def test_a_passage_names_its_document_version_and_date(demo):
    best = search(demo, "Can I return a worn shirt?")[0]

    assert (best["document"], best["version"], best["effective_from"]) == (
        "Returns and refunds",
        "2",
        "2025-07-01",
    )
    assert best["heading"] == "Changed your mind, and worn items"
    assert "A worn shirt" in best["text"]


@pytest.mark.parametrize(
    ("question", "heading"),
    [
        ("How many days do I have to ask for a refund?", "How long you have"),
        ("do you deliver to Canada?", "Where we deliver"),
        ("Can I still change the delivery address?", "Changing the delivery address"),
        ("Until when can I cancel my order?", "Until when you can cancel"),
        ("Which payment method do I get my money back on?", "How you are paid back"),
        ("What if an item arrived damaged?", "Damaged, wrong or missing items"),
        ("shirt?!", "Changed your mind, and worn items"),
    ],
)
def test_everyday_questions_find_their_passage_first(demo, question, heading):
    assert search(demo, question)[0]["heading"] == heading


def test_only_the_version_in_force_today_is_found(demo):
    before = datetime(2025, 6, 30, 23, 59, tzinfo=ZoneInfo("America/New_York"))
    after = datetime(2025, 7, 1, 0, 0, tzinfo=ZoneInfo("America/New_York"))

    assert {p["version"] for p in search(demo, "worn shirt", before)} == {"1"}
    assert {p["version"] for p in search(demo, "worn shirt", after)} == {"2"}


def test_today_is_the_shop_s_own_day(demo):
    """Midnight in New York is four hours after midnight in UTC."""
    still_june = datetime(2025, 7, 1, 3, 59, tzinfo=ZoneInfo("UTC"))

    assert search(demo, "worn shirt", still_june)[0]["version"] == "1"


def test_a_document_that_is_not_in_force_yet_or_any_more_is_not_found(shop):
    load(shop, GOOD)

    assert search(shop, "thirty days", datetime(2025, 6, 1, tzinfo=ZoneInfo("UTC"))) == []
    assert search(shop, "thirty days", datetime(2026, 6, 1, tzinfo=ZoneInfo("UTC"))) == []
    assert len(search(shop, "thirty days", datetime(2025, 8, 1, tzinfo=ZoneInfo("UTC")))) == 1


@pytest.mark.parametrize(
    "question",
    ["quantum entanglement", "the of and", "???", "' OR 1=1 --", "& | ! <-> :*", "zxqv"],
)
def test_what_no_document_speaks_of_is_not_found(demo, question):
    assert search(demo, question) == []


def test_another_shop_s_documents_are_not_found(demo):
    assert search(make_shop(), "worn shirt") == []


def test_no_more_than_three_passages_are_shown_and_none_is_cut(demo):
    found = search(demo, "order refund item shipped cancel delivered address staff")

    assert len(found) == 3
    assert not any(passage["text"].endswith("…") for passage in found)

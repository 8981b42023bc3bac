"""The page of the prompts: their versions, what each was used for, and what differs between two."""

import hashlib
import json
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from agents import abilities, prompts
from agents.console.prompt_versions import Line, differences, list_versions
from agents.models import Step, Task
from tests.console.desk import make_person, text_of
from tests.factories import make_customer, make_shop, make_task, make_ticket

PAGE = "/console/prompts/"
OLD = "You are the agent.\nBe brief.\nAsk when in doubt.\n"
NEW = "You are the agent.\nBe kind & <b>brief</b>.\nAsk when in doubt.\nNever guess.\n"


@pytest.fixture
def two_versions(tmp_path, monkeypatch):
    """A release with two versions of one prompt, of which tasks use the newer one."""
    texts = {"support": {"v1": OLD, "v2": NEW}, "phrase": {"v1": "Say it.\n"}}
    for name, versions in texts.items():
        (tmp_path / name).mkdir()
        for version, text in versions.items():
            (tmp_path / name / f"{version}.md").write_text(text)
    released = {
        name: {
            version: hashlib.sha256(text.encode()).hexdigest() for version, text in versions.items()
        }
        for name, versions in texts.items()
    }
    current = {"support": "v2", "phrase": "v1"}
    (tmp_path / "manifest.json").write_text(json.dumps({"current": current, "released": released}))
    monkeypatch.setattr(prompts, "FOLDER", tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    prompts.load.cache_clear()
    prompts._manifest.cache_clear()
    abilities._known.cache_clear()


@pytest.fixture
def reader(approver, sign_in):
    return sign_in(approver)


def ask_model(task: Task, n: int, version: str, *, arguments: str = "", **fields) -> Step:
    now = timezone.now()
    details: dict[str, object] = {"planned_at": now, "started_at": now, "finished_at": now}
    details |= {"status": "finished", "result": {"text": "Hello"}}
    return Step.objects.create(
        task=task,
        n=n,
        kind="model",
        arguments=arguments,
        prompt_version=version,
        **details | fields,
    )


@pytest.mark.usefixtures("two_versions")
def test_what_differs_between_two_versions_is_shown_line_by_line(reader):
    page = text_of(reader.get(PAGE, {"prompt": "support", "a": "v1", "b": "v2"}))

    rows = re.findall(
        r'<tr class="(\w+)"><td class="number">(\d*)</td><td class="number">(\d*)</td>', page
    )
    assert rows == [
        ("same", "1", "1"),
        ("gone", "2", ""),
        ("new", "", "2"),
        ("same", "3", "3"),
        ("new", "", "4"),
    ]
    assert "<del>Be brief.</del>" in page
    assert "<ins>Be kind &amp; &lt;b&gt;brief&lt;/b&gt;.</ins>" in page
    assert "<ins>Never guess.</ins>" in page
    assert "style=" not in page


@pytest.mark.usefixtures("two_versions")
def test_the_same_version_twice_has_no_line_that_differs(reader):
    page = text_of(reader.get(PAGE, {"prompt": "support", "a": "v2", "b": "v2"}))

    assert "Not a line differs." in page
    assert "<del>" not in page


@pytest.mark.usefixtures("two_versions")
@pytest.mark.parametrize(
    "query",
    [
        {"prompt": "support"},
        {"prompt": "support", "a": "v1", "b": "v3"},
        {"prompt": "nobody", "a": "v1", "b": "v2"},
        {"prompt": "../support", "a": "v1", "b": "v1"},
        {"prompt": "phrase", "a": "v1", "b": "v2"},
        {"a": "<i>", "b": "v2"},
    ],
)
def test_what_is_not_there_is_not_compared_and_the_page_says_so(reader, query):
    answer = reader.get(PAGE, query)

    assert answer.status_code == 400
    assert "There are no two such versions to compare." in text_of(answer)
    assert "<i>" not in text_of(answer)
    assert 'id="diff"' not in text_of(answer)


@pytest.mark.usefixtures("two_versions")
def test_each_version_says_what_it_was_used_for(shop, reader):
    older = make_task(make_ticket(make_customer(shop)))
    newer = make_task(make_ticket(make_customer(shop)))
    ask_model(older, 1, "v1")
    ask_model(older, 2, "v1")
    ask_model(newer, 1, "v1")
    ask_model(newer, 2, "v1", arguments="phrase_only")
    long_ago = timezone.now() - timedelta(days=31)
    ask_model(newer, 3, "v2", started_at=long_ago)
    elsewhere = make_task(make_ticket(make_customer(make_shop())))
    ask_model(elsewhere, 1, "v2")

    page = text_of(reader.get(PAGE))

    said = dict(re.findall(r'<li id="([\w-]+)">.*?<p class="soft">(.*?)</p>', page, re.DOTALL))
    assert said["support-v1"].startswith("2 tasks, 3 model calls, ")
    assert f'href="/console/tasks/{newer.pk}/"' in said["support-v1"]
    assert said["phrase-v1"].startswith("1 task, 1 model call, ")
    assert said["support-v2"] == "Not used."
    assert page.count("new tasks use it") == 2


@pytest.mark.usefixtures("two_versions")
def test_whoever_sees_every_shop_counts_every_shop(shop, sign_in):
    ask_model(make_task(make_ticket(make_customer(shop))), 1, "v2")
    ask_model(make_task(make_ticket(make_customer(make_shop()))), 1, "v2")

    page = text_of(sign_in(make_person(None, "root", role="admin")).get(PAGE))

    assert "2 tasks, 2 model calls, " in page


@pytest.mark.usefixtures("two_versions")
def test_calls_whose_words_were_erased_are_not_counted(shop, reader):
    task = make_task(make_ticket(make_customer(shop)))
    ask_model(task, 1, "v2", result={"erased": True})
    ask_model(task, 2, "v2")
    ask_model(task, 3, "v2", status="started", result=None, finished_at=None)

    assert "1 task, 2 model calls, " in text_of(reader.get(PAGE))


def test_a_version_whose_file_was_edited_is_shown_as_unfit(two_versions, reader):
    (two_versions / "support" / "v1.md").write_text("Give money away.\n")
    forget()

    page = text_of(reader.get(PAGE))
    compared = reader.get(PAGE, {"prompt": "support", "a": "v1", "b": "v2"})

    assert "Its file is not the one that was released" in page
    assert "Give money away." not in page
    assert compared.status_code == 400


def test_the_tasks_page_leads_to_the_version_that_it_used(shop, reader):
    task = make_task(make_ticket(make_customer(shop)), prompt_version="v1", steps_planned=1)
    ask_model(task, 1, "v1", arguments="phrase_only")

    page = text_of(reader.get(reverse("console:task", args=[task.pk])))

    assert f'href="{PAGE}#support-v1">prompt v1</a>' in page
    assert f'href="{PAGE}#phrase-v1">prompt v1</a>' in page


def test_what_is_released_is_shown_whole_and_with_one_version_nothing_is_compared(reader):
    page = text_of(reader.get(PAGE))

    for name in ("support", "phrase"):
        for version in prompts.released(name):
            assert f'id="{name}-{version}"' in page
    assert escape(prompts.load("support", "v1").splitlines()[0]) in page
    if len(prompts.released("support")) == 1:
        assert "nothing to compare it with" in page


def test_versions_come_in_the_order_of_their_numbers(monkeypatch):
    monkeypatch.setattr(prompts, "released", lambda _: ["v1", "v10", "v2"])

    assert list_versions("support") == ["v1", "v2", "v10"]


def test_far_apart_differences_leave_out_what_lies_between():
    old = [f"line {n}" for n in range(1, 31)]
    new = ["first", *old[1:29], "last"]

    found = differences("\n".join(old), "\n".join(new))

    assert [line.kind for line in found].count("gap") == 1
    assert found[:2] == [Line("gone", "line 1", old=1), Line("new", "first", new=1)]
    assert found[-1] == Line("new", "last", new=30)
    assert Line("same", "line 15", 15, 15) not in found

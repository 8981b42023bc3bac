"""The pages about the API, under the same strict content security policy as every other page."""

import pytest
from django.test import Client
from playwright.sync_api import sync_playwright

from agents.api import docs, problems


@pytest.mark.django_db
def test_every_problem_type_is_explained_where_its_address_points(client: Client):
    page = client.get("/docs/problems/").content.decode()

    for kind in problems.ALL:
        assert f'id="{kind.code}"' in page
        assert kind.uri == f"http://127.0.0.1:8000/docs/problems/#{kind.code}"
    assert len({kind.code for kind in problems.ALL}) == len(problems.ALL) > 25


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/docs/", "/docs/problems/"])
def test_the_pages_bring_no_inline_script_or_style(client: Client, path: str):
    answer = client.get(path)

    policy = answer["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    page = answer.content.decode()
    assert "style=" not in page
    assert "<style" not in page
    assert all("src=" in tag.split(">")[0] for tag in page.split("<script")[1:])


def test_the_api_can_be_read_in_a_browser(live_server, chromium_path: str):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        page = browser.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{live_server.url}/docs/")
        page.get_by_text("Start a task, or join the one under way").click(timeout=20_000)
        page.get_by_text("Idempotency-Key").first.wait_for(timeout=10_000)
        described = page.locator(".opblock").count()
        browser.close()

    assert complaints == []
    paths = docs.document()["paths"].values()
    assert described == sum(len(set(path) & {"get", "post"}) for path in paths) == 18

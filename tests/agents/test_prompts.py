"""Prompts: released once, the same bytes ever after."""

import hashlib
import re

import pytest

from agents import prompts
from tools.registry import SCHEMAS

# Written down a second time on purpose: an edit of a released prompt has to get past both.
RELEASED = {
    ("support", "v1"): "e6a0438471dc5f67f4b0d85ade58c458aabb5df4935ae6d1f7dcc9ba393476fc",
    ("phrase", "v1"): "90f72c0bfaa164a4c363b23442fe0b115045f10de0c2cae9509defe7dc7d2f1c",
}
TOOLS = {schema["function"]["name"] for schema in SCHEMAS}


@pytest.mark.parametrize(("name", "version"), RELEASED)
def test_a_released_prompt_keeps_its_bytes(name, version):
    text = prompts.load(name, version)

    assert hashlib.sha256(text.encode()).hexdigest() == RELEASED[name, version]


def test_every_released_prompt_is_held_by_this_test():
    found = {(path.parent.name, path.stem) for path in prompts.FOLDER.glob("*/*.md")}

    assert found == set(RELEASED)


@pytest.mark.parametrize("name", ["support", "phrase"])
def test_the_current_version_can_be_loaded(name):
    assert prompts.load(name, prompts.current(name)).strip()


def test_a_prompt_is_read_once():
    assert prompts.load("support", "v1") is prompts.load("support", "v1")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("support", "v0"),
        ("support", ""),
        ("nobody", "v1"),
        ("support", "../phrase/v1"),
        ("../prompts/support", "v1"),
    ],
)
def test_an_unknown_prompt_is_an_error(name, version):
    with pytest.raises(prompts.PromptError):
        prompts.load(name, version)


def test_an_unknown_name_has_no_current_version():
    with pytest.raises(prompts.PromptError):
        prompts.current("nobody")


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """A copy of the folder whose support prompt was edited after its release."""
    (tmp_path / "support").mkdir()
    (tmp_path / "manifest.json").write_bytes((prompts.FOLDER / "manifest.json").read_bytes())
    (tmp_path / "support" / "v1.md").write_text(prompts.load("support", "v1") + "Be generous.\n")
    monkeypatch.setattr(prompts, "FOLDER", tmp_path)
    prompts.load.cache_clear()
    yield
    prompts.load.cache_clear()


@pytest.mark.usefixtures("edited")
def test_a_prompt_that_was_edited_after_its_release_is_not_used():
    with pytest.raises(prompts.PromptError, match="edited"):
        prompts.load("support", "v1")


@pytest.mark.usefixtures("edited")
def test_a_released_prompt_whose_file_is_gone_is_an_error():
    with pytest.raises(prompts.PromptError, match="cannot be read"):
        prompts.load("phrase", "v1")


@pytest.mark.parametrize(("name", "version"), RELEASED)
def test_a_prompt_holds_nothing_secret_and_nothing_of_one_shop(name, version):
    text = prompts.load(name, version)

    assert not re.search(r"https?://|www\.|@|sk-|api[_ ]?key|bearer", text, re.IGNORECASE)
    assert not re.search(r"\d{3,}|[$€£]", text)
    assert "{" not in text  # nothing is filled in: the bytes are the same for every task
    assert not re.search(r"\n\n\n|[ \t]\n|\t|\r", text)


def test_the_support_prompt_names_no_tool_so_that_a_switched_off_tool_is_not_missed():
    text = prompts.load("support", "v1")

    assert TOOLS
    assert not [tool for tool in TOOLS if tool in text]

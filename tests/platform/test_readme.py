"""What the README names is there."""

import os
import re

from script.lib.bootstrap import ROOT

TEXT = (ROOT / "README.md").read_text()


def test_every_command_of_the_readme_is_there_and_can_be_run():
    commands = set(re.findall(r"\bscript/[a-z]+\b", TEXT))

    assert {"script/server", "script/test", "script/chat", "script/manage"} <= commands
    assert [name for name in commands if not os.access(ROOT / name, os.X_OK)] == []


def test_every_link_of_the_readme_leads_to_a_file():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", TEXT) if "://" not in link]

    assert ".env.example" in links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_setting_of_the_readme_is_in_the_example():
    settings = set(re.findall(r"\b((?:COUNTERSIGN|OPENAI)_[A-Z_]+|[A-Z]+_URL|PORT)\b", TEXT))
    example = set(re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))

    assert "DATABASE_URL" in settings
    assert settings - example == set()


def test_every_management_command_of_the_readme_is_there():
    commands = set(re.findall(r"script/manage ([a-z_]+)", TEXT))

    assert commands
    for name in commands:
        assert list(ROOT.glob(f"*/management/commands/{name}.py")), name

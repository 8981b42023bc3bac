"""Pictures of the pages that tests look at, for people: `pytest --pictures` keeps them.

They are left in each test's own folder. No test reads one, and each costs a fifth of a second.
"""

from pathlib import Path

from playwright.sync_api import Page

is_wanted = False


def want() -> None:
    """Keep them in this process from now on."""
    global is_wanted
    is_wanted = True


def keep(page: Page, path: Path, *, full_page: bool = False) -> None:
    """Take a picture of the page as it stands, if pictures are wanted."""
    if is_wanted:
        page.screenshot(path=path, full_page=full_page)

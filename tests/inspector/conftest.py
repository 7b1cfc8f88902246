from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import Problems, connected, running_chromium
from tests.support.inspecting import Inspected


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One Chromium for all tests."""
    with running_chromium(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Connected for a module; asyncio cannot be used beside it."""
    with connected(chromium) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of its own, without cookies of others."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def problems(page: Page) -> Iterator[Problems]:
    """What went wrong in the page; nothing may be left at the end."""
    problems = Problems(page)
    yield problems
    assert problems.found == []


@pytest.fixture
def inspected(tmp_path: Path) -> Inspected:
    folder = tmp_path / "inspected"
    folder.mkdir()
    return Inspected(folder)

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.hook_scripts import HookScripts
from tests.support.processes import children, descriptors


@pytest.fixture
async def scripts(tmp_path: Path) -> AsyncIterator[HookScripts]:
    """A folder with hooks, of which no process and no descriptor may be left."""
    folder = tmp_path / "project"
    folder.mkdir()
    # Other tests in this process may have left a watcher of their hooks.
    before, processes = Counter(descriptors()), set(children())
    scripts = HookScripts(folder)
    yield scripts
    await scripts.nothing_is_left()
    assert not Counter(descriptors()) - before
    assert set(children()) <= processes

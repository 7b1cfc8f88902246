"""The pytest plugin: a fixture ``hooks`` that fires events in a folder of the test.

Tests name it in ``pytest_plugins`` of their ``conftest.py``. As an entry point it would
make pytest rewrite the assertions of every module of Hookline that a test run imports.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .tester import HookTester


@pytest.fixture
def hooks(tmp_path: Path) -> HookTester:
    """Fire hooks: ``hooks.fire("BeforeTool", script="hook.py", tool="write_file")``."""
    from .tester import HookTester

    return HookTester(tmp_path)

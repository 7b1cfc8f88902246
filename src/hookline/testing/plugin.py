"""The pytest plugin: a fixture ``hooks`` that fires events in a folder of the test.

Nothing of Hookline is imported until a test asks for the fixture.
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

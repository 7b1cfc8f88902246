"""The pytest plugin, in a process of its own; its page is run by ``tests/docs``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = 'pytest_plugins = ["hookline.testing.plugin"]\n'
TESTS = """
import sys
from _pytest.assertion.rewrite import AssertionRewritingHook

loaded = {name for name in sys.modules if name.startswith("hookline")}

def is_rewritten(name):
    return isinstance(sys.modules[name].__spec__.loader, AssertionRewritingHook)

def test_nothing_but_the_plugin_is_loaded():
    names = {"hookline", "hookline.testing", "hookline.testing.plugin"}
    assert loaded == names
    assert [name for name in names if is_rewritten(name)] == ["hookline.testing.plugin"]
    assert "msgspec" not in sys.modules

def test_modules_that_are_imported_later_are_not_rewritten(hooks):
    import hookline.agent
    import hookline.testing
    assert hooks.fire("SessionStart", settings={"hooks": {}}).aggregated.success
    later = {name for name in sys.modules if name.startswith("hookline")} - loaded
    assert "hookline.agent" in later
    assert [name for name in later if is_rewritten(name)] == []
"""


def test_plugin_loads_and_rewrites_no_module_but_itself(tmp_path: Path) -> None:
    """Named in a ``conftest.py``, as docs/how-to/testing-hooks.md says."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_hook.py").write_text(TESTS)
    # A base folder of its own: by default pytest removes those of earlier runs, which
    # takes minutes after one of all tests.
    base = f"--basetemp={tmp_path / 'base'}"
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", base],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr

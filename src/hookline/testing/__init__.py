"""For hook authors' tests: fire hooks for real, and say what is expected of them.

The pytest plugin gives the fixture ``hooks``; the helpers below work without it too.
Loaded on first use: a plugin that nobody uses must cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tester import HookTester as HookTester
    from .tester import assert_allowed as assert_allowed
    from .tester import assert_blocked as assert_blocked
    from .tester import assert_modified as assert_modified

_HOMES = {
    "HookTester": "tester",
    "assert_allowed": "tester",
    "assert_blocked": "tester",
    "assert_modified": "tester",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a list of the strings above


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hookline.testing' has no attribute {name!r}")
    value = getattr(import_module(f"hookline.testing.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

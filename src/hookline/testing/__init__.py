"""For tests of hooks: fire events for real, and assert what comes of them.

The pytest plugin provides the fixture ``hooks``; the names below work without it too.
They load on first use: a plugin that a test run does not use must cost nothing.
"""

from __future__ import annotations

__all__ = ["HookTester", "assert_allowed", "assert_blocked", "assert_modified"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'hookline.testing' has no attribute {name!r}")
    from . import tester

    return getattr(tester, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})

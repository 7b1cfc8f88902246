"""Claude Code, run by its SDK, under the suite for adapters (issue 14 adapters)."""

from __future__ import annotations

from hookline.testing.adapters import AdapterSuite

from .drivers.claude_agent_sdk import ClaudeDriver


class TestSuite(AdapterSuite):
    """The policy that all adapters run."""

    driver = ClaudeDriver()

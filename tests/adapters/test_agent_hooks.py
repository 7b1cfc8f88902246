"""AGENT-HOOKS under the suite for adapters, and what is special about it."""

from __future__ import annotations

from hookline.testing.adapters import AdapterSuite

from .drivers.agent_hooks import AgentHooksDriver


class TestAgentHooks(AdapterSuite):
    driver = AgentHooksDriver()

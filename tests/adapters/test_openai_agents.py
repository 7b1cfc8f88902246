"""Hooks in the OpenAI Agents SDK, with the real SDK (issue 14 adapters)."""

from __future__ import annotations

from hookline.testing.adapters import AdapterSuite

from .drivers.openai_agents import OpenAIAgentsDriver


class TestOpenAIAgents(AdapterSuite):
    driver = OpenAIAgentsDriver()

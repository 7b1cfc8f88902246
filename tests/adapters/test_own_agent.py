"""The suite for adapters, on our own agent (issue 14 adapters)."""

from __future__ import annotations

from hookline.testing.adapters import AdapterSuite

from .drivers.own_agent import OwnAgentDriver


class TestOwnAgent(AdapterSuite):
    driver = OwnAgentDriver()

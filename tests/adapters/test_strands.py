"""Strands under the suite for adapters, and what is special about it."""

from __future__ import annotations

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed: make adapters")

from hookline.testing.adapters import AdapterSuite

from .drivers.strands import StrandsDriver


class TestStrands(AdapterSuite):
    driver = StrandsDriver()

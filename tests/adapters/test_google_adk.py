"""Google ADK: its adapter under the suite (issue 14 adapters)."""

from __future__ import annotations

import pytest

pytest.importorskip("google.adk", reason="google-adk has an environment of its own")

from hookline.testing.adapters import AdapterSuite

from .drivers.google_adk import AdkDriver


class TestGoogleAdk(AdapterSuite):
    driver = AdkDriver()

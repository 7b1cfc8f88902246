"""LangChain agents (issue 14 adapters)."""

from __future__ import annotations

from hookline.testing.adapters import AdapterSuite

from .drivers.langchain import LangChainDriver


class TestLangChain(AdapterSuite):
    driver = LangChainDriver()

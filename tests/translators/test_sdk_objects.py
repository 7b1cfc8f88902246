"""Each SDK is imported in one file only, when it is needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hookline.translators

ROOT = Path(hookline.translators.__file__).parent
SDKS = ["google.genai", "openai", "anthropic"]


@pytest.mark.parametrize("package", SDKS)
def test_sdk_is_imported_in_one_file(package: str) -> None:
    name = re.escape(package)
    found = re.compile(rf"^\s*(from|import) {name}\b|\"{name}\.", re.MULTILINE)
    files = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if found.search(path.read_text())
    }
    assert files == {"sdk_objects.py"}


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_translators_load_no_sdk() -> None:
    run(
        """
import sys
import hookline.translators.genai, hookline.translators.openai
import hookline.translators.anthropic, hookline.translators.suite
loaded = {"google", "openai", "anthropic", "pydantic"} & set(sys.modules)
assert not loaded, loaded
"""
    )


@pytest.mark.parametrize(
    ("name", "package", "extra", "requests"),
    [
        ("genai", "google.genai", "genai", {"contents": "hi"}),
        ("openai", "openai", "openai", {"messages": []}),
        ("anthropic", "anthropic", "anthropic", {"messages": []}),
    ],
)
def test_missing_extra_is_named_and_dicts_still_work(
    name: str, package: str, extra: str, requests: dict[str, object]
) -> None:
    """Without the SDK, only making its objects fails, and names the extra."""
    run(
        f"""
import sys
sys.modules[{package!r}] = None
from hookline.errors import MissingExtraError
from hookline.translators import pick_translator
translator = pick_translator({requests!r}, {name!r})
translator.to_hook_llm_request({requests!r})
translator.from_hook_llm_request({{"config": {{"temperature": 0}}}}, {requests!r})
try:
    translator.from_hook_llm_response({{"text": "no"}})
except MissingExtraError as error:
    assert "hookline[{extra}]" in str(error), error
else:
    raise AssertionError("no error")
"""
    )

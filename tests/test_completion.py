"""Editors, notebooks and prompts complete the public names, though they load late."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from typing import Any

import jedi  # type: ignore[import-untyped] # it has no types
import pytest
from jedi.api.environment import (  # type: ignore[import-untyped]
    InterpreterEnvironment,
)

import hookline

LAZY = ["hookline", "hookline.agent", "hookline.bus", "hookline.testing"]
PACKAGES = [*LAZY, "hookline.translators"]
MADE = """
import hookline
hooks = hookline.HookSystem(hookline.Config())
"""
RESULT = """
import hookline
async def ask():
    async with hookline.HookSystem(hookline.Config()) as hooks:
        (await hooks.event_handler.fire_before_tool_event('t', {})).
"""[:-1]


def script(source: str) -> Any:
    # In this process: jedi would start one of its own and leave it running.
    return jedi.Script(source, environment=InterpreterEnvironment())


def completed(source: str) -> set[str]:
    return {completion.name for completion in script(source).complete()}


def test_editor_completes_names_modules_events_and_what_a_call_gives(
    subtests: pytest.Subtests,
) -> None:
    """Jedi sees the lazy names, by the stubs."""
    hook = (
        "from hookline.types import BeforeToolInput\n"
        "def hook(event: BeforeToolInput):\n    event['"
    )
    modules = {"agent", "bus", "types", "script", "adapters", "__version__"}
    completions: dict[str, set[str]] = {
        "import hookline\nhookline.": modules,
        "import hookline\nhookline.agent.": {"hooked_tool"},
        "from hookline.adapters import ": {"langchain"},
        "import hookline\nhookline.types.": {"BeforeToolInput"},
        hook: {"'tool_input'"},
        f"{MADE}hooks.event_handler.": {"fire", "fire_before_tool_event"},
        f"{MADE}hooks.": {"on", "off", "status", "event_handler", "fire_sync"},
        "import hookline\nhookline.Config.load().session('a').": {"begin_tool"},
        RESULT: {"blocked", "reason", "final_output"},
    }
    for package in PACKAGES:
        names = set(import_module(package).__all__)
        completions[f"from {package} import "] = names
        text = f"import {package}\n{package}."
        completions[text] = names | completions.get(text, set())
    for text, names in completions.items():
        with subtests.test(text):
            assert names <= completed(text)


@pytest.mark.parametrize(
    ("call", "parameters", "doc"),
    [
        ("hookline.Config.load(", {"project_dir", "reload"}, "Read the settings"),
        ("hooks.on(", {"event", "on_error", "mode", "timeout_ms"}, "in-process hook"),
        ("hooks.off(", {"function", "event"}, "Remove a function"),
        ("hookline.agent.hooked_tool(", {"config", "blocked"}, ""),
        ("hookline.agent.hooked(", {"client", "config", "on_stop"}, "client"),
        ("hookline.bus.HookBusClient(", {"bus", "on_error"}, ""),
    ],
)
def test_an_editor_shows_signatures_and_docstrings(
    call: str, parameters: set[str], doc: str
) -> None:
    """Of lazy names too."""
    source = script(f"{MADE}import hookline.agent, hookline.bus\n{call}")
    signatures = source.get_signatures()
    assert signatures
    for signature in signatures:
        assert parameters <= {parameter.name for parameter in signature.params}
        assert doc in signature.docstring()


REPL = """
import json, rlcompleter, sys
import hookline
def completed(text):
    found, at = [], 0
    completer = rlcompleter.Completer({"hookline": hookline})
    while (one := completer.complete(text, at)) is not None:
        found.append(one.removeprefix(text).rstrip("()"))
        at += 1
    return found
sys.modules["nats"] = None  # as if it were not installed
names = {text: completed(text) for text in sys.argv[1:]}
print(json.dumps({"names": names, "modules": sorted(sys.modules)}))
"""


def test_a_prompt_completes_lazy_names_and_loads_no_sdk() -> None:
    """``dir()`` and a REPL, after nothing but ``import hookline``."""
    texts = [f"{package}." for package in PACKAGES]
    done = subprocess.run(
        [sys.executable, "-c", REPL, *texts], capture_output=True, text=True, check=True
    )
    seen = json.loads(done.stdout)
    for package in PACKAGES:
        public = set(import_module(package).__all__) - {"NatsBus"}
        assert public <= set(seen["names"][f"{package}."]), package
    assert {"agent", "types", "script"} <= set(seen["names"]["hookline."])
    roots = {name.partition(".")[0] for name in seen["modules"]}
    assert not roots & {"google", "openai", "anthropic", "pydantic"}


def test_no_other_name_is_there() -> None:
    for package in LAZY:
        with pytest.raises(
            AttributeError, match=f"module '{package}' has no attribute"
        ):
            _ = import_module(package).Nothing
    assert hookline.types.BeforeToolInput.__name__ == "BeforeToolInput"

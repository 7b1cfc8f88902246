"""The packages and their imports, the public names, and where everything is caught."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import hookline
from tests.support.architecture import (
    BUILDS_WHAT_LIES_BELOW,
    MODULES,
    PACKAGES,
    PAGE,
    SOURCE,
    draw_packages,
    imported_modules,
    package_of,
    sources,
    trace_event,
)

WITHOUT_PACKAGE = {f"hookline{name}" for name in ("", ".__main__", ".script", ".types")}


def test_packages_import_only_packages_before_them() -> None:
    wrong = []
    for module in set(MODULES) - WITHOUT_PACKAGE:
        package = package_of(module)
        assert package in PACKAGES, f"{package} is not among the packages"
        for other, line in imported_modules(module):
            if (module, other) in BUILDS_WHAT_LIES_BELOW or package_of(
                other
            ) == package:
                continue
            if PACKAGES.index(package_of(other)) >= PACKAGES.index(package):
                wrong.append(f"{module}, line {line}, imports {other}")
    assert wrong == []


def test_modules_have_no_import_cycles() -> None:
    graph = {
        module: {
            other
            for other, _ in imported_modules(module)
            if (module, other) not in BUILDS_WHAT_LIES_BELOW and other != module
        }
        for module in MODULES
    }
    TopologicalSorter(graph).prepare()  # raises CycleError with the modules in it


def test_places_named_on_the_page_are_there() -> None:
    section = PAGE.read_text().split("## Where a change goes")[1].split("## ")[0]
    table = section.rpartition("|\n")[0]
    names = re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)", table)
    ends = tuple(f"{module}." for module in MODULES)
    assert len(names) > 10
    assert [name for name in names if not any(f".{name}." in end for end in ends)] == []


async def test_the_call_path_of_one_event_is_short() -> None:
    path = await trace_event()
    assert len(path.modules) <= 17, path.modules
    assert path.changes <= 30, path.calls


def test_the_page_on_the_architecture_shows_the_present_imports() -> None:
    assert draw_packages() in PAGE.read_text(), "run 'make architecture'"


def test_hookline_script_imports_nothing_of_ours() -> None:
    assert list(imported_modules("hookline.script")) == []


BROAD = {
    # The edges: the handler, the triggers, the bridge, the command line.
    "engine/handler.py": 4,
    "bus/server.py": 3,
    "agent/triggers.py": 4,
    "hosts/bridge.py": 1,
    "hosts/resident.py": 1,
    "cli/main.py": 1,
    # The process that a coding agent waits for: what goes wrong must block a tool.
    "__main__.py": 1,
    "cli/bridge.py": 1,
    # A hook beside others: what breaks around it must not take their verdicts.
    "engine/registry.py": 1,
    # Hooks that cannot be registered at all: events fail by policy, the host goes on.
    "engine/system.py": 1,
    "engine/run_hook.py": 2,
    # What a plain call waits for: it is raised again, in the caller's thread.
    "engine/sync.py": 1,
    # Files that cannot be checked count as changed, which blocks by default.
    "trust/gate.py": 1,
    # Foreign code: hooks in this process, subscribers and carriers, extensions,
    # objects of the host's and of SDKs, loggers, tools and the host's own callbacks.
    "agent/model_calls.py": 1,
    "agent/clients/genai.py": 1,
    "agent/clients/http.py": 1,
    "agent/scheduler.py": 1,
    "agent/tool_calls.py": 3,
    "bus/client.py": 2,
    "bus/memory.py": 1,
    "bus/nats.py": 2,
    "bus/remote.py": 1,
    "_internal/trace_context.py": 1,
    "execute/python.py": 2,
    "journal/rows.py": 1,
    "protocol/results.py": 1,
    "protocol/values.py": 4,
    "_internal/log.py": 1,
    "cli/messages.py": 1,
    "script.py": 1,
    "settings/extensions.py": 1,
    "settings/watch.py": 1,
}
"""Where everything is caught and not raised again, and how often."""


def swallows_everything(handler: ast.ExceptHandler) -> bool:
    caught = "" if handler.type is None else ast.unparse(handler.type)
    if caught not in {"", "Exception", "BaseException"}:
        return False
    return not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def test_a_broad_except_is_only_in_these_places() -> None:
    places: dict[str, int] = {}
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ExceptHandler) and swallows_everything(node):
                name = str(file.relative_to(SOURCE))
                places[name] = places.get(name, 0) + 1
    assert places == BROAD


PUBLIC = [
    "Config",
    "DebugLogger",
    "HookBusClient",
    "HookEventName",
    "HookRegistryNotInitializedError",
    "HookSystem",
    "HookSystemNotInitializedError",
    "HooklineError",
    "InMemoryMessageBus",
    "NotificationType",
    "PreCompressTrigger",
    "ProcessedHookResult",
    "RemoteHooks",
    "SessionEndReason",
    "SessionStartSource",
    "Settings",
    "SettingsError",
]


def test_the_public_names_are_these() -> None:
    assert hookline.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(hookline, name).__name__ == name
    assert set(PUBLIC) <= set(dir(hookline))


def test_the_version_is_that_of_the_distribution() -> None:
    assert hookline.__version__ == version("hookline")


@pytest.mark.parametrize(
    "stub",
    sorted(SOURCE.rglob("*.pyi")),
    ids=lambda stub: str(stub.relative_to(SOURCE)),
)
def test_a_stub_names_what_its_package_exports(stub: Path) -> None:
    """Editors and type checkers read the stub, Python the table beside it."""
    package = ".".join(("hookline", *stub.relative_to(SOURCE).parts[:-1]))
    module = import_module(package)
    homes = {
        alias.name: node.module and "." * node.level + node.module
        for node in ast.walk(ast.parse(stub.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = [name for name, home in homes.items() if home is None]
    assert modules == list(getattr(module, "_PACKAGES", ()))
    names = {name: home for name, home in homes.items() if home is not None}
    assert sorted(names) == module.__all__
    for name, home in names.items():
        assert getattr(module, name) is getattr(import_module(home, package), name)


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


EXTRAS = {"google", "openai", "anthropic", "nats", "pydantic", "httpx"}


@pytest.mark.parametrize(
    "statement",
    [
        "import hookline; [getattr(hookline, n) for n in hookline.__all__]",
        "import hookline.engine.system, hookline.translators",
        "import hookline.cli.fire, hookline.cli.main",
    ],
)
def test_import_hookline_loads_no_extra(statement: str) -> None:
    loaded = loaded_by(statement)
    assert "msgspec" in loaded
    assert not loaded & EXTRAS


def test_hookline_script_loads_nothing_beyond_the_standard_library() -> None:
    bare = loaded_by("pass")
    beyond = loaded_by("import hookline.script") - bare - set(sys.stdlib_module_names)
    assert beyond == {"hookline"}

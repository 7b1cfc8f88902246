"""The drawing of the house stays true: rooms, public names, broad excepts, imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

import hookline

SOURCE = Path(hookline.__file__).parent

ROOMS = [
    *("errors", "events", "jsontext", "modelparts", "outputs", "results", "log"),
    "statefiles",
    *("inputs", "firing", "dialects", "settings", "trust", "config", "registry"),
    *("planner", "policy", "process", "executors", "guard", "chain", "toolselection"),
    *("runner", "aggregator", "translators", "bus", "validators", "mediation"),
    *("reporting", "handler", "journal", "system", "agent", "recipes", "migration"),
    *("testing", "demo", "cli"),
]
"""In the order of imports: a room knows only rooms before it."""

BELOW = {
    # The pipes of a process, the limit on processes and the words of a command belong
    # to the rooms that use them.
    "pipes": "process",
    "spawning": "process",
    "processgroup": "process",
    "limits": "process",
    "breaker": "guard",
}


def room_of(file: Path) -> str:
    first = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    return BELOW.get(first, first)


def sources() -> Iterator[Path]:
    """All modules, without the hook scripts that are shipped as files to run."""
    for file in sorted(SOURCE.rglob("*.py")):
        if file.parent.name not in {"hooks", "starter"}:
            yield file


def imports_at_load(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Modules that a file imports when it is loaded, not within functions."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom):
            yield ("." * node.level) + (node.module or ""), node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif _runs_at_load(node):
            pending += node.body


def _runs_at_load(node: ast.stmt) -> TypeGuard[ast.ClassDef | ast.Try | ast.If]:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" not in ast.dump(node.test)
    return isinstance(node, ast.ClassDef | ast.Try)


def imported_room(file: Path, module: str) -> str | None:
    dots = len(module) - len(module.lstrip("."))
    if dots:
        package = list(file.relative_to(SOURCE.parent).parts[:-1])
        parts = package[: len(package) - dots + 1] + module.lstrip(".").split(".")
        module = ".".join(part for part in parts if part)
    if not module.startswith("hookline."):
        return None
    first = module.split(".")[1]
    return BELOW.get(first, first)


@pytest.mark.parametrize(
    "file", list(sources()), ids=lambda f: str(f.relative_to(SOURCE))
)
def test_a_room_imports_only_rooms_before_it(file: Path) -> None:
    room = room_of(file)
    if room in {"__init__", "script"}:
        return
    assert room in ROOMS, f"{room} has no place in the drawing"
    for module, line in imports_at_load(ast.parse(file.read_text())):
        other = imported_room(file, module)
        if other is None or other == room:
            continue
        assert ROOMS.index(other) < ROOMS.index(room), f"line {line}: {module}"


def test_the_script_room_imports_nothing_of_ours() -> None:
    tree = ast.parse((SOURCE / "script.py").read_text())
    found = [
        imported_room(SOURCE / "script.py", module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in (
            [("." * node.level) + (node.module or "")]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    ]
    assert set(found) == {None}


BROAD = {
    # The three edges: the handler, the triggers, the command line.
    "handler.py": 2,
    "mediation.py": 2,
    "agent/firer.py": 2,
    "cli/main.py": 1,
    # A hook beside others: what breaks around it must not take their verdicts.
    "runner.py": 1,
    # Foreign code: hooks in this process, subscribers and carriers, extensions,
    # objects of the host's and of SDKs, loggers, tools and the host's own callbacks.
    "agent/applying.py": 2,
    "agent/background.py": 1,
    "agent/clientcalls.py": 1,
    "agent/scheduler.py": 1,
    "agent/tools.py": 2,
    "bus/memory.py": 2,
    "bus/nats.py": 1,
    "bus/natsconnection.py": 1,
    "bus/remote.py": 1,
    "executors/python.py": 3,
    "journal/occurrence.py": 1,
    "jsontext.py": 2,
    "log.py": 1,
    "script.py": 1,
    "settings/extensions.py": 1,
}
"""Where everything is caught and not raised again, and how often."""


def swallows_everything(handler: ast.ExceptHandler) -> bool:
    caught = "" if handler.type is None else ast.unparse(handler.type)
    if caught not in {"", "Exception", "BaseException"}:
        return False
    return not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def test_a_broad_except_stands_only_in_these_places() -> None:
    found: dict[str, int] = {}
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ExceptHandler) and swallows_everything(node):
                name = str(file.relative_to(SOURCE))
                found[name] = found.get(name, 0) + 1
    assert found == BROAD


PUBLIC = [
    "Config",
    "HookBusClient",
    "HookEventName",
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


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = hookline.Nothing


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in found.stdout.split()}


EXTRAS = {"rich", "google", "openai", "anthropic", "nats", "pydantic", "httpx"}


@pytest.mark.parametrize(
    "statement",
    [
        "import hookline; [getattr(hookline, n) for n in hookline.__all__]",
        "import hookline.system, hookline.handler, hookline.translators",
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

"""The packages, their imports and the call path of one event, measured.

``make architecture`` prints the figures and writes both drawings into
``docs/explanation/architecture.md``; ``tests/test_architecture.py`` checks them.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct

import hookline
from hookline import Config, Settings
from hookline.agent import execute_tool_with_hooks

SOURCE = Path(hookline.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md"

PACKAGES = [
    *("errors", "_internal", "protocol", "shell", "rules", "settings", "trust"),
    *("config", "plan", "execute", "translators", "journal", "telemetry", "bus"),
    *("engine", "agent", "hosts", "adapters", "inspector", "recipes", "demo"),
    *("testing", "cli"),
]
"""In the order of imports: a package imports only those before it."""

BUILDS_WHAT_LIES_BELOW = {
    ("hookline.config", "hookline.engine.system"),
    ("hookline.config", "hookline.agent.session"),
}
"""``Config.get_hook_system()`` and ``session()`` make what is built from the config."""


def sources() -> Iterator[Path]:
    """All modules, without the hook scripts that are shipped as files to run."""
    for file in sorted(SOURCE.rglob("*.py")):
        if file.parent.name not in {"hooks", "starter"}:
            yield file


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in sources()}


def package_of(module: str) -> str:
    return module.split(".")[1]


def imported_modules(module: str) -> Iterator[tuple[str, int]]:
    """Our modules that a module imports: when it is loaded, later, or for types."""
    file = MODULES[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in MODULES:
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(package, node)
            for alias in node.names:
                name = f"{base}.{alias.name}"
                target = name if name in MODULES else base
                if target in MODULES:
                    yield target, node.lineno


def _absolute(package: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


class CallPath(Struct, frozen=True):
    """The calls of one event, in order, as (module, function)."""

    calls: list[tuple[str, str]]

    @property
    def modules(self) -> list[str]:
        """In the order of their first call."""
        return list(dict.fromkeys(module for module, _ in self.calls))

    @property
    def changes(self) -> int:
        """How often a call goes to another module than the one before it."""
        modules = [module for module, _ in self.calls]
        return sum(a != b for a, b in pairwise(modules))


async def trace_event() -> CallPath:
    """Trace the second ``execute_tool_with_hooks``, with a command hook that blocks."""
    hook = {"type": "command", "name": "guard", "command": "echo no >&2; exit 2"}
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    with tempfile.TemporaryDirectory() as folder:
        config = Config("session", folder, settings)

        async def run() -> None:
            result = await execute_tool_with_hooks(config, "write_file", {}, _write)
            assert "no" in str(result.llm_content)

        await run()
        calls: list[tuple[str, str]] = []
        sys.setprofile(_Tracer(calls))
        try:
            await run()
        finally:
            sys.setprofile(None)
        await config.dispose()
    return CallPath(calls)


async def _write(_: Mapping[str, Any]) -> str:
    raise AssertionError("the hook blocks the tool")


class _Tracer:
    """Notes calls of our functions; a coroutine that goes on is no new call."""

    def __init__(self, calls: list[tuple[str, str]]) -> None:
        self._calls = calls
        self._started: set[int] = set()
        self._frames: list[FrameType] = []  # kept alive, so that no id is reused

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(str(SOURCE)):
            return
        if id(frame) not in self._started:
            self._started.add(id(frame))
            self._frames.append(frame)
            module = module_name(Path(file)).removeprefix("hookline.")
            self._calls.append((module, frame.f_code.co_qualname))


def draw_packages() -> str:
    """A table of the packages: their modules, and the packages they import."""
    rows = ["| package | modules | imports |", "|---|---|---|"]
    for package in PACKAGES:
        modules = [name for name in MODULES if name != "hookline"]
        members = [name for name in modules if package_of(name) == package]
        if not members:
            continue
        names = [
            name.removeprefix(f"hookline.{package}").lstrip(".") for name in members
        ]
        imported = {
            package_of(other)
            for name in members
            for other, _ in imported_modules(name)
            if (name, other) not in BUILDS_WHAT_LIES_BELOW and other != "hookline"
        }
        imports = [f"`{other}`" for other in PACKAGES if other in imported - {package}]
        listed = ", ".join(f"`{name}`" for name in names if name)
        rows.append(f"| **{package}** | {listed} | {' '.join(imports)} |")
    return "\n".join(rows)


def draw_call_path(path: CallPath) -> str:
    """The modules in the order of their first call, with that function."""
    first: dict[str, str] = {}
    for module, function in path.calls:
        first.setdefault(module, function)
    rows = [
        f"{number}. `{module}`: `{function}`"
        for number, (module, function) in enumerate(first.items(), 1)
    ]
    total = (
        f"{len(path.calls)} calls through {len(first)} modules, "
        f"with {path.changes} changes of module."
    )
    return "\n".join([*rows, "", total])


def replaced(text: str, name: str, drawing: str) -> str:
    """The page with one drawing replaced, between its two marks."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    assert pattern.search(text), f"{PAGE.name} has no marks for {name}"
    return pattern.sub(lambda _: f"{start}\n{drawing}\n{end}", text)


def main() -> None:
    path = asyncio.run(trace_event())
    text = replaced(PAGE.read_text(), "packages", draw_packages())
    PAGE.write_text(replaced(text, "call path", draw_call_path(path)))
    everything = list(SOURCE.rglob("*.py"))
    lines = sum(len(file.read_text().splitlines()) for file in everything)
    entries = [entry for entry in SOURCE.iterdir() if entry.name != "__pycache__"]
    print(f"modules: {len(everything)}, lines: {lines}")
    print(f"entries in hookline/: {len(entries) - 1} beside py.typed")
    print(
        f"call path of one BeforeTool event: {len(path.calls)} calls, "
        f"{len(path.modules)} modules, {path.changes} changes of module"
    )
    print(f"written: {PAGE.relative_to(PAGE.parents[1])}")


if __name__ == "__main__":
    main()

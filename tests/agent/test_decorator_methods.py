"""Methods as hooked tools: hooks see the real parameters, never ``self`` or ``cls``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.agent import hooked_tool
from hookline.agent.conversation import as_tool

from .scenes import config_of, events, runs, specific, told


def files_class(config: Config) -> type[Any]:
    tool = hooked_tool(config)

    class Files:
        kind = "files"

        def __init__(self, root: str) -> None:
            self.root = root

        @tool
        def write(self, path: str, size: int = 1) -> str:
            """Write a file."""
            return f"{self.root}/{path} {size}"

        @tool
        async def write_async(self, path: str, size: int = 1) -> str:
            return f"{self.root}/{path} {size}"

        @classmethod
        @tool
        def of_class(cls, path: str, size: int = 1) -> str:
            return f"{cls.kind}/{path} {size}"

        @tool
        @classmethod
        def of_class_outside(cls, path: str, size: int = 1) -> str:
            return f"{cls.kind}/{path} {size}"

        @staticmethod
        @tool
        def static(path: str, size: int = 1) -> str:
            return f"static/{path} {size}"

        @tool
        @staticmethod
        def static_outside(path: str, size: int = 1) -> str:
            return f"static/{path} {size}"

    return Files


METHODS = {
    "write": "root",
    "write_async": "root",
    "of_class": "files",
    "of_class_outside": "files",
    "static": "static",
    "static_outside": "static",
}


@pytest.mark.parametrize("name", list(METHODS))
async def test_hooks_of_a_method_get_and_change_its_real_parameters_only(
    tmp_path: Path, name: str
) -> None:
    config = config_of(tmp_path, {"BeforeTool": specific(tool_input={"path": "b"})})
    async with config:
        value = getattr(files_class(config)("root"), name)("a", size=3)
        if name == "write_async":
            value = await value
    assert value == told(f"{METHODS[name]}/b 3", "path")
    [event] = events(tmp_path)
    assert event["tool_name"] == name
    assert event["tool_input"] == {"path": "a", "size": 3}


async def test_a_method_called_on_its_class_sends_no_self(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    async with config:
        files = files_class(config)
        assert files.write(self=files("root"), path="a") == "root/a 1"
    assert events(tmp_path)[0]["tool_input"] == {"path": "a", "size": 1}


async def test_a_bound_method_and_a_function_keep_all_their_parameters(
    tmp_path: Path,
) -> None:
    """A real parameter may be called ``cls``: outside a class it is one."""
    config = config_of(tmp_path, {"BeforeTool": runs("true")})

    class Classifier:
        def label(self, cls: str) -> str:
            return cls

    def classify(cls: str) -> str:
        return cls

    tool = hooked_tool(config)
    async with config:
        assert tool(Classifier().label)("a") == "a"
        assert tool(classify)("b") == "b"
    assert [e["tool_input"] for e in events(tmp_path)] == [{"cls": "a"}, {"cls": "b"}]


def test_a_hooked_method_is_described_without_self(tmp_path: Path) -> None:
    spec = as_tool(files_class(config_of(tmp_path, {}))("root").write).spec
    assert (spec.name, spec.description) == ("write", "Write a file.")
    assert list(spec.parameters["properties"]) == ["path", "size"]


@pytest.mark.parametrize("settings", [{}, {"enableHooks": False}], ids=str)
@pytest.mark.parametrize("name", list(METHODS))
def test_methods_work_when_a_config_has_no_hooks(
    tmp_path: Path, settings: dict[str, Any], name: str
) -> None:
    config = Config("s-1", tmp_path, Settings.from_mapping(settings))
    value = getattr(files_class(config)("root"), name)("a")
    if name == "write_async":
        value = asyncio.run(value)
    assert value == f"{METHODS[name]}/a 1"
    asyncio.run(config.dispose())

"""What hooks see of a function's arguments: all of them, by name (issue 12.1)."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline import Config
from hookline.agent import ToolCall, ToolScheduler, hooked_tool

from .scenes import config_of, events, runs, says, specific, told


def write_file(path: Any, content: Any = "", *more: Any, mode: str = "w") -> str:
    return f"{path} {content} {more} {mode}"


async def write_async(path: Any, content: Any = "") -> str:
    return f"{path} {content}"


def only_first(path: Any, /, **more: Any) -> str:
    return f"{path} {more}"


def any_named(*args: Any, **more: Any) -> str:
    return f"{args} {more}"


PARTIAL = functools.partial
CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], dict[str, Any]]] = {
    "defaults": (write_file, ("a",), {}, {"path": "a", "content": "", "mode": "w"}),
    "more arguments": (
        write_file,
        ("a", "b", Path("c"), 1),
        {},
        {"path": "a", "content": "b", "more": ["c", 1], "mode": "w"},
    ),
    "partial": (
        PARTIAL(write_file, ".env", mode="a"),
        ("b",),
        {},
        {"path": ".env", "content": "b", "mode": "a"},
    ),
    "wrapped partial": (
        functools.update_wrapper(PARTIAL(write_file, ".env"), write_file),
        ("b",),
        {},
        {"path": ".env", "content": "b", "mode": "w"},
    ),
    "partial of a partial": (
        PARTIAL(PARTIAL(write_file, ".env"), "b"),
        (),
        {},
        {"path": ".env", "content": "b", "mode": "w"},
    ),
    "hidden by a keyword": (
        only_first,
        ("ok.txt",),
        {"path": ".env"},
        {"path": "ok.txt", "more": {"path": ".env"}},
    ),
    "keywords": (only_first, ("a",), {"b": 1}, {"path": "a", "b": 1}),
    "hidden by a list": (
        any_named,
        (1, 2),
        {"args": ".env"},
        {"args": [1, 2], "more": {"args": ".env"}},
    ),
}


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "seen"), CALLS.values(), ids=CALLS
)
async def test_hooks_see_every_argument_by_name(
    tmp_path: Path, function: Any, args: Any, kwargs: Any, seen: dict[str, Any]
) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    expected = function(*args, **kwargs)
    async with config:
        assert hooked_tool(config)(function)(*args, **kwargs) == expected
    [event] = events(tmp_path)
    assert event["tool_input"] == seen
    assert event["tool_name"] != "partial"


async def test_a_hook_changes_what_a_partial_has_bound(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": specific(tool_input={"path": "b"})})
    tool = hooked_tool(config)
    async with config:
        plain = tool(functools.partial(write_file, ".env"))("x")
        threaded = hooked_tool(config, in_thread=True)(write_file)
        text = await tool(functools.partial(write_async, ".env"))("x")
        from_thread: Any = threaded("a")
        assert await from_thread == told("b  () w", "path")
    assert plain == told("b x () w", "path")
    assert text == told("b x", "path")
    assert events(tmp_path)[0]["tool_name"] == "write_file"


async def test_the_defaults_of_a_tool_of_the_scheduler_are_seen(
    tmp_path: Path,
) -> None:
    def write_to(path: Path = Path(".env"), content: str = "") -> str:
        return f"{path!r} {content}"

    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    async with config:
        scheduler = ToolScheduler(config, [write_to])
        batch = await scheduler.run([ToolCall("1", "write_to", {"content": "x"})])
    assert events(tmp_path)[0]["tool_input"] == {"path": ".env", "content": "x"}
    assert batch.answers[0].result.text == f"{Path('.env')!r} x"


async def test_what_a_partial_has_bound_is_seen_of_a_tool_of_the_scheduler(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    bound = functools.partial(write_file, Path("kept"), mode="a")
    async with config:
        scheduler = ToolScheduler(config, [bound])
        call = ToolCall("1", "write_file", {"content": "x", "path": "other"})
        batch = await scheduler.run([call])
    assert events(tmp_path)[0]["tool_input"] == {
        "path": "kept",
        "content": "x",
        "mode": "a",
    }
    assert batch.answers[0].result.text == "kept x () a"


async def test_self_is_not_shown_whatever_its_name(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    tool = hooked_tool(config)

    class Files:
        @tool
        def write(this, path: str) -> str:  # noqa: N805 - what the test is about
            return f"{type(this).__name__} {path}"

        @classmethod
        @tool
        def of_class(kind, path: str) -> str:  # noqa: N804 - as above
            return f"{kind.__name__} {path}"

        @tool
        @classmethod
        def of_class_outside(kind, path: str) -> str:  # noqa: N804 - as above
            return f"{kind.__name__} {path}"

        @tool
        @staticmethod
        def static(cls: str, path: str) -> str:  # noqa: PLW0211 - as above
            return f"{cls} {path}"

    @tool
    def attached(owner: Any, path: str) -> str:
        return f"{type(owner).__name__} {path}"

    Files.attached = attached  # type: ignore[attr-defined] # what the test is about
    files: Any = Files()
    methods = (files.write, files.of_class, files.of_class_outside, files.attached)
    async with config:
        assert [method("a") for method in methods] == ["Files a"] * 4
        assert files.static("b", "a") == "b a"
        assert attached(5, "a") == "int a"
    inputs = [event["tool_input"] for event in events(tmp_path)]
    assert inputs[:4] == [{"path": "a"}] * 4
    assert inputs[4:] == [{"cls": "b", "path": "a"}, {"owner": 5, "path": "a"}]


async def test_a_generator_stays_one_and_carries_text_that_hooks_add(
    tmp_path: Path,
) -> None:
    """DESIGN: hooked_tool works on generators; what it is given is not consumed."""
    hooks = {"BeforeTool": says({"systemMessage": "hm"}), "AfterTool": runs("true")}
    config = config_of(tmp_path, hooks)
    tool = hooked_tool(config)

    @tool
    def lines(source: Iterator[str]) -> Iterator[str]:
        yield from source

    @tool
    async def pages() -> AsyncIterator[int]:
        yield 1

    async with config:
        assert list(lines(iter("ab"))) == ["a", "b", "[System] hm"]
        assert [page async for page in pages()] == [1]
    assert "iterator" in events(tmp_path)[0]["tool_input"]["source"]


@pytest.mark.parametrize(
    ("args", "message"),
    [((), "missing a required argument: 'path'"), ((1, 2, 3), "too many positional")],
)
async def test_wrong_arguments_are_reported_with_the_name_of_the_tool(
    args: tuple[Any, ...], message: str
) -> None:
    """Issue 17: a model reads it, and traces of many tools look alike."""
    with pytest.raises(TypeError, match=rf"write_async\(\): {message}"):
        await hooked_tool(Config())(write_async)(*args)


def test_a_function_without_known_parameters_cannot_be_a_tool() -> None:
    """Issue 17: hooks could not see its input."""
    with pytest.raises(TypeError, match=r"max does not say .*: decorate a function"):
        hooked_tool(Config())(max)

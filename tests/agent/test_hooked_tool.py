"""Functions as hooked tools: loops and threads, arguments, generators that are left.

What hooks do to functions of every kind is recorded in
``tests/pins/agent/hooked_functions.json``.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.adapters.claude_agent_sdk import hookline_hooks
from hookline.agent import (
    Agent,
    ScriptedModel,
    ScriptedReply,
    ToolCall,
    ToolScheduler,
    fire_session_end_hook,
    hooked,
    hooked_tool,
)
from hookline.errors import ToolBlockedError
from tests.support.recorded_events import DENY, RecordedHooks, specific

WITHHELD = {"reason": "secret", **specific(withholdResult=True)}
NOTICE = "[System] A hook changed the tool's input: size"


# --- Loops and threads ----------------------------------------------------------------


def background_threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "hookline-hooks"}


def test_plain_functions_run_in_their_thread_with_or_without_a_loop() -> None:
    hooks = RecordedHooks({"BeforeTool": DENY})
    listening = RecordedHooks({"BeforeTool": None, "AfterTool": None})
    value = {"rows": [1, 2]}
    threads: list[threading.Thread] = []

    @hooked_tool(listening.config)
    def fetch() -> dict[str, Any]:
        threads.append(threading.current_thread())
        return value

    assert fetch() is value
    assert threads == [threading.current_thread()]

    async def inside() -> list[Any]:
        tool: Any = hooked_tool(hooks.config)
        write = tool(lambda path: path)
        return [write("a"), write("b"), fetch()]

    assert asyncio.run(inside()) == ["no", "no", value]
    asyncio.run(hooks.config.dispose())
    asyncio.run(listening.config.dispose())


async def test_async_functions_pass_their_hooks_on_the_callers_loop() -> None:
    others = background_threads()
    hooks = RecordedHooks({"BeforeTool": specific(tool_input={"path": "b"})})

    @hooked_tool(hooks.config, name="my_write")
    async def write(path: str) -> str:
        return f"wrote {path}"

    assert inspect.iscoroutinefunction(write)
    assert (await write("a")).startswith("wrote b\n\n")
    assert hooks.events[0]["tool_name"] == "my_write"
    assert background_threads() <= others
    await hooks.config.dispose()


def test_hooks_and_tools_may_call_hooked_tools() -> None:
    """A hook runs on the background loop, which must not wait for itself."""
    config = Config("s-1", ".", Settings())
    system = HookSystem(config)
    tool = hooked_tool(config)

    @tool
    def note() -> str:
        return "noted"

    @system.on("BeforeTool", "^work$")
    def hook(_: dict[str, Any]) -> dict[str, Any]:
        return {"systemMessage": note()}

    @tool
    def work() -> str:
        return f"worked, {note()}"

    assert work() == "worked, noted\n\n[System] noted"
    asyncio.run(config.dispose())


def test_hooks_that_call_hooked_tools_are_cut_off_at_their_depth() -> None:
    config = Config("s-1", ".", Settings())
    count = 0

    @hooked_tool(config)
    def work() -> str:
        return "worked"

    @HookSystem(config).on("BeforeTool")
    def again(_: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        work()

    assert work().startswith("worked")
    assert count == 4
    asyncio.run(config.dispose())


async def test_two_loops_share_the_limit_on_processes() -> None:
    """A slot freed on one loop wakes a waiter on the other."""
    hook = {"$process": {"command": "sleep 0.02"}}
    settings = {"hooksConfig": {"maxProcesses": 1}}
    config = RecordedHooks({"BeforeTool": hook}, settings=settings).config
    tool = hooked_tool(config)

    @tool
    def plain(n: int) -> int:
        return n

    @tool
    async def asynchronous(n: int) -> int:
        return n

    async with config, asyncio.timeout(60), asyncio.TaskGroup() as group:
        there = [group.create_task(asyncio.to_thread(plain, n)) for n in range(8)]
        here = [group.create_task(asynchronous(n)) for n in range(8)]
    assert [task.result() for task in there + here] == [*range(8), *range(8)]


def test_a_background_loop_ends_with_its_config_or_when_that_is_forgotten() -> None:
    others = background_threads()
    hooks = RecordedHooks({"BeforeTool": None})
    write = hooked_tool(hooks.config)(lambda: "wrote")
    assert [write(), write()] == ["wrote", "wrote"]
    [thread] = background_threads() - others
    asyncio.run(hooks.config.dispose())
    assert not thread.is_alive()
    assert write() == "wrote"
    [thread] = background_threads() - others
    del hooks, write
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_a_program_that_never_disposes_still_ends(tmp_path: Path) -> None:
    program = """
from hookline import Config, Settings
from hookline.agent import hooked_tool
hooks = {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}}
config = Config(settings=Settings.from_mapping(hooks))
print(hooked_tool(config)(lambda: "done")())
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


# --- Arguments ------------------------------------------------------------------------


def write_file(path: Any, content: Any = "", *more: Any, mode: str = "w") -> str:
    return f"{path} {content} {more} {mode}"


def only_first(path: Any, /, **more: Any) -> str:
    return f"{path} {more}"


def any_named(*args: Any, **more: Any) -> str:
    return f"{args} {more}"


def shapes(a: int, /, b: int = 2, *rest: int, c: int = 3, **more: int) -> Any:
    return a, b, rest, c, more


PARTIAL = functools.partial
WRAPPED = functools.update_wrapper(PARTIAL(write_file, ".env"), write_file)
CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any], dict[str, Any]]] = [
    (write_file, ("a",), {}, {"path": "a", "content": "", "mode": "w"}),
    (
        *(write_file, ("a", "b", Path("c"), 1), {}),
        {"path": "a", "content": "b", "more": ["c", 1], "mode": "w"},
    ),
    (
        *(PARTIAL(write_file, ".env", mode="a"), ("b",), {}),
        {"path": ".env", "content": "b", "mode": "a"},
    ),
    (WRAPPED, ("b",), {}, {"path": ".env", "content": "b", "mode": "w"}),
    (
        *(PARTIAL(PARTIAL(write_file, ".env"), "b"), (), {}),
        {"path": ".env", "content": "b", "mode": "w"},
    ),
    (
        *(only_first, ("ok.txt",), {"path": ".env"}),
        {"path": "ok.txt", "more": {"path": ".env"}},
    ),
    (only_first, ("a",), {"b": 1}, {"path": "a", "b": 1}),
    (
        *(any_named, (1, 2), {"args": ".env"}),
        {"args": [1, 2], "more": {"args": ".env"}},
    ),
    (shapes, (1, 5), {"c": 6}, {"a": 1, "b": 5, "c": 6}),
    (
        *(shapes, (1, 5, 8, 9), {"c": 6, "z": 7}),
        {"a": 1, "b": 5, "rest": [8, 9], "c": 6, "z": 7},
    ),
    (shapes, (1,), {"more": 7}, {"a": 1, "b": 2, "c": 3, "more": {"more": 7}}),
]


async def test_hooks_see_every_argument_by_name(subtests: pytest.Subtests) -> None:
    for function, args, kwargs, seen in CALLS:
        with subtests.test(f"{args} {kwargs}"):
            hooks = RecordedHooks({"BeforeTool": None})
            expected = function(*args, **kwargs)
            async with hooks.config:
                value = hooked_tool(hooks.config)(function)(*args, **kwargs)
            assert value == expected
            assert hooks.events[0]["tool_input"] == seen
            assert hooks.events[0]["tool_name"] in {
                *("write_file", "only_first", "any_named", "shapes")
            }


async def test_tools_of_the_scheduler_have_their_defaults_and_bound_arguments() -> None:
    def write_to(path: Path = Path(".env"), content: str = "") -> str:
        return f"{path!r} {content}"

    def unnamed(path: str = "kept", /) -> str:
        return path

    hooks = RecordedHooks({"BeforeTool": None})
    bound = PARTIAL(write_file, Path("kept"), mode="a")
    calls = [
        ToolCall("1", "write_to", {"content": "x"}),
        ToolCall("2", "write_file", {"content": "x", "path": "other"}),
        ToolCall("3", "unnamed", {}),
    ]
    async with hooks.config:
        batch = await ToolScheduler(hooks.config, [write_to, bound, unnamed]).run(calls)
    assert [event["tool_input"] for event in hooks.events] == [
        {"path": ".env", "content": "x"},
        {"path": "kept", "content": "x", "mode": "a"},
        {},
    ]
    texts = [answer.result.text for answer in batch.answers]
    assert texts == [f"{Path('.env')!r} x", "kept x () a", "kept"]


async def test_self_and_cls_are_shown_only_where_they_are_real_parameters() -> None:
    hooks = RecordedHooks({"BeforeTool": None})
    tool = hooked_tool(hooks.config)

    class Files:
        @tool
        def write(self, path: str) -> str:
            return f"{type(self).__name__} {path}"

        @tool
        @staticmethod
        def static(cls: str, path: str) -> str:  # noqa: PLW0211 - a real parameter
            return f"{cls} {path}"

        def label(self, cls: str) -> str:
            return cls

    @tool
    def attached(owner: Any, path: str) -> str:
        return f"{type(owner).__name__} {path}"

    Files.attached = attached  # type: ignore[attr-defined] # as some do
    files: Any = Files()
    async with hooks.config:
        assert files.attached("a") == "Files a"
        assert Files.write(self=files, path="a") == "Files a"
        assert files.static("b", "a") == "b a"
        assert attached(5, "a") == "int a"
        assert tool(files.label)("c") == "c"
    assert [event["tool_input"] for event in hooks.events] == [
        {"path": "a"},
        {"path": "a"},
        {"cls": "b", "path": "a"},
        {"owner": 5, "path": "a"},
        {"cls": "c"},
    ]


async def test_hidden_parameters_are_for_the_function_alone() -> None:
    """DESIGN: ``hide`` keeps parameters from hooks, journal and bus."""
    change = specific(tool_input={"path": "b", "ctx": "forged", "token": "forged"})
    hooks = RecordedHooks({"BeforeTool": change, "AfterTool": None})

    @hooked_tool(hooks.config, hide=("ctx", "token", "absent"), blocked="raise")
    def write(ctx: object, path: str, **more: str) -> list[object]:
        return [ctx, path, more]

    async with hooks.config:
        context = object()
        assert write(context, "a", token="t") == [context, "b", {"token": "t"}]
    assert hooks.events[0]["tool_input"] == {"path": "a"}
    assert "ctx" not in hooks.events[1]["tool_input"]


@pytest.mark.parametrize("settings", [{}, {"enableHooks": False}], ids=str)
async def test_functions_describe_themselves_to_the_model(settings: Any) -> None:
    config = Config("s-1", ".", Settings.from_mapping(settings))

    class Index:
        @hooked_tool(config)
        def search(
            self, words: list[str], limit: int = 5, *, exact: bool, what: object
        ) -> str:
            """Search for words."""
            return f"{words} {limit} {exact} {what}"

    call = ("search", {"words": ["a"], "exact": True, "what": None})
    model = ScriptedModel([ScriptedReply(calls=(call,)), "done"])
    agent = Agent(config, model, [Index().search])
    await agent.run("go")
    [spec] = agent.chat.tools
    assert (spec.name, spec.description) == ("search", "Search for words.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "words": {"type": "array", "items": {"type": "string"}},
            "limit": {"type": "integer"},
            "exact": {"type": "boolean"},
            "what": {},
        },
        "required": ["words", "exact", "what"],
    }
    assert agent.chat.history[2].answers[0].result.text == "['a'] 5 True None"


def test_mistakes_with_hooked_tool_say_what_to_write() -> None:
    """``@hooked_tool`` without ``(config)``, and adapters without one."""
    tool: Any = hooked_tool
    given: dict[Any, str] = {
        print: "builtin_function_or_method 'print'",
        write_file: "function 'write_file'",
        "write_file": "str",
        None: "None",
        Settings(): "Settings",
    }
    for value, name in given.items():
        wrong = rf"expected a Config or a session, got {name}: "
        with pytest.raises(TypeError, match=rf"{wrong}write @hooked_tool\(config\)"):
            tool(value)
        with pytest.raises(TypeError, match=rf"{wrong}pass Config.load\(\)"):
            hookline_hooks(value)
        with pytest.raises(TypeError, match=wrong):
            Agent(value, ScriptedModel([]))
        with pytest.raises(TypeError, match=wrong):
            asyncio.run(fire_session_end_hook(config=value))
    with pytest.raises(TypeError, match=r"write @hooked_tool\(config\)"):
        tool()
    with pytest.raises(TypeError, match="'config'"):
        hooked(object())  # type: ignore[call-arg] # the mistake
    with pytest.raises(ValueError, match="expected 'return' or 'raise', got 'never'"):
        tool(Config(), blocked="never")
    with pytest.raises(TypeError, match=r"max does not say .*: decorate a function"):
        tool(Config())(max)


# --- Results --------------------------------------------------------------------------


def test_a_refusal_that_raises_says_what_it_refused() -> None:
    hooks = RecordedHooks({"BeforeTool": DENY})

    @hooked_tool(hooks.config, blocked="raise")
    def write(path: str) -> str:
        raise AssertionError(path)

    with pytest.raises(ToolBlockedError, match="write: no") as caught:
        write("a")
    assert (caught.value.tool_name, caught.value.reason) == ("write", "no")
    assert str(pickle.loads(pickle.dumps(caught.value))) == "write: no"
    asyncio.run(hooks.config.dispose())


async def test_awaitables_are_shown_when_they_have_run_and_tasks_stay_tasks() -> None:
    """protocol.md#callers: AfterTool sees the result, and the caller what it left."""
    hooks = RecordedHooks({"AfterTool": None})

    async def fetch(size: int) -> str:
        return "x" * size

    def task(size: int) -> asyncio.Task[str]:
        return asyncio.create_task(fetch(size))

    async with hooks.config:
        made: Any = hooked_tool(hooks.config)(task)(2)
        assert isinstance(made, asyncio.Task)
        assert hooks.events == []
        assert await made == "xx"
    assert hooks.events[0]["tool_response"]["llmContent"] == "xx"


async def test_a_future_of_a_thread_is_shown_when_it_has_run() -> None:
    hooks = RecordedHooks({"AfterTool": WITHHELD})
    start = threading.Event()

    def work(size: int) -> str:
        start.wait()
        return "x" * size

    async with hooks.config:
        with ThreadPoolExecutor() as pool:
            tool: Any = hooked_tool(hooks.config)
            future = tool(lambda size: pool.submit(work, size))(2)
            assert hooks.events == []
            start.set()
            assert await asyncio.wrap_future(future) == "secret"
    assert hooks.events[0]["tool_response"]["llmContent"] == "xx"


async def test_iterators_stay_as_they_are_where_they_cannot_be_held_back(
    tmp_path: Path,
) -> None:
    before, after = (
        RecordedHooks({"BeforeTool": None}),
        RecordedHooks({"AfterTool": None}),
    )
    (tmp_path / "a").write_text("text")
    numbers = iter([1])
    async with before.config, after.config:
        tool: Any = hooked_tool(before.config)
        assert tool(lambda: numbers)() is numbers  # no hook sees results
        tool = hooked_tool(after.config)
        with (tmp_path / "a").open() as file, closing(connect(":memory:")) as database:
            for value in (file, database.execute("SELECT 1")):  # they have other uses
                assert tool(lambda kept=value: kept)() is value
    assert len(after.events) == 2


@pytest.mark.parametrize("value", [(1, "a"), {"x"}, b"x"], ids=repr)
async def test_a_notice_leaves_a_value_that_is_not_text_alone(value: object) -> None:
    """protocol.md#callers: the notice is for the model, not for a program's value."""
    hooks = RecordedHooks({"BeforeTool": specific(tool_input={"size": 2})})
    async with hooks.config:
        for blocked in ("return", "raise"):
            made: Any = hooked_tool(hooks.config, blocked=blocked)
            assert made(lambda size: value)(1) is value
        call = await hooks.config.session("s").begin_tool("t", {"size": 1})
        outcome = await call.finish(value)
    assert outcome.content is outcome.result.llm_content is value
    assert outcome.additions == [NOTICE]


# --- Generators -----------------------------------------------------------------------


async def test_generators_run_when_they_are_asked_for_items() -> None:
    """DESIGN: hooked_tool works on generators; what it is given is not consumed."""
    hooks = RecordedHooks({"BeforeTool": None})
    made: list[str] = []

    @hooked_tool(hooks.config)
    def lines(source: Iterator[str]) -> Iterator[str]:
        for line in source:
            made.append(line)
            yield line

    async with hooks.config:
        items = lines(iter("abc"))
        assert hooks.events == []
        assert next(items) == "a"
        assert made == ["a"]  # no hook waits for the whole
    assert "iterator" in hooks.events[0]["tool_input"]["source"]


def test_a_generator_left_among_items_that_were_held_back_is_shown_once() -> None:
    hooks = RecordedHooks({"AfterTool": None})

    @hooked_tool(hooks.config)
    def numbers() -> Iterator[int]:
        yield from range(3)

    assert next(numbers()) == 0
    gc.collect()
    contents = [event["tool_response"]["llmContent"] for event in hooks.events]
    assert contents == [[0, 1, 2]]
    numbers()  # never asked for an item: not called, and no hook fires
    gc.collect()
    assert len(hooks.events) == 1
    asyncio.run(hooks.config.dispose())


class LateHook:
    """An AfterTool hook that is registered while a generator runs, so nothing waits."""

    def __init__(self) -> None:
        self.config = Config("own", ".", Settings())
        self.system = HookSystem(self.config)
        self.contents: list[Any] = []
        self.has_run = asyncio.Event()

    def listen(self) -> None:
        self.system.on("AfterTool")(self._hook)

    def _hook(self, event: dict[str, Any]) -> None:
        self.contents.append(event["tool_response"]["llmContent"])
        self.has_run.set()


def stop_by_break(items: Iterator[Any]) -> None:
    for _ in items:
        break


def stop_by_close(items: Any) -> None:
    next(items)
    items.close()


def stop_by_throw(items: Any) -> None:
    next(items)
    with pytest.raises(KeyError):
        items.throw(KeyError("x"))


@pytest.mark.parametrize("stop", [stop_by_break, stop_by_close, stop_by_throw])
def test_a_generator_that_is_stopped_early_is_shown_to_hooks_once(
    stop: Callable[[Any], None],
) -> None:
    """Generators fire AfterTool when they end, also when they are left."""
    hook = LateHook()
    closed: list[int] = []

    @hooked_tool(hook.config)
    def numbers() -> Iterator[int]:
        try:
            hook.listen()
            yield 1
            yield 2
        finally:
            closed.append(1)

    stop(numbers())
    gc.collect()
    assert (hook.contents, closed) == ([[1]], [1])
    asyncio.run(hook.config.dispose())


@pytest.mark.parametrize(
    "how", ["break", "aclose", "cancel", "collected", "cancel while held back"]
)
async def test_an_async_generator_that_is_stopped_early_is_shown_to_hooks_once(
    how: str,
) -> None:
    """Break, close, cancellation, or nobody holds it any more."""
    hook = LateHook()
    waiting = asyncio.Event()
    is_cancelled = how.startswith("cancel")
    if how == "cancel while held back":
        hook.listen()

    @hooked_tool(hook.config)
    async def numbers() -> AsyncGenerator[int, None]:
        if how != "cancel while held back":
            hook.listen()
        yield 1
        waiting.set()
        await asyncio.Event().wait()

    async def consume() -> None:
        async for _ in numbers():
            if how == "break":
                break

    async with hook.config:
        if how in ("aclose", "collected"):
            items = numbers()
            await anext(items)
            if how == "aclose":
                await items.aclose()
            del items
        else:
            task = asyncio.create_task(consume())
            if is_cancelled:
                await waiting.wait()
                task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() is is_cancelled
        gc.collect()
        await asyncio.wait_for(hook.has_run.wait(), 30)
    expected = [1, "Error: CancelledError"] if is_cancelled else [1]
    assert hook.contents == [expected]

"""Any function as a hooked tool: two lines for people with their own agent.

    tool = hooked_tool(config)

    @tool
    def write_file(path: str, content: str) -> str: ...

The function keeps its name, signature and kind. Hooks see its arguments by name and may
change them; where they block, what the function returns is their reason, for the model.
Where they add nothing, its own value comes back untouched; what it raises is raised.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

from hookline.config import Config

from .background import run_sync
from .functions import arguments_of, input_of
from .toolresults import ToolResult, as_result, failed
from .tools import Admission, Confirm, ToolRun

_MARK = "__hookline_hooked__"

F = TypeVar("F", bound=Callable[..., Any])


def hooked_tool(
    config: Config,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Callable[[str], None] | None = None,
) -> Callable[[F], F]:
    """Make a decorator that takes a function's calls through the tool hooks.

    ``on_stop`` hears the reason when a hook stops the agent.
    """

    def decorate(function: F) -> F:
        named = name or str(getattr(function, "__name__", type(function).__name__))
        maker = _Hooked(config, named, function, confirm, on_stop)
        wrap = (
            maker.asynchronous
            if inspect.iscoroutinefunction(function)
            else maker.synchronous
        )
        wrapped = update_wrapper(wrap(), function)
        setattr(wrapped, _MARK, True)
        return cast("F", wrapped)

    return decorate


def is_hooked(function: Any) -> bool:
    """Whether a function's calls pass the tool hooks already."""
    return getattr(function, _MARK, False) is True


class _Hooked:
    """One function with its hooks."""

    def __init__(
        self,
        config: Config,
        name: str,
        function: Callable[..., Any],
        confirm: Confirm | None,
        on_stop: Callable[[str], None] | None,
    ) -> None:
        self._config = config
        self._function = function
        self._signature = inspect.signature(function)
        self._on_stop = on_stop
        self._run = ToolRun(config, name, confirm=confirm)

    def asynchronous(self) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            admission = await self._run.admit(self._input(args, kwargs))
            if admission.refusal is not None:
                return self._told(admission.refusal)
            args, kwargs = arguments_of(self._signature, admission.tool_input)
            try:
                value = await self._function(*args, **kwargs)
            except Exception as error:
                await self._run.finish(admission, failed(error))
                raise
            result = as_result(value)
            return self._given(value, await self._run.finish(admission, result))

        return call

    def synchronous(self) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            # The function runs here, in the caller's thread; only hooks run elsewhere.
            given = self._input(args, kwargs)
            admission = run_sync(self._config, self._run.admit(given))
            if admission.refusal is not None:
                return self._told(admission.refusal)
            args, kwargs = arguments_of(self._signature, admission.tool_input)
            try:
                value = self._function(*args, **kwargs)
            except Exception as error:
                self._finish(admission, failed(error))
                raise
            return self._given(value, self._finish(admission, as_result(value)))

        return call

    def _input(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return input_of(self._signature, args, kwargs)

    def _finish(self, admission: Admission, result: ToolResult) -> ToolResult:
        return run_sync(self._config, self._run.finish(admission, result))

    def _given(self, value: Any, result: ToolResult) -> Any:
        """The function's own value, unless hooks changed what the model is to see."""
        if result.llm_content is as_result(value).llm_content:
            return value
        return self._told(result)

    def _told(self, result: ToolResult) -> Any:
        if result.stop_reason is not None and self._on_stop is not None:
            self._on_stop(result.stop_reason)
        return result.llm_content

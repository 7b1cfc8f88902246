"""Fire events on hooks from a test and assert what they said."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from hookline.config import Config
from hookline.engine.system import HookSystem
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult, make_empty_success_result
from hookline.settings.load import Settings

from .cases import HookTestCase

EventInput = Mapping[str, Any]


def script_settings(
    scripts: Iterable[Path],
    *,
    env: Mapping[str, str] | None = None,
    sequential: bool = False,
    hook_type: str = "command",
    timeout_ms: float = 60_000,
) -> Settings:
    """Settings with these scripts on every event."""
    hooks = [
        {
            "type": hook_type,
            "command": command_of(script),
            "name": script.stem,
            "env": dict(env or {}),
            "timeout": timeout_ms,
        }
        for script in scripts
    ]
    group = {"sequential": sequential, "hooks": hooks}
    return Settings.from_mapping({"hooks": {str(e): [group] for e in HookEventName}})


def command_of(script: Path) -> str:
    """How a script is started: Python by our own interpreter, others by themselves."""
    quoted = shlex.quote(str(script))
    if script.suffix == ".py":
        return f'"$HOOKLINE_PYTHON" {quoted}'
    return quoted if os.access(script, os.X_OK) else f"bash {quoted}"


def event_input(
    event: HookEventName | str,
    *,
    tool: str | None = None,
    fields: EventInput | None = None,
    **named: Any,
) -> dict[str, Any]:
    """The fields of an event, with what it cannot do without filled in."""
    given = {key: value for key, value in named.items() if value is not None}
    if tool is not None:
        given["tool_name"] = tool
    given |= fields or {}
    for key, value in _NEEDED[HookEventName.of(event)].items():
        given.setdefault(key, value)
    return given


_RESPONSE = {"llmContent": "", "returnDisplay": ""}
_REQUEST: dict[str, Any] = {"model": "test", "messages": []}
_NEEDED: dict[HookEventName, dict[str, Any]] = {
    HookEventName.BeforeTool: {"tool_name": "tool", "tool_input": {}},
    HookEventName.AfterTool: {
        "tool_name": "tool",
        "tool_input": {},
        "tool_response": _RESPONSE,
    },
    HookEventName.BeforeAgent: {"prompt": ""},
    HookEventName.AfterAgent: {
        "prompt": "",
        "prompt_response": "",
        "stop_hook_active": False,
    },
    HookEventName.BeforeModel: {"llm_request": _REQUEST},
    HookEventName.AfterModel: {
        "llm_request": _REQUEST,
        "llm_response": {"text": "", "candidates": []},
    },
    HookEventName.BeforeToolSelection: {"llm_request": _REQUEST},
    HookEventName.SessionStart: {"source": "startup"},
    HookEventName.SessionEnd: {"reason": "exit"},
    HookEventName.Notification: {"message": ""},
    HookEventName.PreCompress: {"trigger": "auto"},
}


class Firing:
    """A hook system in a folder, for the time of a ``with`` block."""

    def __init__(
        self, settings: Settings, cwd: Path, session_id: str | None = None
    ) -> None:
        config = Config(session_id or "hooktest", cwd, settings)
        self._system: HookSystem | None = config.get_hook_system()

    async def fire(
        self, event: HookEventName | str, fields: EventInput
    ) -> ProcessedHookResult:
        """Fire one event."""
        if self._system is None:
            return ProcessedHookResult(aggregated=make_empty_success_result())
        return await self._system.event_handler.fire(event, fields)

    async def __aenter__(self) -> Firing:
        if self._system is not None:
            await self._system.initialize()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._system is not None:
            await self._system.dispose()


def verdict_of(result: ProcessedHookResult) -> str:
    """One word for what was decided."""
    if result.should_stop:
        return "stop"
    if result.blocked:
        return "block"
    return "ask" if result.ask else "allow"


def message_of(result: ProcessedHookResult) -> str:
    """All that was said to people and the model, in one text."""
    final = result.final_output
    own = final.own_reason if final else None
    said = (result.stop_reason, result.reason, own, result.system_message)
    return "\n".join(dict.fromkeys(text for text in said if text))


def change_of(result: ProcessedHookResult) -> dict[str, Any] | None:
    """What the hooks changed: the whole tool input, or parts of a model call."""
    final = result.final_output
    if final is None:
        return None
    return final.modified_tool_input or final.llm_request or final.llm_response


def differences(
    case: HookTestCase, result: ProcessedHookResult, cwd: Path
) -> Iterator[str]:
    """Everything about a result that is not as expected, except for a server."""
    verdict, message = verdict_of(result), message_of(result)
    if verdict != case.expect:
        said = f": {message}" if message else ""
        yield f"expected {case.expect}, got {verdict}{said}"
    yield from _failures(case, result)
    if case.message is not None:
        yield from _unlike("message", case.message, message)
    if case.context is not None:
        final = result.final_output
        yield from _unlike(
            "context", case.context, (final and final.additional_context) or ""
        )
    yield from _wrong_change(case, result)
    for name, pattern in case.wrote.items():
        yield from _unlike(name, pattern, _content(cwd / name))
    for name in case.absent:
        if (cwd / name).exists():
            yield f"{name} is there, and should not be"


def unlike_received(case: HookTestCase, requests: list[str]) -> Iterator[str]:
    """What is wrong with the requests that a case's server got."""
    if case.received is not None:
        yield from _unlike("received", case.received, "\n".join(requests))


def _failures(case: HookTestCase, result: ProcessedHookResult) -> Iterator[str]:
    hooks = result.aggregated.hook_results
    for error in () if hooks else result.aggregated.errors:
        yield f"{error.stage}: {error.message}"
    if not hooks and not result.aggregated.errors and case.expect != "allow":
        yield "no hook ran: is there one for this event and tool, and is it trusted?"
    failed = [hook for hook in hooks if hook.failed]
    if case.fails and not failed:
        yield "expected the hook to fail, and it did not"
    for hook in () if case.fails else failed:
        stderr = f"\n{hook.stderr}" if hook.stderr else ""
        yield f"{hook.hook_name} failed: {hook.error}{stderr}"


def _wrong_change(case: HookTestCase, result: ProcessedHookResult) -> Iterator[str]:
    changed, final = change_of(result), result.final_output
    if case.unchanged and changed is not None:
        yield f"expected no change, got {_pretty(changed)}"
    if case.changed is not None:
        whole = final is not None and final.modified_tool_input is not None
        shown = changed if whole else _part_like(case.changed, changed or {})
        if shown != case.changed:
            yield _diff("changed", case.changed, shown)
    if case.output is not None:
        wire = final.to_wire() if final else {}
        shown = _part_like(case.output, wire)
        if shown != case.output:
            yield _diff("output", case.output, shown)


def _part_like(expected: Any, actual: Any) -> Any:
    """The actual value without the keys that were not asked for."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {
            key: _part_like(expected[key], value)
            for key, value in actual.items()
            if key in expected
        }
    return actual


def _unlike(what: str, pattern: str, text: str) -> Iterator[str]:
    """An empty pattern means: nothing."""
    if (pattern == "" and text) or not re.search(pattern, text):
        expected = f"something like {pattern!r}" if pattern else "nothing"
        yield f"{what}: expected {expected}, got {text!r:.2000}"


def _content(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace").rstrip("\n")
    except OSError as error:
        return f"<{error.strerror}>"


def _diff(what: str, expected: Any, actual: Any) -> str:
    lines = unified_diff(
        _pretty(expected).splitlines(),
        _pretty(actual).splitlines(),
        f"{what}: expected",
        f"{what}: got",
        lineterm="",
    )
    return "\n".join(lines)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)


def assert_blocked(result: ProcessedHookResult, match: str | None = None) -> None:
    """The event was blocked or stopped, for a reason like ``match``."""
    __tracebackhide__ = True
    _fail_unless(verdict_of(result) in ("block", "stop"), "blocked", result)
    if match is not None and not re.search(match, message_of(result)):
        raise AssertionError(f"expected a reason like {match!r}, {_story(result)}")


def assert_allowed(result: ProcessedHookResult) -> None:
    """The event may go on, and no hook has failed."""
    __tracebackhide__ = True
    _fail_unless(verdict_of(result) == "allow", "allowed", result)
    # A hook that crashes lets pass as well; that is not what a test wants to hear.
    failed = [hook for hook in result.aggregated.hook_results if hook.failed]
    _fail_unless(not failed, "allowed by hooks that work", result)


def assert_modified(
    result: ProcessedHookResult,
    expected: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    """These keys of the tool input or the model call have these values now."""
    __tracebackhide__ = True
    changed = change_of(result)
    _fail_unless(changed is not None, "modified", result)
    wanted = {**(expected or {}), **more}
    got = {key: (changed or {}).get(key) for key in wanted}
    if got != wanted:
        raise AssertionError(f"expected {wanted!r}, got {got!r}; {_story(result)}")


def _fail_unless(fine: bool, expected: str, result: ProcessedHookResult) -> None:
    __tracebackhide__ = True
    if not fine:
        raise AssertionError(f"expected it to be {expected}, {_story(result)}")


def _story(result: ProcessedHookResult) -> str:
    lines = [f"got {verdict_of(result)}: {message_of(result) or 'nothing was said'}"]
    hooks = result.aggregated.hook_results
    if not hooks:
        lines.append("  no hook ran")
    for hook in hooks:
        ended = hook.error or f"exit code {hook.exit_code}"
        lines.append(f"  {hook.hook_name}: {ended}, said {hook.raw_output!r}")
        if hook.stderr:
            lines.append(f"    stderr: {hook.stderr}")
    return "\n".join(lines)


File = str | PathLike[str]


class HookTester:
    """Fires events in one folder, through the same pipeline as an agent."""

    def __init__(self, cwd: File) -> None:
        self.cwd = Path(cwd)
        """Where the hooks run; put files there that they should find."""

    def fire(
        self,
        event: str,
        *,
        script: File | None = None,
        settings: File | Mapping[str, Any] | None = None,
        tool: str | None = None,
        env: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> ProcessedHookResult:
        """Fire one event and wait for the verdict, in plain and in async tests.

        Further arguments are fields of the event: ``tool_input``, ``prompt``, ...
        """
        firing = self.fire_async(
            event, script=script, settings=settings, tool=tool, env=env, **fields
        )
        # In a thread of its own: a test may have a running loop or none.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, firing).result()

    async def fire_async(
        self,
        event: str,
        *,
        script: File | None = None,
        settings: File | Mapping[str, Any] | None = None,
        tool: str | None = None,
        env: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> ProcessedHookResult:
        """Fire one event in the loop that is running."""
        chosen = _settings(script, settings, env)
        given = event_input(event, tool=tool, **fields)
        async with Firing(chosen, self.cwd, fields.get("session_id")) as firing:
            return await firing.fire(event, given)


def _settings(
    script: File | None,
    settings: File | Mapping[str, Any] | None,
    env: Mapping[str, str] | None,
) -> Settings:
    if (script is None) == (settings is None):
        raise TypeError("name either a script or settings to fire at")
    if script is not None:
        file = Path(script).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"there is no script {str(script)!r}")
        return script_settings([file], env=env)
    if env is not None:
        raise TypeError("env goes with a script; settings have their own")
    if isinstance(settings, Mapping):
        return Settings.from_mapping(settings)
    assert settings is not None
    return Settings.from_file(settings)

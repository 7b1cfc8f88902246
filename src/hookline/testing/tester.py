"""Fire events from a test, and compare results with what is expected."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from difflib import unified_diff
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any, ParamSpec

from msgspec import structs

from hookline.config import Config
from hookline.errors import SettingsError, nearest
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult, make_empty_success_result
from hookline.protocol.values import same_json
from hookline.protocol.verdict import event_verdict
from hookline.settings.load import Settings
from hookline.settings.model import HookConfig, HookSource, HookType
from hookline.settings.parse import parse_layer
from hookline.settings.places import PROJECT_FOLDER, Place
from hookline.settings.read import read_settings

from .cases import FileFields, HookTestCase

EventInput = Mapping[str, Any]


def script_settings(
    scripts: tuple[Path, ...], env: Mapping[str, str], options: FileFields
) -> Settings:
    """Settings with these scripts on every event."""
    common = {"type": options.type, "env": dict(env), "timeout": options.timeout}
    hooks = [{**common, "name": s.stem, "command": _command(s)} for s in scripts]
    group = {"sequential": options.sequential, "hooks": hooks}
    return Settings.from_mapping({"hooks": {str(e): [group] for e in HookEventName}})


def project_of(test: Path) -> Path:
    """The project that a hooktest belongs to: the nearest folder with ``.hookline``."""
    folder = test.resolve().parent
    parents = (f for f in (folder, *folder.parents) if (f / PROJECT_FOLDER).is_dir())
    return next(parents, folder)


def rule_settings(name: str, test: Path) -> Settings:
    """Settings with one rule of a hooktest's project; raises ``SettingsError``."""
    project = str(project_of(test))
    place = Place(HookSource.PROJECT, f"{project}/{PROJECT_FOLDER}", project)
    layers = [
        # Without its project: paths start at the scratch folder of the case.
        parse_layer(read_settings(file), HookSource.PROJECT, file, explicit=True)
        for file in map(place.find, place.stems)
        if file is not None
    ]
    rules = [
        h for layer in layers for *_, h in layer.hooks() if h.type is HookType.RULE
    ]
    if name not in (rule.name for rule in rules):
        near = nearest(name, [rule.name for rule in rules])
        hint = f"did you mean {near!r}?" if near else "see 'hookline list'"
        raise SettingsError(f"no rule {name!r} in {place.folder}: {hint}", test)

    def chosen(_: object, __: object, hook: HookConfig) -> HookConfig | None:
        return hook if hook.type is HookType.RULE and hook.name == name else None

    with_the_rule = (
        structs.replace(layer, groups=layer.map_hooks(chosen)) for layer in layers
    )
    return Settings(layers=tuple(with_the_rule))


def _command(script: Path) -> str:
    """The command that starts a script: Python with the interpreter of Hookline."""
    quoted = shlex.quote(str(script))
    if script.suffix == ".py":
        return f'"$HOOKLINE_PYTHON" {quoted}'
    return quoted if os.access(script, os.X_OK) else f"bash {quoted}"


def event_input(event: str, tool: str | None, fields: EventInput) -> dict[str, Any]:
    """The fields of an event that are not None, with defaults for the required ones."""
    all_fields = {**fields} if tool is None else {"tool_name": tool, **fields}
    event_fields = {
        key: value for key, value in all_fields.items() if value is not None
    }
    return _REQUIRED[HookEventName.of(event)] | event_fields


_TOOL: dict[str, Any] = {"tool_name": "tool", "tool_input": {}}
_TOOL_RESPONSE = {"llmContent": "", "returnDisplay": ""}
_REQUEST: dict[str, Any] = {"llm_request": {"model": "test", "messages": []}}
_RESPONSE: dict[str, Any] = {"llm_response": {"text": "", "candidates": []}}
_SUBAGENT = {"agent_id": "agent-1", "agent_type": "general"}
_REQUIRED: dict[HookEventName, dict[str, Any]] = {
    HookEventName.BeforeTool: _TOOL,
    HookEventName.AfterTool: {**_TOOL, "tool_response": _TOOL_RESPONSE},
    HookEventName.BeforeAgent: {"prompt": ""},
    HookEventName.AfterAgent: {"prompt": "", "prompt_response": ""},
    HookEventName.BeforeModel: _REQUEST,
    HookEventName.AfterModel: _REQUEST | _RESPONSE,
    HookEventName.BeforeToolSelection: _REQUEST,
    HookEventName.SessionStart: {"source": "startup"},
    HookEventName.SessionEnd: {"reason": "exit"},
    HookEventName.Notification: {"message": ""},
    HookEventName.PreCompress: {"trigger": "auto"},
    HookEventName.SubagentStart: _SUBAGENT,
    HookEventName.SubagentStop: _SUBAGENT,
}


Fire = Callable[[str, EventInput], Awaitable[ProcessedHookResult]]


@asynccontextmanager
async def firing(
    settings: Settings, cwd: Path, session_id: str | None = None
) -> AsyncIterator[Fire]:
    """Start a hook system in a folder and give what fires its events."""
    config = Config(session_id or "hooktest", cwd, settings)
    if not settings.projects:
        config.settings = settings  # those hooks alone, on any machine
    config.one_shot = True
    system = config.get_hook_system()
    if system is None:  # the settings disable hooks
        yield _fire_nothing
        return
    async with system:
        yield system.event_handler.fire


async def _fire_nothing(_: str, __: EventInput) -> ProcessedHookResult:
    return ProcessedHookResult(aggregated=make_empty_success_result())


def decision_of(result: ProcessedHookResult) -> str:
    """The decision in the words of ``expect``."""
    return event_verdict(None, result).expected


def message_of(result: ProcessedHookResult) -> str:
    """All reasons and messages, in one text."""
    final = result.final_output
    reason = final.own_reason if final else None
    texts = (result.stop_reason, result.reason, reason, result.system_message)
    return "\n".join(dict.fromkeys(text for text in texts if text))


def context_of(result: ProcessedHookResult) -> str:
    """The additional context."""
    final = result.final_output
    return (final and final.additional_context) or ""


def change_of(result: ProcessedHookResult) -> dict[str, Any] | None:
    """What the hooks changed: the whole tool input, or parts of a model call."""
    final = result.final_output
    if final is None:
        return None
    changes = (final.modified_tool_input, final.llm_request, final.llm_response)
    return next((change for change in changes if change is not None), None)


def differences(
    case: HookTestCase, result: ProcessedHookResult, cwd: Path, requests: list[str]
) -> Iterator[str]:
    """Everything that is not as expected; ``requests`` came in at the case's server."""
    decision, message = decision_of(result), message_of(result)
    failures = list(_failures(case, result))
    yield from failures
    if decision != case.expect:
        # What a failed hook printed is shown with the failure.
        why = f": {message}" if message and not failures else ""
        yield f"expected {case.expect}, got {decision}{why}"
    if failures:
        return  # the rest follows from that
    yield from _unlike("message", case.message, message)
    yield from _unlike("context", case.context, context_of(result))
    yield from _wrong_change(case, result)
    for name, pattern in case.wrote.items():
        yield from _unlike(name, pattern, _content(cwd / name))
    for name in case.absent:
        if (cwd / name).exists():
            yield f"{name} exists, but should not"
    yield from _unlike("received", case.received, "\n".join(requests))


def _failures(case: HookTestCase, result: ProcessedHookResult) -> Iterator[str]:
    hooks = result.aggregated.hook_results
    for error in () if hooks else result.aggregated.errors:
        yield f"{error.stage}: {error.message}"
    if not hooks and not result.aggregated.errors and case.expect != "allow":
        yield "no hook ran: check that one matches this event and tool and is trusted"
    failed = [hook for hook in hooks if hook.failed]
    if case.fails and not failed:
        yield "expected the hook to fail, but it did not"
    for hook in () if case.fails else failed:
        stderr = f"\n{hook.stderr}" if hook.stderr else ""
        yield f"{hook.hook_name} failed: {hook.error}{stderr}"


def _wrong_change(case: HookTestCase, result: ProcessedHookResult) -> Iterator[str]:
    changed, final = change_of(result), result.final_output
    if case.unchanged and changed is not None:
        yield f"expected no change, got {_pretty(changed)}"
    if case.changed is not None:
        whole = final is not None and final.modified_tool_input is not None
        actual = changed if whole else part_like(case.changed, changed or {})
        yield from _diff("changed", case.changed, actual)
    if case.output is not None:
        actual = part_like(case.output, final.to_wire() if final else {})
        yield from _diff("output", case.output, actual)


def part_like(expected: Any, actual: Any) -> Any:
    """The actual value without keys that are not expected."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {
            key: part_like(expected[key], value)
            for key, value in actual.items()
            if key in expected
        }
    return actual


def is_like(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern; an empty pattern means no text."""
    return re.search(pattern or r"\A\Z", text) is not None


def _unlike(name: str, pattern: str | None, text: str) -> Iterator[str]:
    if pattern is not None and not is_like(pattern, text):
        expected = f"something like {pattern!r}" if pattern else "nothing"
        yield f"{name}: expected {expected}, got {text!r:.2000}"


def _content(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace").rstrip("\n")
    except OSError as error:
        return f"<{error.strerror}>"


def _diff(name: str, expected: Any, actual: Any) -> Iterator[str]:
    if not same_json(actual, expected):
        old, new = _pretty(expected).splitlines(), _pretty(actual).splitlines()
        names = f"{name}: expected", f"{name}: got"
        yield "\n".join(unified_diff(old, new, *names, lineterm=""))


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)


def assert_blocked(result: ProcessedHookResult, match: str | None = None) -> None:
    """Assert that the event was blocked or stopped, for a reason like ``match``."""
    __tracebackhide__ = True
    _fail_unless(decision_of(result) in ("block", "stop"), "blocked", result)
    if match is not None and not re.search(match, message_of(result)):
        raise AssertionError(f"expected a reason like {match!r}, {_report(result)}")


def assert_allowed(result: ProcessedHookResult) -> None:
    """Assert that the event was allowed, and that no hook failed."""
    __tracebackhide__ = True
    _fail_unless(decision_of(result) == "allow", "allowed", result)
    # An agent goes on when a hook crashes; a test must not pass then.
    failed = [hook for hook in result.aggregated.hook_results if hook.failed]
    _fail_unless(not failed, "allowed by hooks that work", result)


def assert_modified(
    result: ProcessedHookResult, expected: Mapping[str, Any] | None = None, **more: Any
) -> None:
    """Assert that keys of the tool input or model call have the ``expected`` values."""
    __tracebackhide__ = True
    changed = change_of(result)
    _fail_unless(changed is not None, "modified", result)
    expected_fields = {**(expected or {}), **more}
    actual_fields = {key: (changed or {}).get(key) for key in expected_fields}
    if actual_fields != expected_fields:
        raise AssertionError(
            f"expected {expected_fields!r}, got {actual_fields!r}; {_report(result)}"
        )


def _fail_unless(fine: bool, expected: str, result: ProcessedHookResult) -> None:
    __tracebackhide__ = True
    if not fine:
        raise AssertionError(f"expected it to be {expected}, {_report(result)}")


def _report(result: ProcessedHookResult) -> str:
    lines = [f"got {decision_of(result)}: {message_of(result) or 'no reason'}"]
    hooks = result.aggregated.hook_results
    if not hooks:
        lines.append("  no hook ran")
    for hook in hooks:
        exit_status = hook.error or f"exit code {hook.exit_code}"
        lines.append(f"  {hook.hook_name}: {exit_status}, output {hook.raw_output!r}")
        lines += [f"    stderr: {hook.stderr}"] if hook.stderr else []
    return "\n".join(lines)


File = str | PathLike[str]
_Arguments = ParamSpec("_Arguments")


def _waiting(
    fire: Callable[_Arguments, Coroutine[Any, Any, ProcessedHookResult]],
) -> Callable[_Arguments, ProcessedHookResult]:
    @wraps(fire)
    def wait(
        *args: _Arguments.args, **options: _Arguments.kwargs
    ) -> ProcessedHookResult:
        # In another thread, since the test may have a running loop.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, fire(*args, **options)).result()

    return wait


class HookTester:
    """Fires events in one folder, as an agent does."""

    def __init__(self, cwd: File) -> None:
        self.cwd = Path(cwd)
        """Where the hooks run; put files for them there."""

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
        """Fire one event in the running loop; ``fire`` waits for it in any test.

        The hook is a ``script``, with ``env`` as further environment, or those of
        ``settings``. ``tool`` is the tool's name. Further arguments are fields of the
        event: ``tool_input``, ``prompt``, ...
        """
        chosen = _settings(script, settings, env)
        async with firing(chosen, self.cwd, fields.get("session_id")) as fire:
            return await fire(event, event_input(event, tool, fields))

    fire = _waiting(fire_async)
    """As ``fire_async``, which it waits for: for plain and async tests."""


def _settings(
    script: File | None,
    settings: File | Mapping[str, Any] | None,
    env: Mapping[str, str] | None,
) -> Settings:
    if script is not None and settings is None:
        file = Path(script).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"no script {str(script)!r}")
        return script_settings((file,), env or {}, FileFields())
    if script is not None or settings is None:
        raise TypeError("pass either a script or settings")
    if env is not None:
        raise TypeError("env goes with a script; settings have their own env")
    if isinstance(settings, Mapping):
        return Settings.from_mapping(settings)
    return Settings.from_file(settings)

"""Throw settings and hook outputs at the readers that nobody in their right mind wrote.

Each property holds for any input at all: reading never raises, a wrong field is never a
block, a block is never lost, and what policy closed stays closed.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hookline import Settings, SettingsError
from hookline.engine.merge import aggregate
from hookline.engine.planner import make_plan
from hookline.engine.registry import HookRegistry
from hookline.engine.run_hook import apply_policy
from hookline.execute.answer import read_end
from hookline.execute.child import as_text
from hookline.plan import RegisteredHook, RunEnd
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.results import process_common_hook_output_fields
from hookline.settings.load import HookOptions
from hookline.settings.model import (
    FailurePolicy,
    HookConfig,
    HookSource,
    HookType,
    OnFailure,
)
from hookline.settings.read import parse_text

_WORDS = (
    *("allow", "deny", "block", "ask", "approve", "command", "python", "worker"),
    *("plugin", "observe", "clean", "inherit", "json", "a.b:c", "true", "*", "(", ""),
    *("BeforeTool", "AfterModel", "NONE", "ANY", "AUTO", "write_file", "\ud800", "é"),
)
_KEYS = (
    *("decision", "reason", "continue", "stopReason", "suppressOutput", "hooks"),
    *("systemMessage", "hookSpecificOutput", "permissionDecision", "tool_input"),
    *("permissionDecisionReason", "additionalContext", "llm_request", "toolConfig"),
    *("llm_response", "mode", "allowedFunctionNames", "clearContext", "messages"),
    *("candidates", "config", "text", "withholdResult", "type", "command", "matcher"),
    *("onError", "timeout", "env", "name", "hooksConfig", "enableHooks", "disabled"),
    *("breaker", "maxDepth", "maxProcesses", "managed", "trustFiles", "spawn"),
)
_CODES = (0, 0, 0, 0, 1, 2, 126, 127, -9)
_EVENTS = (*HookEventName, "PreToolUse", "")
_MAX_DEPTH = 4

_SLICE = 150
_SLICES = 25
BYTES = st.binary(min_size=_SLICE * _SLICES, max_size=_SLICE * _SLICES)
"""Hypothesis spends a millisecond on a draw, so that each makes 25 examples."""


class Maker:
    """Makes values of bytes: drawing bytes is what Hypothesis does fastest."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``; 0 when the bytes are used up."""
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % limit

    def raw(self, most: int) -> bytes:
        """Some of the bytes as they are."""
        start, self._at = self._at, self._at + self.below(most)
        return self._data[start : self._at]

    def leaf(self) -> Any:
        """A value that holds no others."""
        kind = self.below(8)
        if kind < 3:
            return _WORDS[self.below(len(_WORDS))]
        if kind == 3:
            return int.from_bytes(self.raw(12), "big", signed=True)
        if kind == 4:
            return self.below(256) / 7 if self.below(4) else float("inf")
        if kind == 5:
            return self.raw(8).decode("utf-8", "replace")
        return (None, True, False)[self.below(3)]

    def key(self) -> str:
        """A key that means something, mostly."""
        if self.below(8):
            return _KEYS[self.below(len(_KEYS))]
        return self.raw(5).decode("latin-1")

    def value(self, depth: int = 0) -> Any:
        """Any JSON value."""
        kind = self.below(4) if depth < _MAX_DEPTH else 3
        if kind == 0:
            return [self.value(depth + 1) for _ in range(self.below(4))]
        if kind == 1:
            return self.mapping(depth + 1)
        return self.leaf()

    def mapping(self, depth: int = 0) -> dict[str, Any]:
        """An object."""
        return {self.key(): self.value(depth) for _ in range(self.below(5))}

    def hook(self) -> dict[str, Any]:
        """What is a hook, mostly."""
        return {"type": "command", "command": "true", **self.mapping(1)}

    def group(self) -> Any:
        """What is a group of hooks, mostly."""
        if not self.below(5):
            return self.value()
        return {"hooks": [self.hook() for _ in range(self.below(3))], **self.mapping(2)}

    def settings(self) -> dict[str, Any]:
        """What are settings, mostly."""
        events = {
            _EVENTS[self.below(len(_EVENTS))]: [
                self.group() for _ in range(self.below(3))
            ]
            for _ in range(self.below(3))
        }
        return {"hooks": events, "hooksConfig": self.mapping(), **self.mapping(2)}

    def run(self) -> tuple[bytes, int]:
        """What a hook printed, and its exit status."""
        code = _CODES[self.below(len(_CODES))]
        if not self.below(4):
            return self.raw(30), code
        return json.dumps(self.mapping()).encode("utf-8", "replace"), code


def makers(data: bytes) -> Iterator[Maker]:
    """One maker for each slice."""
    for start in range(0, len(data), _SLICE):
        yield Maker(data[start : start + _SLICE])


def check_settings(found: Any) -> None:
    """Whatever settings hold, they can be read, and their hooks planned."""
    if isinstance(found, dict):
        registry = HookRegistry(Settings.from_mapping(found))
        for event in HookEventName:
            make_plan(event, registry.for_event(event), {"tool_name": "write_file"})
    text = json.dumps(found)
    for name in ("a.json", "a.toml"):
        with suppress(SettingsError):
            parse_text(text, name)


def check_outputs(event: HookEventName, runs: list[tuple[bytes, int]]) -> None:
    """Whatever hooks print, a block is neither invented nor lost."""
    results = [apply_policy(_read(event, *run), _hook(event)) for run in runs]
    for result in results:
        asked = result.exit_code == 2 or result.closed or _says_block(result.raw_output)
        if result.output is not None and result.output.is_blocking:
            assert asked, result
    event_input: dict[str, Any] = {"tool_input": {"a": 1}}
    processed = process_common_hook_output_fields(
        aggregate(results, event, event_input, 1.0), event
    )
    blocking = any(r.output is not None and r.output.is_blocking for r in results)
    assert processed.blocked == (blocking and TRAITS[event].can_block)
    _check_closed(event, processed.final_output, [r.closed for r in results])


def _check_closed(event: HookEventName, final: Any, closed: list[bool]) -> None:
    if not any(closed):
        return
    specific = final.hook_specific_output
    if event is HookEventName.AfterTool:
        assert specific["withholdResult"] is True
    if event is HookEventName.AfterModel:
        text = specific["llm_response"]["text"]
        assert text.startswith("hook 'h' failed, and onError blocks on ")
    if event is HookEventName.BeforeToolSelection:
        assert specific["toolConfig"]["mode"] == "NONE"


def _says_block(said: dict[str, Any] | None) -> bool:
    text = json.dumps(said)
    return '"deny"' in text or '"block"' in text


def _read(event: HookEventName, stdout: bytes, code: int) -> Any:
    end = RunEnd(exit_code=code, stdout=as_text(stdout), stderr="oops")
    return read_end(_hook(event), end)


def _hook(event: HookEventName) -> RegisteredHook:
    return _HOOKS[event]


_BLOCK = OnFailure.BLOCK
_HOOKS = {
    event: RegisteredHook(
        config=HookConfig(type=HookType.COMMAND, command="true", name="h"),
        event=event,
        source=HookSource.USER,
        options=HookOptions(
            on_error=FailurePolicy(_BLOCK, _BLOCK, _BLOCK, _BLOCK, _BLOCK)
        ),
    )
    for event in HookEventName
}


def fuzz(examples: int, number: int) -> dict[str, Any]:
    """Hold both properties against so many examples; raises where one fails."""
    logging.getLogger("hookline").setLevel(logging.CRITICAL)
    started = time.monotonic()
    counts = {
        "settings": _hold(_try_settings, examples // 2, number),
        "outputs": _hold(_try_outputs, examples // 2, number),
    }
    return {**counts, "seconds": round(time.monotonic() - started, 1)}


def _hold(check: Callable[[Maker], None], examples: int, number: int) -> int:
    """Check so many examples, and say how many it really were."""
    checked = 0

    @seed(number)
    @settings(
        max_examples=max(1, examples // _SLICES),
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(BYTES)
    def holds(data: bytes) -> None:
        nonlocal checked
        for maker in makers(data):
            checked += 1
            check(maker)

    holds()
    return checked


def _try_settings(maker: Maker) -> None:
    check_settings(maker.settings())


def _try_outputs(maker: Maker) -> None:
    event = _EVENTS[maker.below(len(HookEventName))]
    runs = [maker.run() for _ in range(1 + maker.below(3))]
    check_outputs(HookEventName(event), runs)

"""Answer one event of a coding agent: read it, fire it on the hooks, write the verdict.

``Bridge`` keeps what it loaded from one event to the next; ``hookline bridge`` uses it
once, and the resident helper for many events. It reads the environment and the
directory of its process, which are those of the host's hook. It never raises: what
goes wrong is a line on stderr and in the journal, and a block where a failure policy
asks for that.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Iterator
from typing import Any

from msgspec import Struct, structs

from hookline.agent.firing import SessionEvents
from hookline.agent.turn import MAX_REJECTIONS
from hookline.config import Config
from hookline.engine.handler import HookEventHandler, Recorder
from hookline.engine.on_error import BrokenSystem
from hookline.errors import EncodingError, HooklineError
from hookline.log import logger
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import EventFirer
from hookline.protocol.jsontext import TooDeepError, decode, describe, encode
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.load import Settings, SettingsOrigin
from hookline.settings.model import OnFailure
from hookline.settings.watch import SettingsWatch

from .catalog import host_of, real_host
from .host import (
    Answer,
    BadInputError,
    Effect,
    Host,
    HostEvent,
    HostName,
    Verdict,
    Wire,
    lost,
    verdict_of,
)
from .host_files import is_installed
from .rejections import count_rejection, forget_rejections

_ENDINGS = (HookEventName.AfterAgent, HookEventName.SubagentStop)
_KEPT_CONFIGS = 16
_LONGEST_INPUT = 4096
MOST_FILES = 1000
"""How many files of one call are fired; a call that touches more is blocked."""
_TOO_MANY = f"the call touches {{}} files: hooks check at most {MOST_FILES} in one call"
BACKGROUND_S = 2.0
"""How long a process that ends waits for hooks that nobody waits for."""


class Reply(Struct, frozen=True):
    """What the host's hook prints, and how it exits."""

    stdout: bytes = b""
    stderr: bytes = b""
    status: int = 0


class Bridge:
    """Answers the events of hosts."""

    def __init__(self, *, one_shot: bool) -> None:
        self._one_shot = one_shot
        # What the host's person should know is in the reply, or told by ``close``.
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
        self._loaded: dict[tuple[str, str], _Loaded] = {}
        self._aside: set[asyncio.Task[None]] = set()

    async def answer(self, name: str, event: str | None, stdin: bytes) -> Reply:
        """Answer one event, given the name of the host and what it wrote."""
        host, found = host_of(name), event
        try:
            given = _parsed(stdin)
            host = real_host(host, given, os.environ)
            found = host.event_name(given, event)
            read = host.read(given, found)
            if host.name != name and _is_asked_directly(host, read):
                read = structs.replace(read, event=None)
            return await self._answer(host, read)
        # The edge of the bridge: a host must get an answer, whatever fails in here.
        except Exception as error:  # noqa: BLE001
            return await self._unreadable(host, found, error)

    async def _answer(self, host: Host, read: HostEvent) -> Reply:
        if read.event is None:
            return Reply(host.write(read, Verdict()).stdout)
        loaded = self._load(_start(host, read.cwd), _existing(read.cwd))
        with loaded:
            now = await loaded.now()
            return await _fire(host, read, read.event, now)

    async def close(self) -> bytes:
        """Release everything; gives lines for stderr about what was not recorded.

        Hooks that nobody waits for have a moment to finish.
        """
        closed = list(self._loaded.values())
        self._loaded.clear()
        for loaded in closed:
            await loaded.close()
        await asyncio.gather(*self._aside)
        return b"".join(_line(one.unrecorded) for one in closed if one.unrecorded)

    def _load(self, start: str, cwd: str) -> _Loaded:
        """The config for a folder, which follows changes of its settings."""
        known = self._loaded.pop((start, cwd), None)
        loaded = known or _Loaded(start, cwd, one_shot=self._one_shot)
        self._loaded[start, cwd] = loaded
        if len(self._loaded) > _KEPT_CONFIGS:
            self._retire(self._loaded.pop(next(iter(self._loaded))))
        return loaded

    def look_again(self) -> None:
        """Reload the settings of all configs now, in the background."""
        for loaded in self._loaded.values():
            self._do_aside(loaded.reload())

    def _do_aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    def _retire(self, loaded: _Loaded) -> None:
        self._do_aside(loaded.close())

    async def _unreadable(
        self, host: Host, event: str | None, error: Exception
    ) -> Reply:
        """Block what could not be read if any failure policy asks for that."""
        folder = _start(host, "")
        loaded = self._load(folder, folder)
        named = "an event" if event is None else describe(event)
        told = f"{host.title}: {named} could not be read: {error}"
        with loaded:
            now = await loaded.now()
            unread = _Unread(host, event, error, told)
            answer = now.handler and unread.answer(now.handler, now.settings)
        answer = answer or host.write(_nothing(event), Verdict())
        stderr = answer.stderr.encode(errors="backslashreplace")
        return Reply(answer.stdout, stderr or _line(told), answer.status)


class _Unread(Struct, frozen=True):
    """An event that could not be read."""

    host: Host
    event: str | None
    error: Exception
    told: str

    def answer(self, handler: HookEventHandler, settings: Settings) -> Answer | None:
        """A block, if a policy asks for one or no guard could see the event."""
        known = self.host.events.get(self.event or "")
        unseen = isinstance(self.error, EncodingError) and _is_guarded(handler, known)
        if known is None:
            closed = unseen or BrokenSystem(self.error, settings).closed
            told = f"{self.told}; it is blocked" if closed else self.told
            handler.note("", told, {"host": self.host.name.value})
            return self.host.refuse(self.told) if closed else None
        failure = EncodingError if unseen else HooklineError
        about = {"host": {"name": self.host.name.value, "event": self.event}}
        result = handler.judge_unreadable(known, about, failure(self.told))
        verdict = verdict_of([result])
        read = HostEvent(name=self.event or "", event=known)
        return self.host.write(read, verdict) if verdict.effects() else None


def _is_guarded(handler: HookEventHandler, event: HookEventName | None) -> bool:
    """Whether a hook would be asked: about the event, or about any that can block."""
    found = [one for one in TRAITS if TRAITS[one].can_block and event in (None, one)]
    return any(map(handler.has_hooks_for, found))


class _Loaded:
    """A config, and how many events use it now."""

    def __init__(self, start: str, cwd: str, *, one_shot: bool) -> None:
        origin = SettingsOrigin.around(start)
        watch = None if one_shot else SettingsWatch.start(origin)
        settings = origin.load() if watch is None else watch.settings
        self._config = Config(working_dir=cwd, settings=settings)
        self._config.one_shot = one_shot
        self._config.reload, self._config.watch = not one_shot, watch
        self._users = 0
        self._recorder: Recorder | None = None
        self._unused = asyncio.Event()
        self._unused.set()

    def __enter__(self) -> None:
        self._users += 1
        self._unused.clear()

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if not self._users:
            self._unused.set()

    async def now(self) -> _Now:
        """The config as it is, for all that one event of a host fires."""
        config = self._config
        try:
            system = config.get_hook_system()
            if system is None:
                return _Now(config, config.loaded, config.settings)
            await system.initialize()
        except HooklineError as error:
            return _Now(config, config.loaded, config.settings, error=error)
        handler = system.event_handler
        if handler.refresh is not None:
            await handler.refresh()
        last, pipeline = system.last_reload, handler.pipeline
        self._recorder = pipeline.recorder
        return _Now(
            config,
            config.loaded,
            pipeline.settings,
            HookEventHandler(pipeline),
            refused=() if last is None else last.problems,
            recorder=pipeline.recorder,
        )

    @property
    def unrecorded(self) -> str:
        """Why events are not recorded; empty where they are, or nobody wants that."""
        return "" if self._recorder is None else self._recorder.problem

    async def reload(self) -> None:
        """Load the settings again."""
        system = self._config.get_hook_system()
        if system is not None:
            await system.reload()

    async def close(self) -> None:
        """Dispose of the config once no event uses it."""
        await self._unused.wait()
        system = self._config.get_hook_system()
        if system is not None:
            await system.dispose(background_s=BACKGROUND_S)


class _Now(Struct, frozen=True):
    """What answers one event of a host: a reload meanwhile does not reach it."""

    config: Config
    loaded: Settings
    settings: Settings
    handler: HookEventHandler | None = None
    """None where hooks are switched off, or cannot be had."""
    error: HooklineError | None = None
    """Why they cannot be had."""
    refused: tuple[str, ...] = ()
    """Why changed settings are not used."""
    recorder: Recorder | None = None

    def problems(self) -> Iterator[str]:
        """What the host's person should know about the settings."""
        for problem in self.refused:
            yield f"changed settings are not used: {problem}"
        if self.recorder is not None and self.recorder.problem:
            yield self.recorder.problem
        yield from map(str, self.loaded.errors)
        yield from self.loaded.warnings
        # Which files of hooks have changed is known at each event, and said there.
        for layer in self.settings.layers:
            yield from layer.warnings if layer.is_unapproved else ()


class _HostEvents(SessionEvents):
    """The events that one event of a host fires: all on the same hooks."""

    def __init__(self, now: _Now, session_id: str, transcript_path: str) -> None:
        super().__init__(now.config, session_id, transcript_path)
        self._now = now

    async def _firer(self) -> EventFirer | None:
        if self._now.error is not None:
            raise self._now.error  # the policies of the hooks decide what that means
        return self._now.handler


async def _fire(host: Host, read: HostEvent, event: HookEventName, now: _Now) -> Reply:
    session_id = read.session_id or now.config.session_id
    session = _HostEvents(now, session_id, read.transcript_path)
    inputs = read.inputs(host.name)
    shown = inputs[:MOST_FILES]
    results = await asyncio.gather(*(session.fire(event, one) for one in shown))
    verdict = _with_change(read, verdict_of(results), inputs, results)
    if len(inputs) > len(shown) and event is HookEventName.BeforeTool:
        # Hosts run the tool if the bridge takes too long: no call may outlast it.
        verdict = _blocking(verdict, _TOO_MANY.format(len(inputs)))
    if event in _ENDINGS:
        verdict = _bounded(f"{host.name} {session.session_id}", read, verdict)
    on_ask = now.settings.global_options.on_ask
    answer = host.write(read, _expressible(host, event, verdict, on_ask))
    losses = lost(host, event, verdict, answer)
    if losses and now.handler is not None:
        about = {"host": host.name.value, "event": read.name}
        for loss in losses:
            now.handler.note(session.session_id, loss, about)
    return _reply(answer, [*now.problems(), *_errors(results), *losses])


def _bounded(conversation: str, read: HostEvent, verdict: Verdict) -> Verdict:
    """End a turn whose answers were rejected too often (PROTOCOL 1)."""
    conversation = f"{conversation} {read.fields.get('agent_id', '')}"
    if not verdict.blocked or verdict.stopped:
        forget_rejections(conversation)
        return verdict
    again = read.fields.get("stop_hook_active") is True
    if count_rejection(conversation, again=again) <= MAX_REJECTIONS:
        return verdict
    forget_rejections(conversation)
    reason = f"{MAX_REJECTIONS} answers in a row were rejected: {verdict.reason}"
    return structs.replace(verdict, blocked=False, stopped=True, stop_reason=reason)


def _with_change(
    read: HostEvent,
    verdict: Verdict,
    inputs: list[Wire],
    results: list[ProcessedHookResult],
) -> Verdict:
    if read.call is None or read.event is not HookEventName.BeforeTool:
        return verdict
    changes = map(_changed_input, inputs, results)
    try:
        return structs.replace(verdict, tool_input=read.call.changed(changes))
    except ValueError as error:
        return _blocking(
            verdict, f"hooks changed the input of {read.call.name}: {error}"
        )


def _changed_input(shown: Wire, result: ProcessedHookResult) -> Wire | None:
    final = result.final_output
    changed = final.modified_tool_input if final else None
    if changed is None or encode(changed) == encode(shown["tool_input"]):
        return None
    return changed


def _expressible(
    host: Host, event: HookEventName, verdict: Verdict, on_ask: OnFailure
) -> Verdict:
    """The stricter form of what a host cannot express before a tool (HOSTS rule 11)."""
    if verdict.ask and not host.asks:
        if on_ask is OnFailure.BLOCK:
            verdict = _blocking(verdict, verdict.reason or verdict.message or _ASKED)
        verdict = structs.replace(verdict, ask=False)
    if verdict.tool_input is None or event is not HookEventName.BeforeTool:
        return verdict
    if Effect.CHANGE not in host.limits.get(event, {}) or verdict.blocked:
        return verdict
    changed = encode(verdict.tool_input).decode()[:_LONGEST_INPUT]
    reason = f"hooks allow this call only with another input: {changed}"
    return structs.replace(_blocking(verdict, reason), tool_input=None)


_ASKED = "a hook asks for a person's decision"


def _blocking(verdict: Verdict, reason: str) -> Verdict:
    reasons = [verdict.reason] if verdict.blocked else []
    reason = "\n".join(filter(None, [*reasons, reason]))
    return structs.replace(verdict, blocked=True, reason=reason, tool_input=None)


def _errors(results: list[ProcessedHookResult]) -> Iterator[str]:
    for result in results:
        yield from (error.message for error in result.aggregated.errors)


def _reply(answer: Answer, lines: list[str]) -> Reply:
    if answer.status:
        # The host hands stderr to the model: nothing but the reason belongs there.
        return Reply(answer.stdout, answer.stderr.encode(), answer.status)
    return Reply(answer.stdout, b"".join(map(_line, dict.fromkeys(lines))))


def _line(text: str) -> bytes:
    return f"hookline: {text}\n".encode(errors="backslashreplace")


def _is_asked_directly(host: Host, read: HostEvent) -> bool:
    """Whether Cursor or VS Code, calling through another's file, calls us by itself."""
    if host.name not in {HostName.CURSOR, HostName.VSCODE}:
        return False
    return is_installed(host.name, _start(host, read.cwd), [read.name])


def _nothing(event: str | None) -> HostEvent:
    return HostEvent(name=event or "", event=None)


def _parsed(stdin: bytes) -> Wire:
    try:
        given = decode(stdin.decode("utf-8-sig", "replace"), nan_as_null=True)
    except TooDeepError as error:
        # No guard can see it, and the host could: that is not for a policy to decide.
        raise EncodingError(f"standard input is {error}") from error
    except ValueError as error:
        raise BadInputError(f"standard input is not valid JSON: {error}") from error
    if not isinstance(given, dict):
        raise BadInputError(f"expected a JSON object, got {given!r:.60}")
    return given


def _start(host: Host, cwd: str) -> str:
    """Where the search for projects starts (HOSTS rule 8)."""
    given = (os.environ.get(name, "") for name in host.project_variables)
    return next((one for one in given if _is_folder(one)), None) or _existing(cwd)


def _existing(cwd: str) -> str:
    # In a folder that is gone no hook could start.
    if _is_folder(cwd):
        return cwd
    try:
        return os.getcwd()  # noqa: PTH109 - a string
    except OSError:
        return "/"


def _is_folder(path: str) -> bool:
    return os.path.isabs(path) and os.path.isdir(path)  # noqa: PTH112, PTH117

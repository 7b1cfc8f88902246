"""Answer one event of a coding agent: read it, fire it on the hooks, write the verdict.

``Bridge`` keeps what it loaded from one event to the next; ``hookline bridge`` uses it
once, and the resident helper for many events. It reads the environment and the
directory of its process, which are those of the host's hook. It never raises: what
goes wrong is a line on stderr and in the journal, and a block where a failure policy
asks for that. Without a verdict in time, or after an error of its own, no tool runs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Iterator
from copy import copy
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, structs

from hookline._internal.log import Guard
from hookline.agent.triggers import SessionEvents
from hookline.agent.turn import MAX_REJECTIONS
from hookline.config import Config
from hookline.engine.handler import HookEventHandler
from hookline.engine.observers import Recorder
from hookline.engine.run_hook import closed_events
from hookline.errors import EncodingError, HooklineError
from hookline.plan import HookCall, HookPlan, RegisteredHook
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import EventFirer
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.protocol.values import (
    TooDeepError,
    decode,
    describe,
    encode,
    printable,
)
from hookline.settings.load import Settings, load_settings
from hookline.settings.model import OnFailure
from hookline.settings.places import SettingsPlaces, folders_above
from hookline.settings.watch import SettingsWatch

from .conversation import Conversation
from .failsafe import MAX_EVENT_BYTES, failsafe, failure_status
from .host import BadInputError, Host, HostEvent, lost
from .host_files import deadline_ms, needed_ms
from .host_verdict import Answer, Effect, HostVerdict, Wire, host_verdict
from .install.calls import is_installed
from .registry import host_of, real_host
from .self_protection import refusal

_T = TypeVar("_T")
_SPARE_S = 2.0
"""For the answer itself, before ``failsafe`` ends the process."""
_ENDINGS = (HookEventName.AfterAgent, HookEventName.SubagentStop)
_KEPT_CONFIGS = 16
_LONGEST_INPUT = 4096
_LONGEST_PATH = 4096
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
        self._loaded: dict[_Folders, _Loaded] = {}
        self._aside: set[asyncio.Task[Any]] = set()

    async def answer(
        self,
        name: str,
        event: str | None,
        stdin: bytes,
        within_ms: int | None = None,
    ) -> Reply:
        """Answer one event, given the name of the host and what it wrote.

        ``within_ms``: as long as the host waits, where it does not wait for as long as
        the hooks may take.
        """
        host, found = host_of(name), event
        try:
            try:
                given = _parsed(stdin)
                host = real_host(host, given, os.environ)
                found = host.event_name(given, event)
                read = host.read(given, found)
                if host.name != name and _is_asked_directly(host, read):
                    read = structs.replace(read, event=None)
                return await self._answer(host, read, within_ms)
            except HooklineError as error:
                return await self._unreadable(host, found, error)
        # The edge of the bridge: a host must get an answer, whatever fails in here.
        except Exception as error:  # noqa: BLE001
            problem = f"{host.title}: internal error: {error!r}"
            return Reply(stderr=_line(problem), status=failure_status(found, stdin))

    async def _answer(
        self, host: Host, read: HostEvent, within_ms: int | None
    ) -> Reply:
        if read.event is None:
            return Reply(host.write(read, HostVerdict()).stdout)
        started = time.monotonic()
        folders = _folders(host, read)
        failsafe.doing = f"loading the settings for {folders.start}"
        try:
            loaded = self._load(folders)
        except HooklineError as error:
            return _without_settings(host, read, error)
        with loaded:
            now = await loaded.now()
            hooks = now.hooks_for(read.event)
            within_ms = within_ms or deadline_ms(host.files, needed_ms(hooks))
            failsafe.allow(within_ms / 1000)
            failsafe.doing = f"running the hooks of {read.event.value}"
            spare_s = min(_SPARE_S, within_ms / 4000)
            left_s = within_ms / 1000 - spare_s - (time.monotonic() - started)
            firing = self._do_aside(_fire(host, read, read.event, now))
            try:
                await asyncio.wait({firing}, timeout=max(left_s, 0))
            finally:
                # Hooks may take seconds to end: nobody waits for that here.
                is_late = firing.cancel()
            if not is_late:
                now.record()
                return firing.result()
            names = ", ".join(dict.fromkeys(hook.name for hook in hooks[:3]))
            problem = f"{host.title}: no verdict on {read.name} in {within_ms} ms: the "
            problem += f"hooks take too long ({names})"
            if len(read.inputs(host.name)) > 1:
                problem += f" for {len(read.inputs(host.name))} files"
            is_tool = read.event is HookEventName.BeforeTool
            failure = EncodingError if is_tool else HooklineError
            return _Unread(host, read.name, failure(problem), problem).reply(now)

    async def close(self) -> bytes:
        """Release everything; gives lines for stderr about what was not recorded.

        Hooks that nobody waits for have a moment to finish.
        """
        closed = list(self._loaded.values())
        self._loaded.clear()
        for loaded in closed:
            await loaded.close()
        await asyncio.gather(*self._aside, return_exceptions=True)
        return b"".join(_line(one.unrecorded) for one in closed if one.unrecorded)

    def _load(self, folders: _Folders) -> _Loaded:
        """The config for a folder, which follows changes of its settings."""
        known = self._loaded.pop(folders, None)
        loaded = known or _Loaded(folders, one_shot=self._one_shot)
        self._loaded[folders] = loaded
        if len(self._loaded) > _KEPT_CONFIGS:
            self._do_aside(self._loaded.pop(next(iter(self._loaded))).close())
        return loaded

    def look_again(self) -> None:
        """Reload the settings of all configs now, in the background."""
        for loaded in self._loaded.values():
            self._do_aside(loaded.reload())

    def _do_aside(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.ensure_future(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        return task

    async def _unreadable(
        self, host: Host, event: str | None, error: Exception
    ) -> Reply:
        """Block what could not be read if any failure policy asks for that."""
        try:
            loaded = self._load(_folders(host, _nothing(event)))
        except HooklineError as unusable:
            read = HostEvent(name=event or "", event=host.events.get(event or ""))
            return _without_settings(host, read, unusable)
        named = "an event" if event is None else describe(event)
        told = f"{host.title}: {named} could not be read: {error}"
        with loaded:
            return _Unread(host, event, error, told).reply(await loaded.now())


def _without_settings(host: Host, read: HostEvent, error: HooklineError) -> Reply:
    """Refuse what comes before a tool: nobody knows what the settings guard."""
    blocked = read.event is HookEventName.BeforeTool
    verdict = HostVerdict(blocked=blocked, reason=str(error))
    answer = host.write(read, verdict) if read.event else host.refuse(str(error))
    stderr = answer.stderr.encode(errors="backslashreplace")
    return Reply(answer.stdout, stderr or _line(str(error)), answer.status)


class _Unread(Struct, frozen=True):
    """An event that could not be read, or that has no verdict in time."""

    host: Host
    event: str | None
    error: Exception
    told: str

    def reply(self, now: _Now) -> Reply:
        """Block it if any failure policy asks for that."""
        answer = now.handler and self.answer(now.handler, now.settings)
        now.record()
        answer = answer or self.host.write(_nothing(self.event), HostVerdict())
        stderr = answer.stderr.encode(errors="backslashreplace")
        return Reply(answer.stdout, stderr or _line(self.told), answer.status)

    def answer(self, handler: HookEventHandler, settings: Settings) -> Answer | None:
        """A block, if a policy asks for one or no guard could see the event."""
        known = self.host.events.get(self.event or "")
        # Would a hook be asked: about the event, or about any that can block?
        events = (one for one in TRAITS if TRAITS[one].can_block)
        asked = (one for one in events if known in (None, one))
        is_guarded = any(map(handler.has_hooks_for, asked))
        unseen = isinstance(self.error, EncodingError) and is_guarded
        if known is None:
            closed = unseen or closed_events(settings)
            told = f"{self.told}; it is blocked" if closed else self.told
            details = {"host": self.host.name}
            handler.note("", told, details, blocked=bool(closed))
            return self.host.refuse(self.told) if closed else None
        failure = EncodingError if unseen else HooklineError
        about = {"host": {"name": self.host.name, "event": self.event}}
        result = handler.judge_unreadable(known, about, failure(self.told))
        if known in _ENDINGS and not unseen:
            return None  # the next answer would be rejected in the same way
        verdict = host_verdict([result])
        read = HostEvent(name=self.event or "", event=known)
        return self.host.write(read, verdict) if verdict.asked() else None


class _Loaded:
    """A config, and how many events use it now."""

    def __init__(self, folders: _Folders, *, one_shot: bool) -> None:
        places = SettingsPlaces.around(folders.start, folders.also)
        watch = None if one_shot else SettingsWatch.start(places)
        settings = load_settings(places) if watch is None else watch.settings
        self._config = Config(working_dir=folders.cwd, settings=settings)
        self._config.one_shot = one_shot
        self._config.watch = watch
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
        pipeline, last = await handler.current(), system.last_reload
        observers = copy(pipeline.observers)
        self._recorder = recorder = observers.recorder
        records = None if recorder is None else _HeldRecords(recorder)
        observers.recorder = records
        return _Now(
            config,
            config.loaded,
            pipeline.settings,
            HookEventHandler(structs.replace(pipeline, observers=observers)),
            refused=() if last is None else last.problems,
            records=records,
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


class _HeldRecords:
    """Holds events back until it is known what the host is told of them."""

    problem = ""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self._guard = recorder, Guard("the journal")
        self._held: list[tuple[HookCall, HookPlan | None, ProcessedHookResult]] = []

    def record(
        self, call: HookCall, plan: HookPlan | None, result: ProcessedHookResult
    ) -> None:
        """Hold one event back."""
        self._held.append((call, plan, result))

    def record_late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Record what a hook said that nobody waited for."""
        self.recorder.record_late(call, result)

    def release(self, told: HostVerdict | None) -> None:
        """Record all events, with what the host was told in place of the verdict."""
        for call, plan, result in self._held:
            verdict: Wire = {}
            if told is not None:
                blocked = told.blocked and TRAITS[call.event].can_block
                stopped = told.stop and TRAITS[call.event].can_stop
                verdict |= {"blocked": blocked, "ask": told.ask and not blocked}
                verdict |= {"reason": told.reason if blocked else None}
                verdict |= {"should_stop": stopped}
                verdict |= {"stop_reason": told.stop_reason if stopped else None}
            heard = structs.replace(result, **verdict)
            self._guard(self.recorder.record, call, plan, heard)
        self._held.clear()


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
    records: _HeldRecords | None = None

    def record(self, told: HostVerdict | None = None) -> None:
        """Record what was fired, as the host was told of it or as hooks decided."""
        if self.records is not None:
            self.records.release(told)

    def hooks_for(self, event: HookEventName) -> list[RegisteredHook]:
        """The hooks that run for an event, whatever matchers say."""
        handler = self.handler
        hooks = handler.pipeline.registry.for_event(event) if handler else ()
        return [hook for hook in hooks if hook.is_active]

    def problems(self) -> Iterator[str]:
        """What the host's person should know about the settings."""
        for problem in self.refused:
            yield f"changed settings are not used: {problem}"
        if self.records is not None and self.records.recorder.problem:
            yield self.records.recorder.problem
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
    is_shown = len(inputs) <= MOST_FILES  # it is blocked anyway otherwise
    if event is HookEventName.BeforeTool and read.call is not None and is_shown:
        places = (now.loaded.folder or "", *now.loaded.projects)
        reason = refusal(read.call, now.config.working_dir, filter(None, places))
        if reason is not None:
            if now.handler is not None:
                now.handler.refuse(event, inputs[0], reason, session.session_id)
            verdict = HostVerdict(blocked=True, reason=reason)
            return _reply(host.write(read, verdict), [*now.problems()])
    plan = now.handler and now.handler.pipeline.planner.plan_for(event, {})
    if plan and any(hook.config.is_foreign for hook in plan.hooks):
        # A hook that was written for this host gets what it sent, to the letter.
        for event_input in inputs:
            event_input["host"] = {**event_input["host"], "payload": read.payload}
    shown = inputs[:MOST_FILES]
    results = await asyncio.gather(*(session.fire(event, one) for one in shown))
    verdict = _with_change(read, host_verdict(results), results)
    if len(inputs) > len(shown) and event is HookEventName.BeforeTool:
        # Hosts run the tool if the bridge takes too long: no call may outlast it.
        verdict = _blocking(verdict, _TOO_MANY.format(len(inputs)))
    if event in _ENDINGS:
        verdict = _bounded(host, session.session_id, read, verdict)
    on_ask = now.settings.global_options.on_ask
    told = _expressible(host, event, verdict, on_ask)
    answer = host.write(read, told)
    now.record(_heard(host, read, event, told, answer))
    losses = lost(host, event, verdict, answer)
    if losses and now.handler is not None:
        about = {"host": host.name, "event": read.name}
        for loss in losses:
            now.handler.note(session.session_id, loss, about)
    errors = [error.message for one in results for error in one.aggregated.errors]
    return _reply(answer, [*now.problems(), *errors, *losses])


def _bounded(
    host: Host, session_id: str, read: HostEvent, verdict: HostVerdict
) -> HostVerdict:
    """End a turn whose answers were rejected too often (protocol.md#events)."""
    agent = str(read.fields.get("agent_id", ""))
    conversation = Conversation(host.name, session_id, agent)
    goes_on = verdict.blocked or bool(verdict.host_answers)
    if not goes_on or verdict.stop:
        conversation.end_turn()
        return verdict
    again = read.fields.get("stop_hook_active") is True
    if conversation.count_rejection(again=again) <= MAX_REJECTIONS:
        return verdict
    conversation.end_turn()
    if not verdict.blocked:
        return structs.replace(verdict, host_answers=())
    reason = f"{MAX_REJECTIONS} answers in a row were rejected: {verdict.reason}"
    return structs.replace(verdict, blocked=False, stop=True, stop_reason=reason)


def _with_change(
    read: HostEvent, verdict: HostVerdict, results: list[ProcessedHookResult]
) -> HostVerdict:
    if read.call is None or read.event is not HookEventName.BeforeTool:
        return verdict
    finals = (result.final_output for result in results)
    changes = (final.modified_tool_input if final else None for final in finals)
    try:
        return structs.replace(verdict, tool_input=read.call.changed(changes))
    except ValueError as error:
        return _blocking(
            verdict, f"hooks changed the input of {read.call.name}: {error}"
        )


def _expressible(
    host: Host, event: HookEventName, verdict: HostVerdict, on_ask: OnFailure
) -> HostVerdict:
    """The stricter form of what a host cannot express before a tool.

    hosts/README.md#rules 11
    """
    if event is not HookEventName.BeforeTool:
        return verdict
    if verdict.ask and not host.asks:
        if on_ask is OnFailure.BLOCK and not verdict.blocked:
            verdict = _blocking(verdict, verdict.reason or verdict.message or _ASKED)
        verdict = structs.replace(verdict, ask=False)
    if verdict.tool_input is None:
        return verdict
    if Effect.CHANGE not in host.limits.get(event, {}) or verdict.blocked:
        return verdict
    changed = encode(verdict.tool_input).decode()[:_LONGEST_INPUT]
    reason = f"hooks allow this call only with another input: {changed}"
    return structs.replace(_blocking(verdict, reason), tool_input=None)


def _heard(
    host: Host, read: HostEvent, event: HookEventName, told: HostVerdict, answer: Answer
) -> HostVerdict:
    """What the host takes from an answer: a stop may be a block to it, or nothing."""
    limits = host.limits.get(event, {}).keys() - answer.expressed
    if not TRAITS[event].can_block or not told.asked() & limits & _ENDS:
        return told
    nothing = {"blocked": False, "reason": "", "stop": False, "stop_reason": ""}
    silent = structs.replace(told, **nothing)
    unheard = host.write(read, silent)
    if (unheard.stdout, unheard.status) == (answer.stdout, answer.status):
        return silent
    if not told.stop or Effect.STOP not in limits:
        return told
    reason = told.reason if told.blocked else told.stop_reason
    return structs.replace(told, blocked=True, reason=reason, stop=False)


_ENDS = {Effect.BLOCK, Effect.STOP}
_ASKED = "a hook asks for a person's decision"


def _blocking(verdict: HostVerdict, reason: str) -> HostVerdict:
    reasons = [verdict.reason] if verdict.blocked else []
    reason = "\n".join(filter(None, [*reasons, reason]))
    return structs.replace(verdict, blocked=True, reason=reason, tool_input=None)


def _reply(answer: Answer, lines: list[str]) -> Reply:
    if answer.status:
        # The host hands stderr to the model: nothing but the reason belongs there.
        return Reply(answer.stdout, answer.stderr.encode(), answer.status)
    return Reply(answer.stdout, b"".join(map(_line, dict.fromkeys(lines))))


def _line(text: str) -> bytes:
    return f"hookline: {printable(text)}\n".encode()


def _is_asked_directly(host: Host, read: HostEvent) -> bool:
    """Whether a host that calls through another's file calls us by itself as well."""
    if host.name == "copilot" and "CLAUDECODE" in os.environ:
        return False  # one agent may run the other: then nobody is silent
    return is_installed(host, _folders(host, read).start, host.file_event(read.name))


def _nothing(event: str | None) -> HostEvent:
    return HostEvent(name=event or "", event=None)


def _parsed(stdin: bytes) -> Wire:
    if len(stdin) > MAX_EVENT_BYTES:
        raise EncodingError(f"standard input is larger than {MAX_EVENT_BYTES} bytes")
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


class _Folders(NamedTuple):
    """Where a session is; a tool may have deleted or replaced any of it meanwhile."""

    start: str
    """Where the search for projects starts (hosts/README.md#rules 8)."""
    also: tuple[str, ...]
    """Where else it starts."""
    cwd: str
    """Where hooks run."""


def _folders(host: Host, read: HostEvent) -> _Folders:
    try:
        own = os.getcwd()  # noqa: PTH109 - a string
    except OSError:
        own = os.environ.get("PWD", "")
    variables = (os.environ.get(name, "") for name in host.project_variables)
    roots = [read.payload.get(key) for key in ("workspace_roots", "workspaceRoots")]
    listed = [path for one in roots if isinstance(one, list) for path in one[:16]]
    given = (*variables, read.cwd, *listed, own)
    cleaned = [_clean(path) for path in given if isinstance(path, str)]
    named = [path for path in cleaned if os.path.isabs(path)] or ["/"]  # noqa: PTH117
    existing = [_nearest_folder(path) for path in named]
    start = next((one for one in existing if one in named), existing[0])
    # A link that replaces a folder leads away from the projects above its name.
    links = [
        os.path.dirname(one)  # noqa: PTH120
        for path in named
        for one in folders_above(path)
        if os.path.islink(one)  # noqa: PTH114
    ]
    also = dict.fromkeys((*named, *existing, *links))
    has_cwd = os.path.isabs(read.cwd)  # noqa: PTH117
    cwd = _nearest_folder(_clean(read.cwd) if has_cwd else named[-1])
    return _Folders(start, tuple(one for one in also if one != start), cwd)


def _clean(path: str) -> str:
    """A path without what no file system has in one."""
    path = path.partition("\0")[0][:_LONGEST_PATH]
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return path.encode(errors="replace").decode()
    return path


def _nearest_folder(path: str) -> str:
    """A folder, or the nearest one above it that exists."""
    while not os.path.isdir(path) and path != "/":  # noqa: PTH112
        path = os.path.dirname(path)  # noqa: PTH120
    return path

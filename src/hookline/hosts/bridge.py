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
from collections.abc import Coroutine, Iterable
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
from hookline.settings.load import load_settings
from hookline.settings.model import OnFailure
from hookline.settings.places import SettingsPlaces, folders_above
from hookline.settings.watch import SettingsWatch

from .conversation import Conversation
from .effects import Effect
from .failsafe import MAX_EVENT_BYTES, failsafe, failure_status
from .host import BadInputError, Host, HostEvent, lost
from .host_files import deadline_ms, needed_ms
from .host_verdict import Answer, HostVerdict, Wire, host_verdict
from .registry import host_of, real_host
from .self_protection import refusal

_T = TypeVar("_T")
_SPARE_S = 2.0
"""For the answer itself, before ``failsafe`` ends the process."""
_ENDINGS = (HookEventName.AfterAgent, HookEventName.SubagentStop)
_MOST_CONFIGS = 16
_LONGEST_INPUT = 4096
_LONGEST_PATH = 4096
MOST_FILES = 1000
"""How many files of one call are fired; a call that touches more is blocked."""
_TOO_MANY = f"the call touches {{}} files: hooks check at most {MOST_FILES} in one call"
_ASKED = "a hook asks for a person's decision"
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
        self._configs: dict[_Folders, Config] = {}
        self._background: set[asyncio.Task[Any]] = set()

    async def answer(
        self,
        name: str,
        event_name: str | None,
        stdin: bytes,
        within_ms: int | None = None,
    ) -> Reply:
        """Answer one event, given the name of the host and what it wrote.

        ``within_ms``: as long as the host waits, where it does not wait for as long as
        the hooks may take.
        """
        host = host_of(name)
        try:
            try:
                payload = _parse(stdin)
                host = real_host(host, payload, os.environ)
                event_name = host.event_name(payload, event_name)
                host_event = host.read(payload, event_name)
                # One host may call through another's file, and by itself as well.
                if host.name != name and _calls_by_itself(host, host_event):
                    host_event = structs.replace(host_event, event=None)
                return await self._answer(host, host_event, within_ms)
            except HooklineError as error:
                return await self._answer_unreadable(host, event_name, error)
        # The edge of the bridge: a host must get an answer, whatever fails in here.
        except Exception as error:  # noqa: BLE001
            problem = _line(f"{host.title}: internal error: {error!r}")
            return Reply(stderr=problem, status=failure_status(event_name, stdin))

    async def _answer(
        self, host: Host, host_event: HostEvent, within_ms: int | None
    ) -> Reply:
        if host_event.event is None:
            return _reply(host.write(host_event, HostVerdict()))
        started = time.monotonic()
        folders = _folders(host, host_event)
        failsafe.doing = f"loading the settings for {folders.start}"
        try:
            config = self._config(folders)
        except HooklineError as error:
            return _reply_without_settings(host, host_event, error)
        hooks = await _EventHooks.of(config, host_event)
        active = hooks.for_event(host_event.event)
        within_ms = within_ms or deadline_ms(host.files, needed_ms(active))
        failsafe.allow(within_ms / 1000)
        failsafe.doing = f"running the hooks of {host_event.event.value}"
        spare_s = min(_SPARE_S, within_ms / 4000)
        remaining_s = within_ms / 1000 - spare_s - (time.monotonic() - started)
        firing = self._in_background(_fire(host, host_event, host_event.event, hooks))
        try:
            await asyncio.wait({firing}, timeout=max(remaining_s, 0))
        finally:
            # Hooks may take seconds to end: nobody waits for that here.
            is_late = firing.cancel()
        if not is_late:
            hooks.record()
            return firing.result()
        names = ", ".join(dict.fromkeys(hook.name for hook in active[:3]))
        problem = (
            f"{host.title}: no verdict on {host_event.name} in {within_ms} ms: the "
        )
        problem += f"hooks take too long ({names})"
        if len(host_event.inputs(host.name)) > 1:
            problem += f" for {len(host_event.inputs(host.name))} files"
        is_unseen = host_event.event is HookEventName.BeforeTool
        return _reply_by_policy(
            host, host_event.name, hooks, problem, is_unseen=is_unseen
        )

    async def _answer_unreadable(
        self, host: Host, event_name: str | None, error: HooklineError
    ) -> Reply:
        unread = HostEvent(name=event_name or "", event=None)
        try:
            config = self._config(_folders(host, unread))
        except HooklineError as problem:
            event = host.events.get(unread.name)
            host_event = structs.replace(unread, event=event)
            return _reply_without_settings(host, host_event, problem)
        name = "an event" if event_name is None else describe(event_name)
        message = f"{host.title}: {name} could not be read: {error}"
        hooks = await _EventHooks.of(config, unread)
        is_unseen = isinstance(error, EncodingError)
        return _reply_by_policy(host, event_name, hooks, message, is_unseen=is_unseen)

    def _config(self, folders: _Folders) -> Config:
        """The config for a folder, which follows changes of its settings."""
        config = self._configs.get(folders)
        if config is None:
            places = SettingsPlaces.around(folders.start, folders.also)
            watch = None if self._one_shot else SettingsWatch.start(places)
            settings = load_settings(places) if watch is None else watch.settings
            config = Config(working_dir=folders.cwd, settings=settings)
            config.one_shot, config.watch = self._one_shot, watch
            self._configs[folders] = config
        return config

    @property
    def is_full(self) -> bool:
        """Whether so many configs are loaded that another process should go on."""
        return len(self._configs) > _MOST_CONFIGS

    def look_again(self) -> None:
        """Reload the settings of all configs now, in the background."""
        for config in self._configs.values():
            if (system := config.get_hook_system()) is not None:
                self._in_background(system.reload())

    def _in_background(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def close(self) -> bytes:
        """Release everything; gives lines for stderr about what was not recorded.

        Hooks that nobody waits for have a moment to finish.
        """
        problems = []
        for config in self._configs.values():
            system = config.get_hook_system()
            if system is None or not system.status.initialized:
                continue
            recorder = system.event_handler.pipeline.observers.recorder
            await system.dispose(background_s=BACKGROUND_S)
            if recorder is not None and recorder.problem:
                problems.append(recorder.problem)
        self._configs.clear()
        await asyncio.gather(*self._background, return_exceptions=True)
        return b"".join(map(_line, problems))


class _EventHooks(SessionEvents):
    """The hooks that answer one event of a host: a reload does not reach them."""

    def __init__(self, config: Config, host_event: HostEvent) -> None:
        session_id = host_event.session_id or config.session_id
        super().__init__(config, session_id, host_event.transcript_path)
        self.loaded, self.settings = config.loaded, config.settings
        self.handler: HookEventHandler | None = None
        """None where hooks are switched off, or cannot be had."""
        self._error: HooklineError | None = None
        """Why they cannot be had."""
        self._held: _HeldRecords | None = None
        self._refused: tuple[str, ...] = ()
        """Why changed settings are not used."""

    @classmethod
    async def of(cls, config: Config, host_event: HostEvent) -> _EventHooks:
        """The hooks of a config as they are now."""
        hooks = cls(config, host_event)
        try:
            system = config.get_hook_system()
            if system is None:
                return hooks
            await system.initialize()
        except HooklineError as error:
            hooks._error = error
            return hooks
        pipeline = await system.event_handler.current()
        hooks.loaded, hooks.settings = config.loaded, pipeline.settings
        if system.last_reload is not None:
            hooks._refused = system.last_reload.problems
        observers = copy(pipeline.observers)
        if observers.recorder is not None:
            observers.recorder = hooks._held = _HeldRecords(observers.recorder)
        hooks.handler = HookEventHandler(structs.replace(pipeline, observers=observers))
        return hooks

    async def _firer(self) -> EventFirer | None:
        if self._error is not None:
            raise self._error  # the policies of the hooks decide what that means
        return self.handler

    def for_event(self, event: HookEventName) -> list[RegisteredHook]:
        """The hooks that run for an event, whatever matchers say."""
        hooks = self.handler.pipeline.registry.for_event(event) if self.handler else ()
        return [hook for hook in hooks if hook.is_active]

    def record(self, verdict: HostVerdict | None = None) -> None:
        """Record what was fired, as the host was told of it or as hooks decided."""
        if self._held is not None:
            self._held.release(verdict)

    def problems(self) -> list[str]:
        """What the host's person should know about the settings."""
        problems = [f"changed settings are not used: {why}" for why in self._refused]
        if self._held is not None and self._held.recorder.problem:
            problems.append(self._held.recorder.problem)
        problems += map(str, self.loaded.errors)
        problems += self.loaded.warnings
        # Which files of hooks have changed is known at each event, and said there.
        for layer in self.settings.layers:
            problems += layer.warnings if layer.is_unapproved else ()
        return problems


class _HeldRecords:
    """Holds events back until it is known what the host is told of them."""

    problem = ""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self._guard = recorder, Guard("the journal")
        self._events: list[tuple[HookCall, HookPlan | None, ProcessedHookResult]] = []

    def record(
        self, call: HookCall, plan: HookPlan | None, result: ProcessedHookResult
    ) -> None:
        """Hold one event back."""
        self._events.append((call, plan, result))

    def record_late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Record what a hook said that nobody waited for."""
        self.recorder.record_late(call, result)

    def release(self, verdict: HostVerdict | None) -> None:
        """Record all events, with what the host was told in place of the verdict."""
        for call, plan, result in self._events:
            changes: Wire = {}
            if verdict is not None:
                blocked = verdict.blocked and TRAITS[call.event].can_block
                stopped = verdict.stop and TRAITS[call.event].can_stop
                changes = {"blocked": blocked, "ask": verdict.ask and not blocked}
                changes |= {"reason": verdict.reason if blocked else None}
                changes |= {"should_stop": stopped}
                changes |= {"stop_reason": verdict.stop_reason if stopped else None}
            heard = structs.replace(result, **changes)
            self._guard(self.recorder.record, call, plan, heard)
        self._events.clear()


async def _fire(
    host: Host, host_event: HostEvent, event: HookEventName, hooks: _EventHooks
) -> Reply:
    """Fire an event on the hooks, and write what they said together."""
    handler = hooks.handler
    inputs = host_event.inputs(host.name)
    has_too_many = event is HookEventName.BeforeTool and len(inputs) > MOST_FILES
    if event is HookEventName.BeforeTool and host_event.call and not has_too_many:
        places = filter(None, (hooks.loaded.folder, *hooks.loaded.projects))
        reason = refusal(host_event.call, hooks.config.working_dir, places)
        if reason is not None:
            if handler is not None:
                handler.refuse(event, inputs[0], reason, hooks.session_id)
            verdict = HostVerdict(blocked=True, reason=reason)
            return _reply(host.write(host_event, verdict), hooks.problems())
    plan = handler and handler.pipeline.planner.plan_for(event, {})
    if plan and any(hook.config.is_foreign for hook in plan.hooks):
        # A hook that was written for this host gets what it sent, to the letter.
        for event_input in inputs:
            event_input["host"] = {**event_input["host"], "payload": host_event.payload}
    fired = (hooks.fire(event, event_input) for event_input in inputs[:MOST_FILES])
    results = await asyncio.gather(*fired)
    verdict = host_verdict(results)
    if event is HookEventName.BeforeTool:
        verdict = _with_changed_input(host_event, verdict, results)
        if has_too_many:
            # Hosts run the tool if the bridge takes too long: no call may outlast it.
            verdict = _blocking(verdict, _TOO_MANY.format(len(inputs)))
    elif event in _ENDINGS:
        verdict = _bounded(host, hooks.session_id, host_event, verdict)
    on_ask = hooks.settings.global_options.on_ask
    expressible = _expressible(host, event, verdict, on_ask)
    answer = host.write(host_event, expressible)
    hooks.record(_obeyed(host, host_event, event, expressible, answer))
    losses = lost(host, event, verdict, answer)
    if handler is not None:
        about = {"host": host.name, "event": host_event.name}
        for loss in losses:
            handler.note(hooks.session_id, loss, about)
    errors = [error.message for result in results for error in result.aggregated.errors]
    return _reply(answer, [*hooks.problems(), *errors, *losses])


def _with_changed_input(
    host_event: HostEvent, verdict: HostVerdict, results: list[ProcessedHookResult]
) -> HostVerdict:
    if host_event.call is None:
        return verdict
    outputs = (result.final_output for result in results)
    changes = (output.modified_tool_input if output else None for output in outputs)
    try:
        return structs.replace(verdict, tool_input=host_event.call.changed(changes))
    except ValueError as error:
        problem = f"hooks changed the input of {host_event.call.name}: {error}"
        return _blocking(verdict, problem)


def _bounded(
    host: Host, session_id: str, host_event: HostEvent, verdict: HostVerdict
) -> HostVerdict:
    """End a turn whose answers were rejected too often (protocol.md#events)."""
    agent = str(host_event.fields.get("agent_id", ""))
    conversation = Conversation(host.name, session_id, agent)
    goes_on = verdict.blocked or bool(verdict.host_answers)
    if not goes_on or verdict.stop:
        conversation.end_turn()
        return verdict
    is_again = host_event.fields.get("stop_hook_active") is True
    if conversation.count_rejection(again=is_again) <= MAX_REJECTIONS:
        return verdict
    conversation.end_turn()
    if not verdict.blocked:
        return structs.replace(verdict, host_answers=())
    reason = f"{MAX_REJECTIONS} answers in a row were rejected: {verdict.reason}"
    return structs.replace(verdict, blocked=False, stop=True, stop_reason=reason)


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
    if verdict.tool_input is None or verdict.blocked:
        return verdict
    if Effect.CHANGE not in host.limits.get(event, {}):
        return verdict
    changed = encode(verdict.tool_input).decode()[:_LONGEST_INPUT]
    return _blocking(
        verdict, f"hooks allow this call only with another input: {changed}"
    )


def _blocking(verdict: HostVerdict, reason: str) -> HostVerdict:
    reasons = [verdict.reason] if verdict.blocked else []
    reason = "\n".join(filter(None, [*reasons, reason]))
    return structs.replace(verdict, blocked=True, reason=reason, tool_input=None)


def _obeyed(
    host: Host,
    host_event: HostEvent,
    event: HookEventName,
    verdict: HostVerdict,
    answer: Answer,
) -> HostVerdict:
    """What the host takes from an answer: a stop may be a block to it, or nothing."""
    limits = host.limits.get(event, {}).keys() - answer.expressed
    ends = verdict.asked() & limits & {Effect.BLOCK, Effect.STOP}
    if not TRAITS[event].can_block or not ends:
        return verdict
    silent = structs.replace(
        verdict, blocked=False, reason="", stop=False, stop_reason=""
    )
    silence = host.write(host_event, silent)
    if (silence.stdout, silence.status) == (answer.stdout, answer.status):
        return silent
    if Effect.STOP not in ends:
        return verdict
    reason = verdict.reason if verdict.blocked else verdict.stop_reason
    return structs.replace(verdict, blocked=True, reason=reason, stop=False)


def _reply_without_settings(
    host: Host, host_event: HostEvent, error: HooklineError
) -> Reply:
    """Refuse what comes before a tool: nobody knows what the settings guard."""
    if host_event.event is None:
        return _reply(host.refuse(str(error)), [str(error)])
    is_blocked = host_event.event is HookEventName.BeforeTool
    verdict = HostVerdict(blocked=is_blocked, reason=str(error))
    return _reply(host.write(host_event, verdict), [str(error)])


def _reply_by_policy(
    host: Host, name: str | None, hooks: _EventHooks, problem: str, *, is_unseen: bool
) -> Reply:
    """Block an event without a verdict if a failure policy asks for that.

    ``is_unseen``: or if any hook is there that would have seen it.
    """
    event, handler = host.events.get(name or ""), hooks.handler
    answer = None
    if handler is not None:
        # Would a hook be asked: about the event, or about any that can block?
        blockable = (each for each in TRAITS if TRAITS[each].can_block)
        concerned = [each for each in blockable if event in (None, each)]
        is_unseen = is_unseen and any(map(handler.has_hooks_for, concerned))
    if handler is not None and event is None:
        is_blocked = is_unseen or bool(closed_events(hooks.settings))
        message = f"{problem}; it is blocked" if is_blocked else problem
        handler.note("", message, {"host": host.name}, blocked=is_blocked)
        answer = host.refuse(problem) if is_blocked else None
    elif handler is not None and event is not None:
        error = EncodingError(problem) if is_unseen else HooklineError(problem)
        fields = {"host": {"name": host.name, "event": name}}
        verdict = host_verdict([handler.judge_unreadable(event, fields, error)])
        # At the end of a turn, the next answer would be rejected in the same way.
        if verdict.asked() and (is_unseen or event not in _ENDINGS):
            answer = host.write(HostEvent(name=name or "", event=event), verdict)
    hooks.record()
    if answer is None:
        answer = host.write(HostEvent(name=name or "", event=None), HostVerdict())
    return _reply(answer, [problem])


def _reply(answer: Answer, lines: Iterable[str] = ()) -> Reply:
    stderr = answer.stderr.encode(errors="backslashreplace")
    if not answer.status:  # else the host hands stderr to the model, as the reason
        stderr = b"".join(map(_line, dict.fromkeys(lines)))
    return Reply(answer.stdout, stderr, answer.status)


def _line(text: str) -> bytes:
    return f"hookline: {printable(text)}\n".encode()


def _calls_by_itself(host: Host, host_event: HostEvent) -> bool:
    """Whether a host that calls through another's file calls us by itself as well."""
    if host.name == "copilot" and "CLAUDECODE" in os.environ:
        return False  # one agent may run the other: then nobody is silent
    from .install.calls import is_installed

    return is_installed(
        host, _folders(host, host_event).start, host.file_event(host_event.name)
    )


def _parse(stdin: bytes) -> Wire:
    if len(stdin) > MAX_EVENT_BYTES:
        raise EncodingError(f"standard input is larger than {MAX_EVENT_BYTES} bytes")
    try:
        payload = decode(stdin.decode("utf-8-sig", "replace"), nan_as_null=True)
    except TooDeepError as error:
        # No guard can see it, and the host could: that is not for a policy to decide.
        raise EncodingError(f"standard input is {error}") from error
    except ValueError as error:
        raise BadInputError(f"standard input is not valid JSON: {error}") from error
    if not isinstance(payload, dict):
        raise BadInputError(f"expected a JSON object, got {payload!r:.60}")
    return payload


class _Folders(NamedTuple):
    """Where a session is; a tool may have deleted or replaced any of it meanwhile."""

    start: str
    """Where the search for projects starts (hosts/README.md#rules 8)."""
    also: tuple[str, ...]
    """Where else it starts."""
    cwd: str
    """Where hooks run."""


def _folders(host: Host, host_event: HostEvent) -> _Folders:
    try:
        current = os.getcwd()  # noqa: PTH109 - a string
    except OSError:
        current = os.environ.get("PWD", "")
    variables = (os.environ.get(name, "") for name in host.project_variables)
    lists = [
        host_event.payload.get(key) for key in ("workspace_roots", "workspaceRoots")
    ]
    roots = [root for paths in lists if isinstance(paths, list) for root in paths[:16]]
    paths = [
        _clean(path)
        for path in (*variables, host_event.cwd, *roots, current)
        if isinstance(path, str)
    ]
    paths = [path for path in paths if path.startswith("/")] or ["/"]
    existing = [_nearest_folder(path) for path in paths]
    start = next((path for path in existing if path in paths), existing[0])
    # A link that replaces a folder leads away from the projects above its name.
    links = [
        os.path.dirname(folder)  # noqa: PTH120
        for path in paths
        for folder in folders_above(path)
        if os.path.islink(folder)  # noqa: PTH114
    ]
    also = dict.fromkeys((*paths, *existing, *links))
    also.pop(start, None)
    cwd = host_event.cwd if host_event.cwd.startswith("/") else paths[-1]
    return _Folders(start, tuple(also), _nearest_folder(_clean(cwd)))


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

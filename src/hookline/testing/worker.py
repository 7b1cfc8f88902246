"""Exercise a worker: whether a program keeps to the protocol of docs/how-to/workers.md.

It is started and asked as an executor does it, so that both agree on what is an answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from os import killpg
from pathlib import Path
from signal import SIGKILL
from subprocess import SubprocessError

from msgspec import structs

from hookline.execute.answer import read_end
from hookline.execute.child import GRACE_S, run_process
from hookline.execute.command import (
    command_spec,
    request_environment,
)
from hookline.execute.watchdog import group_lives
from hookline.execute.worker import (
    NO_ANSWER,
    NO_COMMAND,
    WorkerLostError,
    WorkerProcess,
    is_answer,
    request_line,
)
from hookline.plan import HookCall, RegisteredHook, RunEnd
from hookline.protocol.inputs import BASE_FIELDS
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.protocol.values import decode, encode
from hookline.protocol.verdict import Word, hook_verdict

from .run import CaseResult
from .tester import event_input

_ANSWER_S = 10.0
_BURST, _BURST_S = 200, 20.0
_BIG = 1_000_000
_SUSPICIOUS_S, _ENDS_S, _MORE_S = 2.0, 5.0, 1.0
_IDLE_S = 0.25
_POLL_S = 0.01
_SHOWN = 120
_ODD_TEXT = (
    'a "quote", a \\, a tab\t, lines\r\n\u2028\u2029\x85, NUL \0, '
    'é, 漢, 😀, {"id":1,"exit_code":0}\n'
)


class _BrokenRuleError(Exception):
    """A rule that the worker does not keep; a warning where Hookline can do without."""

    def __init__(self, problem: str, section: str, *, warning: bool = False) -> None:
        super().__init__(f"{problem}; see docs/how-to/workers.md#{section}")
        self.problem = problem
        self.warning = warning


async def exercise(hook: RegisteredHook, cwd: str) -> AsyncIterator[CaseResult]:
    """Run all checks; only the first, if the program does not answer at all."""
    subject = _Subject(hook, cwd)
    try:
        for name, check in _CHECKS.items():
            result = await _checked(subject, name, check)
            yield result
            if check is _answers_first and not result.passed:
                return
    finally:
        await subject.end()


async def _checked(subject: _Subject, name: str, check: _Check) -> CaseResult:
    started = time.perf_counter()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    try:
        await check(subject)
    except _BrokenRuleError as error:
        if error.warning:
            warnings = (str(error),)
        else:
            problems = (str(error),)
    return CaseResult(
        file=Path(subject.hook.name),
        name=name,
        kind="worker",
        problems=problems,
        warnings=warnings,
        duration_ms=(time.perf_counter() - started) * 1000,
    )


class _Subject:
    """The program: asked in one process for as long as that answers."""

    def __init__(self, hook: RegisteredHook, cwd: str) -> None:
        self.hook = hook
        self._cwd = cwd
        self._process: WorkerProcess | None = None

    def call(self, text: str = "", path: str = "notes.txt") -> HookCall:
        """An event of the hook's that holds a text."""
        fields = event_input(self.hook.event, None, {})
        if "tool_input" in fields:
            # An id that is not the request's, for those who search for one.
            names = {"path": path, "file_path": path, "id": 12345}
            fields["tool_name"] = "write_file"
            fields["tool_input"] = {**names, "content": text}
        if "llm_request" in fields:
            message = {"role": "user", "content": text}
            fields["llm_request"] = {"model": "test", "messages": [message]}
        fields |= {name: text for name in ("prompt", "message") if name in fields}
        call = HookCall.of(self.hook.event, fields, self._cwd, "hookline-test")
        call.encode()
        return call

    def environment(self, call: HookCall) -> bytes:
        return encode(request_environment(self.hook, call))

    def process(self) -> WorkerProcess:
        """The one that has answered so far, or a new one."""
        if self._process is not None and not self._process.is_usable:
            fault = self._process.fault or WorkerLostError("it ended")
            self._process = None
            raise _broken(fault)
        if self._process is None:
            spec = command_spec(self.hook, self.call(), 0, warm=True)
            try:
                self._process = WorkerProcess(spec, lambda _: None)
            except (OSError, ValueError, SubprocessError) as error:
                problem = f"could not be started: {error}"
                raise _BrokenRuleError(problem, "life-of-a-worker") from error
        return self._process

    async def ask(self, call: HookCall) -> RunEnd:
        """The answer to one event."""
        return await self.send(call.payload, self.environment(call))

    async def send(self, payload: bytes, env: bytes) -> RunEnd:
        """The answer to one request."""
        process = self.process()
        try:
            end = await process.ask(payload, env, _ANSWER_S)
        except (TimeoutError, WorkerLostError) as error:
            await self.end()
            raise _broken(error) from error
        if end.truncated:
            await self.end()
            problem = "its answer is longer than maxOutputBytes"
            raise _BrokenRuleError(problem, "answers")
        return end

    async def run_to_the_end(self, limit_s: float) -> tuple[RunEnd, int]:
        """Another process: one request, whose id is returned, then no more input."""
        call, number = self.call(), int.from_bytes(os.urandom(6))
        line = request_line(number, call.payload, self.environment(call))
        spec = command_spec(self.hook, call, limit_s, warm=True)
        return await run_process(structs.replace(spec, stdin=line)), number

    async def end(self) -> None:
        """Kill the process; the next request gets another one."""
        if self._process is not None:
            process, self._process = self._process, None
            await process.end(0, 0)


def _broken(error: Exception) -> _BrokenRuleError:
    if not isinstance(error, WorkerLostError):
        problem = f"expected an answer within {_ANSWER_S:g} s, got none"
        return _BrokenRuleError(problem, "answers")
    came = (
        f": {_shown(error.output.decode('utf-8', 'replace'))}" if error.output else ""
    )
    problem = f"expected one line with an answer, got: {error}{came}"
    return _BrokenRuleError(problem, "answers")


def _shown(output: str) -> str:
    text = output[:_SHOWN].rstrip("\n")
    return f"{text!r}" + ("..." if len(output) > _SHOWN else "")


def _last_line(output: str) -> str:
    return _shown(output.rstrip().rpartition("\n")[2])


async def _answers_first(subject: _Subject) -> None:
    call, process = subject.call(), subject.process()
    env = subject.environment(call)
    asking = asyncio.ensure_future(process.ask(call.payload, env, _ANSWER_S))
    try:
        await asyncio.wait({asking}, timeout=_SUSPICIOUS_S)
        if asking.done() and asking.exception() is None:
            return
        outcome, number = await subject.run_to_the_end(_ENDS_S)
        if (
            outcome.cause is not FailureCause.TIMEOUT
        ):  # starting up cannot be what takes so long
            await asyncio.wait({asking}, timeout=_MORE_S)
        else:
            await asyncio.wait({asking})
    finally:
        asking.cancel()
        await asyncio.wait({asking})
        if asking.cancelled() or asking.exception() is not None:
            await subject.end()
    error = None if asking.cancelled() else asking.exception()
    if asking.cancelled() or error is not None:
        raise _no_answer(error, outcome, number)


def _no_answer(
    error: BaseException | None, outcome: RunEnd, number: int
) -> _BrokenRuleError:
    """Say what the program does instead of answering."""
    if isinstance(error, WorkerLostError):
        detail = str(error)
    elif outcome.cause is FailureCause.TIMEOUT:
        detail = "it is silent and does not end with its input"
    elif _is_answer(outcome.stdout, number):
        detail = "it answers only when its input ends: flush, and read line by line"
    else:
        detail = "it reads its input to the end: read line by line"
    if outcome.exit_code and outcome.cause is not FailureCause.TIMEOUT:
        detail += f" (exit status {outcome.exit_code})"
    detail += f"; stdout: {_shown(outcome.stdout)}" if outcome.stdout else ""
    detail += f"; stderr: {_last_line(outcome.stderr)}" if outcome.stderr else ""
    problem = NO_ANSWER.partition(":")[0]
    return _BrokenRuleError(f"{problem}: {detail}", "common-mistakes")


def _is_answer(output: str, number: int) -> bool:
    try:
        answer = decode(output)
    except ValueError:
        return False
    return isinstance(answer, dict) and answer.get("id") == number


async def _answers_a_burst(subject: _Subject) -> None:
    started = time.monotonic()
    for count in range(_BURST):
        try:
            await subject.ask(subject.call(f"text {count}", f"file-{count}.txt"))
        except _BrokenRuleError as error:
            problem = f"request {count + 1}: {error.problem}"
            raise _BrokenRuleError(problem, "order") from error
        if time.monotonic() - started > _BURST_S:
            return


async def _reads_any_text(subject: _Subject) -> None:
    await subject.ask(subject.call(_ODD_TEXT))


async def _reads_a_big_request(subject: _Subject) -> None:
    await subject.ask(subject.call("x" * _BIG))


async def _ignores_unknown_keys(subject: _Subject) -> None:
    call = subject.call()
    # The frame ends with the environment: a key more, as a later version may have.
    await subject.send(call.payload, subject.environment(call) + b',"later":[{}]')


async def _answers_an_unknown_event(subject: _Subject) -> None:
    call = subject.call()
    base = {name: call.input.get(name, "") for name in sorted(BASE_FIELDS)}
    unknown = encode(base | {"hook_event_name": "Unknown"})
    try:
        await subject.send(unknown, subject.environment(call))
    except _BrokenRuleError as error:
        raise _BrokenRuleError(error.problem, "requests", warning=True) from error


async def _prints_only_answers(subject: _Subject) -> None:
    await subject.ask(subject.call())
    process = subject.process()
    await asyncio.sleep(_IDLE_S)
    if process.fault is not None:
        raise _broken(process.fault)


async def _works_as_a_command(subject: _Subject) -> None:
    hook, call = subject.hook, subject.call(path=".env")
    warm = _verdict(read_end(hook, await subject.ask(call)))
    end = await run_process(command_spec(hook, call, _ANSWER_S))
    cold = _verdict(read_end(hook, end))
    if is_answer(end.stdout):
        cold = f"nothing ({NO_COMMAND.partition(':')[0]})"
    if cold != warm:
        problem = f"as a worker it says {warm}, as a command {cold}"
        raise _BrokenRuleError(problem, "cold-runs", warning=True)


def _verdict(result: HookExecutionResult) -> str:
    verdict = hook_verdict(result)
    if verdict.word is Word.FAILED:
        return f"nothing ({result.error})"
    return verdict.expected


async def _ends_when_terminated(subject: _Subject) -> None:
    process, call = subject.process(), subject.call()
    env = subject.environment(call)
    asking = asyncio.ensure_future(process.ask(call.payload, env, _ANSWER_S))
    await asyncio.wait(
        {asking}, timeout=0.01
    )  # in the middle of it, if it takes longer
    children = _descendants(process.group.pid)
    try:
        has_ended = await _ends_by_sigterm(process.group.pid)
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await subject.end()
        survivors = [pid for pid in children if _kill(pid)]
    if not has_ended:
        problem = f"still running {GRACE_S:g} s after SIGTERM"
        raise _BrokenRuleError(problem, "how-a-worker-ends")
    if survivors:
        problem = f"left {len(survivors)} child processes running in another group"
        raise _BrokenRuleError(problem, "how-a-worker-ends")


async def _ends_by_sigterm(group: int) -> bool:
    with suppress(ProcessLookupError):
        killpg(group, signal.SIGTERM)
    for _ in range(int(GRACE_S / _POLL_S)):
        if not group_lives(group):
            return True
        await asyncio.sleep(_POLL_S)
    return False


def _descendants(pid: int) -> list[int]:
    """Its children and theirs, as far as ``/proc`` tells."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_bytes().rpartition(b")")[2].split()[1])
            parents.setdefault(parent, []).append(int(stat.parent.name))
    pids = [pid]
    for parent in pids:
        pids += parents.get(parent, [])
    return pids[1:]


def _kill(pid: int) -> bool:
    """Kill what escaped; False if there is nothing to kill."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        if state in {b"Z", b"X"}:
            return False
        os.kill(pid, SIGKILL)
    except OSError:
        return False
    return True


async def _ends_with_its_input(subject: _Subject) -> None:
    outcome, _ = await subject.run_to_the_end(_ENDS_S)
    if outcome.cause is FailureCause.TIMEOUT:
        problem = f"still running {_ENDS_S:g} s after the end of its input"
    elif outcome.exit_code != 0:
        last_line = f": {_last_line(outcome.stderr)}" if outcome.stderr else ""
        problem = f"expected exit status 0, got {outcome.exit_code}{last_line}"
    else:
        return
    raise _BrokenRuleError(problem, "how-a-worker-ends")


_Check = Callable[[_Subject], Awaitable[None]]
_CHECKS: dict[str, _Check] = {
    "answers its first request": _answers_first,
    "answers a burst of requests, each with its id": _answers_a_burst,
    "reads every text": _reads_any_text,
    "reads a request of 1 MB": _reads_a_big_request,
    "ignores keys that it does not know": _ignores_unknown_keys,
    "answers an event that it does not know": _answers_an_unknown_event,
    "prints nothing but answers": _prints_only_answers,
    "gives the same verdict as a command": _works_as_a_command,
    "ends at SIGTERM with its children": _ends_when_terminated,
    "ends with its input": _ends_with_its_input,
}

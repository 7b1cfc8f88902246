"""Command hooks: a process for each event (PROTOCOL section 4)."""

from __future__ import annotations

from hookline.limits import ProcessSlots
from hookline.process import ProcessOutcome, ProcessSpec, run_process
from hookline.registry import RegisteredHook
from hookline.results import FailureCause, HookExecutionResult

from .contract import HookCall
from .environment import hook_environment, worker_environment
from .plainwords import direct_start
from .reading import RunEnd, as_text, failed_result, read_end
from .shell import default_shell_is_bash, shell_argv


class CommandExecutor:
    """Runs commands, so many at a time."""

    def __init__(self, slots: ProcessSlots) -> None:
        self._slots = slots

    async def run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Run the command once; waiting for a slot does not eat its timeout."""
        spec = command_spec(hook, call, hook.config.timeout_ms / 1000)
        await self._slots.acquire()
        try:
            outcome = await run_process(spec)
        finally:
            self._slots.release()
        return read_outcome(hook, outcome)

    async def close(self) -> None:
        """Nothing is kept between events."""


def command_spec(
    hook: RegisteredHook, call: HookCall, timeout_s: float, *, warm: bool = False
) -> ProcessSpec:
    """How a hook's command is to be run, for one event or to be kept warm."""
    assert hook.config.command is not None  # settings drop such a hook
    command, shell, cwd = hook.config.command, hook.config.shell, call.cwd
    env = worker_environment(hook, call) if warm else hook_environment(hook, call)
    direct = None
    if shell is None and default_shell_is_bash():
        direct = direct_start(command, cwd, env)
    return ProcessSpec(
        argv=shell_argv(command, shell),
        direct=direct,
        cwd=cwd,
        env=env,
        stdin=call.payload,
        timeout_s=timeout_s,
        max_output_bytes=hook.options.max_output_bytes,
    )


def read_outcome(
    hook: RegisteredHook, outcome: ProcessOutcome, *, reran: bool = False
) -> HookExecutionResult:
    """Read the end of a process by the table."""
    end = RunEnd(
        exit_code=outcome.exit_code,
        stdout=as_text(outcome.stdout),
        stderr=as_text(outcome.stderr),
        stdout_truncated=outcome.stdout_truncated,
        truncated=outcome.stdout_truncated or outcome.stderr_truncated,
        duration=outcome.duration_ms,
        reran=reran,
    )
    if outcome.spawn_error is not None:
        return failed_result(hook, end, FailureCause.SPAWN, outcome.spawn_error)
    if outcome.timed_out:
        return timed_out_result(hook, end)
    return read_end(hook, end)


def timed_out_result(hook: RegisteredHook, end: RunEnd) -> HookExecutionResult:
    """A run that was ended at its deadline."""
    error = f"timed out after {hook.config.timeout_ms:g} ms"
    return failed_result(hook, end, FailureCause.TIMEOUT, error)

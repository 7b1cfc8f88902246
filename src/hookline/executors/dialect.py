"""Hooks written for another agent: they see and speak their own spelling.

Wraps an executor, so that processes and warm workers are treated alike. What a hook's
end means stays with ``reading``; only the words are translated.
"""

from __future__ import annotations

from msgspec import structs

from hookline.executors.contract import RegisteredHook
from hookline.protocol.results import HookExecutionResult
from hookline.settings.model import Dialect

from .contract import Executor, HookCall
from .exit_table import said_object, with_output


class DialectExecutor:
    """Translates for hooks with a dialect; the others go straight through."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    async def run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Run one hook in its own dialect."""
        if hook.config.dialect is not Dialect.CLAUDE:
            return await self._inner.run(hook, call)
        # Most hosts have no such hook, and need not load the tables.
        from hookline.protocol.dialects import claude_input

        shown = call.with_input(claude_input(call.event, call.input))
        return _retold(await self._inner.run(hook, shown), call)

    async def close(self) -> None:
        """Close what is wrapped."""
        await self._inner.close()


def _retold(result: HookExecutionResult, call: HookCall) -> HookExecutionResult:
    from hookline.protocol.dialects import claude_output, claude_text

    if result.exit_code != 0 or result.raw_output is None:
        return result
    said = said_object(result.stdout)
    if said is None:
        ours = claude_text(call.event, result.stdout)
    else:
        ours = claude_output(call.event, said, call.input)
    return with_output(structs.replace(result, warnings=()), ours)

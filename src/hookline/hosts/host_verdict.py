"""What the hooks of one event said together, in texts for a coding agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.protocol.results import ProcessedHookResult, blocking_reasons
from hookline.protocol.verdict import Verdict

from .effects import Effect

Wire = dict[str, Any]
WITHHELD = "withheld by a hook"
_LONGEST = 64 * 1024
_LONGEST_CONTEXT = 256 * 1024
"""A host may drop an answer that is too long, and then runs the tool."""


class Answer(Struct, frozen=True):
    """What a host reads."""

    stdout: bytes = b""
    status: int = 0
    stderr: str = ""
    lost: tuple[str, ...] = ()
    """What this event could not express, beyond the limits of the host."""
    expressed: frozenset[Effect] = frozenset()
    """What the host cannot express on every event, and could on this one."""


class HostVerdict(Verdict, frozen=True, kw_only=True):
    """The verdict on an event of a host, or on all files that a call touches.

    After a tool, ``blocked`` means that a hook objects and the model is told.
    """

    reason: str = ""
    """Of the block, else of the withheld result or of the question."""
    stop_reason: str = ""
    context: str = ""
    """For the model, as the hooks gave it."""
    message: str = ""
    """For the model and the person."""
    notice: str = ""
    """For the person alone."""
    suppressed: bool = False
    clear_context: bool = False
    host_answers: tuple[Wire, ...] = ()
    """What hooks of the host's own dialect say and no other host obeys."""

    @property
    def rejects(self) -> bool:
        """Whether an agent goes on after its answer; a stop ends it all the same."""
        return self.blocked and not self.stop

    def model_text(self, *, escaped: bool = True) -> str:
        """Everything for the model that is not a reason."""
        context = escape(self.context) if escaped else self.context
        return "\n".join(filter(None, [context, self.message]))

    def refusal(self, default: str = BLOCKED_BY_HOOK) -> str:
        """What a model is told in place of a tool's result or a turn."""
        reason = self.stop_reason if self.stop and not self.blocked else self.reason
        texts = (text for text in (reason, self.model_text()) if text.strip())
        return "\n\n".join(texts) or default

    def short_refusal(self) -> str:
        """The reason of a block or a stop alone, never empty."""
        reasons = [self.stop_reason if self.stop else "", self.reason]
        reasons = reasons[::-1] if self.blocked else reasons
        return next((reason for reason in reasons if reason.strip()), BLOCKED_BY_HOOK)

    def subagent_text(self) -> str:
        """What a subagent is told where its start cannot be blocked."""
        if self.ends:
            return escape(f"Do not start: {self.refusal('')}")
        return self.model_text()

    def remark(self, *, escaped: bool = True) -> str:
        """What a model is told after a tool: an objection, and everything else."""
        objection = self.reason if self.blocked or self.withheld else ""
        objection = escape(objection) if escaped else objection
        return _paragraphs(objection, self.model_text(escaped=escaped))

    def remark_with_stop(self) -> str:
        """The same where the host does not obey a stop: its reason comes first."""
        return _paragraphs(escape(self.stop_reason) if self.stop else "", self.remark())

    def asked(self) -> set[Effect]:
        """What this verdict asks of the host."""
        changes = (self.tool_input, self.llm_request, self.llm_response, self.tools)
        effects = {
            Effect.BLOCK: self.blocked,
            Effect.ASK: self.ask,
            Effect.CHANGE: any(change is not None for change in changes),
            Effect.CONTEXT: self.context,
            Effect.MESSAGE: self.message,
            Effect.WITHHOLD: self.withheld,
            Effect.STOP: self.stop,
            Effect.CLEAR: self.clear_context,
            Effect.SUPPRESS: self.suppressed,
        }
        return {effect for effect, is_asked in effects.items() if is_asked}


def host_verdict(results: Iterable[ProcessedHookResult]) -> HostVerdict:
    """What the hooks of one event said, or of each file that a call touches.

    The changed input is left out: only the host's own call can spell it.
    """
    results = list(results)
    outputs = [each.final_output for each in results if each.final_output is not None]
    objections = [why for each in results for why in blocking_reasons(each.aggregated)]
    withholding = [output for output in outputs if output.withholds_result]
    blocked = any(result.blocked for result in results) or bool(objections)
    asking = [result for result in results if result.ask]
    reasons = [result.reason for result in results if result.blocked]
    reasons += objections if not any(reasons) else []
    if not blocked:
        reasons = [each.final_output.reason for each in asking if each.final_output]
        reasons += [output.reason for output in withholding]
    # A context without what the reason says: a closed form repeats it
    # (protocol.md#results).
    lines = {line for reason in reasons if reason for line in reason.split("\n")}
    contexts = [each.hook_specific_output.get("additionalContext") for each in outputs]
    contexts = [
        "\n".join(line for line in context.split("\n") if line not in lines)
        for context in contexts
        if isinstance(context, str)
    ]
    return HostVerdict(
        blocked=blocked,
        reason=_joined(reasons),
        ask=bool(asking) and not blocked,
        stop=any(result.should_stop for result in results),
        stop_reason=_joined(result.stop_reason for result in results),
        context=_joined(contexts, _LONGEST_CONTEXT),
        message=_joined(result.system_message for result in results),
        notice=_joined(result.user_message for result in results),
        withheld=bool(withholding),
        suppressed=any(result.suppress_output for result in results),
        clear_context=any(output.clear_context for output in outputs),
        llm_request=_last(output.llm_request for output in outputs),
        llm_response=_last(output.llm_response for output in outputs),
        tools=_last(output.tool_config for output in outputs),
        host_answers=tuple(
            hook.host_answer
            for result in results
            for hook in result.aggregated.hook_results
            if hook.host_answer is not None and not hook.observed
        ),
    )


def _joined(texts: Iterable[object], longest: int = _LONGEST) -> str:
    """Texts on lines of their own, each once."""
    unique = dict.fromkeys(text for text in texts if isinstance(text, str) and text)
    joined = "\n".join(unique)
    return joined if len(joined) <= longest else f"{joined[:longest]} [...]"


def _last(values: Iterable[Wire | None]) -> Wire | None:
    return next((value for value in reversed([*values]) if value is not None), None)


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def escape(text: str) -> str:
    """Keep what hooks add from looking like the host's own tags.

    protocol.md#process
    """
    return text.replace("<", "&lt;").replace(">", "&gt;")

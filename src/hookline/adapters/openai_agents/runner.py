"""Runs of hooked agents, with the hooks of the turn around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass, fields
from typing import Any, cast

from agents import (
    Agent,
    AgentsException,
    ItemHelpers,
    RawResponsesStreamEvent,
    RunContextWrapper,
    Runner,
    RunResult,
    RunResultStreaming,
    RunState,
)
from agents.result import RunResultBase
from agents.run import DEFAULT_MAX_TURNS

from hookline.agent import HookedTurn, Session

from .agent import (
    current_run,
    hooks_of,
    prompt_at,
    prompt_of,
    run_of,
    set_run,
    user_item,
)
from .model import AgentRun, message_with, stream_of, with_items


class HooklineRunner:
    """Runs hooked agents as ``Runner`` does, with the hooks of the turn."""

    @classmethod
    async def run(
        cls,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002  # as the SDK names it
        **options: Any,
    ) -> RunResult:
        """Run an agent; the options are those of ``Runner.run``."""
        steps = _turn(starting_agent, input, options)
        value = None
        while True:
            try:
                step = steps.send(value)
            except StopIteration as end:
                return cast("RunResult", end.value)
            value = await (step.run() if isinstance(step, _Attempt) else step)

    @classmethod
    def run_sync(
        cls,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002  # as the SDK names it
        **options: Any,
    ) -> RunResult:
        """Run an agent from plain code; the options are those of ``Runner.run``."""
        steps = _turn(starting_agent, input, options)
        session, value = hooks_of(starting_agent).session, None
        while True:
            try:
                step = steps.send(value)
            except StopIteration as end:
                return cast("RunResult", end.value)
            is_attempt = isinstance(step, _Attempt)
            value = step.run_sync() if is_attempt else session.run_sync(step)

    @classmethod
    def run_streamed(
        cls,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002  # as the SDK names it
        **options: Any,
    ) -> RunResultStreaming:
        """Run an agent while ``stream_events()`` of the result is read."""
        return _Streamed.waiting(starting_agent, input, options)


_Steps = Generator[Any, Any, Any]


def _turn(agent: Agent[Any], given: Any, options: dict[str, Any]) -> _Steps:
    """One turn, as steps to wait for: hooks, and attempts at an answer."""
    hooks = hooks_of(agent)
    session = hooks.session_for(options)
    if isinstance(given, RunState):
        run = _resumed(session, given)
    else:
        run = AgentRun(session, (yield session.begin_turn(prompt_of(given))))
    turn = cast("HookedTurn", run.run)
    if turn.refused:
        return _refused(agent, given, options, turn)
    options = {**options, "run_config": hooks.guard(options.get("run_config"))}
    attempt = _Attempt(agent, _with_additions(given, turn), options, run)
    while True:
        result = yield attempt
        if _is_over(run, result):
            return result
        judge, again = yield from _judged(run, turn, result)
        if again is None:
            return result
        memory = options.get("session")
        if judge.clear_context and memory is not None:
            yield memory.clear_session()
        attempt = attempt.again(result, again, clear=judge.clear_context)


def _resumed(session: Session, state: RunState[Any]) -> AgentRun:
    """The run of a turn that goes on, possibly in another process."""
    run = run_of(getattr(state, "_context", None))
    if run is not None and isinstance(run.run, HookedTurn):
        return run
    prompt = prompt_of(getattr(state, "_original_input", ""))
    return AgentRun(session, HookedTurn(session, prompt))


def _is_over(run: AgentRun, result: Any) -> bool:
    """Whether the result has no answer that hooks could judge."""
    if run.end_reason is not None:
        result.final_output = run.end_reason
        return True
    return bool(result.interruptions) or getattr(result, "is_cancelled", False)


def _judged(run: AgentRun, turn: HookedTurn, result: Any) -> _Steps:
    """Show an answer to the hooks of the agents that took over, then of the turn."""
    for judge in (*reversed(run.subagents), turn):
        again = yield judge.finish(_answer_of(result))
        if judge.refused:
            result.final_output = judge.reason
        if again is not None or judge.refused:
            return judge, again
    return turn, None


@dataclass(frozen=True)
class _Attempt:
    """One run of the SDK within a turn."""

    agent: Agent[Any]
    given: Any
    options: dict[str, Any]
    hooked_run: AgentRun

    def ready(self) -> dict[str, Any]:
        """The options, with a context by which the run is found again."""
        known = getattr(self.given, "_context", None)  # of a ``RunState``
        context = _wrapped(self.options.get("context")) if known is None else known
        set_run(context, self.hooked_run)
        return self.options | ({"context": context} if known is None else {})

    async def run(self) -> RunResult:
        """Run the agent."""
        token = current_run.set(self.hooked_run)
        try:
            return await Runner.run(self.agent, self.given, **self.ready())
        except AgentsException as error:
            return self.ended(error)
        finally:
            current_run.reset(token)

    def run_sync(self) -> RunResult:
        """Run the agent in plain code."""
        try:
            return Runner.run_sync(self.agent, self.given, **self.ready())
        except AgentsException as error:
            return self.ended(error)

    def ended(self, error: AgentsException) -> RunResult:
        """The result of a run that a hook ended; other errors are raised again."""
        data = error.run_data
        if self.hooked_run.end_reason is None or data is None:
            raise error
        own = {one.name for one in fields(data)} & {one.name for one in _RESULT_FIELDS}
        return _result(data.last_agent, **{name: getattr(data, name) for name in own})

    def again(self, result: Any, message: str, *, clear: bool) -> _Attempt:
        """Go on with a message after an answer."""
        options = {**self.options, "context": result.context_wrapper}
        given = [user_item(message)]
        chains = ("previous_response_id", "auto_previous_response_id")
        if clear:
            options |= {"previous_response_id": None}
        elif any(options.get(name) for name in chains):
            options |= {"previous_response_id": result.last_response_id}
        elif not options.get("session") and not options.get("conversation_id"):
            given = [*result.to_input_list(), *given]
        return _Attempt(result.last_agent, given, options, self.hooked_run)


_RESULT_FIELDS = [one for one in fields(RunResultBase) if one.init]


def _result(agent: Agent[Any], **parts: Any) -> RunResult:
    empty: dict[str, Any] = {one.name: [] for one in _RESULT_FIELDS}
    return RunResult(**empty | {"final_output": None} | parts, _last_agent=agent)


def _wrapped(context: Any) -> RunContextWrapper[Any]:
    is_wrapped = isinstance(context, RunContextWrapper)
    return context if is_wrapped else RunContextWrapper(context=context)


def _refused(
    agent: Agent[Any], given: Any, options: dict[str, Any], turn: HookedTurn
) -> RunResult:
    """The result of a turn that hooks refused: the prompt is not in its history."""
    before = given[: prompt_at(given)] if isinstance(given, list) else []
    context = _wrapped(options.get("context"))
    return _result(
        agent, context_wrapper=context, input=before, final_output=turn.reason
    )


class _Streamed(RunResultStreaming):
    """A turn that runs while its events are read.

    It has the fields of the SDK's own result of the present attempt.
    """

    @classmethod
    def waiting(
        cls, agent: Agent[Any], given: Any, options: dict[str, Any]
    ) -> _Streamed:
        """The result of a turn that has not begun."""
        parts: dict[str, Any] = {one.name: [] for one in _RESULT_FIELDS}
        parts["input"] = given if isinstance(given, str | list) else []
        parts["context_wrapper"] = _wrapped(options.get("context"))
        parts["max_turns"] = options.get("max_turns", DEFAULT_MAX_TURNS)
        made = cls(
            **parts | {"final_output": None, "current_agent": agent, "trace": None},
            current_turn=0,
            _current_agent_output_schema=None,
        )
        made.__dict__["hookline_steps"] = _turn(agent, given, options)
        return made

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller wants no more."""
        return self._cancel_mode != "none"

    def _become(self, attempt: _Attempt) -> None:
        inner = Runner.run_streamed(attempt.agent, attempt.given, **attempt.ready())
        # A result lets go of its agents when it is collected: keep this one.
        inner.__dict__["hookline_inner"] = inner
        self.__dict__ = inner.__dict__

    async def stream_events(self) -> AsyncIterator[Any]:
        """The events of all attempts; reading them is what runs the turn."""
        steps, value = self.__dict__.get("hookline_steps"), None
        while steps is not None and not self.is_cancelled:
            try:
                step = steps.send(value)
            except StopIteration as end:
                for event in self._close(end.value):
                    yield event
                return
            if not isinstance(step, _Attempt):
                value = await step
                continue
            self._become(step)
            try:
                async for event in super().stream_events():
                    yield event
            except AgentsException as error:
                step.ended(error)
            value = self

    def _close(self, result: Any) -> Iterator[Any]:
        self.is_complete = True
        if result is None or result is self:
            return
        self.input, self.final_output = result.input, result.final_output
        for event in stream_of(with_items([message_with(self.final_output or "")])):
            yield RawResponsesStreamEvent(data=event)


def _with_additions(given: Any, turn: HookedTurn) -> Any:
    """The input of a run with what hooks added to the prompt."""
    if not turn.additions:
        return given
    if isinstance(given, str):
        return turn.prompt
    return [*given, user_item("\n\n".join(turn.additions))]


def _answer_of(result: Any) -> str:
    """The text of the final output."""
    output = result.final_output
    if isinstance(output, str) or output is None:
        return output or ""
    return ItemHelpers.text_message_outputs(result.new_items[-1:]) or str(output)

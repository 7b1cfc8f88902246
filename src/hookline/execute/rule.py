"""Rules: an expression and what to say where it is true; no process.

protocol.md#rules
"""

from __future__ import annotations

from functools import lru_cache

from hookline._internal.log import logger
from hookline.plan import SILENT, Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.results import FailureCause
from hookline.rules.failure import FAILURE_CONDITIONS, is_failure_met
from hookline.rules.program import (
    EvaluationError,
    ExpressionError,
    MissingFieldError,
    Scope,
    compile_expression,
)
from hookline.rules.template import render
from hookline.settings.model import HookConfig


class RuleExecutor(Executor):
    """Evaluates rules; nothing is awaited."""

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Evaluate the rule once."""
        try:
            answer = decide(hook.config, scope_of(hook, call))
        except MissingFieldError as missing:
            return RunEnd(exit_code=0, stderr=f"false: the event has no {missing}")
        except ExpressionError as error:
            problem = f"its expression cannot be compiled: {error}"
            return RunEnd(cause=FailureCause.SPAWN, error=problem)
        except EvaluationError as error:
            problem = f"its expression failed: {error}"
            return RunEnd(cause=FailureCause.OUTPUT, error=problem)
        return SILENT if answer is None else RunEnd(exit_code=0, answer=answer)


def scope_of(hook: RegisteredHook, call: HookCall) -> Scope:
    """What a hook's expressions see of an event."""
    folder = hook.project_dir or call.cwd
    return Scope(call.values(), call.cwd, folder, call.activations)


def decide(config: HookConfig, scope: Scope) -> dict[str, object] | None:
    """What a rule says about an event; None where it is not true."""
    assert config.when is not None  # settings drop such a rule
    if not compile_expression(config.when).is_true(scope):
        return None
    if config.then is None:
        return {"decision": "deny", "reason": config.description or config.name}
    rendered: dict[str, object] = render(config.then, scope)
    return rendered


def is_met(hook: RegisteredHook, call: HookCall) -> bool:
    """Whether a hook's ``if`` holds; one that cannot be evaluated does."""
    assert hook.config.condition is not None  # asked only where there is one
    if hook.config.condition in FAILURE_CONDITIONS:
        return is_failure_met(hook.config.condition, call.values())
    try:
        program = compile_expression(hook.config.condition)
        return program.is_true(scope_of(hook, call))
    except MissingFieldError:
        return False
    except (ExpressionError, EvaluationError) as error:
        _warn_once(hook.name, str(error))
        return True


@lru_cache(maxsize=1024)
def _warn_once(hook: str, problem: str) -> None:
    logger.warning("hook %r runs: its 'if' cannot be evaluated: %s", hook, problem)

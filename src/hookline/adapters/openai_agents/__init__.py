"""Hooks in the OpenAI Agents SDK: ``hooked_agent(agent, config)``.

A hooked agent is a copy whose tools, handoffs, subagents and model obey the hooks in
every run. ``HooklineRunner`` adds the hooks of the turn.
"""

from hookline.errors import MissingExtraError

try:
    import agents  # noqa: F401  # all modules of this package need it
except ImportError as error:
    raise MissingExtraError("openai-agents", "openai-agents") from error

from .agent import hooked_agent, question_about
from .model import StoppedByHook
from .runner import HooklineRunner

__all__ = ["HooklineRunner", "StoppedByHook", "hooked_agent", "question_about"]

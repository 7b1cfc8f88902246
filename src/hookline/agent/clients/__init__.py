"""``hooked(client, config)``: an SDK's client whose model calls pass the hooks.

Each SDK has a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TypeVar, cast

from hookline._internal.log import logger
from hookline.agent.chat import StreamBuffering, StreamMode
from hookline.agent.session import ConfigOrSession, Session, session_of
from hookline.agent.tool_calls import Confirm
from hookline.agent.turn import HookedRun
from hookline.errors import UnknownClientError

C = TypeVar("C")

_CLIENTS = {
    "google.genai": ("genai", "hooked_genai"),
    "openai": ("openai", "hooked_openai"),
    "anthropic": ("anthropic", "hooked_anthropic"),
}


def hooked(
    client: C,
    config: ConfigOrSession,
    *,
    confirm: Confirm | None = None,
    on_stop: Callable[[str], None] | None = None,
    stream_mode: StreamMode | str = StreamMode.BUFFER,
) -> C:
    """Pass a client's calls through the hooks; the client itself does not change.

    For the clients of google-genai, openai and anthropic, plain and async. ``confirm``
    asks a person about tools that the SDK runs itself. ``on_stop`` is called with the
    reason when a hook stops the agent.
    """
    for kind in type(client).__mro__:
        for package, (module, function) in _CLIENTS.items():
            if f"{kind.__module__}.".startswith(f"{package}."):
                hooks = ClientHooks(session_of(config), confirm, on_stop, stream_mode)
                hooked_client = getattr(
                    import_module(f"hookline.agent.clients.{module}"), function
                )
                return cast("C", hooked_client(client, hooks))
    if hasattr(client, "get_hook_system"):
        raise TypeError("got a Config as the client: write hooked(client, config)")
    if isinstance(client, type):
        name = client.__name__
        raise TypeError(f"got the class {name}: write hooked({name}(), config)")
    raise UnknownClientError(type(client).__qualname__)


@dataclass
class ClientHooks:
    """The options of one hooked client, and what it does once."""

    session: Session
    confirm: Confirm | None = None
    on_stop: Callable[[str], None] | None = None
    stream_mode: StreamMode | str = StreamMode.BUFFER

    def __post_init__(self) -> None:
        self.buffering = StreamBuffering(self.session, StreamMode(self.stream_mode))

    def begin_run(self) -> HookedRun:
        """Start the run of one call of the client."""
        return HookedRun(self.session, self.on_stop)

    def warn_dropped(self, names: list[str], *, is_stopped: bool) -> None:
        """Log that calls were left out of an answer."""
        why = "a hook stopped the agent" if is_stopped else "hooks do not allow them"
        dropped = ", ".join(names)
        logger.warning("dropped tool calls from an answer: %s (%s)", why, dropped)

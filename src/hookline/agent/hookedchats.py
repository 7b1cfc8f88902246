"""``client.chats`` of google-genai and its ``aio`` twin, through the hooks.

A chat runs Python callables by itself, too: those pass the tool hooks.
"""

from __future__ import annotations

from typing import Any

# First, since it says what to install where the SDK is missing.
from .hookedmodels import HookedAsyncModels, HookedModels  # isort: skip

from google.genai.chats import AsyncChat, AsyncChats, Chat, Chats


class HookedChats(Chats):
    """``client.chats``: chats whose functions obey the hooks too."""

    def __init__(self, models: HookedModels) -> None:
        super().__init__(models)
        self._models = models

    def create(
        self, *, model: str, config: Any = None, history: Any = None
    ) -> HookedChat:
        """Start a chat."""
        return HookedChat(self._models, model, config, history)


class HookedChat(Chat):
    """A chat; each message is one call with a state of its own."""

    def __init__(
        self, models: HookedModels, model: str, config: Any, history: Any
    ) -> None:
        super().__init__(
            modules=models, model=model, config=config, history=history or []
        )
        self._models = models

    def send_message(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks."""
        return super().send_message(message, self._begin(config))

    def send_message_stream(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks, and get chunks."""
        return super().send_message_stream(message, self._begin(config))

    def _begin(self, config: Any) -> Any:
        state = self._models.hooks.new_state()
        self._modules = self._models.in_call(state)
        given = config or self._config
        return self._models.hooks.with_hooked_tools(given, state, for_async=False)


class HookedAsyncChats(AsyncChats):
    """``client.aio.chats``: chats whose functions obey the hooks too."""

    def __init__(self, models: HookedAsyncModels) -> None:
        super().__init__(models)
        self._models = models

    def create(
        self, *, model: str, config: Any = None, history: Any = None
    ) -> HookedAsyncChat:
        """Start a chat."""
        return HookedAsyncChat(self._models, model, config, history)


class HookedAsyncChat(AsyncChat):
    """A chat; each message is one call with a state of its own."""

    def __init__(
        self, models: HookedAsyncModels, model: str, config: Any, history: Any
    ) -> None:
        super().__init__(
            modules=models, model=model, config=config, history=history or []
        )
        self._models = models

    async def send_message(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks."""
        return await super().send_message(message, self._begin(config))

    async def send_message_stream(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks, and get chunks."""
        return await super().send_message_stream(message, self._begin(config))

    def _begin(self, config: Any) -> Any:
        state = self._models.hooks.new_state()
        self._modules = self._models.in_call(state)
        given = config or self._config
        return self._models.hooks.with_hooked_tools(given, state, for_async=True)

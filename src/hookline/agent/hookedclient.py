"""A google-genai client whose every model call and function call obeys the hooks.

    client = hooked(genai.Client(), config)

``models.generate_content`` and ``generate_content_stream``, their ``aio`` twins and
``chats`` go through the hooks; everything else is the client's own. The SDK runs Python
callables in ``tools`` by itself: those pass the tool hooks, and every model call in
between the model hooks. A stop by any hook ends the SDK's loop without another call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from hookline.config import Config

from .clientcalls import ClientHooks
from .hookedchats import HookedAsyncChats, HookedChats
from .hookedmodels import HookedAsyncModels, HookedModels
from .streaming import StreamMode
from .tools import Confirm

if TYPE_CHECKING:
    from google.genai import Client


def hooked(
    client: Client,
    config: Config,
    *,
    confirm: Confirm | None = None,
    on_stop: Callable[[str], None] | None = None,
    stream_mode: StreamMode | str = StreamMode.BUFFER,
) -> Client:
    """Take a client's calls through the hooks; the client itself stays as it is.

    ``on_stop`` hears the reason when a hook stops the agent.
    """
    hooks = ClientHooks(
        config, confirm=confirm, on_stop=on_stop, stream_mode=stream_mode
    )
    return cast("Client", HookedClient(client, hooks))


class HookedClient:
    """Stands in for a ``Client``."""

    def __init__(self, client: Client, hooks: ClientHooks) -> None:
        self._client = client
        self.models = HookedModels(_api_client(client.models), hooks)
        self.chats = HookedChats(self.models)
        self.aio = HookedAsyncClient(client.aio, hooks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def __enter__(self) -> HookedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


class HookedAsyncClient:
    """Stands in for ``client.aio``."""

    def __init__(self, client: Any, hooks: ClientHooks) -> None:
        self._client = client
        self.models = HookedAsyncModels(_api_client(client.models), hooks)
        self.chats = HookedAsyncChats(self.models)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def __aenter__(self) -> HookedAsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()


def _api_client(models: Any) -> Any:
    return models._api_client  # noqa: SLF001 - the SDK gives no other way to share it

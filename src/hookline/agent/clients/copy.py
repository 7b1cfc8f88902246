"""Copies of the clients of openai and anthropic whose requests pass the hooks.

These SDKs send everything with ``client.request`` and one HTTP client. Both are
replaced in the copy; everything else is the SDK's own, and reaches no other way out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from hookline.agent.decorator import run_to_end
from hookline.errors import UnknownClientError

from .http import HttpHooks, ModelRequest, current, permitted


class _Hooked:
    """Goes before the class of an SDK's client."""

    _hookline: ClassVar[HttpHooks]

    @property
    def _client(self) -> Any:
        try:
            return vars(self)["_client"]
        except KeyError:
            raise AttributeError("_client") from None

    @_client.setter
    def _client(self, given: Any) -> None:
        # Also for a client that is copied with another HTTP client.
        vars(self)["_client"] = _guarded(given, self._hookline)

    def _build_request(self, *args: Any, **more: Any) -> Any:
        sdk: Any = super()
        return permitted(sdk._build_request(*args, **more))  # noqa: SLF001 - overridden here


class HookedSyncClient(_Hooked):
    """A plain client."""

    def request(self, cast_to: Any, options: Any, **more: Any) -> Any:
        """Send a request through the hooks."""
        sdk: Any = super()
        model_request, options = run_to_end(self._hookline.begin(options))
        with _during(model_request):
            return sdk.request(cast_to, options, **more)


class HookedAsyncClient(_Hooked):
    """An async client."""

    async def request(self, cast_to: Any, options: Any, **more: Any) -> Any:
        """Send a request through the hooks."""
        sdk: Any = super()
        model_request, options = await self._hookline.begin(options)
        with _during(model_request):
            return await sdk.request(cast_to, options, **more)


@contextmanager
def _during(model_request: ModelRequest | None) -> Iterator[None]:
    token = current.set(model_request)
    try:
        yield
    finally:
        current.reset(token)


def hooked_copy(client: Any, hooks: HttpHooks, mixin: type[_Hooked]) -> Any:
    """A client of the same class with hooks, and the same connections."""
    base = _base_of(client, hooks)
    names = ("__module__", "__qualname__", "__doc__")
    space = {name: getattr(base, name) for name in names}
    kind: Any = type(base.__name__, (mixin, base), {**space, "_hookline": hooks})
    made = kind.__new__(kind)
    for name, value in vars(client).items():
        # Resources belong to the other client. Most of them are made on first use.
        if isinstance(getattr(base, name, None), cached_property):
            continue
        is_resource = getattr(value, "_client", None) is client
        vars(made)[name] = type(value)(made) if is_resource else value
    made._client = client._client  # noqa: SLF001 - the SDK has no other name for it
    return made


def _base_of(client: Any, hooks: HttpHooks) -> type:
    """The SDK's class of a client; one with hooks gets them for another session."""
    kind: type = type(client)
    if not issubclass(kind, _Hooked):
        return kind
    if kind._hookline.session.config is not hooks.session.config:  # noqa: SLF001 - ours
        raise UnknownClientError(f"{kind.__qualname__} with hooks of another config")
    return kind.__bases__[-1]


class _Guard:
    """Goes before the class of an HTTP client, and shares all of one's state."""

    __slots__ = ("hookline_hooks", "hookline_http")
    hookline_http: Any
    hookline_hooks: HttpHooks

    def __del__(self) -> None:
        """Leave the connections to the client that made them."""

    def send(self, request: Any, *, stream: bool = False, **more: Any) -> Any:
        """Send a request, or refuse it."""
        sdk: Any = super()
        return self.hookline_hooks.guarded(sdk.send, request, stream=stream, **more)


def _guarded(http: Any, hooks: HttpHooks) -> Any:
    """The same HTTP client, able to send only what its hooks let pass."""
    if isinstance(http, _Guard):
        http = http.hookline_http
    base: Any = type(http)
    kind = _guard_class(base)
    made = kind.__new__(kind)
    made.__dict__ = vars(http)
    made.hookline_http, made.hookline_hooks = http, hooks
    return made


@lru_cache
def _guard_class(base: Any) -> Any:
    return type(base.__name__, (_Guard, base), {"__slots__": ()})

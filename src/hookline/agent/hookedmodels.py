"""``client.models`` of google-genai and its ``aio`` twin, through the hooks.

What is overridden is one model call inside the SDK's own loop of model and function
calls, so that hooks see each of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from hookline.errors import MissingExtraError
from hookline.translators.genai import GenerateContentRequest

from .background import run_sync
from .callstate import CallState
from .chat import ChatReply, Passage
from .clientcalls import ClientHooks
from .models import AfterModelHookResult

try:
    from google.genai import types
    from google.genai.models import AsyncModels, Models
except ImportError as error:
    raise MissingExtraError("genai", "google-genai") from error

# Hooks that the SDK does not reach would be worse than none.
_SEAMS = (
    "_generate_content_with_continuation",
    "_generate_content_stream_with_continuation",
)
if not all(hasattr(kind, name) for kind in (Models, AsyncModels) for name in _SEAMS):
    raise MissingExtraError("genai", "google-genai 3.1 or later")


class HookedModels(Models):
    """``client.models``; a call in progress has a state."""

    def __init__(
        self, api_client: Any, hooks: ClientHooks, state: CallState | None = None
    ) -> None:
        super().__init__(api_client)
        self.hooks = hooks
        self._state = state or hooks.new_state()
        self._in_call = state is not None

    def in_call(self, state: CallState) -> HookedModels:
        """The same, for one call."""
        return HookedModels(self._api_client, self.hooks, state)

    def generate_content(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        """Generate through the hooks."""
        if not self._in_call:
            call = self.in_call(self.hooks.new_state())
            return call.generate_content(model=model, contents=contents, config=config)
        tools = self.hooks.with_hooked_tools(config, self._state, for_async=False)
        return super().generate_content(model=model, contents=contents, config=tools)

    def generate_content_stream(
        self, *, model: str, contents: Any, config: Any = None
    ) -> Iterator[types.GenerateContentResponse]:
        """Generate through the hooks, in chunks."""
        if not self._in_call:
            call = self.in_call(self.hooks.new_state())
            return call.generate_content_stream(
                model=model, contents=contents, config=config
            )
        tools = self.hooks.with_hooked_tools(config, self._state, for_async=False)
        return super().generate_content_stream(
            model=model, contents=contents, config=tools
        )

    def _generate_content_with_continuation(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        passage = self._before(model, contents, config)
        if passage.refusal is not None:
            return _refused(passage.refusal)
        request = passage.request
        response = super()._generate_content_with_continuation(
            model=request.model, contents=request.contents, config=request.config
        )
        after = self._after(request, response)
        return cast("types.GenerateContentResponse", after.response)

    def _generate_content_stream_with_continuation(
        self, *, model: str, contents: Any, config: Any = None
    ) -> Iterator[types.GenerateContentResponse]:
        passage = self._before(model, contents, config)
        if passage.refusal is not None:
            yield _refused(passage.refusal)
            return
        request = passage.request
        held = run_sync(self.hooks.config, self.hooks.hold_back.is_due())
        chunks = []
        for chunk in super()._generate_content_stream_with_continuation(
            model=request.model, contents=request.contents, config=request.config
        ):
            chunks.append(chunk)
            if not held:
                yield chunk
        whole = self.hooks.whole(chunks)
        after = self._after(request, whole)
        if held:
            yield from chunks if after.response is whole else [after.response]

    def _before(self, model: str, contents: Any, config: Any) -> Passage:
        request = GenerateContentRequest(model, contents, config)
        return run_sync(self.hooks.config, self.hooks.before(self._state, request))

    def _after(
        self, request: GenerateContentRequest, response: Any
    ) -> AfterModelHookResult:
        after = self.hooks.after(self._state, request, response)
        return run_sync(self.hooks.config, after)


class HookedAsyncModels(AsyncModels):
    """``client.aio.models``; a call in progress has a state."""

    def __init__(
        self, api_client: Any, hooks: ClientHooks, state: CallState | None = None
    ) -> None:
        super().__init__(api_client)
        self.hooks = hooks
        self._state = state or hooks.new_state()
        self._in_call = state is not None

    def in_call(self, state: CallState) -> HookedAsyncModels:
        """The same, for one call."""
        return HookedAsyncModels(self._api_client, self.hooks, state)

    async def generate_content(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        """Generate through the hooks."""
        if not self._in_call:
            call = self.in_call(self.hooks.new_state())
            return await call.generate_content(
                model=model, contents=contents, config=config
            )
        tools = self.hooks.with_hooked_tools(config, self._state, for_async=True)
        return await super().generate_content(
            model=model, contents=contents, config=tools
        )

    async def generate_content_stream(
        self, *, model: str, contents: Any, config: Any = None
    ) -> AsyncIterator[types.GenerateContentResponse]:
        """Generate through the hooks, in chunks."""
        if not self._in_call:
            call = self.in_call(self.hooks.new_state())
            return await call.generate_content_stream(
                model=model, contents=contents, config=config
            )
        tools = self.hooks.with_hooked_tools(config, self._state, for_async=True)
        return await super().generate_content_stream(
            model=model, contents=contents, config=tools
        )

    async def _generate_content_with_continuation(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        request = GenerateContentRequest(model, contents, config)
        passage = await self.hooks.before(self._state, request)
        if passage.refusal is not None:
            return _refused(passage.refusal)
        request = passage.request
        response = await super()._generate_content_with_continuation(
            model=request.model, contents=request.contents, config=request.config
        )
        after = await self.hooks.after(self._state, request, response)
        return cast("types.GenerateContentResponse", after.response)

    async def _generate_content_stream_with_continuation(
        self, *, model: str, contents: Any, config: Any = None
    ) -> AsyncIterator[types.GenerateContentResponse]:
        request = GenerateContentRequest(model, contents, config)
        passage = await self.hooks.before(self._state, request)
        if passage.refusal is not None:
            yield _refused(passage.refusal)
            return
        request = passage.request
        held = await self.hooks.hold_back.is_due()
        chunks = []
        async for chunk in super()._generate_content_stream_with_continuation(
            model=request.model, contents=request.contents, config=request.config
        ):
            chunks.append(chunk)
            if not held:
                yield chunk
        whole = self.hooks.whole(chunks)
        after = await self.hooks.after(self._state, request, whole)
        if held:
            for shown in chunks if after.response is whole else [after.response]:
                yield shown


def _refused(refusal: ChatReply) -> types.GenerateContentResponse:
    """The response of a call that was not made: a hook's own, or an empty one."""
    if refusal.response is not None:
        return cast("types.GenerateContentResponse", refusal.response)
    feedback = types.GenerateContentResponsePromptFeedback(
        block_reason=types.BlockedReason.OTHER, block_reason_message=refusal.reason
    )
    return types.GenerateContentResponse(prompt_feedback=feedback)

"""What requests have in common that are dicts with a list of messages.

Chat Completions, the Responses API and Anthropic Messages differ in names and in what
a message may hold; how its text is edited does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .blocks import BlockKinds, edited_content, emptied_content
from .fields import get, put, text_or_none
from .stable import LLMMessage

_OWN_ROLES = {"model": "assistant"}


class MessageListRequests:
    """The shared part of a ``RequestFormat``; the SDKs take dicts everywhere."""

    kinds: BlockKinds
    messages_key = "messages"

    def model(self, request: Any) -> str:
        """Read the model's name; a request may leave it to somebody else."""
        return text_or_none(get(request, "model"), "model") or ""

    def blank(self) -> Any:
        """Start a request from nothing."""
        return {"model": "", self.messages_key: []}

    def edited(self, raw: Any, text: str) -> Any:
        """Put a new text in place of all the text of a message."""
        content = edited_content(get(raw, "content"), text, self.kinds)
        return put(raw, content, "content")

    def emptied(self, raw: Any) -> Any:
        """Take the text out of a message."""
        return put(raw, emptied_content(get(raw, "content"), self.kinds), "content")

    def created(self, message: LLMMessage, request: Any) -> Any:
        """Make a message."""
        del request
        role = _OWN_ROLES.get(message.role, message.role)
        return {"role": role, "content": message.content}

    def with_model(self, request: Any, model: str) -> Any:
        """Change the model."""
        return put(request, model, "model")

    def with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change the messages."""
        del added
        return put(request, raws, self.messages_key)

    def with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to the system instruction, where it is kept apart."""
        raise AssertionError(f"system messages are messages here: {request} {texts}")

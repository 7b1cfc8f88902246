"""What the author of a translator supplies to ``hookline.translators.suite``."""

from __future__ import annotations

from typing import Any, Protocol

from .stable import HookTranslator


class Samples(Protocol):
    """One conversation, in the objects of one SDK."""

    translator: HookTranslator

    def make_request(self) -> Any:
        """Make a request to model ``m-1`` at temperature 0.5.

        A user message "look at this" with an image; a model message "calling" with a
        call of ``read_file``; its result; a model message "done". It offers the tools
        ``read_file`` and ``write_file`` and has the system instruction "be kind".
        """
        ...

    def make_response(self, text: str) -> Any:
        """Make a response with a text that ended of itself, 1 + 2 = 3 tokens."""
        ...

    def make_response_with_call(self, text: str) -> Any:
        """Make a response with a text and a call of ``read_file``."""
        ...

    def make_chunks(self) -> list[Any]:
        """Make the stream of "Hel", "lo" and a call of ``read_file``."""
        ...

    def text_of(self, response: Any) -> str | None:
        """Read the text by the SDK's own helper."""
        ...

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        """Read name and arguments of the calls, by the SDK's own fields."""
        ...

    def outline(self, request: Any) -> list[str]:
        """Spell the history as "text", "image", "call" and "result", in order.

        The system instruction is left out, wherever the SDK keeps it.
        """
        ...

    def system_of(self, request: Any) -> str:
        """Read the whole system instruction."""
        ...

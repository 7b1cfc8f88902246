"""What a tool gave back, and how hooks' words are added to it.

``llm_content`` is what the model sees, ``return_display`` what a person sees.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from hookline.jsontext import encode

SYSTEM_MARK = "[System] "


class ToolResult(Struct, frozen=True, kw_only=True):
    """The outcome of one tool call; a refused call has one too."""

    llm_content: Any = ""
    return_display: Any = None
    """None where the person is shown what the model sees."""
    metadata: dict[str, Any] | None = None
    error: str | None = None
    suppress_display: bool = False
    stop_reason: str | None = None
    """Set where a hook stops the agent."""

    @property
    def text(self) -> str:
        """The model-facing content as text."""
        return as_text(self.llm_content)

    @property
    def display(self) -> str:
        """What to show a person; nothing where a hook suppresses it."""
        if self.suppress_display:
            return ""
        shown = self.llm_content if self.return_display is None else self.return_display
        return as_text(shown)

    def to_wire(self) -> dict[str, Any]:
        """Spell it as the ``tool_response`` that AfterTool hooks get."""
        shown = self.llm_content if self.return_display is None else self.return_display
        wire: dict[str, Any] = {
            "llmContent": self.llm_content,
            "returnDisplay": shown,
        }
        if self.metadata is not None:
            wire["metadata"] = self.metadata
        if self.error is not None:
            wire["error"] = {"message": self.error}
        return wire


def as_result(value: Any) -> ToolResult:
    """Take what a tool returned: a ToolResult, or the content itself."""
    return value if isinstance(value, ToolResult) else ToolResult(llm_content=value)


def refused(reason: str, **more: Any) -> ToolResult:
    """The result of a call that did not run: the model is told why."""
    return ToolResult(llm_content=reason, return_display=reason, error=reason, **more)


def failed(error: BaseException) -> ToolResult:
    """The result of a tool that raised."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ToolResult(llm_content=f"Error: {said}", error=said)


def with_additions(result: ToolResult, additions: list[str]) -> ToolResult:
    """Append texts to what the model sees, each after a blank line."""
    if not additions:
        return result
    content = result.llm_content
    if isinstance(content, list):
        grown: Any = [*content, *additions]
    else:
        grown = "\n\n".join([as_text(content), *additions])
    shown = content if result.return_display is None else result.return_display
    return structs.replace(result, llm_content=grown, return_display=shown)


def annotation(message: str) -> str:
    """Mark a text as the system's own word (seed 004 section 6.2)."""
    return SYSTEM_MARK + message


def as_text(value: Any) -> str:
    """Text as it is, anything else as JSON, nothing as nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()

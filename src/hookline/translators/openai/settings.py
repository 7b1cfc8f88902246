"""What both APIs of OpenAI have in common: settings by name, and ``tool_choice``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.translators.fields import get, put
from hookline.translators.messagelists import MessageListRequests
from hookline.translators.stable import HookToolConfig

from .tools import read_tool_choice, write_tool_choice


class OpenAIRequests(MessageListRequests):
    """The shared part of both request formats."""

    system_apart = False
    names: Mapping[str, tuple[str, ...]]
    """The stable name of a setting, and the API's own ones."""
    flat_tools: bool
    """Whether a tool is named beside its type, and not within."""

    def config(self, request: Any) -> dict[str, Any]:
        """Read the settings that have a stable name."""
        found = {key: get(request, *own) for key, own in self.names.items()}
        if isinstance(found.get("stopSequences"), str):
            found["stopSequences"] = [found["stopSequences"]]
        return {key: value for key, value in found.items() if value is not None}

    def takes_config(self, request: Any, key: str) -> bool:
        """There is no place for ``topK``, for example."""
        del request
        return key in self.names

    def with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting, under the name that the request uses."""
        return put(request, value, *self.names[key])

    def tool_config(self, request: Any) -> HookToolConfig | None:
        """Read ``tool_choice``."""
        choice = get(request, "tool_choice")
        return None if choice is None else read_tool_choice(choice)

    def with_tool_config(self, request: Any, tool_config: HookToolConfig) -> Any:
        """Change ``tool_choice``."""
        tools = get(request, "tools")
        choice = write_tool_choice(tool_config, tools, flat=self.flat_tools)
        return put(request, choice, "tool_choice")

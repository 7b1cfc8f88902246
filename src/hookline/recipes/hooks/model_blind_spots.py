"""Show what a hook on model events cannot see, and where to look instead.

Model hooks get text only. A forbidden word inside a function call, a function's
result, an image or the system instruction never reaches BeforeModel. So one rule needs
three places: the text (BeforeModel), what tools are asked (BeforeTool) and what they
answer (AfterTool). ``FORBIDDEN_WORDS`` holds the words, separated by commas.
"""

from __future__ import annotations

import os
import re
import unicodedata
from typing import Any

from hookline.recipes.toolinput import texts_in
from hookline.script import Output, block, run, stop

PLACES = {
    "BeforeModel": "llm_request",
    "BeforeTool": "tool_input",
    "AfterTool": "tool_response",
}


def check(event: dict[str, Any]) -> Output | None:
    """Hold the words against whatever text this event shows."""
    name = event["hook_event_name"]
    seen = event.get(PLACES.get(name, ""))
    text = " ".join(plain(one) for one in texts_in(seen))
    for word in os.environ.get("FORBIDDEN_WORDS", "").split(","):
        if word.strip() and re.search(rf"\b{re.escape(plain(word.strip()))}\b", text):
            return _verdict(name, word.strip())
    return None


def _verdict(event: str, word: str) -> Output:
    if event == "AfterTool":  # the tool has run: only stopping keeps the word in
        return stop(f"a tool brought in the word {word!r}")
    return block(f"the word {word!r} must not leave this machine")


def plain(text: str) -> str:
    """A text as it sounds: no case, no invisible characters, no fancy letters."""
    normal = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in normal if unicodedata.category(char) != "Cf")


if __name__ == "__main__":
    run(check)

"""Show what hooks on model events cannot see, and which events to use instead.

Model hooks get text only. A forbidden word inside a function call, a function's
result, an image or the system instruction never reaches BeforeModel. So one rule needs
three events: BeforeModel for the text, BeforeTool for the input of tools and AfterTool
for their results. ``FORBIDDEN_WORDS`` holds the words, separated by commas.
"""

import re
from typing import Any

from hookline.recipes.toolinput import env_list, texts_in, visible_text
from hookline.script import Output, block, run, stop

PLACES = {
    "BeforeModel": "llm_request",
    "BeforeTool": "tool_input",
    "AfterTool": "tool_response",
}


def check(event: dict[str, Any]) -> Output | None:
    """Look for the words in the text of this event."""
    name = event["hook_event_name"]
    seen = event.get(PLACES.get(name, ""))
    text = " ".join(_folded(one) for one in texts_in(seen))
    for word in env_list("FORBIDDEN_WORDS"):
        if re.search(rf"\b{re.escape(_folded(word))}\b", text):
            return _verdict(name, word)
    return None


def _verdict(event: str, word: str) -> Output:
    if event == "AfterTool":  # the tool has run: stopping keeps its result back
        return stop(f"a tool returned the forbidden word {word!r}")
    return block(f"the word {word!r} must not be sent")


def _folded(text: str) -> str:
    return visible_text(text).casefold()


if __name__ == "__main__":
    run(check)

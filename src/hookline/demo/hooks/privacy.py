"""AfterModel: remove personal data from answers."""

import re
from typing import Any

from hookline.script import Output, modify_response, run

PERSONAL = {
    r"[\w.+-]+@[\w-]+\.[\w.]+\w": "[e-mail]",
    r"\+\d[\d ]{7,}\d": "[phone]",
}


def privacy(event: dict[str, Any]) -> Output | None:
    """Replace addresses and phone numbers."""
    text = before = event["llm_response"].get("text", "")
    for pattern, label in PERSONAL.items():
        text = re.sub(pattern, label, text)
    return None if text == before else modify_response(text)


run(privacy)

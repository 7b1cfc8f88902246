"""Remove personal data from what is sent to the model.

Email addresses, phone numbers, card numbers (checksum verified) and bank accounts are
replaced by ``[email]`` and so on, also when they are spelt out or use other Unicode
characters. Model hooks do not see function calls and images.
"""

import re
from typing import Any

from hookline.recipes.toolinput import visible_text
from hookline.script import Output, modify_request, run

PLAIN_EMAIL = r"[\w.+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}"
AT = r"(?:\s*(?:\(at\)|\[at\])\s*|\s@\s)"
SPELT_EMAIL = rf"[\w.+-]+{AT}[\w-]+(?:\s*(?:\.|\(dot\)|\[dot\])\s*[\w-]+)+"
EMAIL = re.compile(f"{PLAIN_EMAIL}|{SPELT_EMAIL}", re.IGNORECASE)
CARD = re.compile(r"(?<![\w.-])\d(?:[ .-]?\d){12,18}(?![\w-])")
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b")
PHONE = re.compile(r"(?<![\w.])(?:\+|00)\d{1,3}[ .()/-]*(?:\d[ .()/-]*){6,12}\d(?!\w)")


def check(event: dict[str, Any]) -> Output | None:
    """Rewrite the messages that hold personal data."""
    messages = event["llm_request"].get("messages") or []
    clean = [{**one, "content": redacted(one["content"])} for one in messages]
    return None if clean == messages else modify_request(messages=clean)


def redacted(text: str) -> str:
    """A text without personal data; unchanged where there is none."""
    visible = visible_text(text)
    clean = EMAIL.sub("[email]", visible)
    clean = IBAN.sub(_if(_is_iban, "[account]"), clean)
    clean = CARD.sub(_if(_is_card, "[card]"), clean)
    clean = PHONE.sub("[phone]", clean)
    return text if clean == visible else clean


def _if(judge: Any, replacement: str) -> Any:
    return lambda found: replacement if judge(found[0]) else found[0]


def _is_card(text: str) -> bool:
    digits = [int(char) for char in text if char.isdigit()][::-1]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    plain = text.replace(" ", "")
    moved = plain[4:] + plain[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


if __name__ == "__main__":
    run(check)

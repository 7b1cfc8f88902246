"""Ask a policy service before each tool call, and wait for it only so long.

``POLICY_URL`` gets the event as JSON and answers ``{"allow": true}`` or
``{"allow": false, "reason": "..."}`` (Open Policy Agent's ``{"result": ...}`` will do).
Only a clear yes lets the call pass: a service that is slow (``POLICY_MS``, default
800), down, or unclear means no; ``POLICY_ON_ERROR=ask`` lets a person decide instead.
"""

from __future__ import annotations

import json
import os
import threading
import urllib.request
from typing import Any

from hookline.script import Output, ask, block, run, system_message

MAX_ANSWER = 64 * 1024


def check(event: dict[str, Any]) -> Output | None:
    """Pass on the service's verdict."""
    address = os.environ.get("POLICY_URL")
    if not address:
        return system_message("POLICY_URL is not set: no policy service is asked")
    answer = _asked(address, event, float(os.environ.get("POLICY_MS") or 800) / 1000)
    if isinstance(answer, str):
        return _unclear(answer)
    verdict = answer.get("allow")
    if verdict is True:
        return None
    if verdict is False:
        return block(str(answer.get("reason") or "the policy service said no"))
    return _unclear("the answer says neither yes nor no")


def _asked(address: str, event: dict[str, Any], seconds: float) -> dict[str, Any] | str:
    """The service's answer, or what went wrong.

    A server may send a byte now and then for ever, and no read of its own times out
    by that: so a thread reads, and only the whole of it is waited for.
    """
    answers: list[dict[str, Any] | str] = []

    def read() -> None:
        answers.append(_read(address, event, seconds))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else f"no answer within {seconds * 1000:.0f} ms"


def _read(address: str, event: dict[str, Any], seconds: float) -> dict[str, Any] | str:
    body = json.dumps({"input": event}).encode()
    headers = {"Content-Type": "application/json"}
    # The address is the user's own setting, not the agent's.
    request = urllib.request.Request(address, body, headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=seconds) as response:  # noqa: S310
            answer = json.loads(response.read(MAX_ANSWER))
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    result = answer.get("result", answer) if isinstance(answer, dict) else answer
    result = {"allow": result} if isinstance(result, bool) else result
    return result if isinstance(result, dict) else "the answer is no object"


def _unclear(why: str) -> Output:
    said = f"no verdict from the policy service: {why}"
    return ask(said) if os.environ.get("POLICY_ON_ERROR") == "ask" else block(said)


if __name__ == "__main__":
    run(check)

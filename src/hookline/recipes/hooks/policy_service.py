"""Ask a policy service before each tool call, with a time limit.

``POLICY_URL`` gets the event as JSON and answers ``{"allow": true}`` or
``{"allow": false, "reason": "..."}`` (Open Policy Agent's ``{"result": ...}`` works
too). The call passes only on ``true``: a service that is slow (``POLICY_MS``, default
800), down or unclear blocks it; with ``POLICY_ON_ERROR=ask`` a person decides instead.
"""

import json
import os
import threading
import urllib.request
from functools import partial
from typing import Any

from hookline.script import Output, ask, block, run, system_message

MAX_ANSWER = 64 * 1024


def check(event: dict[str, Any]) -> Output | None:
    """Return the verdict of the service."""
    address = os.environ.get("POLICY_URL")
    if not address:
        return system_message("POLICY_URL is not set: no policy service was asked")
    answer = _asked(address, event, float(os.environ.get("POLICY_MS") or 800) / 1000)
    if isinstance(answer, str):
        return _unclear(answer)
    verdict = answer.get("allow")
    if verdict is True:
        return None
    if verdict is False:
        return block(str(answer.get("reason") or "the policy service denied it"))
    return _unclear("the answer has no true or false in 'allow'")


def _asked(address: str, event: dict[str, Any], seconds: float) -> dict[str, Any] | str:
    """The service's answer, or what went wrong.

    A server that sends a byte now and then never runs into the timeout of a read. So a
    thread reads, and the time limit is for the whole answer.
    """
    answers: list[dict[str, Any] | str] = []
    read = partial(_read, address, event, seconds)
    thread = threading.Thread(target=lambda: answers.append(read()), daemon=True)
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
    return result if isinstance(result, dict) else "the answer is not an object"


def _unclear(why: str) -> Output:
    reason = f"no verdict from the policy service: {why}"
    return ask(reason) if os.environ.get("POLICY_ON_ERROR") == "ask" else block(reason)


if __name__ == "__main__":
    run(check)

"""Send notifications to a web address, such as a chat channel.

``WEBHOOK_URL`` is the address; it must be ``https`` unless it is on this machine, and
redirects are not followed. What looks like a credential is masked. The hook waits for
a slow service for at most three seconds.
"""

import json
import os
import re
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from hookline.script import Output, run, system_message

SECRET = re.compile(
    r"(?i)((?:pass\w*|secret|token|api_?key|bearer)['\"]?\s*[=: ]\s*['\"]?)"
    r"[^\s'\"&]{4,}"
    r"|\b(?:gh[pousr]_|xox[abp]-|sk-|AKIA)[\w-]{8,}"
)
LOCAL = ("localhost", "127.0.0.1", "::1")
SECONDS = 3


def check(event: dict[str, Any]) -> Output | None:
    """Post the message; warn where the address is not allowed."""
    address = os.environ.get("WEBHOOK_URL", "")
    if not address:
        return None
    place = urlsplit(address)
    if place.scheme != "https" and place.hostname not in LOCAL:
        return system_message("WEBHOOK_URL is not https: nothing was sent")
    _post(address, {"text": _message(event), "session": event["session_id"]})
    return None


def _message(event: dict[str, Any]) -> str:
    kind = event.get("notification_type", "notification")
    text = f"[{kind}] {event.get('message', '')}"
    return SECRET.sub(lambda found: (found[1] or "") + "***", text)[:2000]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the user chose the address, not a server."""

    def redirect_request(self, *_: Any) -> None:
        """Do not request the other address."""


def _post(address: str, body: dict[str, str]) -> None:
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(address, data, headers)  # noqa: S310 - checked
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        opener.open(request, timeout=SECONDS).close()
    except (urllib.error.URLError, OSError, ValueError):
        return


if __name__ == "__main__":
    run(check)

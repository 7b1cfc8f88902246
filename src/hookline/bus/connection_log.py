"""What happens to a connection, in the log: lost, regained, and errors in between.

Addresses are without credentials, and repeated errors are logged now and then only.
"""

from __future__ import annotations

import logging
import time
from urllib.parse import SplitResult, urlsplit

_REPEAT_S = 10.0
"""How often the same error is logged: a server that is gone makes four a second."""
_MAX_KNOWN = 32
_MAX_TEXT = 300

_log = logging.getLogger("hookline.bus")


def server_parts(server: str) -> SplitResult:
    """The parts of a server's address, which may lack its scheme."""
    return urlsplit(server if "://" in server else f"nats://{server}")


def without_password(server: str) -> str:
    """Return a server's address without the password that may be in it."""
    parts = server_parts(server)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class ConnectionLog:
    """Logs what happens to one connection, once it has been there."""

    def __init__(self) -> None:
        self._address = ""
        self._lost_at: float | None = None
        self._errors: dict[str, float] = {}

    def note_connected(self, url: str) -> None:
        """Log that the connection is there again, if it was lost."""
        self._address = without_password(url)
        if self._lost_at is None:
            return
        gone_s = round(time.monotonic() - self._lost_at, 3)
        self._lost_at = None
        bus = {"address": self._address, "gone_s": gone_s}
        # As loud as the loss: whoever has seen that waits for this.
        text = "connected to %s again after %.1f s"
        _log.warning(text, *bus.values(), extra={"bus": bus})

    def note_lost(self, why: str) -> None:
        """Log that the connection is lost, once."""
        if self._address and self._lost_at is None:
            self._lost_at = time.monotonic()
            bus = {"address": self._address, "error": why or "closed by the server"}
            text = "connection to %s lost (%s): reconnecting"
            _log.warning(text, *bus.values(), extra={"bus": bus})

    def note_error(self, problem: str, *, of_network: bool = False) -> None:
        """Log an error, unless the same one was logged just now."""
        shown = problem.removeprefix("nats: ")[:_MAX_TEXT]
        if not self._is_new(shown):
            return
        # What the network does is in the message about the loss, and attempts to
        # reconnect fail; before the first connection the caller gets the error.
        level = logging.INFO if of_network else logging.WARNING
        level = level if self._address else logging.DEBUG
        _log.log(level, "nats: %s", shown, extra={"bus": {"error": shown}})

    def _is_new(self, problem: str) -> bool:
        now = time.monotonic()
        if now - self._errors.get(problem, -_REPEAT_S) < _REPEAT_S:
            return False
        if len(self._errors) >= _MAX_KNOWN:
            self._errors.clear()
        self._errors[problem] = now
        return True

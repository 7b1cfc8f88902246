"""One connection to NATS that says whether it is there.

Nothing is buffered while it is not: what could not be sent in time must not be sent
later, when whoever wanted it has given up (decision 0032).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from ssl import SSLCertVerificationError
from typing import Any
from urllib.parse import urlsplit

from hookline.errors import BusConnectionError, MissingExtraError

try:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import Error, NoRespondersError, OutboundBufferLimitError
except ImportError as error:
    raise MissingExtraError("nats", "nats-py") from error

__all__ = ["Error", "Msg", "NatsConnection", "NoRespondersError", "shown_address"]

_NO_RESPONDERS = "503"
_PAUSE_S = 0.1
_DEFAULTS: dict[str, Any] = {
    "name": "hookline",
    "connect_timeout": 2,
    "max_reconnect_attempts": -1,
    "reconnect_time_wait": 0.25,
    "ping_interval": 20,
    "pending_size": 0,
}

_log = logging.getLogger("hookline.bus")


class _Client(Client):
    """nats-py's client with a ``flush`` that keeps its promise."""

    async def flush(self, timeout: int = 10) -> None:  # noqa: ASYNC109 - as inherited
        """Return once the server has dealt with all that was sent before.

        nats-py writes the ping of a flush ahead of the commands that wait in its
        buffer, so the first answer proves nothing about them: they follow that ping,
        and a second ping follows them. Draining builds on this. With one ping a
        request that arrives just before the unsubscription would be dropped.
        """
        await super().flush(timeout)
        await super().flush(timeout)


class NatsConnection:
    """Wraps nats-py's client: connects, reconnects for ever, publishes, asks."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        """Set once the connection is gone for good."""
        self.last_problem = ""
        self._client = _Client()
        self._inbox = _Inbox(self._client)
        self._connected = asyncio.Event()
        self._refused = asyncio.Event()

    @property
    def max_payload(self) -> int:
        """The longest message that the server takes, in bytes."""
        return self._client.max_payload

    async def open(
        self, servers: str | Sequence[str], timeout_s: float, **options: Any
    ) -> None:
        """Connect, trying for ``timeout_s``; raises BusConnectionError."""
        places = [servers] if isinstance(servers, str) else list(servers)
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        while not await self._opened(places, options, deadline - clock()):
            if self._refused.is_set() or clock() >= deadline:
                address = ", ".join(map(shown_address, places))
                raise BusConnectionError(address, self.last_problem or "no answer")
            # nats-py stumbles over a server that hangs up while greeting: once more.
            await asyncio.sleep(_PAUSE_S)
            self._client = _Client()
            self._inbox = _Inbox(self._client)
        await self._found()

    async def close(self) -> None:
        """Close at once, for good."""
        await self._client.close()
        await self._gone()

    async def flush(self) -> None:
        """Wait until the server has seen all that was sent."""
        await self._client.flush()

    async def subscribe(
        self, subject: str, queue: str, take: Callable[[Msg], Awaitable[None]]
    ) -> Any:
        """Join a queue group; returns nats-py's subscription."""
        return await self._client.subscribe(subject, queue, cb=take)

    async def publish(self, subject: str, data: bytes) -> None:
        """Send as soon as there is a connection."""
        while True:
            if not self._connected.is_set():
                await self._connected.wait()
            try:
                return await self._client.publish(subject, data)
            except OutboundBufferLimitError:
                await self._lost()

    async def ask(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        """Send as soon as there is a connection, and wait for the answer."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        while True:
            if not self._connected.is_set():
                async with asyncio.timeout_at(deadline):
                    await self._connected.wait()
            try:
                return await self._inbox.ask(subject, data, deadline)
            except OutboundBufferLimitError:
                await self._lost()

    async def _opened(
        self, places: list[str], options: dict[str, Any], timeout_s: float
    ) -> bool:
        """Try once to connect, within a time and until we are refused."""
        opening = asyncio.ensure_future(self._connect(places, options))
        refused = asyncio.ensure_future(self._refused.wait())
        try:
            await asyncio.wait(
                {opening, refused}, timeout=timeout_s, return_when="FIRST_COMPLETED"
            )
            if opening.done():
                return opening.result()
        finally:
            refused.cancel()
            opening.cancel()
        await asyncio.wait({opening}, timeout=1)
        await self._client.close()
        return False

    async def _connect(self, places: list[str], options: dict[str, Any]) -> bool:
        try:
            await self._client.connect(
                places,
                error_cb=self._note,
                disconnected_cb=self._lost,
                reconnected_cb=self._found,
                closed_cb=self._gone,
                **{**_DEFAULTS, **options},
            )
        except ImportError as error:
            # nats-py loads nkeys only when it is given credentials.
            raise MissingExtraError("nats", error.name or "nkeys") from error
        # nats-py raises errors of many kinds here: its own, the system's, of TLS.
        except Exception as error:  # noqa: BLE001
            await self._note(error)
            return False
        return True

    async def _lost(self) -> None:
        if not self._client.is_connected and not self._client.is_closed:
            self._connected.clear()

    async def _found(self) -> None:
        self.last_problem = ""
        self._refused.clear()
        self._connected.set()

    async def _gone(self) -> None:
        # Nobody shall wait for a connection any more: using it will say why.
        self._connected.set()
        self.closed.set()

    async def _note(self, error: Exception) -> None:
        _log.debug("nats: %s", error)
        if self._refused.is_set():
            return  # what follows a refusal says less than the refusal
        self.last_problem = str(error) or type(error).__name__
        not_let_in = "authorization" in self.last_problem.lower()
        if not_let_in or isinstance(error, SSLCertVerificationError):
            self._refused.set()


class _Inbox:
    """Where the answers to our requests come in, told apart by their subjects.

    nats-py has the same for one request at a time in more general words; at the rate
    of an agent's events that costs half as much again as the trip itself.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._prefix = ""
        self._tokens = count()
        self._waiting: dict[str, asyncio.Future[bytes]] = {}

    async def ask(self, subject: str, data: bytes, deadline: float) -> bytes:
        """Send a request and wait for its answer; raises at the loop's deadline."""
        if not self._prefix:
            self._prefix = f"{self._client.new_inbox()}."
            await self._client.subscribe(f"{self._prefix}*", cb=self._take)
        loop = asyncio.get_running_loop()
        reply = f"{self._prefix}{next(self._tokens)}"
        answer: asyncio.Future[bytes] = loop.create_future()
        self._waiting[reply] = answer
        timer = loop.call_at(deadline, _expire, answer)
        try:
            await self._client.publish(subject, data, reply)
            return await answer
        finally:
            timer.cancel()
            del self._waiting[reply]

    async def _take(self, message: Msg) -> None:
        answer = self._waiting.get(message.subject)
        if answer is None or answer.done():
            return  # too late: its requester has been told so
        headers = message.headers
        if headers and headers.get("Status") == _NO_RESPONDERS:
            answer.set_exception(NoRespondersError())
        else:
            answer.set_result(message.data)


def _expire(answer: asyncio.Future[bytes]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())


def shown_address(server: str) -> str:
    """Write a server's address without the password that may be in it."""
    parts = urlsplit(server if "://" in server else f"nats://{server}")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

"""Hooks over NATS: requests to one subject, workers in one queue group.

A request waits for the connection within its own deadline, and is never sent after
that: its hooks would run although the requester has given up (decision 0032).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from itertools import count
from math import ceil
from ssl import SSLCertVerificationError, SSLError
from typing import Any
from urllib.parse import SplitResult, urlsplit

from hookline.errors import BusConnectionError, EncodingError, MissingExtraError
from hookline.protocol.values import decode, encode_whole

from .contracts import (
    OVERLOAD,
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBusType,
    RequestHandler,
    ResponseCode,
    Unsubscribe,
    after_waiting,
    failed_response,
    is_expired,
    not_run,
    subject_name,
)
from .wire import encode_response

try:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import (
        Error,
        FlushTimeoutError,
        NoRespondersError,
        OutboundBufferLimitError,
        UnexpectedEOF,
    )
except ImportError as error:
    raise MissingExtraError("nats", "nats-py") from error

PREFIX = "hookline"
QUEUE = "hookline-workers"
CONNECT_TIMEOUT_S = 10.0

MAX_PENDING_BYTES = 64 * 1024 * 1024
"""How much all requests that a worker has taken may hold."""

_NO_RESPONDERS = "503"
_PAUSE_S = 0.1
_CLOSE_S = 1.0
_FLUSH_S = 120
"""Longer than a connection without any pong lasts: three ``ping_interval``."""
_TIMEOUT_BYTES = 32
"""At most, for the deadline in a request."""
_MAX_PROBLEM = 300
_DENIED = "permissions violation for subscription"
_TLS_OPTIONS = ("tls", "tls_hostname", "tls_handshake_first")
_DEFAULTS: dict[str, Any] = {
    "name": "hookline",
    "connect_timeout": 2,
    "max_reconnect_attempts": -1,
    "reconnect_time_wait": 0.25,
    "ping_interval": 20,
    "pending_size": 0,
}

_log = logging.getLogger("hookline.bus")


class _NoTLSError(Error):
    def __str__(self) -> str:
        return "the server does not offer TLS, which was asked for: nothing was sent"


class _NoInboxError(Error):
    """The server lets this connection hear no answers."""


class _RefusedError(Exception):
    """Trying longer to connect does not help."""


class _Client(Client):
    """nats-py's client with a complete ``flush``, and TLS where it is asked for.

    nats-py encrypts only if the server says so, whatever ``tls://`` or a context asks.
    """

    _pending: list[bytes]

    def __init__(self, *, requires_tls: bool) -> None:
        super().__init__()
        self._requires_tls = requires_tls

    async def _process_info(
        self, info: dict[str, Any], initial_connection: bool = False
    ) -> None:
        if self._requires_tls and info.get("tls_available"):
            info["tls_required"] = True  # by us; the server would take both
        await super()._process_info(info, initial_connection)

    def _connect_command(self) -> bytes:
        # The first thing sent on every connection, the password included. What was not
        # sent before the last one was lost follows: answers, but no late requests,
        # which are what has a reply subject.
        self._pending = [
            command
            for command in self._pending
            if not command.startswith(b"PUB ") or not command.split(b" ", 3)[2]
        ]
        self._pending_data_size = sum(map(len, self._pending))
        transport: Any = self._transport
        writer: asyncio.StreamWriter | None = getattr(transport, "_io_writer", None)
        if writer is None:  # a websocket
            is_encrypted = getattr(transport, "_using_tls", None) is True
        else:
            is_encrypted = writer.get_extra_info("ssl_object") is not None
        if self._requires_tls and not is_encrypted:
            transport.close()  # nats-py leaves it open, at every attempt
            raise _NoTLSError
        if writer is not None and is_encrypted:
            # nats-py does not say so, and asyncio would warn at each end of one. There
            # is no protocol if the server has ended the connection already.
            protocol: Any = writer.transport.get_protocol()
            if protocol is not None:
                protocol._over_ssl = True  # noqa: SLF001
        return super()._connect_command()

    async def flush(self, timeout: int = 10) -> None:  # noqa: ASYNC109 - as inherited
        """Return once the server has handled everything sent before.

        nats-py sends the ping of a flush before the commands in its buffer; only a
        second ping follows them. Draining depends on this: with one ping a request
        that arrives just before the unsubscription would be dropped.

        Whoever waits may give up, the flush itself goes on: nats-py reads nothing any
        more once a pong has come to a flush that was cancelled.
        """

        async def flush_twice() -> None:
            for _ in range(2):
                await super(_Client, self).flush(_FLUSH_S)

        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(asyncio.create_task(flush_twice()))
        except TimeoutError:
            raise FlushTimeoutError from None


class NatsConnection:
    """A connection for the event loop on which it is made; it reconnects without end.

    The log says when it is lost and regained; addresses there have no credentials.
    """

    def __init__(self, addresses: list[str], options: dict[str, Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self.addresses, self.options = addresses, options
        self.problem = ""
        """The last error since it was connected."""
        self.denied = ""
        """Why the server refuses a subscription, if it does."""
        self.closed = asyncio.Event()
        """Set once it is closed and will not come back."""
        schemes = {_url_parts(address).scheme for address in addresses}
        self._requires_tls = bool(schemes & {"tls", "wss"}) or any(
            options.get(name) for name in _TLS_OPTIONS
        )
        if self._requires_tls and "ws" in schemes:
            # The password in such an address goes out before any answer.
            problem = "not encrypted although TLS is asked for"
            raise BusConnectionError("ws://", problem)
        self.client = _Client(requires_tls=self._requires_tls)
        self._connected = asyncio.Event()
        self._opening_until: float | None = None
        self._lost_at: float | None = None
        self._address = ""
        self._logged: set[str] = set()
        """Errors since it was connected: a server that is gone makes four a second."""
        self._inbox = ""
        """What the subjects of its answers begin with, once it listens there."""
        self._has_inbox, self._no_inbox = False, ""
        """Whether answers arrive there, and why the server refuses them."""
        self._answers: dict[str, asyncio.Future[Msg]] = {}
        self._tokens = count()
        self._inbox_check = asyncio.Lock()
        self._ending: AsyncGenerator[None, None] | None = None

    async def open(self, timeout_s: float) -> None:
        """Connect, trying for ``timeout_s``; raises BusConnectionError."""
        self._opening_until = self.loop.time() + timeout_s
        try:
            async with asyncio.timeout_at(self._opening_until):
                await self._connect()
        except BaseException as error:
            self._opening_until, problem = None, self.problem or "no answer"
            await self.close()
            if isinstance(error, TimeoutError | _RefusedError):
                address = ", ".join(map(_without_password, self.addresses))
                raise BusConnectionError(address, problem) from None
            raise
        self._opening_until = None
        await self._on_connected()

    async def _connect(self) -> None:
        while True:
            try:
                await self.client.connect(
                    self.addresses,
                    error_cb=self._on_error,
                    disconnected_cb=self._on_disconnected,
                    reconnected_cb=self._on_connected,
                    closed_cb=self._on_closed,
                    **{**_DEFAULTS, **self.options},
                )
                if self.client.is_connected:
                    return
                # nats-py does not notice an end of the connection in its handshake.
                self.problem = "the server ended the connection"
                await self.close()
                self.closed.clear()
                self._connected.clear()
            except ImportError as error:
                # nats-py imports nkeys only if there are credentials.
                raise MissingExtraError("nats", error.name or "nkeys") from error
            except _RefusedError:
                raise
            # nats-py raises many types of errors if a server disconnects during the
            # handshake: its own, OSError, those of TLS.
            except Exception as error:  # noqa: BLE001
                await self._on_error(error)
            await asyncio.sleep(_PAUSE_S)
            self.client = _Client(requires_tls=self._requires_tls)

    async def open_another(self, timeout_s: float) -> NatsConnection:
        """Connect in the same way, for the event loop that runs now."""
        connection = NatsConnection(self.addresses, self.options)
        connection._ending = _close_with_loop(connection)
        await anext(connection._ending)
        await connection.open(timeout_s)
        return connection

    async def close(self) -> None:
        """Close at once."""
        # nats-py waits without end for that of TLS, which a server that refuses a
        # certificate may never send; and it asserts that it has begun to connect.
        with suppress(TimeoutError, AssertionError):
            async with asyncio.timeout(_CLOSE_S):
                await self.client.close()
        await self._on_closed()

    async def publish(self, subject: str, data: bytes) -> None:
        """Send as soon as there is a connection."""
        while True:
            await self._connected.wait()
            try:
                return await self.client.publish(subject, data)
            except OutboundBufferLimitError:
                await self._on_disconnected()

    async def request(self, subject: str, data: bytes, deadline: float) -> bytes:
        """Send as soon as there is a connection, and wait for the answer.

        ``data`` is a JSON object, which is sent with the time that is left then.
        """
        answer: asyncio.Future[Msg] = self.loop.create_future()
        token = str(next(self._tokens))
        self._answers[token] = answer
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    try:
                        if not (self._connected.is_set() and self._has_inbox):
                            await self._connected.wait()
                            await self._check_inbox()
                        left_s = deadline - self.loop.time()
                        if left_s <= 0:
                            raise TimeoutError
                        timed = data[:-1] + b',"timeoutMs":%d}' % ceil(left_s * 1000)
                        # nats-py's own ``request`` costs a third of a whole one.
                        await self.client.publish(subject, timed, self._inbox + token)
                    except (OutboundBufferLimitError, FlushTimeoutError):
                        await self._on_disconnected()
                        continue
                    message = await answer
                    if (message.headers or {}).get("Status") == _NO_RESPONDERS:
                        raise NoRespondersError
                    return message.data
        finally:
            del self._answers[token]

    async def _take(self, message: Msg) -> None:
        answer = self._answers.get(message.subject.rpartition(".")[2])
        if answer is not None and not answer.done():
            answer.set_result(message)

    async def _check_inbox(self) -> None:
        """Raise if no answer can arrive: hooks would run for nobody."""
        async with self._inbox_check:
            if self._has_inbox:
                return
            if not self._inbox:
                self._inbox = f"{self.client.new_inbox()}."
                await self.client.subscribe(f"{self._inbox}*", cb=self._take)
            # Nobody answers it if the connection is lost meanwhile.
            await self.client.flush(timeout=1)
            if self._no_inbox:
                hint = "set inbox_prefix (--inbox-prefix) to the one this user may read"
                raise _NoInboxError(f"no answer can arrive ({self._no_inbox}): {hint}")
            self._has_inbox = self._connected.is_set()

    async def _on_disconnected(self) -> None:
        if self.client.is_connected or self.client.is_closed:
            return
        self._connected.clear()
        self.denied, self._no_inbox, self._has_inbox = "", "", False
        if self._address and self._lost_at is None:
            self._lost_at = time.monotonic()
            bus = {
                "address": self._address,
                "error": self.problem or "closed by the server",
            }
            text = "connection to %s lost (%s): reconnecting"
            _log.warning(text, *bus.values(), extra={"bus": bus})

    async def _on_connected(self) -> None:
        self.problem = ""
        self._logged.clear()
        self._connected.set()
        if (url := self.client.connected_url) is not None:
            self._address = _without_password(url.geturl())
        if self._lost_at is not None:
            gone_s = round(time.monotonic() - self._lost_at, 3)
            self._lost_at = None
            bus = {"address": self._address, "gone_s": gone_s}
            # As loud as the loss: whoever has seen that waits for this.
            text = "connected to %s again after %.1f s"
            _log.warning(text, *bus.values(), extra={"bus": bus})

    async def _on_closed(self) -> None:
        # Wakes those who wait for a connection; using it raises the reason.
        self._connected.set()
        self.closed.set()

    async def _on_error(self, error: Exception) -> None:
        problem = str(error) or type(error).__name__
        unauthorized = "authorization" in problem.lower()
        if "authorization violation" in problem.lower():
            problem += ": the server refuses this login, check user and credentials"
        self.problem = problem
        if _DENIED in problem.lower():
            self.denied = problem
            # nats-py gives the server's words in lower case.
            if self._inbox and self._inbox.lower() in problem.lower():
                self._no_inbox, self._has_inbox = problem, False
        if self._opening_until is not None:
            is_final = isinstance(error, SSLCertVerificationError | _NoTLSError)
            is_late = self.loop.time() > self._opening_until
            if unauthorized or is_final or is_late:
                raise _RefusedError  # nats-py would try for ever
        if self._address and problem not in self._logged:
            self._logged.add(problem)
            # What the network does is in the message about the loss.
            is_network = isinstance(error, UnexpectedEOF | OSError)
            is_network = is_network and not isinstance(error, SSLError)
            text = problem.removeprefix("nats: ")[:_MAX_PROBLEM]
            level = logging.INFO if is_network else logging.WARNING
            _log.log(level, "nats: %s", text, extra={"bus": {"error": text}})


async def _close_with_loop(connection: NatsConnection) -> AsyncGenerator[None, None]:
    # Ending its async generators is the last thing that a loop does.
    try:
        yield
    finally:
        await connection.close()


def _url_parts(address: str) -> SplitResult:
    """The parts of a server's address, which may lack its scheme."""
    return urlsplit(address if "://" in address else f"nats://{address}")


def _without_password(address: str) -> str:
    parts = _url_parts(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class NatsBus:
    """A connection to NATS that can request hooks, serve them, or both.

    Subjects begin with ``prefix``; workers of one ``queue`` share the requests.
    """

    def __init__(
        self, connection: NatsConnection, *, prefix: str = PREFIX, queue: str = QUEUE
    ) -> None:
        message_type = MessageBusType.HOOK_EXECUTION_REQUEST
        self.subject = f"{subject_name('prefix', prefix)}.{message_type}"
        self.queue = subject_name("queue", queue)
        self._connection = connection
        self._others: dict[asyncio.AbstractEventLoop, asyncio.Task[NatsConnection]] = {}
        self._services: list[_Service] = []
        self.overloads = 0
        """How many requests were refused because others held too much memory."""

    @classmethod
    async def connect(
        cls,
        servers: str | Sequence[str],
        *,
        prefix: str = PREFIX,
        queue: str = QUEUE,
        timeout_s: float = CONNECT_TIMEOUT_S,
        **options: Any,
    ) -> NatsBus:
        """Connect to one of the servers in ``timeout_s``; raises BusConnectionError.

        Further options (``tls``, ``user``, ``password``, ``user_credentials``,
        ``inbox_prefix`` and so on) are passed to nats-py.
        """
        addresses = [servers] if isinstance(servers, str) else list(servers)
        bus = cls(NatsConnection(addresses, options), prefix=prefix, queue=queue)
        await bus._connection.open(timeout_s)
        return bus

    async def __aenter__(self) -> NatsBus:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.drain()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now, and the server lets us use it."""
        connection = self._connection
        return bool(connection.client.is_connected) and not connection.denied

    async def wait_closed(self) -> str:
        """Wait until the connection is closed; returns the last problem."""
        await self._connection.closed.wait()
        return self._connection.problem

    def serve(self, handle: RequestHandler) -> Unsubscribe:
        """Answer requests with ``handle``; await ``ready()`` to be sure of it.

        The returned function stops that; requests that have arrived are answered.
        """
        self._connection.denied = ""  # of an earlier subscription
        service = _Service(self, self._connection, handle)
        self._services.append(service)
        return service.leave

    async def ready(self) -> None:
        """Wait until the server knows this worker; raises if it refuses."""
        try:
            for service in self._services:
                if service.leaving is None:
                    await service.subscribing
            await self._connection.client.flush()
        except (Error, OSError, TimeoutError) as error:
            problem = str(error) or type(error).__name__
            raise BusConnectionError(self.subject, problem) from error
        if problem := self._connection.denied:
            hint = "use the login of a worker, and the prefix and queue it is allowed"
            raise BusConnectionError(self.subject, f"{problem}: {hint}")

    async def request(
        self, request: HookExecutionRequest, timeout_s: float
    ) -> HookExecutionResponse:
        """Get the response, or a failed one by the deadline; never raises."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        connection, code = self._connection, ResponseCode.NO_RESPONDERS
        try:
            data = encode_whole({k: v for k, v in request.items() if k != "timeoutMs"})
            connection = await self._connection_here(timeout_s)
            limit = connection.client.max_payload
            if len(data) + _TIMEOUT_BYTES > limit:
                code = ResponseCode.PAYLOAD_TOO_LARGE
                text = "the request has %d bytes, the server accepts %d"
                return failed_response(request, code, text % (len(data), limit))
            answer = await connection.request(self.subject, data, deadline)
        except EncodingError as error:
            return failed_response(request, ResponseCode.ENCODING_FAILURE, error)
        except NoRespondersError:
            problem = f"no worker is subscribed to {self.subject}"
            return failed_response(request, code, problem)
        except _NoInboxError as error:
            return failed_response(request, ResponseCode.TIMEOUT, error)
        except TimeoutError:
            cause = connection.problem
            hint = f" (last error: {cause})" if cause else ""
            problem = f"no response within {timeout_s:.3g} s{hint}"
            return failed_response(request, ResponseCode.TIMEOUT, problem)
        except (Error, OSError) as error:
            return failed_response(request, code, error)
        response: HookExecutionResponse = _decoded(answer)
        return response

    async def settled(self) -> None:
        """Wait until every handler that was removed has sent its last response."""
        leaving = [service.leaving for service in self._services if service.leaving]
        if leaving:
            await asyncio.wait(leaving)
        self._services = [it for it in self._services if it.leaving not in leaving]

    async def drain(self) -> None:
        """Take no new requests, finish those taken, then close."""
        for service in self._services:
            service.leave()
        await self.settled()
        await self._close_connections()

    async def close(self) -> None:
        """Close at once; unfinished requests get no response."""
        for service in self._services:
            service.cancel()
        await self._close_connections()

    async def _connection_here(self, timeout_s: float) -> NatsConnection:
        """The connection of the event loop that runs now.

        Hooks of plain functions run on a loop of their own, and the first one may be
        closed by then, or waiting for that very function.
        """
        loop = asyncio.get_running_loop()
        if loop is self._connection.loop or self._connection.closed.is_set():
            return self._connection
        opening = self._others.get(loop)
        if opening is None or (opening.done() and not _is_open(opening)):
            for closed_loop in [loop for loop in self._others if loop.is_closed()]:
                del self._others[closed_loop]
            limit_s = min(timeout_s, CONNECT_TIMEOUT_S)
            opening = loop.create_task(self._connection.open_another(limit_s))
            self._others[loop] = opening
        async with asyncio.timeout(timeout_s):
            return await asyncio.shield(opening)

    async def _close_connections(self) -> None:
        for loop, opening in list(self._others.items()):
            if loop.is_running() and opening.done() and _is_open(opening):
                closing = opening.result().close()
                future = asyncio.run_coroutine_threadsafe(closing, loop)
                await asyncio.wait({asyncio.wrap_future(future)}, timeout=_CLOSE_S)
        self._others = {}
        await self._connection.close()


def _is_open(opening: asyncio.Task[NatsConnection]) -> bool:
    return not opening.cancelled() and opening.exception() is None


class _Service:
    """One handler of requests: its subscription and its running tasks."""

    def __init__(
        self, bus: NatsBus, connection: NatsConnection, handle: RequestHandler
    ) -> None:
        self._bus, self._connection, self._handle = bus, connection, handle
        self._bytes = 0
        self.subscribing: asyncio.Task[Any] = asyncio.create_task(
            connection.client.subscribe(bus.subject, bus.queue, cb=self._take)
        )
        self.leaving: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()

    def leave(self) -> None:
        if self.leaving is None:
            self.leaving = asyncio.create_task(self._leave())

    async def _leave(self) -> None:
        try:
            await (await self.subscribing).drain()
        except Error as error:
            # The server is unreachable, so it sends no more requests either.
            _log.warning("nats: could not unsubscribe: %s", error)
        while self._answering:
            await asyncio.wait(self._answering)

    def cancel(self) -> None:
        for task in (self.subscribing, self.leaving, *self._answering):
            if task is not None:
                task.cancel()

    async def _take(self, message: Msg) -> None:
        if not message.reply:
            _log.warning("ignored a request without a reply subject")
            return
        # A task per request: a slow hook must not delay other requests. While it
        # waits, the decoded request is in memory and its bytes are not.
        request, size = _decoded(message.data), len(message.data)
        answer = self._answer(message.reply, request, size, time.monotonic())
        task = asyncio.create_task(answer)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(
        self, reply: str, request: Any, size: int, arrived: float
    ) -> None:
        if self._bytes and self._bytes + size > MAX_PENDING_BYTES:
            self._bus.overloads += 1
            text = "requests of %d bytes wait already: start more workers"
            response = not_run(request, text % self._bytes, OVERLOAD)
        else:
            self._bytes += size
            try:
                response = await self._handle(after_waiting(request, arrived))
            # A handler of the host is foreign code and may raise anything.
            except Exception as error:  # noqa: BLE001
                response = failed_response(request, ResponseCode.INTERNAL_ERROR, error)
            finally:
                self._bytes -= size
        if is_expired(response):
            return
        try:
            data = encode_response(response, self._connection.client.max_payload)
            await self._connection.publish(reply, data)
        except (Error, OSError, EncodingError) as error:
            about = {"correlation_id": response["correlationId"]}
            text, extra = "no response to %.80r: %s", {"request": about}
            _log.warning(text, *about.values(), error, extra=extra)


def _decoded(data: bytes) -> Any:
    try:
        return decode(data)
    except ValueError:
        return None  # not an object either: neither a valid request nor a response

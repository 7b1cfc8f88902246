"""Hooks over NATS: requests to one subject, workers in one queue group.

A request waits for the connection within its own deadline, and is never sent after
that: its hooks would run although the requester has given up (decision 0032).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from itertools import count
from math import ceil
from ssl import SSLCertVerificationError, SSLError
from typing import Any

from hookline.errors import BusConnectionError, EncodingError, MissingExtraError
from hookline.protocol.values import decode, encode_whole

from .connection_log import ConnectionLog, server_parts, without_password
from .contracts import (
    OVERLOAD,
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBusType,
    RequestHandler,
    ResponseCode,
    Unsubscribe,
    correlation_id_of,
    expire,
    failed_response,
    is_expired,
    not_run,
    subject_name,
    unanswered,
)
from .wire import encode_response

try:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import (
        Error,
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
_REQUEST = MessageBusType.HOOK_EXECUTION_REQUEST
_PAUSE_S = 0.1
_CLOSE_S = 1.0
_TIMEOUT_BYTES = 32
"""At most, for the deadline in a request."""
_DENIED = "permissions violation for subscription"
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

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        own = "set inbox_prefix (--inbox-prefix) to the one that this user may read"
        return f"no answer can arrive ({self.problem}): {own}"


class _Client(Client):
    """nats-py's client with a complete ``flush``, and TLS where it is asked for.

    nats-py encrypts only if the server says so, whatever ``tls://`` or a context asks.
    """

    def __init__(self, *, requires_tls: bool = False) -> None:
        super().__init__()
        self._requires_tls = requires_tls

    async def _process_info(
        self, info: dict[str, Any], initial_connection: bool = False
    ) -> None:
        if self._requires_tls and info.get("tls_available"):
            info["tls_required"] = True  # by us; the server would take both
        await super()._process_info(info, initial_connection)

    def _connect_command(self) -> bytes:
        # The first thing sent on every connection, the password included.
        if self._requires_tls and not self._is_encrypted():
            if self._transport is not None:
                # nats-py leaves it open, at every attempt; it has no types here.
                self._transport.close()  # type: ignore[no-untyped-call]
            raise _NoTLSError
        if self._is_encrypted() and (writer := self._writer) is not None:
            # nats-py does not say so, and asyncio would warn at each end of one. There
            # is no protocol if the server has ended the connection already.
            protocol: Any = writer.transport.get_protocol()
            if protocol is not None:
                protocol._over_ssl = True  # noqa: SLF001
        return super()._connect_command()

    @property
    def _writer(self) -> asyncio.StreamWriter | None:
        return getattr(self._transport, "_io_writer", None)

    def _is_encrypted(self) -> bool:
        if self._writer is not None:
            return self._writer.get_extra_info("ssl_object") is not None
        return getattr(self._transport, "_using_tls", None) is True

    async def flush(self, timeout: int = 10) -> None:  # noqa: ASYNC109 - as inherited
        """Return once the server has handled everything sent before.

        nats-py sends the ping of a flush before the commands in its buffer; only a
        second ping follows them. Draining depends on this: with one ping a request
        that arrives just before the unsubscription would be dropped.
        """
        await super().flush(timeout)
        await super().flush(timeout)


class NatsConnection:
    """Wraps nats-py's client: connects, reconnects without end, publishes, requests."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        """Set once the connection is closed and will not come back."""
        self.last_problem = ""
        self.is_denied = False
        """Whether the server refuses a subscription of this connection."""
        self.log = ConnectionLog()
        self.client = _Client()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._opened_with: tuple[list[str], dict[str, Any]] = ([], {})
        self._ending: AsyncGenerator[None, None] | None = None
        self._connected = asyncio.Event()
        self._refused = asyncio.Event()
        self._inbox = ""
        self._no_inbox = ""
        """Why the server denies the inbox, where it does."""
        self._tokens = count()
        self._waiting: dict[str, asyncio.Future[bytes]] = {}

    async def open(
        self, servers: str | Sequence[str], timeout_s: float, **options: Any
    ) -> None:
        """Connect, trying for ``timeout_s``; raises BusConnectionError."""
        addresses = [servers] if isinstance(servers, str) else list(servers)
        self.loop = asyncio.get_running_loop()
        self._opened_with = addresses, options
        requires_tls = _requires_tls(addresses, options)
        self.client = _Client(requires_tls=requires_tls)
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        while not await self._opened(addresses, options, deadline - clock()):
            if self._refused.is_set() or clock() >= deadline:
                address = ", ".join(map(without_password, addresses))
                raise BusConnectionError(address, self.last_problem or "no answer")
            # nats-py raises if a server disconnects during the handshake: try again.
            await asyncio.sleep(_PAUSE_S)
            self.client = _Client(requires_tls=requires_tls)
        await self._on_connected()

    async def close(self) -> None:
        """Close at once."""
        await self._close_client()
        await self._on_closed()

    async def _close_client(self) -> None:
        # nats-py waits without end for that of TLS, which a server that refuses a
        # certificate may never send.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self.client.close()

    async def open_another(self, timeout_s: float) -> NatsConnection:
        """Connect in the same way, for the event loop that runs now."""
        another = NatsConnection()
        another._ending = _close_with_loop(another)
        await anext(another._ending)
        addresses, options = self._opened_with
        await another.open(addresses, timeout_s, **options)
        return another

    async def publish(self, subject: str, data: bytes) -> None:
        """Send as soon as there is a connection."""
        while True:
            await self._connected.wait()
            try:
                return await self.client.publish(subject, data)
            except OutboundBufferLimitError:
                await self._on_disconnected()

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        """Send as soon as there is a connection, and wait for the answer.

        ``data`` is a JSON object, which is sent with the time that is left then.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            if not self._connected.is_set():
                async with asyncio.timeout_at(deadline):
                    await self._connected.wait()
            try:
                return await self._exchange(subject, data, deadline)
            except OutboundBufferLimitError:
                await self._on_disconnected()

    async def _exchange(self, subject: str, data: bytes, deadline: float) -> bytes:
        # nats-py's own ``request`` makes each request half as slow again.
        if not self._inbox:
            self._inbox = f"{self.client.new_inbox()}."
            await self.client.subscribe(f"{self._inbox}*", cb=self._take)
        if self._no_inbox:
            # Unsent: its hooks would run for nobody.
            raise _NoInboxError(self._no_inbox)
        loop = asyncio.get_running_loop()
        reply = f"{self._inbox}{next(self._tokens)}"
        answer: asyncio.Future[bytes] = loop.create_future()
        self._waiting[reply] = answer
        timer = loop.call_at(deadline, expire, answer)
        try:
            left_ms = ceil((deadline - loop.time()) * 1000)
            timed = data[:-1] + b',"timeoutMs":%d}' % left_ms
            await self.client.publish(subject, timed, reply)
            return await answer
        finally:
            timer.cancel()
            del self._waiting[reply]

    async def _take(self, message: Msg) -> None:
        answer = self._waiting.get(message.subject)
        if answer is None or answer.done():
            return  # too late: the requester has its timeout
        headers = message.headers
        if headers and headers.get("Status") == _NO_RESPONDERS:
            answer.set_exception(NoRespondersError())
        else:
            answer.set_result(message.data)

    async def _opened(
        self, addresses: list[str], options: dict[str, Any], timeout_s: float
    ) -> bool:
        """Try once to connect, until the timeout or a refusal."""
        opening = asyncio.ensure_future(self._connect(addresses, options))
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
        await self._close_client()
        return False

    async def _connect(self, addresses: list[str], options: dict[str, Any]) -> bool:
        try:
            await self.client.connect(
                addresses,
                error_cb=self._on_error,
                disconnected_cb=self._on_disconnected,
                reconnected_cb=self._on_connected,
                closed_cb=self._on_closed,
                **{**_DEFAULTS, **options},
            )
        except ImportError as error:
            # nats-py imports nkeys only if there are credentials.
            raise MissingExtraError("nats", error.name or "nkeys") from error
        # nats-py raises many types of errors here: its own, OSError, those of TLS.
        except Exception as error:  # noqa: BLE001
            await self._on_error(error)
            return False
        return True

    async def _on_disconnected(self) -> None:
        if not self.client.is_connected and not self.client.is_closed:
            self._connected.clear()
            self.is_denied, self._no_inbox = False, ""
            self.log.note_lost(self.last_problem)

    async def _on_connected(self) -> None:
        self.last_problem = ""
        self._refused.clear()
        self._connected.set()
        if (url := self.client.connected_url) is not None:
            self.log.note_connected(url.geturl())

    async def _on_closed(self) -> None:
        # Wakes those who wait for a connection; using it raises the reason.
        self._connected.set()
        self.closed.set()

    async def _on_error(self, error: Exception) -> None:
        problem = str(error) or type(error).__name__
        if "authorization violation" in problem.lower():
            problem += ": the server refuses this login, check user and credentials"
        if not self.client.is_closed:
            network = isinstance(error, UnexpectedEOF | OSError)
            of_network = network and not isinstance(error, SSLError)
            self.log.note_error(problem, of_network=of_network)
        if _DENIED in problem.lower():
            self.is_denied = True
            # nats-py gives the server's words in lower case.
            if self._inbox and self._inbox.lower() in problem.lower():
                self._no_inbox = problem
                for answer in self._waiting.values():
                    if not answer.done():
                        answer.set_exception(_NoInboxError(problem))
        if self._refused.is_set():
            return  # later errors say less than the refusal
        self.last_problem = problem
        unauthorized = "authorization" in self.last_problem.lower()
        if unauthorized or isinstance(error, SSLCertVerificationError | _NoTLSError):
            self._refused.set()


async def _close_with_loop(connection: NatsConnection) -> AsyncGenerator[None, None]:
    # Ending its async generators is the last thing that a loop does.
    try:
        yield
    finally:
        await connection.close()


_TLS_OPTIONS = ("tls", "tls_hostname", "tls_handshake_first")


def _requires_tls(addresses: list[str], options: dict[str, Any]) -> bool:
    """Whether TLS is asked for, by an option or by the address of any server."""
    schemes = {server_parts(address).scheme for address in addresses}
    required = bool(schemes & {"tls", "wss"}) or any(
        options.get(name) for name in _TLS_OPTIONS
    )
    if required and "ws" in schemes:
        # The password in such an address goes out before any answer.
        raise BusConnectionError("ws://", "not encrypted although TLS is asked for")
    return required


class NatsBus:
    """A connection to NATS that can request hooks, serve them, or both.

    Subjects begin with ``prefix``; workers of one ``queue`` share the requests.
    """

    def __init__(
        self, connection: NatsConnection, *, prefix: str = PREFIX, queue: str = QUEUE
    ) -> None:
        self.subject = f"{subject_name('prefix', prefix)}.{_REQUEST}"
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
        subject_name("prefix", prefix)
        subject_name("queue", queue)
        connection = NatsConnection()
        await connection.open(servers, timeout_s, **options)
        return cls(connection, prefix=prefix, queue=queue)

    async def __aenter__(self) -> NatsBus:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.drain()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now, and the server lets us use it."""
        connection = self._connection
        return bool(connection.client.is_connected) and not connection.is_denied

    async def wait_closed(self) -> str:
        """Wait until the connection is closed; returns the last problem."""
        await self._connection.closed.wait()
        return self._connection.last_problem

    def serve(self, handle: RequestHandler) -> Unsubscribe:
        """Answer requests with ``handle``; await ``ready()`` to be sure of it.

        The returned function stops that; requests that have arrived are answered.
        """
        if "permissions violation" in self._connection.last_problem.lower():
            self._connection.last_problem = ""  # of an earlier subscription
            self._connection.is_denied = False
        service = _Service(self, self._connection, handle)
        self._services.append(service)
        return service.leave

    async def ready(self) -> None:
        """Wait until the server knows this worker; raises if it refuses."""
        try:
            for service in self._services:
                await service.settled()
            await self._connection.client.flush()
        except (Error, OSError, TimeoutError) as error:
            problem = str(error) or type(error).__name__
            raise BusConnectionError(self.subject, problem) from error
        problem = self._connection.last_problem
        if _DENIED in problem.lower():
            hint = "use the login of a worker, and the prefix and queue it is allowed"
            raise BusConnectionError(self.subject, f"{problem}: {hint}")

    async def request(
        self, request: HookExecutionRequest, timeout_s: float
    ) -> HookExecutionResponse:
        """Get the response, or a failed one by the deadline; never raises."""
        rest = {key: value for key, value in request.items() if key != "timeoutMs"}
        try:
            data = encode_whole(rest)
        except EncodingError as error:
            return unanswered(request, ResponseCode.ENCODING_FAILURE, error)
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        try:
            connection = await self._connection_here(timeout_s)
        except (BusConnectionError, TimeoutError) as error:
            problem = str(error) or "no connection"
            return unanswered(request, ResponseCode.NO_RESPONDERS, problem)
        limit = connection.client.max_payload
        if len(data) + _TIMEOUT_BYTES > limit:
            message = f"the request has {len(data)} bytes, the server accepts {limit}"
            return unanswered(request, ResponseCode.PAYLOAD_TOO_LARGE, message)
        return await self._exchange(connection, request, data, deadline - clock())

    async def settled(self) -> None:
        """Wait until every handler that was removed has sent its last response."""
        for service in [one for one in self._services if one.leaving]:
            await service.settled()
            await service.finished()
            self._services.remove(service)

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
        if opening is None or (opening.done() and not _opened(opening)):
            for ended in [one for one in list(self._others) if one.is_closed()]:
                self._others.pop(ended, None)
            limit_s = min(timeout_s, CONNECT_TIMEOUT_S)
            opening = loop.create_task(self._connection.open_another(limit_s))
            self._others[loop] = opening
        async with asyncio.timeout(timeout_s):
            return await asyncio.shield(opening)

    async def _close_connections(self) -> None:
        for loop, opening in list(self._others.items()):
            if loop.is_running() and opening.done() and _opened(opening):
                closing = opening.result().close()
                future = asyncio.run_coroutine_threadsafe(closing, loop)
                await asyncio.wait({asyncio.wrap_future(future)}, timeout=_CLOSE_S)
        self._others = {}
        await self._connection.close()

    async def _exchange(
        self,
        connection: NatsConnection,
        request: HookExecutionRequest,
        data: bytes,
        timeout_s: float,
    ) -> HookExecutionResponse:
        try:
            answer = await connection.request(self.subject, data, timeout_s)
        except NoRespondersError:
            message = f"no worker is subscribed to {self.subject}"
            return unanswered(request, ResponseCode.NO_RESPONDERS, message)
        except TimeoutError:
            problem = connection.last_problem
            hint = f" (last error: {problem})" if problem else ""
            message = f"no response within {timeout_s:.3g} s{hint}"
            return unanswered(request, ResponseCode.TIMEOUT, message)
        except _NoInboxError as error:
            return unanswered(request, ResponseCode.TIMEOUT, error)
        except (Error, OSError) as error:
            return unanswered(request, ResponseCode.NO_RESPONDERS, str(error))
        response: HookExecutionResponse = _decoded(answer)
        return response


def _opened(opening: asyncio.Task[NatsConnection]) -> bool:
    return not opening.cancelled() and opening.exception() is None


class _Service:
    """One handler of requests: its subscription and its running tasks."""

    def __init__(
        self, bus: NatsBus, connection: NatsConnection, handle: RequestHandler
    ) -> None:
        self._bus, self._connection = bus, connection
        self._handle = handle
        self._bytes = 0
        self._subscribing: asyncio.Task[Any] = asyncio.create_task(
            connection.client.subscribe(bus.subject, bus.queue, cb=self._take)
        )
        self.leaving: asyncio.Task[None] | None = None
        self._in_flight: set[asyncio.Task[None]] = set()

    def leave(self) -> None:
        if self.leaving is None:
            self.leaving = asyncio.create_task(self._unsubscribe())

    async def settled(self) -> None:
        await (self.leaving or self._subscribing)

    async def finished(self) -> None:
        while self._in_flight:
            await asyncio.wait(self._in_flight)

    def cancel(self) -> None:
        for task in (self._subscribing, self.leaving, *self._in_flight):
            if task is not None:
                task.cancel()

    async def _unsubscribe(self) -> None:
        try:
            await (await self._subscribing).drain()
        except Error as error:
            # The server is unreachable, so it sends no more requests either.
            _log.warning("nats: could not unsubscribe: %s", error)

    async def _take(self, message: Msg) -> None:
        if not message.reply:
            _log.warning("ignored a request without a reply subject")
            return
        # A task per request: a slow hook must not delay other requests. While it
        # waits, the decoded request is in memory and its bytes are not.
        payload, size = _decoded(message.data), len(message.data)
        task = asyncio.create_task(self._answer(message.reply, payload, size))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)

    async def _answer(self, reply: str, payload: Any, size: int) -> None:
        response = await self._handled(payload, size)
        if is_expired(response):
            return
        try:
            data = encode_response(response, self._connection.client.max_payload)
            await self._connection.publish(reply, data)
        except (Error, OSError, EncodingError) as error:
            request = {"correlation_id": response["correlationId"]}
            text, extra = "no response to %.80r: %s", {"request": request}
            _log.warning(text, *request.values(), error, extra=extra)

    async def _handled(self, payload: Any, size: int) -> HookExecutionResponse:
        if self._bytes and self._bytes + size > MAX_PENDING_BYTES:
            self._bus.overloads += 1
            message = (
                f"requests of {self._bytes} bytes wait already: start more workers"
            )
            return not_run(payload, correlation_id_of(payload), message, OVERLOAD)
        self._bytes += size
        try:
            return await self._handle(payload)
        # A handler of the host is foreign code and may raise anything.
        except Exception as error:  # noqa: BLE001
            code = ResponseCode.INTERNAL_ERROR
            return failed_response(correlation_id_of(payload), code, error)
        finally:
            self._bytes -= size


def _decoded(data: bytes) -> Any:
    try:
        return decode(data)
    except ValueError:
        return None  # not an object either: neither a valid request nor a response

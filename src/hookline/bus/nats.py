"""Make a response fit the carrier's limit without losing its verdict.

What hooks printed goes first. A response that is too long even so is a failed one,
but a block or a stop in it still arrives: an answer is never longer than allowed, and
never more lenient than what the hooks said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import count
from ssl import SSLCertVerificationError
from typing import Any
from urllib.parse import urlsplit

from hookline.errors import BusConnectionError, EncodingError, MissingExtraError
from hookline.protocol.jsontext import decode, encode

from .contracts import (
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBusType,
    RequestHandler,
    ResponseCode,
    Unsubscribe,
    correlation_id_of,
    failed_response,
    is_response,
)

_LONGEST_REASON = 4096
_MARK = " ... (cut)"


def fit(response: HookExecutionResponse, limit: int) -> bytes:
    """Encode a response into at most ``limit`` bytes."""
    data = encode(response)
    if len(data) <= limit:
        return data
    slim = encode(_without_streams(response))
    return slim if len(slim) <= limit else encode(_verdict_only(response, len(data)))


def _without_streams(response: HookExecutionResponse) -> HookExecutionResponse:
    output = response.get("output")
    if output is None:
        return response
    cut = {"stdout": "", "stderr": "", "truncated": True}
    results = [result | cut for result in output["hookResults"]]
    return {**response, "output": {**output, "hookResults": results}}


def _verdict_only(
    response: HookExecutionResponse, length: int
) -> HookExecutionResponse:
    error = response.get("error")
    failed = failed_response(
        response["correlationId"],
        ResponseCode.PAYLOAD_TOO_LARGE,
        f"the response has {length} bytes, more than the server takes",
        stage="internal",
        cause=error["code"] if error else None,
    )
    processed = response.get("processed")
    if processed and (processed.get("blocked") or processed.get("shouldStop")):
        failed["processed"] = {key: _cut(value) for key, value in processed.items()}
    return failed


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_REASON:
        return value[:_LONGEST_REASON] + _MARK
    return value


try:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import Error, NoRespondersError, OutboundBufferLimitError
except ImportError as error:
    raise MissingExtraError("nats", "nats-py") from error

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


PREFIX = "hookline"
QUEUE = "hookline-workers"
CONNECT_TIMEOUT_S = 10.0

_log = logging.getLogger("hookline.bus")


class NatsBus:
    """A connection to NATS that can ask for hooks, serve them, or both."""

    def __init__(
        self, connection: NatsConnection, *, prefix: str = PREFIX, queue: str = QUEUE
    ) -> None:
        self.subject = f"{prefix}.{MessageBusType.HOOK_EXECUTION_REQUEST}"
        self.queue = queue
        self._connection = connection
        self._serving: list[_Served] = []
        self._changing: set[asyncio.Task[None]] = set()

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
        """Connect, trying for ``timeout_s``; raises BusConnectionError.

        Further options (``tls``, ``user``, ``password``, ``user_credentials``,
        ``inbox_prefix`` and so on) go to nats-py as they are.
        """
        connection = NatsConnection()
        await connection.open(servers, timeout_s, **options)
        return cls(connection, prefix=prefix, queue=queue)

    async def __aenter__(self) -> NatsBus:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.drain()

    @property
    def max_payload(self) -> int:
        """The longest message that the server takes, in bytes."""
        return self._connection.max_payload

    async def wait_closed(self) -> str:
        """Wait until the connection is gone for good; returns the last problem."""
        await self._connection.closed.wait()
        return self._connection.last_problem

    def serve(self, handle: RequestHandler) -> Unsubscribe:
        """Have requests answered by ``handle``; await ``ready()`` to be sure of it.

        The returned function takes no more; what has arrived is still answered.
        """
        served = _Served(self, self._connection, handle)
        self._serving.append(served)
        self._change(served.subscribe())

        def unsubscribe() -> None:
            self._change(served.leave())

        return unsubscribe

    async def ready(self) -> None:
        """Wait until the server knows what is served here; raises where it refuses."""
        await self._changed()
        await self._connection.flush()
        problem = self._connection.last_problem
        if "permissions violation for subscription" in problem.lower():
            raise BusConnectionError(self.subject, problem)

    async def request(
        self, request: HookExecutionRequest, timeout_s: float
    ) -> HookExecutionResponse:
        """Get the response, or a failed one by the deadline; never raises."""
        try:
            data = encode(request)
        except EncodingError as error:
            return _failure(request, ResponseCode.ENCODING_FAILURE, str(error))
        limit = self.max_payload
        if len(data) > limit:
            message = f"the request has {len(data)} bytes, the server takes {limit}"
            return _failure(request, ResponseCode.PAYLOAD_TOO_LARGE, message)
        return await self._exchange(request, data, timeout_s)

    async def settled(self) -> None:
        """Wait until all that is served no more has given its last response."""
        await self._changed()
        for served in [one for one in self._serving if one.has_left]:
            await served.finished()
            self._serving.remove(served)

    async def drain(self) -> None:
        """Take no more, finish what was taken, then close."""
        for served in self._serving:
            self._change(served.leave())
        await self.settled()
        await self._connection.close()

    async def close(self) -> None:
        """Close at once; what is in hand gets no response."""
        for task in self._changing:
            task.cancel()
        for served in self._serving:
            served.abandon()
        await self._connection.close()

    async def _exchange(
        self, request: HookExecutionRequest, data: bytes, timeout_s: float
    ) -> HookExecutionResponse:
        try:
            answer = await self._connection.ask(self.subject, data, timeout_s)
        except NoRespondersError:
            message = f"no worker listens on {self.subject}"
            return _failure(request, ResponseCode.NO_RESPONDERS, message)
        except TimeoutError:
            problem = self._connection.last_problem
            hint = f" (last heard: {problem})" if problem else ""
            message = f"no response within {timeout_s:.3g} s{hint}"
            return _failure(request, ResponseCode.TIMEOUT, message)
        except (Error, OSError) as error:
            return _failure(request, ResponseCode.NO_RESPONDERS, str(error))
        return _read(answer, request)

    def _change(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._changing.add(task)
        task.add_done_callback(self._changing.discard)

    async def _changed(self) -> None:
        while self._changing:
            await asyncio.gather(*self._changing)


class _Served:
    """One handler of requests, its place in the queue group, and its work."""

    def __init__(
        self, bus: NatsBus, connection: NatsConnection, handle: RequestHandler
    ) -> None:
        self._bus = bus
        self._connection = connection
        self._handle = handle
        self.has_left = False
        self._turn = asyncio.Lock()
        self._subscription: Any = None
        self._at_work: set[asyncio.Task[None]] = set()

    async def subscribe(self) -> None:
        async with self._turn:
            self._subscription = await self._connection.subscribe(
                self._bus.subject, self._bus.queue, self._take
            )

    async def leave(self) -> None:
        async with self._turn:
            subscription, self._subscription = self._subscription, None
            self.has_left = True
            if subscription is None:
                return
            try:
                await subscription.drain()
            except Error as error:
                # The server is away: it will send us nothing more either.
                _log.warning("nats: left the queue group unheard: %s", error)

    async def finished(self) -> None:
        while self._at_work:
            await asyncio.wait(self._at_work)

    def abandon(self) -> None:
        for task in self._at_work:
            task.cancel()

    async def _take(self, message: Msg) -> None:
        if not message.reply:
            _log.warning("a request without a reply subject was ignored")
            return
        # A task each, or one slow hook would hold up every other request.
        task = asyncio.create_task(self._answer(message))
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def _answer(self, message: Msg) -> None:
        response = await self._handled(_payload(message.data))
        try:
            data = fit(response, self._connection.max_payload)
            await self._connection.publish(message.reply, data)
        except (Error, OSError, EncodingError) as error:
            _log.warning("no response to %s: %s", response["correlationId"], error)

    async def _handled(self, payload: Any) -> HookExecutionResponse:
        try:
            return await self._handle(payload)
        # The handler may be the host's own, and that may raise anything.
        except Exception as error:  # noqa: BLE001
            return failed_response(
                correlation_id_of(payload),
                ResponseCode.INTERNAL_ERROR,
                str(error) or type(error).__name__,
                stage="internal",
            )


def _payload(data: bytes) -> Any:
    try:
        return decode(data)
    except ValueError:
        return None  # no JSON is no object either: invalid_request


def _read(data: bytes, request: HookExecutionRequest) -> HookExecutionResponse:
    found = _payload(data)
    if not is_response(found):
        message = "the answer is no response of a hook worker"
        return _failure(request, ResponseCode.INVALID_RESPONSE, message)
    response: HookExecutionResponse = found
    return response


def _failure(
    request: HookExecutionRequest, code: ResponseCode, message: str
) -> HookExecutionResponse:
    return failed_response(
        request["correlationId"],
        code,
        message,
        stage="internal",
        event_name=request["eventName"],
    )

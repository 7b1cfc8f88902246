"""Requests over NATS, for hooks that run on machines of their own.

Workers share the requests of one subject as a queue group; a response goes to its
requester's inbox and to nobody else. Whatever happens to worker or server, a
requester has one response by its deadline, and nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from hookline.errors import BusConnectionError, EncodingError
from hookline.jsontext import decode, encode

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
from .fitting import fit
from .natsconnection import Error, Msg, NatsConnection, NoRespondersError

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

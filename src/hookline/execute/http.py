"""Http hooks: the event is posted to a service, which answers with a verdict.

protocol.md#rules. The body of a 2xx answer is read like the stdout of a process that
exits with 0; anything else is a failure with its cause. One deadline covers a request
from the wait for a connection to the last byte of the answer.

The transport of httpx is used without its client: so there are no redirects, cookies,
proxies, ``.netrc`` files or decompression that would have to be switched off. A secret
from the environment is sent, and masked in everything that is kept.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from msgspec import Struct, structs

from hookline.errors import MissingExtraError
from hookline.plan import HookCall, RegisteredHook, RunEnd
from hookline.protocol.opa import opa_output
from hookline.protocol.results import FailureCause
from hookline.protocol.values import encode
from hookline.settings.headers import (
    is_credential,
    names_problem,
    replace_variables,
    value_problem,
)
from hookline.settings.model import Dialect, Expect, HookConfig, shown_url

from .answer import as_text, parse_answer, read_streams
from .command import environment_text
from .masking import Mask
from .runtime import Runtimes, Slots

if TYPE_CHECKING:
    import ssl

    import httpx

CONNECTIONS = 32
"""To one origin at a time; further events wait, which counts against their timeout."""

_KEEP_ALIVE_S = 30.0
_MAX_ERROR_BYTES = 4096
_MAX_LINE = 200


class RequestFailedError(Exception):
    """A request without a usable answer."""

    def __init__(self, cause: FailureCause, problem: str, page: str = "") -> None:
        super().__init__(problem)
        self.cause = cause
        self.problem = problem
        self.page = page


class HttpExecutor:
    """Posts events; keeps connections open for each event loop."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Post the event once; its timeout starts here."""
        question = None
        try:
            question = _question(hook, call)
            client = self._runtimes.here().part(_Client)
            await client.open()
            limit = asyncio.timeout(hook.config.timeout_ms / 1000)
            async with limit, client.place(question.origin):
                answer = await client.ask(question, hook.options.max_output_bytes)
            end = _read(hook, answer)
        except TimeoutError:
            end = read_streams(hook, RunEnd(cause=FailureCause.TIMEOUT))
        except RequestFailedError as error:
            end = RunEnd(cause=error.cause, error=error.problem, stderr=error.page)
        end = _named(end, hook.config)
        return end if question is None else question.mask.end(end)

    async def close(self) -> None:
        """The connections are those of event loops, which close them."""


class _Question(Struct, frozen=True, kw_only=True):
    """What is sent, and what of it must not be shown."""

    url: httpx.URL
    headers: list[tuple[bytes, bytes]]
    body: bytes
    mask: Mask

    @property
    def origin(self) -> str:
        return f"{self.url.scheme}://{self.url.netloc.decode()}"


class _Answer(Struct, frozen=True):
    """A 2xx answer."""

    body: bytes
    is_cut: bool
    has_end: bool
    """Whether the service marked its end, rather than close the connection."""


class _Client:
    """The connections of one event loop."""

    def __init__(self) -> None:
        self._transports: dict[str, httpx.AsyncHTTPTransport] = {}
        self._lifetime = _close_at_end(self._transports)
        self._is_open = False
        self._places: dict[str, Slots] = {}

    def place(self, origin: str) -> Slots:
        """A place among the connections to one origin."""
        return self._places.setdefault(origin, Slots(CONNECTIONS))

    async def open(self) -> None:
        """Let the event loop close the connections when it ends."""
        if not self._is_open:
            self._is_open = True
            await anext(self._lifetime)

    async def close(self) -> None:
        await self._lifetime.aclose()

    def abandon(self) -> None:
        """Its event loop has closed the connections."""

    async def ask(self, question: _Question, limit: int) -> _Answer:
        """Post once, and again where a connection from before turns out to be dead.

        A service closes idle connections whenever it likes; the question was not
        answered then, and a question can be asked twice.
        """
        progress = _Progress()
        try:
            return await _post(self._transport(question), question, limit, progress)
        except RequestFailedError:
            if progress.connects or progress.answered not in (None, _REQUEST_TIMEOUT):
                raise
        async with _new_transport(question.url.scheme) as fresh:
            return await _post(fresh, question, limit, _Progress())

    def _transport(self, question: _Question) -> httpx.AsyncHTTPTransport:
        scheme = question.url.scheme
        if scheme not in self._transports:
            self._transports[scheme] = _new_transport(scheme)
        return self._transports[scheme]


async def _close_at_end(
    transports: dict[str, httpx.AsyncHTTPTransport],
) -> AsyncGenerator[None]:
    # Event loops close the generators that were started on them, also those that
    # nobody refers to any more: asyncio.run() leaves no connection behind.
    try:
        yield
    finally:
        while transports:
            await transports.popitem()[1].aclose()


_REQUEST_TIMEOUT = 408
"""Some servers send it to idle connections before they close them."""


class _Progress:
    """How far a request has come."""

    def __init__(self) -> None:
        self.connects = False
        """It opens a connection of its own."""
        self.answered: int | None = None
        self._has_waited = False

    async def trace(self, step: str, _: Any) -> None:
        if step == "connection.connect_tcp.started":
            self.connects = True
        elif step == "http11.receive_response_headers.started":
            asyncio.get_running_loop().call_soon(self._note_wait)
        elif step == "http11.receive_response_headers.complete":
            self._refuse_early_answer()

    def _refuse_early_answer(self) -> None:
        # Reading from the network always lets the event loop go on. What was there
        # without that came with the answer before: it answers no question.
        if not self._has_waited:
            problem = "sent an answer before it was asked"
            raise RequestFailedError(FailureCause.OUTPUT, problem)

    def _note_wait(self) -> None:
        self._has_waited = True


async def _post(
    transport: httpx.AsyncHTTPTransport,
    question: _Question,
    limit: int,
    progress: _Progress,
) -> _Answer:
    import httpx

    try:
        request = httpx.Request(
            "POST",
            question.url,
            headers=question.headers,
            content=question.body,
            extensions={"trace": progress.trace},
        )
        response = await transport.handle_async_request(request)
        progress.answered = response.status_code
        try:
            return await _read_response(response, limit, question.mask)
        finally:
            await response.aclose()
    except RequestFailedError:
        raise
    # Foreign code below this: whatever it raises is a failure of the hook, and only
    # what ``_failure`` makes of it is shown.
    except Exception as error:  # noqa: BLE001
        why = question.mask.text(_root_of(error))[:_MAX_LINE]
        raise _failure(error, why, answered=progress.answered is not None) from None


async def _read_response(response: httpx.Response, limit: int, mask: Mask) -> _Answer:
    if not response.is_success:
        body, _ = await _read_body(response, _MAX_ERROR_BYTES)
        page = mask.text(as_text(body))
        problem = _describe(response.status_code, page)
        raise RequestFailedError(FailureCause.CRASH, problem, page)
    coding = mask.text(response.headers.get("content-encoding", "identity").strip())
    if coding.lower() not in {"", "identity"}:
        problem = f"answered with Content-Encoding {coding[:40]!r}, which is not read"
        hint = "let it answer without compression"
        raise RequestFailedError(FailureCause.OUTPUT, f"{problem}: {hint}")
    framed = {"content-length", "transfer-encoding"} & response.headers.keys()
    has_end = bool(framed) or response.status_code == HTTPStatus.NO_CONTENT
    return _Answer(*await _read_body(response, limit), has_end)


async def _read_body(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """So many bytes of a body at most, and whether there are more."""
    pieces: list[bytes] = []
    left = limit
    stream = cast("httpx.AsyncByteStream", response.stream)
    async for piece in stream:
        pieces.append(piece[:left])
        if len(piece) > left:
            return b"".join(pieces), True
        left -= len(piece)
    return b"".join(pieces), False


def _describe(status: int, page: str) -> str:
    phrase = next((f" {one.phrase}" for one in HTTPStatus if one == status), "")
    if 300 <= status < 400:
        hint = "redirects are not followed: write the final address into url"
        return f"answered {status}{phrase}, and {hint}"
    lines = (" ".join(line.split()) for line in page.splitlines())
    line = "".join(filter(str.isprintable, next(filter(None, lines), "")))
    said = f": {line[:_MAX_LINE]}{'...' if len(line) > _MAX_LINE else ''}"
    return f"answered {status}{phrase}{said if line else ''}"


def _failure(error: Exception, why: str, *, answered: bool) -> RequestFailedError:
    import httpx

    if answered:
        problem = f"broke off its answer: {why}"
        return RequestFailedError(FailureCause.OUTPUT, problem)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        hint = "check the url, and that the service runs"
        if "CERTIFICATE" in why:
            hint = "name the certificate of its authority in SSL_CERT_FILE"
        return RequestFailedError(
            FailureCause.SPAWN, f"cannot be reached: {why}: {hint}"
        )
    if isinstance(error, httpx.RemoteProtocolError) and "disconnected" not in why:
        problem = f"did not answer as an HTTP server does: {why}"
        return RequestFailedError(FailureCause.OUTPUT, problem)
    if isinstance(error, httpx.RemoteProtocolError | httpx.NetworkError):
        problem = "closed the connection without an answer"
        return RequestFailedError(FailureCause.CRASH, problem)
    problem = f"could not be asked: {type(error).__name__}: {why}"
    return RequestFailedError(FailureCause.SPAWN, problem)


def _root_of(error: BaseException) -> str:
    """What the system said, below the wrappers."""
    while True:
        below = error.__cause__
        if isinstance(error, BaseExceptionGroup):
            below = error.exceptions[0]
        elif type(error).__name__ == "ConnectError":
            # The pool cuts the cause off. Of no other error: there the context may be
            # what the host was handling when it fired the event.
            below = below or error.__context__
        if below is None:
            return " ".join(str(error).split()) or type(error).__name__
        error = below


def _new_transport(scheme: str) -> httpx.AsyncHTTPTransport:
    import httpx

    limits = httpx.Limits(
        max_connections=None,
        max_keepalive_connections=None,
        keepalive_expiry=_KEEP_ALIVE_S,
    )
    return httpx.AsyncHTTPTransport(verify=_tls(scheme), trust_env=False, limits=limits)


def _tls(scheme: str) -> ssl.SSLContext:
    import ssl

    if scheme != "https":
        # Without one, httpx would load all authorities for nothing.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return _verified_tls(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))


@lru_cache(maxsize=4)
def _verified_tls(*chosen: str | None) -> ssl.SSLContext:
    """Verify by the system's authorities, or by SSL_CERT_FILE and SSL_CERT_DIR."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    found = ssl.get_default_verify_paths()
    if not any((*chosen, found.cafile, found.capath)):
        import certifi  # comes with httpx

        context.load_verify_locations(certifi.where())
    return context


def _question(hook: RegisteredHook, call: HookCall) -> _Question:
    """What to send; raises ``RequestFailedError`` where it must not be sent."""
    url = _parse_url(hook.config.url or "")
    secrets = list(_secrets_of_url(url))
    headers = _headers(hook.config, secrets)
    if url.userinfo and not any(name.lower() == "authorization" for name in headers):
        headers["Authorization"] = basic = _basic_auth(url)
        secrets.append(basic.partition(" ")[2])
    given = {name.lower() for name in headers}
    ours = _OURS
    if call.telemetry is not None and "traceparent" not in given:
        ours = {**_OURS, **call.telemetry.carrier()}
    ours = {name: text for name, text in ours.items() if name.lower() not in given}
    sent = {**ours, **headers, **_event_headers(call)}
    is_opa = hook.config.dialect is Dialect.OPA
    return _Question(
        url=url,
        headers=[(name.encode(), _header_bytes(sent[name])) for name in sent],
        body=b'{"input":%b}' % call.payload if is_opa else call.payload,
        # What the event holds is no secret, and a changed input must stay whole.
        mask=Mask.of(one for one in secrets if encode(one)[1:-1] not in call.payload),
    )


_OURS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "hookline",
}


@lru_cache(maxsize=256)
def _parse_url(url: str) -> httpx.URL:
    try:
        import httpx
    except ImportError:
        problem = f"cannot be asked: {MissingExtraError('http', 'httpx')}"
        raise RequestFailedError(FailureCause.SPAWN, problem) from None
    try:
        parsed = httpx.URL(url)
        if parsed.host:
            return parsed
    except (httpx.InvalidURL, ValueError):
        pass  # the parser's own words would quote a part of it
    problem = "cannot be asked: the url is invalid: 'hookline check' shows where"
    raise RequestFailedError(FailureCause.SPAWN, problem)


def _secrets_of_url(url: httpx.URL) -> Iterator[str]:
    yield url.password
    yield from (value for _, value in url.params.multi_items())


def _basic_auth(url: httpx.URL) -> str:
    from base64 import b64encode

    return f"Basic {b64encode(f'{url.username}:{url.password}'.encode()).decode()}"


def _headers(config: HookConfig, secrets: list[str]) -> dict[str, str]:
    """The hook's own headers with their variables; adds the values to the secrets."""
    if problem := names_problem(config.headers):
        raise _unsendable("header {!r} {}".format(*problem))

    def look_up(name: str) -> str:
        value = _variable(name, config)
        secrets.append(value)
        return value

    found: dict[str, str] = {}
    for name, text in config.headers.items():
        value = replace_variables(text, look_up).strip(" \t")
        if reason := value_problem(value):
            raise _unsendable(f"header {name!r} {reason}")
        if is_credential(name):
            secrets += _parts_of(value)
        found[name] = value
    return found


def _parts_of(credential: str) -> Iterator[str]:
    """What a service may show of it: without its scheme, or the password in it."""
    from base64 import b64decode

    scheme, _, rest = credential.rpartition(" ")
    yield rest
    if scheme.lower() == "basic":
        try:
            yield b64decode(rest).decode().partition(":")[2]
        except ValueError:
            return  # not what it says it is


def _variable(name: str, config: HookConfig) -> str:
    if name not in config.allowed_env:
        raise _unsendable(f"a header names {name!r}, which is not in allowedEnv")
    value = os.environ.get(name, "").strip(" \t")
    if not value:
        raise _unsendable(f"a header names {name!r}, which is not set: export it")
    if reason := value_problem(value):
        raise _unsendable(f"the value of {name!r} {reason}")
    return value


def _unsendable(problem: str) -> RequestFailedError:
    return RequestFailedError(FailureCause.SPAWN, f"was not asked: {problem}")


def _event_headers(call: HookCall) -> dict[str, str]:
    found = {
        "X-Hookline-Event": call.event.value,
        "X-Hookline-Session": _header_text(call.session_id),
        "X-Hookline-Depth": str(call.depth + 1),
    }
    if call.recheck:
        found["X-Hookline-Recheck"] = "1"
    if "HOOKLINE_REPLAY" in os.environ:
        found["X-Hookline-Replay"] = "1"
    return found


_PLAIN = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"


def _header_text(text: str) -> str:
    """Percent-encode what is not printable ASCII; cut as in the environment."""
    return quote(environment_text(text), safe=_PLAIN)


def _header_bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _read(hook: RegisteredHook, answer: _Answer) -> RunEnd:
    end = RunEnd(
        exit_code=0,
        stdout=as_text(answer.body),
        stdout_truncated=answer.is_cut,
        truncated=answer.is_cut,
    )
    is_doubtful = not (end.stdout or answer.has_end)
    if is_doubtful and hook.config.expect is Expect.JSON:
        problem = "answered nothing, without Content-Length: it may have broken off"
        return structs.replace(end, cause=FailureCause.OUTPUT, error=problem)
    if hook.config.dialect is not Dialect.OPA or answer.is_cut:
        return _with_hint(read_streams(hook, end))
    denial = hook.config.description or f"denied by {hook.name}"
    try:
        document, doubts = parse_answer(end.stdout)
        if not doubts:
            return structs.replace(end, answer=opa_output(document, denial))
        problem = doubts[0]
    except ValueError as error:
        problem = str(error)
    return structs.replace(end, cause=FailureCause.OUTPUT, error=problem)


def _with_hint(end: RunEnd) -> RunEnd:
    if "result" not in (end.answer or {}):
        return end
    hint = 'result: unknown key, ignored: Open Policy Agent needs "dialect": "opa"'
    return structs.replace(end, warnings=(*end.warnings, hint))


def _named(end: RunEnd, config: HookConfig) -> RunEnd:
    """A failure says which service it was, and has no exit code."""
    if end.error is None:
        return end
    error = f"{shown_url(config.url or '')} {end.error}"
    return structs.replace(end, error=error, exit_code=None)

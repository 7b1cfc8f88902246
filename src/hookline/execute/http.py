"""Http hooks: the event is posted to a service, which answers with a verdict.

protocol.md#rules. The body of a 2xx answer is read like the stdout of a process that
exits with 0; anything else is a failure with its cause. One deadline covers a request
from the wait for a connection to the last byte of the answer.

The transport of httpx is used without its client: so there are no redirects, cookies,
proxies, ``.netrc`` files, decompression or logged urls that would have to be switched
off. A secret from the environment is sent, and masked in everything that is kept.
"""

from __future__ import annotations

import asyncio
import os
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Iterable
from functools import lru_cache
from html.entities import codepoint2name
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import quote

from msgspec import Struct, structs

from hookline.errors import MissingExtraError
from hookline.plan import Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.outputs import read_decision
from hookline.protocol.results import FailureCause
from hookline.protocol.values import decode, encode
from hookline.settings.headers import (
    is_credential,
    names_problem,
    replace_variables,
    value_problem,
)
from hookline.settings.model import Dialect, Expect, HookConfig, shown_url

from .answer import parse_answer, read_streams
from .child import as_text
from .command import environment_text
from .runtime import Runtimes

if TYPE_CHECKING:
    import ssl

    import httpx

_CONNECTIONS = 32
"""To one service at a time; further events wait, which counts against their timeout."""
_KEEP_ALIVE_S = 30.0
_MAX_ERROR_BYTES = 4096
_MAX_LINE = 200
_PLAIN = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_REQUEST_TIMEOUT = 408
"""Some servers send it to idle connections before they close them."""


class RequestError(Exception):
    """A request without a usable answer."""

    def __init__(self, cause: FailureCause, problem: str, page: str = "") -> None:
        super().__init__(problem)
        self.cause = cause
        self.page = page
        self.is_stale = False
        """Whether a connection from before was dead: the question was not answered."""


class HttpExecutor(Executor):
    """Posts events; keeps connections open on each event loop."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Post the event once; its timeout starts here."""
        mask = Mask(())
        try:
            request, mask = _request(hook, call)
            connections = self._runtimes.here().part(_Connections)
            async with asyncio.timeout(hook.config.timeout_ms / 1000):
                end = await connections.ask(request, hook, mask)
            end = _read(hook, end)
        except TimeoutError:
            end = read_streams(hook, RunEnd(cause=FailureCause.TIMEOUT))
        except RequestError as error:
            end = RunEnd(cause=error.cause, error=str(error), stderr=error.page)
        if end.error is not None:
            # A failure says which service it was, and has no exit code.
            problem = f"{shown_url(hook.config.url or '')} {end.error}"
            end = structs.replace(end, error=problem, exit_code=None)
        return mask.end(end)


class _Connections:
    """The connections of one event loop, with a pool for each service."""

    def __init__(self) -> None:
        self._transports: dict[str, httpx.AsyncHTTPTransport] = {}
        self._lifetime = self._close_at_end()

    async def _close_at_end(self) -> AsyncGenerator[None]:
        # Event loops close the generators that were started on them: asyncio.run()
        # leaves no connection behind.
        try:
            yield
        finally:
            while self._transports:
                await self._transports.popitem()[1].aclose()

    async def close(self) -> None:
        """Close them."""
        await self._lifetime.aclose()

    def abandon(self) -> None:
        """Their event loop has closed them."""

    async def ask(
        self, request: httpx.Request, hook: RegisteredHook, mask: Mask
    ) -> RunEnd:
        """Post once, and again where a connection from before turns out to be dead.

        A service closes idle connections whenever it likes.
        """
        if not self._transports:
            await anext(self._lifetime, None)
        url = request.url
        service = f"{url.scheme}://{url.netloc.decode()}"
        if service not in self._transports:
            self._transports[service] = _new_transport(url.scheme)
        try:
            return await _post(self._transports[service], request, hook, mask)
        except RequestError as error:
            if not error.is_stale:
                raise
            async with _new_transport(url.scheme) as transport:
                return await _post(transport, request, hook, mask)


def _new_transport(scheme: str) -> httpx.AsyncHTTPTransport:
    import ssl

    import httpx

    limits = httpx.Limits(
        max_connections=_CONNECTIONS,
        max_keepalive_connections=_CONNECTIONS,
        keepalive_expiry=_KEEP_ALIVE_S,
    )
    # Without a context httpx would load all authorities, for nothing with http.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if scheme == "https":
        tls = _verified_tls(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    return httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits)


@lru_cache(maxsize=4)
def _verified_tls(*_: str | None) -> ssl.SSLContext:
    """Verify by the system's authorities, or by those that the variables name."""
    import ssl

    return ssl.create_default_context()


async def _post(
    transport: httpx.AsyncHTTPTransport,
    request: httpx.Request,
    hook: RegisteredHook,
    mask: Mask,
) -> RunEnd:
    """Send the request and read a 2xx answer; raises ``RequestError`` for any other."""
    is_new_connection = False
    waits: list[bool] = []
    response: httpx.Response | None = None

    async def trace(step: str, _: Any) -> None:
        nonlocal is_new_connection
        if step == "connection.connect_tcp.started":
            is_new_connection = True
        elif step == "http11.receive_response_headers.started":
            asyncio.get_running_loop().call_soon(waits.append, True)
        elif step == "http11.receive_response_headers.complete" and not waits:
            # Reading from the network always lets the event loop go on. What was there
            # without that came with the answer before: it answers no question.
            problem = "sent an answer before it was asked"
            raise RequestError(FailureCause.OUTPUT, problem)

    request.extensions["trace"] = trace
    try:
        response = await transport.handle_async_request(request)
        try:
            return await _read_response(response, hook, mask)
        finally:
            await response.aclose()
    # Foreign code below this: whatever it raises is a failure of the hook, and only
    # what ``_failure`` makes of it is shown.
    except Exception as error:  # noqa: BLE001
        failure = error
        if not isinstance(failure, RequestError):
            failure = _failure(error, mask.text(_root_of(error)), response)
        has_answer = response is not None and response.status_code != _REQUEST_TIMEOUT
        failure.is_stale = not (is_new_connection or has_answer)
        raise failure from None


async def _read_response(
    response: httpx.Response, hook: RegisteredHook, mask: Mask
) -> RunEnd:
    """Read a 2xx answer; raises ``RequestError`` for any other."""
    status, limit = response.status_code, hook.options.max_output_bytes
    coding = mask.text(response.headers.get("content-encoding", "identity").strip())
    if not response.is_success:
        limit = _MAX_ERROR_BYTES
    elif coding.lower() not in {"", "identity"}:
        problem = f"answered with Content-Encoding {coding[:40]!r}, which is not "
        problem += "read: let it answer without compression"
        raise RequestError(FailureCause.OUTPUT, problem)
    body = bytearray()
    async for piece in cast("httpx.AsyncByteStream", response.stream):
        body += piece
        if len(body) > limit:
            break
    text, is_cut = as_text(bytes(body[:limit])), len(body) > limit
    if not response.is_success:
        page = mask.text(text)
        raise RequestError(FailureCause.CRASH, _describe(status, page), page)
    framing = {"content-length", "transfer-encoding"} & response.headers.keys()
    has_end = framing or status == HTTPStatus.NO_CONTENT
    if hook.config.expect is Expect.JSON and not (text or has_end):
        problem = "answered nothing, without Content-Length: it may have broken off"
        raise RequestError(FailureCause.OUTPUT, problem)
    return RunEnd(exit_code=0, stdout=text, stdout_truncated=is_cut, truncated=is_cut)


def _describe(status: int, page: str) -> str:
    """The status of an answer that is none, with the first line of its page."""
    phrase = next((f" {each.phrase}" for each in HTTPStatus if each == status), "")
    if 300 <= status < 400:
        hint = "redirects are not followed: write the final address into url"
        return f"answered {status}{phrase}, and {hint}"
    lines = (" ".join(line.split()) for line in page.splitlines())
    line = "".join(filter(str.isprintable, next(filter(None, lines), "")))
    line = f"{line[:_MAX_LINE]}..." if len(line) > _MAX_LINE else line
    return f"answered {status}{phrase}{': ' if line else ''}{line}"


def _failure(
    error: Exception, reason: str, response: httpx.Response | None
) -> RequestError:
    """What an exception of httpx means."""
    import httpx

    reason = reason[:_MAX_LINE]
    if response is not None:
        return RequestError(FailureCause.OUTPUT, f"broke off its answer: {reason}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        hint = "check the url, and that the service runs"
        if "CERTIFICATE" in reason:
            hint = "name the certificate of its authority in SSL_CERT_FILE"
        problem = f"cannot be reached: {reason}: {hint}"
        return RequestError(FailureCause.SPAWN, problem)
    if isinstance(error, httpx.RemoteProtocolError) and "disconnected" not in reason:
        problem = f"did not answer as an HTTP server does: {reason}"
        return RequestError(FailureCause.OUTPUT, problem)
    if isinstance(error, httpx.RemoteProtocolError | httpx.NetworkError):
        problem = "closed the connection without an answer"
        return RequestError(FailureCause.CRASH, problem)
    problem = f"could not be asked: {type(error).__name__}: {reason}"
    return RequestError(FailureCause.SPAWN, problem)


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


def _request(hook: RegisteredHook, call: HookCall) -> tuple[httpx.Request, Mask]:
    """What to send and what to mask; raises ``RequestError`` where nothing is sent."""
    config, url = hook.config, _parse_url(hook.config.url or "")
    secrets = [url.password, *(value for _, value in url.params.multi_items())]
    headers = _own_headers(config, secrets)
    own_names = {name.lower() for name in headers}
    if url.userinfo and "authorization" not in own_names:
        basic = b64encode(f"{url.username}:{url.password}".encode()).decode()
        headers["Authorization"] = f"Basic {basic}"
        secrets.append(basic)
    defaults = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "hookline",
    }
    if call.telemetry is not None and "traceparent" not in own_names:
        defaults |= call.telemetry.carrier()
    for name, value in defaults.items():
        if name.lower() not in own_names:
            headers[name] = value
    headers["X-Hookline-Event"] = call.event.value
    # Percent-encoded where it is not printable ASCII, and cut as in the environment.
    session = quote(environment_text(call.session_id), safe=_PLAIN)
    headers["X-Hookline-Session"] = session
    headers["X-Hookline-Depth"] = str(call.depth + 1)
    if call.recheck:
        headers["X-Hookline-Recheck"] = "1"
    if "HOOKLINE_REPLAY" in os.environ:
        headers["X-Hookline-Replay"] = "1"
    is_opa = config.dialect is Dialect.OPA

    import httpx

    request = httpx.Request(
        "POST",
        url,
        headers=[
            (name.encode(), value.encode("utf-8", "surrogateescape"))
            for name, value in headers.items()
        ],
        content=b'{"input":%b}' % call.payload if is_opa else call.payload,
    )
    # What the event holds is no secret, and a changed input must stay whole.
    return request, Mask.of(s for s in secrets if encode(s)[1:-1] not in call.payload)


@lru_cache(maxsize=256)
def _parse_url(url: str) -> httpx.URL:
    try:
        import httpx
    except ImportError:
        problem = f"cannot be asked: {MissingExtraError('http', 'httpx')}"
        raise RequestError(FailureCause.SPAWN, problem) from None
    try:
        parsed = httpx.URL(url)
        if parsed.host:
            return parsed
    except (httpx.InvalidURL, ValueError):
        pass  # the parser's own words would quote a part of it
    problem = "cannot be asked: the url is invalid: 'hookline check' shows where"
    raise RequestError(FailureCause.SPAWN, problem)


def _own_headers(config: HookConfig, secrets: list[str]) -> dict[str, str]:
    """The hook's own headers with their variables; adds the values to the secrets."""

    def unsendable(problem: str) -> RequestError:
        return RequestError(FailureCause.SPAWN, f"was not asked: {problem}")

    def look_up(name: str) -> str:
        if name not in config.allowed_env:
            raise unsendable(f"a header names {name!r}, which is not in allowedEnv")
        value = os.environ.get(name, "").strip(" \t")
        if not value:
            raise unsendable(f"a header names {name!r}, which is not set: export it")
        if problem := value_problem(value):
            raise unsendable(f"the value of {name!r} {problem}")
        secrets.append(value)
        return value

    if name_problem := names_problem(config.headers):
        raise unsendable("header {!r} {}".format(*name_problem))
    headers: dict[str, str] = {}
    for name, text in config.headers.items():
        value = headers[name] = replace_variables(text, look_up).strip(" \t")
        if problem := value_problem(value):
            raise unsendable(f"header {name!r} {problem}")
        if is_credential(name):
            # A service may show it without its scheme, or the password in it.
            scheme, _, credential = value.rpartition(" ")
            secrets.append(credential)
            if scheme.lower() == "basic":
                try:
                    secrets.append(b64decode(credential).decode().partition(":")[2])
                except ValueError:
                    continue  # not what it says it is
    return headers


def _read(hook: RegisteredHook, end: RunEnd) -> RunEnd:
    """Add what the body of an answer means."""
    if hook.config.dialect is not Dialect.OPA or end.truncated:
        end = read_streams(hook, end)
        if "result" not in (end.answer or {}):
            return end
        hint = 'result: unknown key, ignored: Open Policy Agent needs "dialect": "opa"'
        return structs.replace(end, warnings=(*end.warnings, hint))
    try:
        document, warnings = parse_answer(end.stdout)
        if not warnings:
            denial = hook.config.description or f"denied by {hook.name}"
            return structs.replace(end, answer=_opa_answer(document, denial))
        problem = warnings[0]
    except ValueError as error:
        problem = str(error)
    return structs.replace(end, cause=FailureCause.OUTPUT, error=problem)


class OpaError(ValueError):
    """A decision that is neither a yes nor a no."""


_UNDEFINED = "gave no decision, it is undefined: check the path of the url"
_EXPECTED = "expected true or false, a list of denials, or an object with a decision"


def _opa_answer(document: dict[str, Any] | None, denial: str) -> dict[str, Any]:
    """What a decision of Open Policy Agent means; raises ``OpaError``.

    OPA's Data API answers ``{"result": ...}`` with whatever the rule at the url's path
    gives, and without ``result`` where that is undefined. An undefined decision is not
    a yes, and neither is one of an unexpected type. ``denial``: the reason where the
    policy gives none.
    """
    if document is None or "result" not in document:
        raise OpaError(_UNDEFINED)
    result = document["result"]
    if isinstance(result, bool):
        result = {"allow": result}
    elif isinstance(result, list):
        result = {"deny": result}
    elif isinstance(result, str) and result.strip():
        result = {"decision": result}
    elif not isinstance(result, dict):
        raise OpaError(f"gave a decision of the wrong type: {_EXPECTED}")
    specific = result.get("hookSpecificOutput", {})
    if not isinstance(specific, dict):
        raise OpaError("gave a 'hookSpecificOutput' that is not an object")
    words = [fields.get("permissionDecision") for fields in (result, specific)]
    try:
        decisions = [read_decision(word) for word in (result.get("decision"), *words)]
    except ValueError as error:
        raise OpaError(f"gave an unknown decision: {error}") from error
    # A rule without a value is left out of the object of its package: what is beside
    # it, such as a reason, is no decision.
    if not any(decisions) and result.keys().isdisjoint({"allow", "deny", "continue"}):
        raise OpaError(_UNDEFINED)
    answer = dict(result)
    allow, deny = answer.pop("allow", True), answer.pop("deny", False)
    if not isinstance(allow, bool):
        raise OpaError("gave an 'allow' that is neither true nor false")
    if not isinstance(result.get("continue", True), bool):
        raise OpaError("gave a 'continue' that is neither true nor false")
    if not isinstance(deny, bool | str | list | dict):
        raise OpaError("gave a 'deny' that is neither a boolean, a text nor a list")
    if allow and not deny:
        return {"decision": "allow", **answer}
    reason = _opa_reason(answer.get("reason") or deny) or denial
    return {**answer, "decision": "deny", "reason": reason}


def _opa_reason(reasons: Any) -> str:
    texts = []
    for reason in reasons if isinstance(reasons, list) else [reasons]:
        if isinstance(reason, str):
            texts.append(reason.strip())
        elif not isinstance(reason, bool):
            fields = reason if isinstance(reason, dict) else {}
            messages = [fields.get(key) for key in ("msg", "message", "reason")]
            message = next((m for m in messages if isinstance(m, str)), "")
            texts.append(message or encode(reason).decode())
    return "\n".join(filter(None, texts))


MASK = "[masked]"
_MIN_SECRET = 6
"""Shorter values are found in too many texts."""
_MAX_DEPTH = 150


class Mask(Struct, frozen=True):
    """Replaces secrets: a service may echo the token it was sent, in a reason or page.

    Names of fields are left alone: a verdict must not be lost because a variable holds
    the word ``decision``.
    """

    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Self:
        """A mask for these secrets; short ones are left out."""
        long_enough = tuple(text for text in secrets if len(text) >= _MIN_SECRET)
        return cls(_patterns(long_enough))

    def end(self, end: RunEnd) -> RunEnd:
        """The end of a run without the secrets, wherever they are in it."""
        if not self.patterns:
            return end
        return structs.replace(
            end,
            answer=end.answer and self._values(end.answer),
            stdout=self._json_text(end.stdout),
            stderr=self.text(end.stderr),
            error=end.error and self.text(end.error),
            warnings=tuple(map(self.text, end.warnings)),
        )

    def text(self, text: str) -> str:
        """A text without the secrets, and without the first part of one at its end."""
        for pattern in self.patterns:
            text = pattern.sub(MASK, text)
        return text

    def _json_text(self, text: str) -> str:
        """A text; one that is JSON stays the same but for the secrets."""
        masked = self.text(text)
        try:
            values = self._values(decode(text))
            return masked if decode(masked) == values else encode(values).decode()
        except ValueError:
            return masked

    def _values(self, value: Any, depth: int = 0) -> Any:
        """A copy of a JSON value; very deep parts are left out."""
        if isinstance(value, str):
            return self.text(value)
        if depth > _MAX_DEPTH:
            return MASK
        if isinstance(value, dict):
            return {
                key if re.fullmatch(r"[A-Za-z_]+", key) else self.text(key): (
                    self._values(item, depth + 1)
                )
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._values(item, depth + 1) for item in value]
        return value


@lru_cache(maxsize=64)
def _patterns(secrets: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Secrets in all their forms, the longest first: one may be a part of another."""
    texts: set[str] = set()
    for secret in secrets:
        raw = secret.encode("utf-8", "surrogateescape")
        texts |= {secret, raw.decode("utf-8", "replace"), raw.decode("latin-1")}
    patterns = []
    for text in sorted(texts, key=len, reverse=True):
        letters = [_letter(letter) for letter in text]
        start, more = "".join(letters[:_MIN_SECRET]), letters[_MIN_SECRET:]
        cut = "".join(f"(?:{letter})?+" for letter in more)
        # In the middle of an escape, too, or of what looked like the next letter.
        cut += r"(?:(?:[\\%&]|(?<=[\\%&]))[\\#\w]{0,9})?\Z"
        patterns.append(re.compile(f"{start}(?:{''.join(more)}|{cut})"))
    return tuple(patterns)


def _letter(letter: str) -> str:
    """A pattern for one letter, however JSON, urls, HTML and programs escape it."""
    if letter.isascii() and letter.isalnum():
        return letter
    number, data = ord(letter), letter.encode("utf-8", "surrogatepass")
    units = re.findall("....", letter.encode("utf-16-be", "surrogatepass").hex())
    name = codepoint2name.get(number, "apos")
    forms = (
        rf"\\{{0,3}}(?:{re.escape(letter)}|&(?:#0?{number}|#x0?{number:x}|{name});)",
        "".join(f"%{byte:02x}" for byte in data),
        "".join(rf"\\{{1,3}}u{unit}" for unit in units),
        "".join(rf"\\{{1,3}}x{byte:02x}" for byte in data),
        r"\+" if letter == " " else rf"\\{{1,3}}x{number:02x}",
    )
    return f"(?i:{'|'.join(forms)})"

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
import html
import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import quote, quote_plus

from msgspec import Struct, structs

from hookline.errors import MissingExtraError
from hookline.plan import HookCall, RegisteredHook, RunEnd
from hookline.protocol.outputs import Decision, read_decision
from hookline.protocol.results import FailureCause
from hookline.protocol.values import decode, encode
from hookline.settings.headers import (
    is_credential,
    names_problem,
    replace_variables,
    value_problem,
)
from hookline.settings.model import Dialect, Expect, HookConfig, shown_url

from .answer import as_text, parse_answer, read_streams
from .command import environment_text
from .runtime import Runtimes

if TYPE_CHECKING:
    import ssl

    import httpx

CONNECTIONS = 32
"""To one origin at a time; further events wait, which counts against their timeout."""

_KEEP_ALIVE_S = 30.0
_MAX_ERROR_BYTES = 4096
_MAX_LINE = 200
_DEFAULT_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "hookline",
}
_PLAIN = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_REQUEST_TIMEOUT = 408
"""Some servers send it to idle connections before they close them."""


class RequestError(Exception):
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
        mask = Mask(())
        try:
            question = _question(hook, call)
            mask = question.mask
            client = self._runtimes.here().part(_Client)
            async with asyncio.timeout(hook.config.timeout_ms / 1000):
                answer = await client.ask(question, hook.options.max_output_bytes)
            end = _read(hook, answer)
        except TimeoutError:
            end = read_streams(hook, RunEnd(cause=FailureCause.TIMEOUT))
        except RequestError as error:
            end = RunEnd(cause=error.cause, error=error.problem, stderr=error.page)
        if end.error is not None:
            # A failure says which service it was, and has no exit code.
            problem = f"{shown_url(hook.config.url or '')} {end.error}"
            end = structs.replace(end, error=problem, exit_code=None)
        return mask.end(end)

    async def close(self) -> None:
        """The connections are those of event loops, which close them."""


class _Question(Struct, frozen=True, kw_only=True):
    """What is sent, and what of it must not be shown."""

    url: httpx.URL
    headers: list[tuple[bytes, bytes]]
    body: bytes
    mask: Mask


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
        """Close the connections."""
        await self._lifetime.aclose()

    def abandon(self) -> None:
        """Its event loop has closed the connections."""

    async def ask(self, question: _Question, limit: int) -> _Answer:
        """Post once, and again where a connection from before turns out to be dead.

        A service closes idle connections whenever it likes; the question was not
        answered then, and a question can be asked twice.
        """
        if not self._transports:
            await anext(self._lifetime, None)
        url = question.url
        origin = f"{url.scheme}://{url.netloc.decode()}"
        if origin not in self._transports:
            self._transports[origin] = _new_transport(url.scheme)
        exchange = _Exchange(question, limit)
        try:
            return await exchange.post(self._transports[origin])
        except RequestError:
            has_answer = exchange.status not in (None, _REQUEST_TIMEOUT)
            if exchange.is_new_connection or has_answer:
                raise
        async with _new_transport(url.scheme) as fresh:
            return await _Exchange(question, limit).post(fresh)


class _Exchange:
    """One request and its answer."""

    def __init__(self, question: _Question, limit: int) -> None:
        self._question = question
        self._limit = limit
        self.is_new_connection = False
        self.status: int | None = None
        self._waits: list[bool] = []

    async def post(self, transport: httpx.AsyncHTTPTransport) -> _Answer:
        """Send the request and read the answer; raises ``RequestError``."""
        import httpx

        try:
            request = httpx.Request(
                "POST",
                self._question.url,
                headers=self._question.headers,
                content=self._question.body,
                extensions={"trace": self._trace},
            )
            response = await transport.handle_async_request(request)
            self.status = response.status_code
            try:
                return await self._read(response)
            finally:
                await response.aclose()
        except RequestError:
            raise
        # Foreign code below this: whatever it raises is a failure of the hook, and
        # only what ``_failure`` makes of it is shown.
        except Exception as error:  # noqa: BLE001
            reason = self._question.mask.text(_root_of(error))[:_MAX_LINE]
            raise _failure(error, reason, self.status is not None) from None

    async def _trace(self, step: str, _: Any) -> None:
        if step == "connection.connect_tcp.started":
            self.is_new_connection = True
        elif step == "http11.receive_response_headers.started":
            asyncio.get_running_loop().call_soon(self._waits.append, True)
        elif step == "http11.receive_response_headers.complete" and not self._waits:
            # Reading from the network always lets the event loop go on. What was there
            # without that came with the answer before: it answers no question.
            problem = "sent an answer before it was asked"
            raise RequestError(FailureCause.OUTPUT, problem)

    async def _read(self, response: httpx.Response) -> _Answer:
        mask, status = self._question.mask, response.status_code
        if not response.is_success:
            body, _ = await _read_body(response, _MAX_ERROR_BYTES)
            page = mask.text(as_text(body))
            raise RequestError(FailureCause.CRASH, _describe(status, page), page)
        coding = mask.text(response.headers.get("content-encoding", "identity").strip())
        if coding.lower() not in {"", "identity"}:
            problem = f"answered with Content-Encoding {coding[:40]!r}, which is not "
            problem += "read: let it answer without compression"
            raise RequestError(FailureCause.OUTPUT, problem)
        framed = {"content-length", "transfer-encoding"} & response.headers.keys()
        has_end = bool(framed) or status == HTTPStatus.NO_CONTENT
        return _Answer(*await _read_body(response, self._limit), has_end)


async def _read_body(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """So many bytes of a body at most, and whether there are more."""
    body = bytearray()
    async for piece in cast("httpx.AsyncByteStream", response.stream):
        body += piece
        if len(body) > limit:
            return bytes(body[:limit]), True
    return bytes(body), False


def _describe(status: int, page: str) -> str:
    phrase = next((f" {known.phrase}" for known in HTTPStatus if known == status), "")
    if 300 <= status < 400:
        hint = "redirects are not followed: write the final address into url"
        return f"answered {status}{phrase}, and {hint}"
    lines = (" ".join(line.split()) for line in page.splitlines())
    line = "".join(filter(str.isprintable, next(filter(None, lines), "")))
    line = f"{line[:_MAX_LINE]}..." if len(line) > _MAX_LINE else line
    return f"answered {status}{phrase}{': ' if line else ''}{line}"


def _failure(error: Exception, reason: str, has_answer: bool) -> RequestError:
    import httpx

    if has_answer:
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


def _new_transport(scheme: str) -> httpx.AsyncHTTPTransport:
    import ssl

    import httpx

    limits = httpx.Limits(
        max_connections=CONNECTIONS,
        max_keepalive_connections=CONNECTIONS,
        keepalive_expiry=_KEEP_ALIVE_S,
    )
    # Without a context httpx would load all authorities, for nothing with http.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if scheme == "https":
        tls = _verified_tls(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    return httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits)


@lru_cache(maxsize=4)
def _verified_tls(*chosen: str | None) -> ssl.SSLContext:
    """Verify by the system's authorities, or by SSL_CERT_FILE and SSL_CERT_DIR."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    paths = ssl.get_default_verify_paths()
    if not any((*chosen, paths.cafile, paths.capath)):
        import certifi  # comes with httpx

        context.load_verify_locations(certifi.where())
    return context


def _question(hook: RegisteredHook, call: HookCall) -> _Question:
    """What to send; raises ``RequestError`` where it must not be sent."""
    config, url = hook.config, _parse_url(hook.config.url or "")
    secrets = [url.password, *(value for _, value in url.params.multi_items())]
    headers = _headers(config, secrets)
    names = {name.lower() for name in headers}
    if url.userinfo and "authorization" not in names:
        basic = b64encode(f"{url.username}:{url.password}".encode()).decode()
        headers["Authorization"] = f"Basic {basic}"
        secrets.append(basic)
    defaults = dict(_DEFAULT_HEADERS)
    if call.telemetry is not None and "traceparent" not in names:
        defaults |= call.telemetry.carrier()
    # Percent-encoded where it is not printable ASCII, and cut as in the environment.
    session = quote(environment_text(call.session_id), safe=_PLAIN)
    headers |= {
        **{name: text for name, text in defaults.items() if name.lower() not in names},
        "X-Hookline-Event": call.event.value,
        "X-Hookline-Session": session,
        "X-Hookline-Depth": str(call.depth + 1),
    }
    if call.recheck:
        headers["X-Hookline-Recheck"] = "1"
    if "HOOKLINE_REPLAY" in os.environ:
        headers["X-Hookline-Replay"] = "1"
    is_opa = config.dialect is Dialect.OPA
    return _Question(
        url=url,
        headers=[
            (name.encode(), value.encode("utf-8", "surrogateescape"))
            for name, value in headers.items()
        ],
        body=b'{"input":%b}' % call.payload if is_opa else call.payload,
        # What the event holds is no secret, and a changed input must stay whole.
        mask=Mask.of(s for s in secrets if encode(s)[1:-1] not in call.payload),
    )


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


def _headers(config: HookConfig, secrets: list[str]) -> dict[str, str]:
    """The hook's own headers with their variables; adds the values to the secrets."""
    if problem := names_problem(config.headers):
        raise _unsendable("header {!r} {}".format(*problem))

    def look_up(name: str) -> str:
        if name not in config.allowed_env:
            raise _unsendable(f"a header names {name!r}, which is not in allowedEnv")
        value = os.environ.get(name, "").strip(" \t")
        if not value:
            raise _unsendable(f"a header names {name!r}, which is not set: export it")
        if reason := value_problem(value):
            raise _unsendable(f"the value of {name!r} {reason}")
        secrets.append(value)
        return value

    headers: dict[str, str] = {}
    for name, text in config.headers.items():
        value = replace_variables(text, look_up).strip(" \t")
        if reason := value_problem(value):
            raise _unsendable(f"header {name!r} {reason}")
        headers[name] = value
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


def _unsendable(problem: str) -> RequestError:
    return RequestError(FailureCause.SPAWN, f"was not asked: {problem}")


def _read(hook: RegisteredHook, answer: _Answer) -> RunEnd:
    end = RunEnd(
        exit_code=0,
        stdout=as_text(answer.body),
        stdout_truncated=answer.is_cut,
        truncated=answer.is_cut,
    )
    if hook.config.expect is Expect.JSON and not (end.stdout or answer.has_end):
        problem = "answered nothing, without Content-Length: it may have broken off"
        return structs.replace(end, cause=FailureCause.OUTPUT, error=problem)
    if hook.config.dialect is not Dialect.OPA or answer.is_cut:
        end = read_streams(hook, end)
        if "result" not in (end.answer or {}):
            return end
        hint = 'result: unknown key, ignored: Open Policy Agent needs "dialect": "opa"'
        return structs.replace(end, warnings=(*end.warnings, hint))
    denial = hook.config.description or f"denied by {hook.name}"
    try:
        document, warnings = parse_answer(end.stdout)
        if not warnings:
            return structs.replace(end, answer=_opa_answer(document, denial))
        problem = warnings[0]
    except ValueError as error:
        problem = str(error)
    return structs.replace(end, cause=FailureCause.OUTPUT, error=problem)


_UNDEFINED = "gave no decision, it is undefined: check the path of the url"
_EXPECTED = "expected true or false, a list of denials, or an object with a decision"


class OpaError(ValueError):
    """A decision that is neither a yes nor a no."""


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
    if isinstance(result, dict):
        return _opa_object(result, denial)
    if isinstance(result, bool | list):
        is_denied = not result if isinstance(result, bool) else bool(result)
        return _denied(result, denial) if is_denied else {"decision": "allow"}
    if isinstance(result, str) and (decision := _opa_decision(result)) is not None:
        return {"decision": decision.value}
    raise OpaError(f"gave a decision of the wrong type: {_EXPECTED}")


def _opa_object(result: dict[str, Any], denial: str) -> dict[str, Any]:
    specific = result.get("hookSpecificOutput", {})
    if not isinstance(specific, dict):
        raise OpaError("gave a 'hookSpecificOutput' that is not an object")
    words = [
        _opa_decision(result.get("decision")),
        _opa_decision(result.get("permissionDecision")),
        _opa_decision(specific.get("permissionDecision")),
    ]
    # A rule without a value is left out of the object of its package: what is beside
    # it, such as a reason, is no decision.
    if not any(words) and result.keys().isdisjoint({"allow", "deny", "continue"}):
        raise OpaError(_UNDEFINED)
    answer = dict(result)
    allow, deny = answer.pop("allow", True), answer.pop("deny", False)
    for name, value in (("allow", allow), ("continue", result.get("continue", True))):
        if not isinstance(value, bool):
            raise OpaError(f"gave {_article(name)} that is neither true nor false")
    if not isinstance(deny, bool | str | list | dict):
        raise OpaError("gave a 'deny' that is neither a boolean, a text nor a list")
    if not allow or deny:
        return {**answer, **_denied(answer.get("reason") or deny, denial)}
    return {"decision": "allow", **answer}


def _article(name: str) -> str:
    return f"{'an' if name == 'allow' else 'a'} {name!r}"


def _opa_decision(value: Any) -> Decision | None:
    try:
        return read_decision(value)
    except ValueError as error:
        raise OpaError(f"gave an unknown decision: {error}") from error


def _denied(reasons: Any, denial: str) -> dict[str, Any]:
    texts = []
    for reason in reasons if isinstance(reasons, list) else [reasons]:
        if isinstance(reason, str):
            texts.append(reason.strip())
        elif not isinstance(reason, bool):
            fields = reason if isinstance(reason, dict) else {}
            messages = [fields.get(key) for key in ("msg", "message", "reason")]
            message = next((m for m in messages if isinstance(m, str)), "")
            texts.append(message or encode(reason).decode())
    return {"decision": "deny", "reason": "\n".join(filter(None, texts)) or denial}


MASK = "[masked]"
_MIN_SECRET = 6
"""Shorter values are found in too many texts."""
_MAX_DEPTH = 150


class Mask(Struct, frozen=True):
    """Replaces secrets: a service may echo the token it was sent, in a reason or page.

    Names of fields are left alone: a verdict must not be lost because a variable holds
    the word ``decision``.
    """

    forms: tuple[str, ...]
    """The secrets as they are, and as JSON, urls and HTML write them."""

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Self:
        """A mask for these secrets; short ones are left out."""
        return cls(_forms(tuple(text for text in secrets if len(text) >= _MIN_SECRET)))

    def end(self, end: RunEnd) -> RunEnd:
        """The end of a run without the secrets, wherever they are in it."""
        answer = "" if end.answer is None else encode(end.answer).decode()
        texts = (answer, end.stdout, end.stderr, end.error or "", *end.warnings)
        if all(self.text(text) == text for text in texts):
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
        for form in self.forms:
            text = text.replace(form, MASK)
        for form in self.forms:
            start = text.find(form[:_MIN_SECRET], max(0, len(text) - len(form)))
            while start >= 0 and not form.startswith(text[start:]):
                start = text.find(form[:_MIN_SECRET], start + 1)
            if start >= 0:
                return text[:start] + MASK
        return text

    def _json_text(self, text: str) -> str:
        """A text; one that is JSON stays the same but for the secrets."""
        masked = self.text(text)
        try:
            clean = self._values(decode(text))
            return masked if decode(masked) == clean else encode(clean).decode()
        except ValueError:
            return masked

    def _values(self, value: Any, depth: int = 0) -> Any:
        """A copy of a JSON value; very deep parts are left out."""
        if isinstance(value, str):
            return self.text(value)
        if depth > _MAX_DEPTH:
            return MASK
        if isinstance(value, dict):
            keys = [
                key if re.fullmatch(r"[A-Za-z_]+", key) else self.text(key)
                for key in value
            ]
            items = [self._values(item, depth + 1) for item in value.values()]
            return dict(zip(keys, items, strict=True))
        if isinstance(value, list):
            return [self._values(item, depth + 1) for item in value]
        return value


@lru_cache(maxsize=64)
def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Every way to write these secrets, the longest first: one may hold another."""
    texts: set[str] = set()
    for secret in secrets:
        raw = secret.encode("utf-8", "surrogateescape")
        texts |= {secret, raw.decode("utf-8", "replace"), raw.decode("latin-1")}
    forms: set[str] = set()
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        urls = {quote(raw), quote(raw, safe=""), quote_plus(raw)}
        in_json = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        in_json |= {form.replace("/", "\\/") for form in in_json}
        # As Go and others write it, for HTML around it.
        in_json |= {re.sub("[<>&]", _unicode_escape, form) for form in in_json}
        marked = html.escape(text)
        in_html = {marked, html.escape(text, quote=False)}
        in_html |= {marked.replace("&#x27;", mark) for mark in ("&#39;", "&apos;", "'")}
        forms |= {text, *urls, *in_json, *in_html}
    # The digits of escapes in the other case.
    forms |= {re.sub("%..", lambda escape: escape[0].lower(), form) for form in forms}
    forms |= {re.sub(r"(?<=\\u)....", _upper, form) for form in forms}
    return tuple(sorted(forms, key=len, reverse=True))


def _unicode_escape(letter: re.Match[str]) -> str:
    return f"\\u{ord(letter[0]):04x}"


def _upper(digits: re.Match[str]) -> str:
    return digits[0].upper()

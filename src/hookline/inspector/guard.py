"""Who may ask the inspector: the browser that was opened with the token.

Every request needs the token, as a cookie or once in the address; a page of another
origin, and a name that was made to point to this machine, are refused before any route
is looked at. Every answer forbids the browser to run or load anything that is not ours.
"""

from __future__ import annotations

import secrets
from hmac import compare_digest
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .answers import refuse

_HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_METHODS = ("GET", "HEAD", "POST")
_LONGEST_BODY = 1024 * 1024
_HINT = "open the address that 'hookline inspect' printed"
_PASTE = "copy it into the address bar of the browser"
_NO_TOKEN = f"this page needs the token of the inspector: {_HINT}"


class Guard:
    """Wraps the app: lets through what the token's owner asks, and nothing else."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._once = secrets.token_bytes()
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        # A cookie is sent to all ports of a host: each inspector needs its own name.
        self._cookie = f"hookline-{port}"

    def single_use_token(self) -> str:
        """A token that works once, for where others may read it."""
        token = secrets.token_urlsafe(32)
        self._once = token.encode()
        return token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refuse(scope)
            app = refused or self._app
            await app(scope, _bounded(receive), _with_headers(send))

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if problem := self._foreign(headers):
            return _denied(headers, problem)
        tokens = [v for k, v in _query(scope) if k == "token"]
        if tokens:
            is_known = len(tokens) == 1 and self._is_known(tokens[0].encode())
            return self._enter(scope) if is_known else _denied(headers)
        if not self._has_cookie(headers):
            return _denied(headers)
        return _misused(scope["method"], headers)

    def _is_known(self, token: bytes) -> bool:
        if compare_digest(token, self._once):
            self._once = secrets.token_bytes()
            return True
        return compare_digest(token, self._token)

    def _foreign(self, headers: Headers) -> str | None:
        """What is wrong with where the request comes from."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return f"this is not the host of the inspector: {_HINT}"
        if any(origin != f"http://{hosts[0]}" for origin in headers.getlist("origin")):
            return "requests of other origins are refused"
        sites = headers.getlist("sec-fetch-site")
        if any(site not in {"same-origin", "none"} for site in sites):
            return f"links of other sites are refused: {_HINT}, and {_PASTE}"
        return None

    def _has_cookie(self, headers: Headers) -> bool:
        for text in headers.getlist("cookie"):
            for part in text.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self._cookie and compare_digest(value.encode(), self._token):
                    return True
        return False

    def _enter(self, scope: Scope) -> Response:
        """Turn the token into a cookie, and take it out of the address."""
        if scope["method"] not in {"GET", "HEAD"}:
            return refuse(403, f"the token belongs into the first address: {_HINT}")
        # One slash: an address that starts with two would lead to another host.
        path = "/" + quote(scope["path"].lstrip("/"))
        query = urlencode([(k, v) for k, v in _query(scope) if k != "token"])
        response = Response(status_code=303)
        response.headers["Location"] = f"{path}?{query}" if query else path
        response.set_cookie(
            self._cookie,
            self._token.decode(),
            path="/",
            httponly=True,
            samesite="strict",
        )
        return response


def _query(scope: Scope) -> list[tuple[str, str]]:
    text = scope["query_string"].decode("latin-1")
    return parse_qsl(text, keep_blank_values=True, errors="replace")


def _denied(headers: Headers, text: str = _NO_TOKEN) -> Response:
    if "text/html" in headers.get("accept", ""):
        return PlainTextResponse(f"{text}\n", 403)
    return refuse(403, text)


def _misused(method: str, headers: Headers) -> Response | None:
    if method not in _METHODS:
        response = refuse(405, f"the method {method[:20]} is not allowed")
        response.headers["Allow"] = ", ".join(_METHODS)
        return response
    if method != "POST":
        return None
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return refuse(415, "send JSON, as application/json")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > _LONGEST_BODY:
        return _too_long()
    return None


def _too_long() -> Response:
    return refuse(413, f"the body has more than {_LONGEST_BODY} bytes: send less")


def _bounded(receive: Receive) -> Receive:
    """Refuse a body that turns out to be longer than it may be."""
    size = 0

    async def take() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > _LONGEST_BODY:
            raise HTTPException(413, f"the body has more than {_LONGEST_BODY} bytes")
        return message

    return take


def _with_headers(send: Send) -> Send:
    async def give(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return give

"""Issue 16: the inspector answers its own page only; a real server is attacked here."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.inspecting import Inspected


class Visitor:
    """Sends single requests, with the headers that a test chooses."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.port is not None
        self.port = parts.port
        self.token = parse_qs(parts.query)["token"][0]
        self.cookie = f"hookline-{self.port}={self.token}"

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        cookie: str | None = None,
        **headers: str,
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["Cookie"] = self.cookie if cookie is None else cookie
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        response.text = response.read().decode()  # type: ignore[attr-defined] # kept
        connection.close()
        return response

    def raw(self, request: str) -> str:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as peer:
            peer.sendall(request.encode())
            peer.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: peer.recv(65536), b"")).decode()


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    inspected = Inspected(tmp_path_factory.mktemp("guarded"))
    with inspected.running():
        yield Visitor(inspected.address)


PATHS = [
    *("/", "/events/1", "/hooks", "/static/app.js", "/static/nothing.js", "/nothing"),
    *("/api/overview", "/api/events", "/api/events/stream", "/api/facets"),
    *("/api/events/1", "/favicon.ico", "/robots.txt", "//", "/static/../guard.py"),
]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_answered_without_the_token(visitor: Visitor, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE"):
        response = visitor.ask(path, method, cookie="")
        assert response.status == 403, method
        assert response.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "cookie",
    [
        "hookline-{port}=",
        "hookline-{port}=wrong",
        "hookline-{port}={token}x",
        "hookline-{port}={start}",
        "hookline-1={token}",
        "hookline={token}",
        "Hookline-{port}={token}",
        "hookline-{port}=\u00e9",
        "{token}",
    ],
)
def test_another_cookie_is_refused(visitor: Visitor, cookie: str) -> None:
    token = visitor.token
    text = cookie.format(port=visitor.port, token=token, start=token[:-1])
    assert visitor.ask("/api/overview", cookie=text).status == 403


@pytest.mark.parametrize(
    "query", ["token=", "token=wrong", "token={t}&token=wrong", "token={t}%00", "t={t}"]
)
def test_another_token_is_refused(visitor: Visitor, query: str) -> None:
    path = f"/?{query.format(t=visitor.token)}"
    assert visitor.ask(path, cookie="").status == 403


def test_token_becomes_a_cookie_and_leaves_the_address(visitor: Visitor) -> None:
    path = f"/hooks?a=1%202&token={visitor.token}&verdict=blocked"
    response = visitor.ask(path, cookie="")
    assert response.status == 303
    assert response.headers["Location"] == "/hooks?a=1+2&verdict=blocked"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cache-Control"] == "no-store"
    name, *attributes = response.headers["Set-Cookie"].split("; ")
    assert name == visitor.cookie
    assert {one.lower() for one in attributes} == {
        "httponly",
        "samesite=strict",
        "path=/",
    }
    assert visitor.ask("/api/overview").status == 200


@pytest.mark.parametrize(
    "path",
    ["//evil.example/x", "///evil.example", "/\\evil.example", "/%5cevil.example"],
)
def test_redirect_stays_on_this_host(visitor: Visitor, path: str) -> None:
    response = visitor.ask(f"{path}?token={visitor.token}", cookie="")
    location = response.headers["Location"]
    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))


def test_redirect_takes_no_line_breaks(visitor: Visitor) -> None:
    path = f"/%0d%0aSet-Cookie:%20a=b?x=%0d%0aY:%20z&token={visitor.token}"
    response = visitor.ask(path, cookie="")
    assert len(response.headers.get_all("Set-Cookie") or []) == 1
    assert response.headers["Y"] is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:{other}",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "0.0.0.0:{port}",
        "[::1]:{port}",
        "user@127.0.0.1:{port}",
        "",
    ],
)
def test_another_host_is_refused_with_the_right_cookie(
    visitor: Visitor, host: str
) -> None:
    """A name that was made to point to this machine (DNS rebinding)."""
    name = host.format(port=visitor.port, other=visitor.port + 1)
    assert visitor.ask("/api/overview", Host=name).status == 403
    path = f"/?token={visitor.token}"
    assert visitor.ask(path, Host=name).status == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_both_names_of_this_machine_are_answered(visitor: Visitor, name: str) -> None:
    assert visitor.ask("/api/overview", Host=f"{name}:{visitor.port}").status == 200


@pytest.mark.parametrize("lines", ["", "Host: 127.0.0.1:{port}\r\nHost: evil\r\n"])
def test_host_must_be_there_once(visitor: Visitor, lines: str) -> None:
    text = lines.format(port=visitor.port)
    for version in ("1.0", "1.1"):
        request = f"GET /api/overview HTTP/{version}\r\n{text}"
        answer = visitor.raw(f"{request}Cookie: {visitor.cookie}\r\n\r\n")
        assert answer.split()[1] in {"400", "403"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:{other}"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "http://127.0.0.1:{port}.evil.example"},
        {"Origin": ""},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_origins_are_refused_with_the_right_cookie(
    visitor: Visitor, headers: dict[str, str], method: str
) -> None:
    sent = {
        name: value.format(port=visitor.port, other=visitor.port + 1)
        for name, value in headers.items()
    }
    body = b"{}" if method == "POST" else None
    response = visitor.ask(
        "/api/overview", method, body, content_type="application/json", **sent
    )
    assert response.status == 403


def test_link_of_another_site_is_explained_in_words(visitor: Visitor) -> None:
    response = visitor.ask("/", Sec_Fetch_Site="cross-site", Accept="text/html")
    assert response.headers["Content-Type"].startswith("text/plain")
    assert "into the address bar" in response.text  # type: ignore[attr-defined] # kept


def test_cookies_of_everything_else_on_this_machine_do_no_harm(
    visitor: Visitor,
) -> None:
    """A browser sends the cookies of 127.0.0.1 to all of its ports."""
    name = f"hookline-{visitor.port}"
    others = "; ".join(f"c{n}={'x' * 3000}" for n in range(60))
    cookie = f"{name}=wrong; {others}; {visitor.cookie}; {name}="
    assert visitor.ask("/api/overview", cookie=cookie).status == 200


def test_own_origin_is_answered(visitor: Visitor) -> None:
    origin = f"http://127.0.0.1:{visitor.port}"
    for site in ("same-origin", "none"):
        response = visitor.ask("/api/overview", Origin=origin, Sec_Fetch_Site=site)
        assert response.status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(visitor: Visitor, method: str) -> None:
    for path in ("/", "/api/overview", "/nothing"):
        response = visitor.ask(path, method)
        assert response.status == 405, path
        assert response.headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""],
)
def test_post_must_be_json(visitor: Visitor, kind: str) -> None:
    """Any other kind can be sent by a form of another site."""
    response = visitor.ask("/api/explain", "POST", b"{}", content_type=kind)
    assert response.status == 415


def test_get_routes_take_no_post(visitor: Visitor) -> None:
    for path in ("/", "/api/overview", "/api/events", "/static/app.js"):
        kind = "application/json"
        assert visitor.ask(path, "POST", b"{}", content_type=kind).status == 405


@pytest.mark.parametrize("length", ["1048577", "99999999999999999999"])
def test_long_body_is_refused_before_it_is_read(visitor: Visitor, length: str) -> None:
    head = _post_head(visitor, "/api/explain")
    answer = visitor.raw(f"{head}Content-Length: {length}\r\n\r\n")
    assert answer.split()[1] in {"413", "400"}


def test_long_body_in_chunks_is_refused(visitor: Visitor) -> None:
    head = _post_head(visitor, "/api/explain")
    chunk = f"{65536:x}\r\n{'[' * 65536}\r\n"
    body = chunk * 17 + "0\r\n\r\n"
    answer = visitor.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n{body}")
    assert answer.split()[1] == "413"


def _post_head(visitor: Visitor, path: str) -> str:
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{visitor.port}\r\n"
        f"Cookie: {visitor.cookie}\r\nContent-Type: application/json\r\n"
    )


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"NaN"],
)
def test_wrong_body_is_explained(visitor: Visitor, body: bytes) -> None:
    kind = "application/json"
    response = visitor.ask("/api/explain", "POST", body, content_type=kind)
    assert response.status == 400
    assert '"message"' in response.text  # type: ignore[attr-defined] # kept


@pytest.mark.parametrize(
    "path", ["/", "/api/overview", "/api/nothing", "/static/app.js"]
)
def test_every_answer_forbids_everything_foreign(visitor: Visitor, path: str) -> None:
    headers = visitor.ask(path).headers
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in headers["Content-Security-Policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        **dict.fromkeys(
            ("script-src", "style-src", "connect-src", "img-src"), "'self'"
        ),
        **dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'"),
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] is None


@pytest.mark.parametrize(
    "name",
    [
        "..%2fguard.py",
        "%2e%2e/guard.py",
        "../guard.py",
        "..%5cguard.py",
        "%2fetc%2fpasswd",
        "app.js%00",
        "__init__.py",
    ],
)
def test_only_files_of_the_page_are_served(visitor: Visitor, name: str) -> None:
    assert visitor.ask(f"/static/{name}").status == 404


def test_only_this_machine_can_connect(visitor: Visitor) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    port = f":{visitor.port:04X}"
    found = [line.split()[1] for line in listening if line.split()[1].endswith(port)]
    assert f"0100007F{port}" in found
    assert f"00000000{port}" not in found
    assert not [
        line
        for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]
        if line.split()[1].endswith(port)
    ]

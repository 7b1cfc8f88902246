"""``hookline check`` on http hooks (issue 13.3)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.settings.fields import Report
from hookline.settings.lint import lint
from hookline.settings.model import HookSource, shown_url
from hookline.settings.parse import parse_layer


def findings(**hook: Any) -> list[str]:
    entry = {"type": "http", "url": "https://guard.test/ask", **hook}
    report = Report([])
    lint({"hooks": {"BeforeTool": [{"hooks": [entry]}]}}, Path("/nowhere"), report)
    start = "hooks.BeforeTool[0].hooks[0]."
    return [
        f"{problem.severity} {str(problem).removeprefix(start)}"
        for problem in report.problems
    ]


def test_a_sound_hook_has_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_TOKEN", "x")
    headers = {"Authorization": "Bearer ${GUARD_TOKEN}", "X-Team": "blue"}
    assert findings(headers=headers, allowedEnv=["GUARD_TOKEN"]) == []
    assert findings(url="http://127.0.0.1:8181/v1/data/x", dialect="opa") == []
    assert findings(url="http://[::1]:80/", dialect="claude") == []


def test_a_variable_must_be_listed_and_should_be_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GUARD_TOKEN", raising=False)
    headers = {"Authorization": "Bearer ${GUARD_TOKEN}"}
    assert findings(headers=headers) == [
        "error headers.Authorization: names 'GUARD_TOKEN', which is not in allowedEnv"
    ]
    [unset] = findings(headers=headers, allowedEnv=["GUARD_TOKEN"])
    assert unset.startswith("warning headers.Authorization: names 'GUARD_TOKEN', which")
    assert unset.endswith("is not set here: export it")
    assert findings(allowedEnv=["GUARD_TOKEN"]) == [
        "warning allowedEnv: no header names 'GUARD_TOKEN': remove it"
    ]


@pytest.mark.parametrize(
    ("headers", "finding"),
    [
        ({"Bad Name": "1"}, "error headers.Bad Name: is not a valid name of a header"),
        ({"Host": "x"}, "error headers.Host: is set by Hookline: remove it"),
        ({"X-A": "a\r\nb"}, "error headers.X-A: holds a line break"),
        ({"X-A": "${NAME"}, "warning headers.X-A: is sent as written"),
        ({"X-A": "Bearer $NAME"}, "warning headers.X-A: is sent as written"),
        ({"X-A": "$${NAME}"}, None),
        ({"X-A": "$${NAME"}, None),
        ({"X-A": "costs $5, a$b, US$"}, None),
        ({"X-Api-Key": "k-1"}, "warning headers.X-Api-Key: holds a credential"),
        ({"authorization": "Basic x"}, "warning headers.authorization: holds a cred"),
        ({"X-Level": "3"}, None),
    ],
)
def test_headers(headers: dict[str, str], finding: str | None) -> None:
    found = findings(headers=headers)
    assert found == [] if finding is None else found[0].startswith(finding)


@pytest.mark.parametrize(
    ("url", "finding"),
    [
        ("https://me:pw@guard.test/", "warning url: holds a credential"),
        ("https://guard.test/?api_key=1", "warning url: holds a credential"),
        ("https://guard.test/?tenant=1", None),
        ("https://guard.test/${TENANT}", "error url: is sent as written"),
        ("http://guard.test/", "warning url: is not encrypted"),
        ("http://127.0.0.1.guard.test/", "warning url: is not encrypted"),
        ("http://127.0.0.1@guard.test/", "warning url: is not encrypted"),
        ("http://[::ffff:8.8.8.8]/", "warning url: is not encrypted"),
        ("http://127.1.2.3:80/", None),
        ("http://[::1]:80/", None),
        ("http://localhost:1/", None),
        ("https://guard.test:port/", "error url: invalid"),
        ("https://[::1", "error url: invalid"),
        ("https://[zz]/", "error url: invalid"),
        ("https://guard.test:99999/", "error url: invalid"),
        ("https://guard.test:/", None),
    ],
)
def test_urls(url: str, finding: str | None) -> None:
    found = findings(url=url)
    assert found == [] if finding is None else found[0].startswith(finding)


def test_no_finding_quotes_a_credential() -> None:
    found = findings(
        url="https://me:hidden-1@guard.test/?token=hidden-2",
        headers={"Authorization": "Bearer hidden-3", "Cookie": "hidden-4\n"},
    )
    assert len(found) == 4
    assert "hidden" not in "".join(found)


@pytest.mark.parametrize("kind", ["http", "command"])
def test_a_url_that_is_dropped_is_not_quoted(kind: str) -> None:
    hook = {"type": kind, "command": "true", "url": "https://me:hidden@a.test/ b"}
    raw = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    [warning] = parse_layer(raw, HookSource.USER).warnings
    assert "url: " in warning
    assert "hidden" not in warning


@pytest.mark.parametrize(
    "headers",
    [{"X": ["hidden"]}, {"X": "hidden\0"}, ["hidden"], {"X": {"a": "hidden"}}],
)
def test_a_header_that_is_dropped_is_not_quoted(headers: Any) -> None:
    hook = {"type": "http", "url": "https://a.test/", "headers": headers}
    raw = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    [warning] = parse_layer(raw, HookSource.USER).warnings
    assert "hidden" not in warning


def test_a_missing_httpx_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    [found] = findings()
    assert found.startswith("error type: httpx is missing (hookline[http]): run ")
    assert found.endswith("install 'httpx>=0.27'")


def test_keys_without_an_effect_are_warned_about() -> None:
    assert findings(env={"A": "1"}) == [
        "warning env: has no effect on an http hook: headers use the host's variables"
    ]
    other = {"type": "command", "command": "true", "url": None, "dialect": "opa"}
    assert "warning dialect: has no effect: only http hooks ask Open Policy Agent" in (
        findings(**other)
    )


@pytest.mark.parametrize(
    "hook",
    [
        {"headers": [], "allowedEnv": {}},
        {"headers": {"A": 1}, "allowedEnv": [1, None]},
        {"headers": {"": "x"}, "allowedEnv": ["", " "]},
        {"url": 7},
        {"url": ""},
    ],
)
def test_wrong_types_are_no_crash(hook: dict[str, Any]) -> None:
    findings(**hook)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.test/b?c#d", "https://a.test/b"),
        ("https://u:p@a.test:1/b", "https://a.test:1/b"),
        ("https://u:p@x@a.test", "https://a.test"),
        ("https://[::1]:8/b", "https://[::1]:8/b"),
        ("https://a.test?secret", "https://a.test"),
        ("https://a.test/@b", "https://a.test/@b"),
        ("https://u:p/w@a.test/", "(invalid url)"),
        ("https://u:p?w@a.test/", "(invalid url)"),
        ("https://", "(invalid url)"),
    ],
)
def test_a_url_is_shown_without_credentials(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_opa_needs_its_dialect() -> None:
    url = "https://guard.test/v1/data/guard/deny"
    assert findings(url=url, dialect="opa") == []
    [found] = findings(url=url)
    assert found.startswith("warning url: looks like Open Policy Agent")

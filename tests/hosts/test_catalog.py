"""All hosts together: what their tables promise, and what any of them may answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import HooklineError
from hookline.hosts.catalog import all_hosts, host_of, real_host
from hookline.hosts.host import (
    EFFECTS,
    Answer,
    BadInputError,
    Effect,
    Host,
    HostEvent,
    HostName,
    Verdict,
    lost,
)
from hookline.hosts.tools import read_call
from hookline.protocol.events import HookEventName

HOSTS = list(all_hosts().values())
_E = HookEventName
_TOOL_EVENTS = (_E.BeforeTool, _E.AfterTool)
UNTESTED = {"cursor", "vscode", "droid", "goose", "kiro", "windsurf"}

WRITTEN: dict[str, set[str]] = {
    "opencode": {"block", "args", "context", "output"},
    "cline": {"cancel", "errorMessage", "context", "overrideInput"},
    "goose": {"decision", "reason"},
    "cursor": {
        *("permission", "user_message", "agent_message", "updated_input"),
        *("continue", "followup_message", "additional_context"),
        "updated_mcp_tool_output",
    },
    "vscode": {
        *("continue", "stopReason", "systemMessage", "decision", "reason"),
        "hookSpecificOutput",
    },
    "droid": {
        *("continue", "stopReason", "systemMessage", "decision", "reason"),
        "hookSpecificOutput",
    },
}
"""The keys at the top of an answer that each host documents or was seen to take."""
SPECIFIC: dict[str, set[str]] = {
    "vscode": {
        *("hookEventName", "permissionDecision", "permissionDecisionReason"),
        *("updatedInput", "additionalContext", "decision", "reason"),
    },
    "droid": {
        *("hookEventName", "permissionDecision", "permissionDecisionReason"),
        *("updatedInput", "additionalContext"),
    },
}


def events_of(hosts: list[Host]) -> list[Any]:
    return [
        pytest.param(host, name, id=f"{host.name}-{name}")
        for host in hosts
        for name in host.events
    ]


def event_of(host: Host, name: str) -> HostEvent:
    ours = host.events[name]
    call = read_call("Bash", {"command": "ls"}, {}) if ours in _TOOL_EVENTS else None
    response = {"stdout": "x", "stderr": "", "interrupted": False, "isImage": False}
    given = {"tool_response": response}
    return HostEvent(name=name, event=ours, call=call, given=given)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
INPUTS = st.dictionaries(TEXTS, TEXTS, max_size=2)
VERDICTS = st.builds(
    Verdict,
    blocked=st.booleans(),
    reason=TEXTS,
    ask=st.booleans(),
    stopped=st.booleans(),
    stop_reason=TEXTS,
    context=TEXTS,
    message=TEXTS,
    notice=TEXTS,
    tool_input=st.none() | INPUTS,
    withheld=st.booleans(),
    suppressed=st.booleans(),
    clear_context=st.booleans(),
)


def test_every_name_has_a_host() -> None:
    assert [*all_hosts()] == [*HostName]
    for name, host in all_hosts().items():
        assert host_of(name.value) is host
        assert host.name is name


def test_an_unknown_host_is_a_mistake_with_a_hint() -> None:
    with pytest.raises(HooklineError, match="did you mean 'cursor'"):
        host_of("cursr")
    with pytest.raises(HooklineError, match="known: claude, gemini"):
        host_of("xyzzy")


def test_hosts_that_were_not_run_are_called_untested() -> None:
    """Issue 15.1."""
    untested = {host.name.value for host in HOSTS if host.tested is None}
    assert untested - {"llxprt"} == UNTESTED


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_host_limits_only_what_its_events_have(host: Host) -> None:
    assert set(host.limits) <= set(host.events.values())
    for event, effects in host.limits.items():
        assert set(effects) <= set(EFFECTS[event]), event
        assert all(text and text == text.strip(". ") for text in effects.values())


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_host_that_cannot_ask_says_so(host: Host) -> None:
    """Issue 15.2."""
    assert (Effect.ASK in host.limits.get(_E.BeforeTool, {})) is not host.asks


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_no_event_is_known_and_ignored_at_once(host: Host) -> None:
    assert not host.ignored & host.events.keys()
    with pytest.raises(BadInputError):
        host.read({}, "AnEventOfNextYear")


MINE = [host for host in HOSTS if host.name.value in {*WRITTEN, "kiro", "windsurf"}]


@pytest.mark.parametrize(("host", "name"), events_of(MINE))
@given(verdict=VERDICTS)
def test_any_verdict_is_written_in_keys_that_the_host_takes(
    host: Host, name: str, verdict: Verdict
) -> None:
    """hosts/README.md#rules 1: strict keys, and never a non-zero exit by accident."""
    answer = host.write(event_of(host, name), verdict)
    refused = verdict.blocked or verdict.stopped
    if host.name in (HostName.KIRO, HostName.WINDSURF):
        assert answer.status == (2 if answer.stderr else 0)
        assert refused or not answer.status
        return
    assert (answer.status, answer.stderr) == (0, "")
    if not answer.stdout:
        assert host.name is HostName.GOOSE
        return
    written = json.loads(answer.stdout)
    assert set(written) <= WRITTEN[host.name.value]
    specific = written.get("hookSpecificOutput", {})
    assert set(specific) <= SPECIFIC.get(host.name.value, set())
    assert answer.stdout.endswith(b"\n")


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
@given(verdict=VERDICTS)
def test_a_block_before_a_tool_never_looks_like_silence(
    host: Host, verdict: Verdict
) -> None:
    """Issue 15.2: never a wrong allow."""
    names = [name for name, ours in host.events.items() if ours is _E.BeforeTool]
    for name in names:
        event = event_of(host, name)
        silent = host.write(event, Verdict())
        answer = host.write(event, verdict)
        if verdict.blocked or verdict.stopped:
            assert (answer.stdout, answer.status) != (silent.stdout, silent.status)


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_refusal_is_an_answer_of_its_own(host: Host) -> None:
    answer = host.refuse("no such event")
    assert "no such event" in answer.stdout.decode() + answer.stderr
    assert answer.status in (0, 2)


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_losses_name_the_host_the_event_and_what_happens_instead(host: Host) -> None:
    for event, effects in host.limits.items():
        verdict = Verdict(blocked=True, ask=True, stopped=True, context="c")
        for line in lost(host, event, verdict, Answer()):
            assert line.startswith(f"{host.title}: {event.value}: ")
            assert line.rpartition(": ")[2] in " ".join(effects.values())


KEYS = st.sampled_from(
    [
        *("tool_name", "tool_input", "tool_call", "tool_result", "tool_info", "tool"),
        *("args", "input", "name", "output", "prompt", "message", "cwd", "edits"),
        *("command", "commands", "path", "files", "properties", "info", "turn"),
        *("sessionContext", "workspaceRoots", "workspace_roots", "loop_count"),
        *("tool_response", "tool_output", "llm_request", "toolName", "toolArgs"),
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
@given(sent=st.dictionaries(KEYS, VALUES, max_size=8))
def test_any_input_is_read_or_refused(host: Host, sent: dict[str, Any]) -> None:
    """Issue 15.3: a host version that sends something else is no crash."""
    for name in host.events:
        try:
            event = host.read(sent, name)
        except BadInputError:
            continue
        for fields in event.inputs(host.name):
            assert isinstance(fields.get("tool_name", ""), str)
            assert isinstance(fields.get("tool_input", {}), dict)


CALL = {"tool_name": "Shell", "tool_input": {"command": "ls"}}


CLAUDES = {"hook_event_name": "PreToolUse", "timestamp": "2026", **CALL}
CURSORS = {"hook_event_name": "preToolUse", "cursor_version": "2.0", **CALL}
VSCODES = {"hookEventName": "PreToolUse", "sessionId": "s", **CALL}
COPILOT = {"COPILOT_CLI": "1"}


@pytest.mark.parametrize(
    ("named", "sent", "env", "real"),
    [
        ("claude", CLAUDES, {}, "claude"),
        ("claude", CURSORS, {}, "cursor"),
        ("claude", VSCODES, {}, "vscode"),
        ("claude", VSCODES, COPILOT, "vscode"),
        ("claude", CLAUDES, COPILOT, "copilot"),
        ("copilot", VSCODES, {}, "vscode"),
        ("copilot", CLAUDES, COPILOT, "copilot"),
        ("vscode", CLAUDES, COPILOT, "copilot"),
        ("vscode", VSCODES, COPILOT, "vscode"),
        ("vscode", CLAUDES, {}, "vscode"),
        ("cursor", CURSORS, {}, "cursor"),
    ],
)
def test_a_host_that_reads_the_settings_of_another_is_recognised(
    named: str, sent: dict[str, Any], env: dict[str, str], real: str
) -> None:
    """hosts/README.md#rules 9."""
    assert real_host(host_of(named), sent, env).name.value == real

"""What coding agents get from ``hookline bridge``, and what hooks see of their events.

Recorded byte for byte: JSON with the usual separators is shown as JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.bridged import (
    EVENT_ARGUMENTS,
    FAILING,
    VERDICTS,
    BridgedProject,
    answer_as_data,
    bridged,
    inputs_of,
    payload,
    tool_call,
)
from tests.support.commandline import run_command
from tests.support.pins import PinTable, masked

__all__ = ["bridged"]
HOSTS = (
    *("claude", "gemini", "llxprt", "codex", "copilot", "qwen", "opencode"),
    *("cursor", "vscode", "droid", "goose", "kiro", "windsurf", "cline"),
)
NAME_FIELDS = (
    *("hook_event_name", "hookEventName", "hookName", "event", "agent_action_name"),
    "cursor_version",
)
"""What says which event it is."""
Tables = Callable[[str], PinTable]


def check(table: PinTable, observe: Callable[[str, dict[str, Any]], object]) -> None:
    """Compare rows that each run a command in this process, one after the other."""
    results = {name: observe(name, row) for name, row in table.rows.items()}
    asyncio.run(table.check(lambda name, _: results[name]))


def answers(bridged: BridgedProject, host: str, row: dict[str, Any]) -> object:
    """The answers to one event by what its hook says; equal ones are one entry.

    ``sent`` is text in place of a payload, ``also`` are verdicts of this event alone.
    """
    event = row.get("fires", "BeforeTool")
    sent = row["sent"].encode() if "sent" in row else payload(row["payload"])
    by_answer: dict[str, list[str]] = {}

    def ask(verdict: str, stdin: Any = sent) -> None:
        bridged.forget()
        reply = bridged.ask(host, stdin, row.get("event"))
        text = masked(json.dumps(answer_as_data(reply)), {"folder": bridged.home})
        by_answer.setdefault(text, []).append(verdict)

    if "settings" in row:
        bridged.settings_file.write_text(row["settings"])
        ask("any verdict")
    elif "sent" not in row:
        for verdict, then in {**VERDICTS, **row.get("also", {})}.items():
            bridged.rule(event, then)
            ask(verdict)
    for policy in () if "settings" in row else ("allow", "block"):
        bridged.hook(event, FAILING | {"onError": policy})
        ask(f"failed hook, onError: {policy}")
        if "sent" not in row:
            names = {key: sent[key] for key in NAME_FIELDS if key in sent}
            ask(f"nothing but its name, onError: {policy}", names)
    return {" | ".join(names): json.loads(text) for text, names in by_answer.items()}


@pytest.mark.parametrize("host", HOSTS)
def test_answers_of_the_bridge_to_every_verdict(
    host: str, pin_table: Tables, bridged: BridgedProject
) -> None:
    """hosts/README.md#rules 1 to 5, 11 and 12."""
    check(
        pin_table(f"hosts/answers/{host}"), lambda _, row: answers(bridged, host, row)
    )


def test_events_as_hooks_see_them(pin_table: Tables, bridged: BridgedProject) -> None:
    """Every capture and documented payload; what no hook sees has its answer.

    hosts/README.md#what-a-hook-sees; ``with`` changes fields of a payload.
    """

    def observe(name: str, row: dict[str, Any]) -> object:
        sent = payload(row.get("payload", name)) | row.get("with", {})
        return inputs_of(bridged, row["host"], sent, row.get("event"))

    check(pin_table("hosts/inputs"), observe)


def test_calls_of_tools_as_hooks_see_them(
    pin_table: Tables, bridged: BridgedProject
) -> None:
    """The tool and input of a host, and ours for each file or command of the call.

    hosts/README.md#what-a-hook-sees; no file is hidden by patches, lists of edits or
    several names of one field.
    """

    def observe(_: str, row: dict[str, Any]) -> object:
        host, tool = row["host"], row["tool"]
        call = tool_call(host, tool, row["input"])
        inputs = inputs_of(bridged, host, call, EVENT_ARGUMENTS.get(host))
        assert isinstance(inputs, list), inputs
        assert all(event["host"]["tool_name"] == tool for event in inputs)
        assert all(
            event.get("mcp_context") == inputs[0].get("mcp_context") for event in inputs
        )
        server = inputs[0].get("mcp_context")
        parts = [[event["tool_name"], event["tool_input"]] for event in inputs]
        return parts if server is None else {"parts": parts, "mcp_context": server}

    check(pin_table("hosts/tools"), observe)


def test_matchers_and_rules_in_the_words_of_the_agent(
    pin_table: Tables, bridged: BridgedProject
) -> None:
    """protocol.md#planning and #rules: whether the hook runs, or its rule holds."""

    def observe(_: str, row: dict[str, Any]) -> object:
        host, when = row["host"], row.get("when", "true")
        hook = {"type": "rule", "when": when, "then": {"decision": "deny"}}
        group = {"matcher": row["matcher"]} if "matcher" in row else {}
        bridged.settings({"hooks": {"BeforeTool": [{**group, "hooks": [hook]}]}})
        call = tool_call(host, row["tool"], row["input"])
        reply = bridged.ask(host, call, EVENT_ARGUMENTS.get(host))
        return "No reason provided" in reply.stdout

    check(pin_table("hosts/agent_names"), observe)


def test_answers_in_special_cases(pin_table: Tables, bridged: BridgedProject) -> None:
    """What a payload, a variable or the settings change in an answer.

    ``says`` is the output of a rule, ``when`` its condition; ``hooks`` are others.
    ``unreadable``: the settings file of the person is a folder.
    """

    def observe(_: str, row: dict[str, Any]) -> object:
        sent = row["payload"]
        sent = (payload(sent) if isinstance(sent, str) else sent) | row.get("with", {})
        rule = {"type": "rule", "name": "guard", "when": row.get("when", "true")}
        hooks = row.get("hooks", [rule | {"then": row.get("says")}])
        group = {"hooks": hooks, **row.get("group", {})}
        config = row.get("config", {})
        event = row.get("fires", "BeforeTool")
        bridged.forget()
        bridged.settings({"hooks": {event: [group]}, "hooksConfig": config})
        if row.get("unreadable"):
            bridged.settings_file.unlink()
            bridged.settings_file.mkdir()
        answer = bridged.ask(row["host"], sent, row.get("event"), **row.get("env", {}))
        if row.get("unreadable"):
            bridged.settings_file.rmdir()
        text = json.dumps(answer_as_data(answer))
        return json.loads(text.replace(str(bridged.home), "<folder>"))

    check(pin_table("hosts/cases"), observe)


def test_journal_records_what_the_agent_was_told(
    pin_table: Tables, bridged: BridgedProject
) -> None:
    """protocol.md#results: the verdict as the host took it, beside the hooks' words.

    ``tool`` and ``input`` are a call in place of a payload, ``sent`` is a text. Events
    that only say what a host cannot express are left out.
    """

    def observe(_: str, row: dict[str, Any]) -> object:
        host = row["host"]
        rule = {"type": "rule", "name": "guard", "when": "true"}
        hooks = row.get("hooks", [rule | {"then": row.get("says")}])
        bridged.forget()
        event = row.get("fires", "BeforeTool")
        bridged.hook(event, *hooks, journal=True, **row.get("config", {}))
        if "tool" in row:
            call = tool_call(host, row["tool"], row["input"])
            bridged.ask(host, call, EVENT_ARGUMENTS.get(host))
        else:
            bridged.ask(host, row["sent"].encode() if "sent" in row else row["payload"])
        shown = []
        for entry in bridged.recorded():
            whole = run_command("log", "--json", str(entry["id"])).json()
            assert whole["verdict"] == entry["verdict"]
            facts = {key: whole[key] for key in ("event", "verdict", "reason")}
            shown.append(facts | {"hooks": [hook["output"] for hook in whole["hooks"]]})
        return shown

    check(pin_table("hosts/recorded"), observe)

"""Issue 16, Try: which hooks would run and why, and what they say if they are run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from hookline.inspector.desk import Desk
from hookline.protocol.events import HookEventName
from tests.support.commandline import hookline
from tests.support.inspecting import Inspected, entered
from tests.support.processes import STUBBORN, marked, until

EVENTS = [event.value for event in HookEventName]
RULE = {
    "type": "rule",
    "name": "no-env",
    "when": "tool_input.path.endsWith('.env')",
    "then": {"decision": "deny", "reason": "keep secrets out of ${tool_input.path}"},
}
HOOKS = {
    "BeforeTool": [
        {"matcher": "write_file|my_tool", "hooks": [RULE]},
        {
            "matcher": "write_.*",
            "sequential": True,
            "hooks": [
                {"type": "command", "name": "touches", "command": "touch ran"},
                {"type": "command", "name": "off", "command": "exit 2"},
                {
                    "type": "command",
                    "name": "sometimes",
                    "if": "tool_input.path == 'x'",
                    "command": "exit 2",
                },
            ],
        },
    ]
}


SPECIFIC = "hookSpecificOutput"


def command(text: str, name: str = "it", **more: Any) -> dict[str, Any]:
    return {"type": "command", "name": name, "command": text, **more}


def on_tools(*hooks: dict[str, Any]) -> dict[str, Any]:
    return {"BeforeTool": [{"hooks": list(hooks)}]}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspected]:
    """One server for the tests that leave nothing behind."""
    inspected = Inspected(tmp_path_factory.mktemp("tried"))
    inspected.settings(HOOKS, disabled=["off"], journal=False)
    with inspected.running():
        yield inspected


@pytest.fixture(scope="module")
def client(shared: Inspected) -> Iterator[httpx.Client]:
    with entered(shared.address) as client:
        yield client


def said(response: httpx.Response) -> str:
    message: str = response.json()["error"]["message"]
    return message


def test_every_event_is_offered_with_its_fields_and_tools(client: httpx.Client) -> None:
    found = client.get("/api/try").json()
    events = {event["name"]: event for event in found["events"]}
    assert list(events) == EVENTS
    assert events["SessionStart"]["description"] == "A session starts."
    assert events["SessionStart"]["fields"] == [
        {
            "name": "source",
            "required": True,
            "choices": ["startup", "resume", "clear", "compress"],
        }
    ]
    optional = {f["name"]: f["required"] for f in events["BeforeTool"]["fields"]}
    assert optional == {
        "tool_name": True,
        "tool_input": True,
        "tool_use_id": False,
        "mcp_context": False,
        "original_request_name": False,
    }
    # Ours, and those that matchers of the settings name outright.
    assert {"run_shell_command", "my_tool"} <= set(found["tools"])
    assert not any("*" in name for name in found["tools"])
    assert found["records"] is False


@pytest.mark.parametrize("event", EVENTS)
def test_the_sample_of_an_event_can_be_fired(client: httpx.Client, event: str) -> None:
    offered = {one["name"]: one for one in client.get("/api/try").json()["events"]}
    tool = "my_tool" if offered[event]["takes_tool"] else None
    text = json.dumps(offered[event]["sample"])
    body = {"event": event, "tool": tool, "input": text}
    result = client.post("/api/fire", json=body).json()
    assert (result["event"], result["messages"]) == (event, [])
    assert result["exit_status"] == 0


CASES = {
    "blocked by a rule": ("BeforeTool", "write_file", {"path": "a/.env"}),
    "allowed by it": ("BeforeTool", "write_file", {"path": "a"}),
    "condition true": ("BeforeTool", "write_more", {"path": "x"}),
    "nothing matches": ("BeforeTool", "other", {}),
    "no hooks for it": ("AfterTool", "other", {}),
}


@pytest.mark.parametrize(("event", "tool", "given"), CASES.values(), ids=list(CASES))
def test_the_explanation_is_that_of_the_command(
    shared: Inspected, client: httpx.Client, event: str, tool: str, given: Any
) -> None:
    """Issue 16: "see which hooks would run and why (nothing runs)"."""
    (shared.folder / "ran").unlink(missing_ok=True)
    body = {"event": event, "tool": tool, "tool_input": given}
    found = client.post("/api/explain", json=body).json()
    words = ("--settings", str(shared.settings_file), "--cwd", str(shared.folder))
    asked = ("explain", event, "--tool", tool, "--tool-input", json.dumps(given))
    text = hookline(*asked, *words).stdout
    assert text.splitlines()[0] == f"{event} {tool}: {found.pop('summary')}"
    assert found.pop("warnings") == []
    assert found == json.loads(hookline(*asked, *words, "--json").stdout)
    assert not (shared.folder / "ran").exists()


@pytest.mark.parametrize(("event", "tool", "given"), CASES.values(), ids=list(CASES))
def test_the_result_is_that_of_the_command(
    shared: Inspected, client: httpx.Client, event: str, tool: str, given: Any
) -> None:
    """Issue 16: "then run them if asked"; as ``hookline fire --json``."""
    fields = {"tool_name": tool, "tool_input": given, "tool_response": {}}
    found = client.post("/api/fire", json={"event": event, "input": fields}).json()
    fired = shared.fire(event, **fields)
    for result in (found, fired):
        del result["total_duration_ms"]
        for hook in result["hooks"]:
            del hook["duration_ms"]
    for hook, expected in zip(found["hooks"], fired["hooks"], strict=True):
        assert hook | expected == hook
    del found["hooks"], fired["hooks"]
    assert found | fired == found


def test_a_result_says_what_changed_and_who_decided(inspected: Inspected) -> None:
    says = json.dumps({"hookSpecificOutput": {"tool_input": {"path": "src/a"}}})
    inspected.settings(on_tools(command(f"echo '{says}'", "moves"), command("exit 3")))
    with inspected.running(), entered(inspected.address) as client:
        body = {"event": "BeforeTool", "tool": "t", "tool_input": {"path": "a", "n": 1}}
        found = client.post("/api/fire", json=body).json()
    assert found["verdict"]["word"] == "changed"
    (change,) = found["changes"]
    assert change["before"] == {"path": "a", "n": 1}
    assert change["after"] == {"path": "src/a", "n": 1}
    assert [one["verdict"] for one in found["hooks"][:2]] == ["changed", "failed"]
    (field,) = [one for one in found["provenance"] if "path" in one["field"]]
    assert field["said"] == [{"hook": "moves", "value": "src/a", "part": "gave"}]


def test_no_digit_is_lost_on_the_way_to_a_hook(inspected: Inspected) -> None:
    inspected.settings(on_tools(command("cat > seen")))
    number = 123456789012345678901234567890
    text = f'{{"tool_input": {{"n": {number}}}}}'
    with inspected.running(), entered(inspected.address) as client:
        body = {"event": "BeforeTool", "tool": "t", "input": text}
        assert client.post("/api/fire", json=body).status_code == 200
        seen = json.loads((inspected.folder / "seen").read_text())
        assert seen["tool_input"]["n"] == number
        (newest,) = client.get("/api/events").json()["events"]
        filled = client.get(f"/api/try/{newest['id']}").json()
    assert json.loads(filled["text"]) == {"tool_input": {"n": number}}
    assert (filled["event"], filled["tool"]) == ("BeforeTool", "t")


def test_a_recorded_event_says_what_is_not_as_it_was(inspected: Inspected) -> None:
    inspected.settings({})
    inspected.fire("BeforeTool", tool_name="t", tool_input={"password": "hunter22"})
    with inspected.running(), entered(inspected.address) as client:
        filled = client.get("/api/try/1").json()
        assert filled["inexact"] == ["credentials in the input are masked"]
        assert "hunter22" not in filled["text"]
        assert client.get("/api/try/99").status_code == 404


PROBLEMS = {
    "unknown event": ({"event": "Nope"}, "unknown event 'Nope': one of BeforeTool"),
    "no tool": ({"event": "BeforeTool"}, "BeforeTool needs a tool name"),
    "invalid JSON": (
        {"event": "BeforeAgent", "input": '{"prompt": }'},
        "the input is not valid JSON",
    ),
    "not an object": (
        {"event": "BeforeAgent", "input": "[1]"},
        "the input: expected a JSON object, got [1]",
    ),
    "not text": ({"event": "BeforeAgent", "input": 7}, "the request is invalid"),
    "unknown field": ({"event": "BeforeAgent", "x": 1}, "the request is invalid"),
    "missing choice": ({"event": "SessionStart"}, "SessionStart input: source"),
    "an option as an event": ({"event": "--help"}, "unknown event '--help'"),
}


@pytest.mark.parametrize(("body", "problem"), PROBLEMS.values(), ids=list(PROBLEMS))
def test_a_mistake_comes_out_as_the_command_says_it(
    client: httpx.Client, body: dict[str, Any], problem: str
) -> None:
    response = client.post("/api/fire", json=body)
    assert response.status_code == 400
    assert problem in said(response)


@pytest.mark.parametrize("path", ["/api/fire", "/api/explain", "/api/fire/cancel"])
def test_nothing_is_run_by_get(client: httpx.Client, path: str) -> None:
    """Issue 16: "no state change by GET"."""
    assert client.get(path, params={"event": "BeforeTool"}).status_code == 405


def test_hooks_that_are_switched_off_say_so(inspected: Inspected) -> None:
    text = json.dumps({"enableHooks": False, "hooks": on_tools(command("exit 2"))})
    inspected.settings_file.write_text(text)
    with inspected.running(), entered(inspected.address) as client:
        body = {"event": "BeforeTool", "tool": "t"}
        (hook,) = client.post("/api/explain", json=body).json()["hooks"]
        assert hook["judgement"] == "switched off"
        assert hook["why"] == f"enableHooks is false in {inspected.settings_file}"
        result = client.post("/api/fire", json=body | {"record": True}).json()
        assert (result["blocked"], result["hooks"]) == (False, [])
        disabled = "hooks are disabled (enableHooks is false): nothing is recorded"
        assert result["messages"] == [disabled]


def test_hooks_that_nobody_approved_do_not_run(inspected: Inspected) -> None:
    settings = inspected.folder / ".hookline" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": on_tools(command("touch ran"))}))
    with inspected.running(), entered(inspected.address) as client:
        body = {"event": "BeforeTool", "tool": "t"}
        (hook,) = client.post("/api/explain", json=body).json()["hooks"]
        assert hook["judgement"] == "untrusted"
        assert "run 'hookline trust' to review and approve it" in hook["why"]
        result = client.post("/api/fire", json=body).json()
        assert result["hooks"] == []
        assert any("hookline trust" in text for text in result["messages"])
    assert not (inspected.folder / "ran").exists()


def test_a_run_is_recorded_if_asked(inspected: Inspected) -> None:
    inspected.settings(on_tools(command("true")), journal=False)
    with inspected.running(), entered(inspected.address) as client:
        body = {"event": "BeforeTool", "tool": "t"}
        client.post("/api/fire", json=body)
        assert not inspected.journal.exists()
        client.post("/api/fire", json=body | {"record": True})
        assert len(client.get("/api/events").json()["events"]) == 1


def test_the_verdict_is_the_word_of_the_journal(inspected: Inspected) -> None:
    """Context changes the prompt and is no verdict; an answer in advance is one."""
    saying = {
        "BeforeAgent": {"additionalContext": "c"},
        "BeforeModel": {"llm_response": {"text": "no"}},
    }
    hooks = {
        event: [{"hooks": [command(f"echo '{json.dumps({SPECIFIC: said})}'")]}]
        for event, said in saying.items()
    }
    inspected.settings(hooks)
    with inspected.running(), entered(inspected.address) as client:
        events = client.get("/api/try").json()["events"]
        samples = {one["name"]: one["sample"] for one in events}
        words = []
        for event in saying:
            body = {"event": event, "input": samples[event]}
            words.append(client.post("/api/fire", json=body).json()["verdict"]["word"])
        rows = client.get("/api/events").json()["events"][::-1]
    assert words == [row["verdict"] for row in rows] == ["allowed", "changed"]


@pytest.fixture
def mark(inspected: Inspected, monkeypatch: pytest.MonkeyPatch) -> str:
    """In the environment of the server and of all that it starts."""
    monkeypatch.setenv("TRIAL_TEST", str(inspected.folder))
    return f"TRIAL_TEST={inspected.folder}"


async def none_but(mark: str, *known: int) -> bool:
    """Whether these, and this process, are soon the only ones that have the mark."""
    for _ in range(3000):
        if not {*marked(mark)} - {*known, os.getpid()}:
            return True
        await asyncio.sleep(0.01)
    return False


SLOW = {"event": "BeforeTool", "tool": "t", "run": "mine"}


@pytest.mark.parametrize("text", STUBBORN.values(), ids=list(STUBBORN))
async def test_cancel_ends_the_command_and_its_hooks(
    inspected: Inspected, mark: str, text: str
) -> None:
    """Issue 16: no process stays behind."""
    inspected.settings(on_tools(command(text)))
    with inspected.running() as server, entered(inspected.address) as client:
        running = asyncio.create_task(
            asyncio.to_thread(client.post, "/api/fire", json=SLOW)
        )
        await until(str(inspected.folder / "started"))
        again = await asyncio.to_thread(client.post, "/api/fire", json=SLOW)
        assert said(again) == "this run has started already"
        done = await asyncio.to_thread(
            client.post, "/api/fire/cancel", json={"run": "mine"}
        )
        assert done.json() == {"cancelled": True}
        response = await running
        assert response.status_code == 409
        assert said(response) == "the run was cancelled: its hooks were ended"
        assert await none_but(mark, server.pid)
        unknown = client.post("/api/fire/cancel", json={"run": "mine"})
        assert unknown.json() == {"cancelled": False}


async def test_a_page_that_is_closed_takes_its_hooks_along(
    inspected: Inspected, mark: str
) -> None:
    inspected.settings(on_tools(command(STUBBORN["has deaf children"])))
    with inspected.running() as server, entered(inspected.address) as client:
        async with httpx.AsyncClient(cookies=client.cookies, timeout=60) as page:
            running = asyncio.create_task(
                page.post(f"{inspected.base}/api/fire", json=SLOW)
            )
            await until(str(inspected.folder / "started"))
            running.cancel()
        assert await none_but(mark, server.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_runs_end_with_the_server(
    inspected: Inspected, mark: str, number: signal.Signals
) -> None:
    """Issue 16: "ended with the server", however it dies."""
    inspected.settings(on_tools(command(STUBBORN["ignores SIGTERM"])))
    with inspected.running() as server, entered(inspected.address) as client:
        running = asyncio.create_task(
            asyncio.to_thread(client.post, "/api/fire", json=SLOW)
        )
        await until(str(inspected.folder / "started"))
        server.send_signal(number)
        await asyncio.to_thread(server.wait, 60)
        with suppress(httpx.TransportError):
            assert (await running).status_code == 409
        assert await none_but(mark)


async def test_only_a_few_events_run_at_once(inspected: Inspected) -> None:
    inspected.settings(on_tools(command(STUBBORN["sleeps"])))
    body = {"event": "BeforeTool", "tool": "t"}
    with inspected.running(), entered(inspected.address) as client:
        cookies = client.cookies
        url = f"{inspected.base}/api/fire"
        async with httpx.AsyncClient(cookies=cookies, timeout=60) as page:
            running = [asyncio.create_task(page.post(url, json=body)) for _ in range(6)]
            done, _ = await asyncio.wait(running, return_when="FIRST_COMPLETED")
            for task in running:
                task.cancel()
    response = done.pop().result()
    assert response.status_code == 429
    assert said(response) == "4 events are being run: wait for one, or cancel it"


def test_the_folder_of_a_project_holds_no_modules_of_ours(tmp_path: Path) -> None:
    """A project that nobody approved must not run code by a file's name."""
    for name in ("hookline.py", "asyncio.py", "json.py"):
        (tmp_path / name).write_text("open('ran', 'w').close()")
    words = Desk(str(tmp_path)).command("list", "--json")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    assert json.loads(done.stdout) is not None
    assert not (tmp_path / "ran").exists()

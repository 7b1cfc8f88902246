"""``hookline serve`` and ``hookline request`` as processes: verdicts and log lines."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from pathlib import Path

from tests.support.command_project import command_hook
from tests.support.commandline import run_command
from tests.support.nats import ROOT, NatsServer
from tests.support.processes import until
from tests.support.serving import EVENT, Serving

FLEET = ROOT / "examples" / "fleet"
BLOCKS = command_hook("echo no >&2; exit 2", "blocks")
FAILS = command_hook("echo broken >&2; exit 1", "fails")
PRINTS = {"type": "python", "function": "prints_in_serve:hook", "name": "prints"}


def test_worker_gives_verdicts_and_logs_requests(serving: Serving) -> None:
    """With the example of the documentation, copied to a folder with a blank."""
    copy = serving.folder / "a fleet"
    shutil.copytree(FLEET, copy)
    serving.folder, serving.settings_file = copy, copy / "settings.json"
    serving.start("-v")
    assert "ready, serving 1 hook on" in serving.ready_line
    status, response = serving.answer()
    assert (status, response["success"]) == (2, True)
    assert response["processed"]["blocked"] is True
    assert response["processed"]["reason"] == "keep secrets out of .env files"
    status, response = serving.answer(EVENT | {"tool_input": {"path": "a.py"}})
    assert status == 0
    assert response["output"]["hookResults"][0]["name"] == "no-env-files"
    status, response = serving.answer({"tool_name": 5})
    assert (status, response["error"]["code"]) == (3, "validation_failure")
    asking = serving.request()
    readable, _ = asking.communicate()
    assert asking.returncode == 2
    assert json.loads(readable)["processed"]["blocked"] is True
    assert readable.count("\n") > 10
    status, log = serving.stop()
    assert status == 0
    lines = [line for line in log.splitlines() if "'BeforeTool'" in line]
    assert [line.split()[3] for line in lines] == [
        *("blocked", "allowed", "failed:", "blocked")
    ]


async def test_stopping_worker_finishes_the_hook_in_progress(serving: Serving) -> None:
    command = "touch started; until test -e gate; do sleep 0.02; done; echo no >&2"
    serving.write(command_hook(f"{command}; exit 2", "slow"))
    serving.start()
    slow = asyncio.create_task(serving.reason())
    await until(str(serving.folder / "started"))
    serving.process.send_signal(signal.SIGTERM)
    code = None
    while code != "no_responders":
        timeout = ("--timeout", "0.5")
        _, response = await asyncio.to_thread(serving.answer, EVENT, *timeout)
        code = response["error"]["code"]
    assert serving.process.poll() is None
    (serving.folder / "gate").touch()
    assert await slow == "no"
    assert serving.process.wait() == 0


def test_request_has_no_verdict_without_a_worker_or_a_server(serving: Serving) -> None:
    status, response = serving.answer()
    assert (status, response["success"]) == (3, False)
    assert response["error"]["code"] == "no_responders"
    bus = ("--bus", "nats://127.0.0.1:1", "--json", "--timeout", "0.3")
    ended = run_command("request", "BeforeTool", *bus)
    assert (ended.returncode, ended.stdout.count("\n")) == (3, 1)
    error = ended.json()["error"]
    assert error["code"] == "no_responders"
    assert "127.0.0.1:1" in error["message"]


def test_worker_without_hooks_warns(serving: Serving) -> None:
    """In a wrong directory it said yes to everything, and looked ready."""
    serving.settings_file.write_text("{}")
    serving.start()
    assert "serving 0 hooks" in serving.ready_line
    status, log = serving.stop()  # right after it was ready
    assert status == 0
    assert f"no hooks are configured for {serving.folder}, so every request" in log


def test_worker_with_a_wrong_password_fails_and_shows_none(
    guarded_server: NatsServer, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("guessed\n")
    login = ("--user", "me", "--password-file", str(password))
    ended = run_command("serve", "--bus", guarded_server.url, *login, cwd=tmp_path)
    assert ended.returncode == 1
    assert "authorization" in ended.stderr.lower()
    assert "guessed" not in ended.stderr
    url = guarded_server.url.replace("//", "//me:hunter3@")
    ended = run_command("serve", "--bus", url, "--log-format", "json")
    assert ended.returncode == 1
    warning, error = map(json.loads, ended.stderr.splitlines())
    assert warning["level"] == "warning"
    assert "--password-file" in warning["message"]
    assert error["message"].startswith(f"no connection to {guarded_server.url}")
    assert "hunter3" not in ended.stderr


def test_lost_and_regained_connection_is_logged_without_credentials(
    logged_in: Serving, guarded_server: NatsServer
) -> None:
    """With ``-v`` also each attempt and each request, without it neither."""
    logged_in.write(BLOCKS)
    for verbose in (True, False):
        logged_in.log.clear()
        logged_in.start(*(["-v"] if verbose else []))
        guarded_server.stop()
        lost = logged_in.until("lost")
        if verbose:
            logged_in.until("Connect call failed")
        guarded_server.start()
        regained = logged_in.until("again")
        assert f"connection to {guarded_server.url} lost" in lost
        assert f"connected to {guarded_server.url} again after" in regained
        assert logged_in.answer()[0] == 2
        status, log = logged_in.stop()
        assert status == 0
        assert log.count("lost") == log.count("again") == 1
        assert ("Connect call failed" in log) is verbose
        assert (" blocked " in log) is verbose
        assert "hunter2" not in log.replace("--password-file", "")


def test_every_line_of_a_json_log_has_the_fields_of_what_it_is_about(
    logged_in: Serving, guarded_server: NatsServer
) -> None:
    """JSON logs, one object a line."""
    module = "def hook(event):\n    print('printed', flush=True)\n"
    (logged_in.folder / "prints_in_serve.py").write_text(module)
    logged_in.write(BLOCKS, FAILS, PRINTS)
    logged_in.start("-v", "--log-format", "json")
    logged_in.answer()
    logged_in.until('"request"')
    logged_in.answer({"tool_name": 5})
    logged_in.until("validation_failure")
    guarded_server.stop()
    logged_in.until("lost")
    guarded_server.start()
    logged_in.until("again")
    logged_in.settings_file.write_text("{ not JSON")
    logged_in.until("not used")
    status, log = logged_in.stop()
    assert status == 0
    lines = [json.loads(line) for line in log.splitlines()]
    ready = json.loads(logged_in.ready_line)["message"]
    assert ready.startswith("ready, serving 3 hooks on")
    assert {tuple(line)[:4] for line in lines} == {
        ("time", "level", "logger", "message")
    }
    first, second = (line["request"] for line in lines if "request" in line)
    assert (first["event"], first["verdict"]) == ("BeforeTool", "blocked")
    assert first["correlation_id"]
    assert first["duration_ms"] > 0
    assert (second["verdict"], second["error"]) == ("failed", "validation_failure")
    (failure,) = (line for line in lines if line["message"] == "hook:failure")
    assert (failure["level"], failure["logger"]) == ("warning", "hookline.hooks")
    assert (failure["hook"]["hook"], failure["hook"]["stderr"]) == ("fails", "broken")
    fields = [set(line["bus"]) for line in lines if "bus" in line]
    assert {"address", "error"} in fields
    assert {"address", "gone_s"} in fields
    (reload,) = (line for line in lines if "settings" in line)
    assert (reload["level"], reload["logger"]) == ("error", "hookline.reload")
    assert reload["settings"] == {"reloaded": False}
    assert str(logged_in.settings_file) in reload["message"]
    assert lines[-1]["message"] == "stopping: finishing requests in progress"
    assert "hunter2" not in log

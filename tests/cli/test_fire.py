"""``hookline fire``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HOOKLINE = [sys.executable, "-m", "hookline.cli.main"]
BLOCK = {"type": "command", "command": "echo no >&2; exit 2", "name": "guard"}


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "settings.json"
    group = {"matcher": "write", "hooks": [BLOCK]}
    file.write_text(json.dumps({"hooks": {"BeforeTool": [group]}}))
    return file


def hookline(
    *words: str, cwd: Path, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    places = {"XDG_CONFIG_HOME": str(cwd / "xdg"), "XDG_STATE_HOME": str(cwd / "xdg")}
    return subprocess.run(
        [*HOOKLINE, *words],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **places, **env},
        timeout=60,
        check=False,
    )


def fire(settings: Path, *words: str, stdin: str = "") -> Any:
    return hookline(
        "fire", *words, "--settings", str(settings), cwd=settings.parent, stdin=stdin
    )


KEYS = [
    *("event", "success", "blocked", "reason", "ask", "should_stop", "stop_reason"),
    *("system_message", "suppress_output", "additional_context", "final_output"),
    *("all_outputs", "errors", "total_duration_ms", "hooks"),
]
HOOK_KEYS = [
    *("name", "source", "success", "exit_code", "timed_out", "truncated"),
    *("would_block", "reran", "duration_ms", "output", "stdout", "stderr", "error"),
    *("type", "mode", "recheck", "async"),
]


def test_json_is_one_object_with_the_pinned_keys(settings: Path) -> None:
    done = fire(settings, "BeforeTool", "--tool", "write_file", "--json")
    answer = json.loads(done.stdout)
    assert list(answer) == KEYS
    assert list(answer["hooks"][0]) == HOOK_KEYS
    assert (answer["blocked"], answer["reason"]) == (True, "no")
    assert answer["hooks"][0]["output"] == {"decision": "deny", "reason": "no"}
    assert done.returncode == 2


def test_exit_status_is_0_when_nothing_matches(settings: Path) -> None:
    done = fire(settings, "BeforeTool", "--tool", "read_file", "--json")
    answer = json.loads(done.stdout)
    assert (answer["hooks"], answer["total_duration_ms"]) == ([], 0)
    assert answer["final_output"] is None
    assert done.returncode == 0


def test_the_verdict_is_readable(settings: Path) -> None:
    done = fire(
        settings, "BeforeTool", "--tool", "write_file", "--tool-input", '{"path": "a"}'
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "BeforeTool: blocked: no"
    assert lines[1].startswith("  block guard (explicit, ")
    assert "\x1b" not in done.stdout


def test_input_comes_from_a_file_or_stdin(settings: Path) -> None:
    event = {"tool_name": "write_file", "tool_input": {}}
    file = settings.parent / "event.json"
    file.write_text(json.dumps(event))
    assert fire(settings, "BeforeTool", "--input", str(file)).returncode == 2
    piped = fire(settings, "BeforeTool", "--input", "-", stdin=json.dumps(event))
    assert piped.returncode == 2


def test_json_given_as_the_name_of_a_file_is_told_where_it_belongs(
    settings: Path,
) -> None:
    """Issue 17: 'No such file or directory' hid the mistake."""
    done = fire(settings, "BeforeTool", "--input", '{"tool_name": "x"}')
    assert done.returncode == 1
    assert "--input takes the name of a file, or - for stdin" in done.stderr


EFFECTS: list[tuple[str, dict[str, Any], str]] = [
    ("BeforeTool", {"continue": False, "stopReason": "halt"}, "stopped: halt"),
    ("BeforeTool", {"decision": "ask", "reason": "sure?"}, "ask: sure?"),
    (
        "BeforeTool",
        {"hookSpecificOutput": {"tool_input": {"a": 2}}},
        'tool input now: {"a":2}',
    ),
    ("AfterTool", {"systemMessage": "psst"}, "message for the model: psst"),
    (
        "AfterTool",
        {"hookSpecificOutput": {"withholdResult": True}},
        "tool result: withheld from the model",
    ),
    (
        "AfterTool",
        {"hookSpecificOutput": {"additionalContext": "<x>"}},
        "context for the model: &lt;x&gt;",
    ),
    (
        "BeforeToolSelection",
        {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}},
        'tools: {"mode":"NONE","allowedFunctionNames":[]}',
    ),
    (
        "BeforeModel",
        {"hookSpecificOutput": {"llm_request": {"model": "x"}}},
        'model request changed: {"model":"x"}',
    ),
    (
        "AfterModel",
        {"hookSpecificOutput": {"llm_response": {"text": "x"}}},
        'model response: {"text":"x"}',
    ),
]


@pytest.mark.parametrize(("event", "said", "line"), EFFECTS)
def test_every_effect_is_shown(
    tmp_path: Path, event: str, said: dict[str, Any], line: str
) -> None:
    command = f"cat >/dev/null; cat <<'END'\n{json.dumps(said)}\nEND"
    hook = {"type": "command", "command": command, "name": "h"}
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}]}}))
    given = {"tool_name": "t", "tool_input": {}, "tool_response": {}}
    given |= {"llm_request": {"model": "m", "messages": []}}
    given |= {"llm_response": {"text": "", "candidates": []}}
    done = fire(file, event, "--input", "-", stdin=json.dumps(given))
    assert line in done.stdout


def test_a_failed_hook_is_shown_with_its_error(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "exit 9", "name": "h"}
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}))
    done = fire(file, "BeforeAgent", "--input", "-", stdin='{"prompt": "x"}')
    assert "  failed h (" in done.stdout
    assert done.stdout.count("exited with status 9") == 1
    assert "error: hook 'h': exited with status 9" in done.stdout
    assert done.returncode == 0


def test_an_ignored_field_is_shown_once_with_its_hook(tmp_path: Path) -> None:
    hook = {"type": "command", "command": """echo '{"continue": "no"}'""", "name": "h"}
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}))
    done = fire(file, "BeforeAgent", "--input", "-", stdin='{"prompt": "x"}')
    warning = "warning: hook 'h': continue: expected true or false, got 'no'; ignored"
    assert done.stdout.splitlines()[-1] == warning
    assert done.stderr == ""
    with_json = fire(file, "BeforeAgent", "--json")
    assert "continue: expected true or false" in with_json.stderr


def test_a_misspelt_key_is_shown_with_the_nearest_name(tmp_path: Path) -> None:
    """protocol.md#process, issue 12.4."""
    hook = {
        "type": "command",
        "command": """echo '{"decison": "block"}'""",
        "name": "h",
    }
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}))
    warning = "decison: unknown key, ignored: did you mean 'decision'?"
    assert f"warning: hook 'h': {warning}" in fire(file, "BeforeAgent").stdout
    assert warning in fire(file, "BeforeAgent", "--json").stderr


def test_an_ask_without_a_reason_shows_its_message(tmp_path: Path) -> None:
    """protocol.md#callers."""
    said = {"decision": "ask", "systemMessage": "delete it?"}
    hook = {"type": "command", "command": f"echo '{json.dumps(said)}'"}
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}))
    assert "BeforeAgent: ask: delete it?" in fire(file, "BeforeAgent").stdout


def test_subagent_events_are_fired_by_type(tmp_path: Path) -> None:
    """protocol.md#events, issue 12.18."""
    hook = {"type": "command", "command": "echo no >&2; exit 2", "name": "h"}
    hooks = {"SubagentStop": [{"matcher": "reviewer", "hooks": [hook]}]}
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": hooks}))
    for kind, status in (("reviewer", 2), ("reviewers", 0)):
        given = json.dumps({"agent_id": "a-1", "agent_type": kind})
        done = fire(file, "SubagentStop", "--input", "-", stdin=given)
        assert done.returncode == status


def test_control_characters_in_output_of_a_hook_are_replaced(tmp_path: Path) -> None:
    hook = {"type": "command", "command": r"printf '\033[2Jx' >&2; exit 2", "name": "h"}
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}))
    done = fire(file, "BeforeAgent", "--input", "-", stdin='{"prompt": "x"}')
    assert "\x1b" not in done.stdout


def test_an_invalid_field_is_a_usage_error(tmp_path: Path) -> None:
    done = hookline("fire", "SessionStart", "--input", "-", cwd=tmp_path, stdin="{}")
    assert done.returncode == 1
    assert "expected one of startup, resume, clear, compress" in done.stderr


def test_invalid_project_settings_are_reported_and_other_hooks_run(
    tmp_path: Path,
) -> None:
    user = tmp_path / "user" / "hookline"
    user.mkdir(parents=True)
    (user / "settings.json").write_text(
        json.dumps({"hooks": {"BeforeTool": [{"hooks": [BLOCK]}]}})
    )
    project = tmp_path / "project" / ".hookline"
    project.mkdir(parents=True)
    (project / "settings.json").write_text('{"hooks": \n nonsense}')
    words = ("fire", "BeforeTool", "--tool", "t")
    env = {"XDG_CONFIG_HOME": str(user.parent)}
    done = hookline(*words, cwd=project.parent, **env)
    assert done.returncode == 2
    assert "settings.json:2:2" in done.stderr


def test_verbose_logs_to_stderr_and_leaves_stdout_alone(settings: Path) -> None:
    done = fire(settings, "BeforeTool", "--tool", "write_file", "--json", "-v")
    json.loads(done.stdout)
    assert "BeforeTool fired for 'write_file': 1 hook" in done.stderr


def test_ctrl_c_kills_the_hooks_and_exits_quietly(tmp_path: Path) -> None:
    command = "touch up; sleep 60; touch late"
    hook = {"type": "command", "command": command, "name": "slow"}
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}))
    child = subprocess.Popen(
        [*HOOKLINE, "fire", "BeforeAgent", "--settings", str(file)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(1000):
        if (tmp_path / "up").exists():
            break
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, complaints = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in complaints

"""``hookline check``: its lines and exit status, and settings of any kind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.errors import MissingExtraError
from tests.support.commandline import Finished, run_command

PYTHON_HOOK = {"type": "command", "command": "python3 -c pass"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, in a folder where there are no other settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project" / ".hookline").mkdir(parents=True)
    return tmp_path / "project"


def write(project: Path, content: Any) -> Path:
    file = project / ".hookline" / "settings.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def with_hook(
    hook: dict[str, Any], matcher: str = "", event: str = "BeforeTool"
) -> Any:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [hook]}]}}


def checked(*words: str | Path) -> tuple[int, list[str]]:
    ended = run_command("check", *words)
    return ended.returncode, ended.stdout.splitlines()


def test_check_prints_one_line_for_each_finding_and_a_summary(project: Path) -> None:
    file = write(project, '{\n "hooks": {\n  "BeforTool": []\n }\n}')
    assert checked(file) == (
        1,
        [
            (
                f"{file}:3: error: hooks.BeforTool: dropped: unknown event "
                "'BeforTool': did you mean 'BeforeTool'?"
            ),
            "1 file checked: 1 error, 0 warnings",
        ],
    )
    write(project, '{\n "hooks": ,}')
    status, (line, _) = checked(file)
    assert (status, line) == (
        1,
        (
            f"{file}:2: error: is not valid JSON: Expecting value, found ',': one "
            "comma too many (trailing commas and comments are fine) (column 11)"
        ),
    )
    write(project, with_hook({"type": "command", "command": "true"}, "write_.*"))
    assert checked(file) == (0, ["1 file checked: 0 errors, 0 warnings"])


def test_check_fails_for_warnings_only_in_strict_mode_and_never_for_hints(
    project: Path,
) -> None:
    hook = {"type": "command", "command": "true"}
    file = write(project, with_hook(hook, "gpt", "BeforeModel"))
    assert [checked(file)[0], checked("--strict", file)[0]] == [0, 1]
    write(project, with_hook(PYTHON_HOOK))
    for words in ((file,), ("--strict", file)):
        status, lines = checked(*words)
        summary = "1 file checked: 0 errors, 0 warnings, 1 hint"
        assert (status, lines[-1]) == (0, summary)


def test_check_takes_all_places_without_a_file(project: Path, tmp_path: Path) -> None:
    file = write(project, {"x": 1})
    user = tmp_path / "config" / "hookline" / "settings.json"
    user.parent.mkdir(parents=True)
    user.write_text(json.dumps({"y": 1, **with_hook(PYTHON_HOOK)}))
    status, lines = checked("--cwd", project)
    assert [line.split(": unknown")[0] for line in lines] == [
        f"{file}:1: error: x",
        f"{user}:1: error: y",
        lines[2],
        "2 files checked: 2 errors, 0 warnings, 1 hint",
    ]
    assert status == 1


def test_check_without_settings_says_where_they_belong(tmp_path: Path) -> None:
    status, (line,) = checked("--cwd", tmp_path)
    assert (
        status,
        line.startswith(f"no settings files in {tmp_path}/.hookline, "),
    ) == (
        0,
        True,
    )
    status, (finding, _) = checked("--strict", "--cwd", tmp_path)
    start = f"{tmp_path}/.hookline/settings.json: error: no settings files in "
    assert (status, finding.startswith(start)) == (1, True)
    ended = run_command("check", "--cwd", "/nowhere/at/all")
    assert (ended.returncode, ended.stdout) == (1, "")
    ended = run_command("check", tmp_path / "gone.json")
    assert "gone.json: error: cannot be read: No such file" in ended.stdout
    assert ended.returncode == 1
    ended = run_command("check", "--system")
    assert "--system needs a FILE" in ended.stderr


def test_check_reports_a_file_that_others_can_write(project: Path) -> None:
    write(project, {}).chmod(0o666)
    status, (line, _) = checked("--cwd", project)
    assert "error: is world-writable, so it is not used: run chmod o-w on it" in line
    assert status == 1


def test_check_runs_and_imports_nothing(project: Path) -> None:
    """A project that is not trusted can be checked."""
    (project / "evil.py").write_text("raise SystemExit('imported')")
    mark = project / "ran"
    hooks = [
        {"type": "command", "command": f"touch '{mark}'"},
        {"type": "python", "function": "evil:main"},
    ]
    write(project, {"hooks": {"BeforeTool": [{"hooks": hooks}]}})
    code = "import sys; sys.path.insert(0, '.'); from hookline.cli.main import main; "
    argv = [sys.executable, "-c", code + "sys.exit(main(['check']))"]
    run = subprocess.run(argv, cwd=project, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    assert not mark.exists()


MISSING: dict[str, tuple[str, dict[str, Any], str]] = {
    "otel": (
        "opentelemetry",
        {"hooksConfig": {"telemetry": "otel"}},
        (
            "warning: hooksConfig.telemetry: ignored: "
            f"{MissingExtraError('otel', 'opentelemetry-api')}"
        ),
    ),
    "otel with options": (
        "opentelemetry.trace",
        {"hooksConfig": {"telemetry": {"content": False}}},
        (
            "warning: hooksConfig.telemetry: ignored: "
            f"{MissingExtraError('otel', 'opentelemetry-api')}"
        ),
    ),
    "no otel": ("opentelemetry", {"hooksConfig": {"telemetry": False}}, ""),
    "httpx": (
        "httpx",
        with_hook({"type": "http", "url": "https://guard.test/"}),
        (
            "error: hooks.BeforeTool[0].hooks[0].type: "
            "httpx is missing (hookline[http]): run "
        ),
    ),
    "cedar": (
        "cedarpy",
        with_hook({"type": "cedar", "policies": "p.cedar"}),
        (
            "error: hooks.BeforeTool[0].hooks[0].type: "
            "cedarpy is missing (hookline[cedar]): run "
        ),
    ),
}


@pytest.mark.parametrize("name", MISSING)
def test_check_names_a_package_that_is_missing(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Issue 13.2, 13.3 and 16: the settings ask for it."""
    module, content, problem = MISSING[name]
    (project / "p.cedar").write_text("permit(principal, action, resource);")
    file = write(project, content)
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    _, (*findings, _) = checked(file)
    assert len(findings) == bool(problem)
    assert all(line.startswith(f"{file}:1: {problem}") for line in findings)


def test_check_names_a_missing_engine_once_for_a_rule(project: Path) -> None:
    """Not for each text in it (protocol.md#rules)."""
    then = {"decision": "deny", "reason": "${tool_name}: ${tool_input.path}"}
    rule = {"type": "rule", "when": "true", "name": "r", "then": then}
    file = write(project, with_hook(rule))
    code = (
        "import sys; sys.modules['cel_expr_python'] = None\n"
        "from hookline.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, "check", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert (ended.stdout + ended.stderr).count("install 'cel-expr-python>=0.1.3'") == 1


def objects_of(inner: Any) -> Any:
    keys = st.sampled_from(
        [
            *("hooks", "BeforeTool", "type", "command", "timeout", "matcher"),
            *("onError", "hooksConfig", "enableHooks", "env", "headers", "x"),
        ]
    )
    return st.dictionaries(keys | st.text(max_size=3), inner, max_size=4)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["command", "python", "block", "*", "a:b", 10**400]),
    lambda inner: st.lists(inner, max_size=3) | objects_of(inner),
    max_leaves=15,
)
hook_groups = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(json_values, max_size=3)}), max_size=2
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(objects_of(json_values), json_values | hook_groups)
def test_check_never_raises_whatever_the_json(
    project: Path, value: dict[str, Any], groups: Any
) -> None:
    try:
        file = write(project, {"hooks": {"BeforeTool": groups}, **value})
    except (UnicodeEncodeError, ValueError):
        return
    ended: Finished = run_command("check", file)
    assert ended.returncode in (0, 1)
    assert "1 file checked" in ended.stdout

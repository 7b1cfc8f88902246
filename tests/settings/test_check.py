"""``hookline check`` runs nothing, names what is missing, and survives any settings.

What it prints, and its exit status, is in ``tests/pins/commands/check.json``.
"""

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


def with_hook(hook: dict[str, Any]) -> Any:
    return {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}


def checked(*words: str | Path) -> tuple[int, list[str]]:
    ended = run_command("check", *words)
    return ended.returncode, ended.stdout.splitlines()


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


NO_OTEL = (
    "warning: hooksConfig.telemetry: ignored: "
    f"{MissingExtraError('otel', 'opentelemetry-api')}"
)
HOOK_TYPE = "error: hooks.BeforeTool[0].hooks[0].type:"
MISSING: dict[str, tuple[str, dict[str, Any], str]] = {
    "otel": ("opentelemetry", {"hooksConfig": {"telemetry": "otel"}}, NO_OTEL),
    "otel with options": (
        "opentelemetry.trace",
        {"hooksConfig": {"telemetry": {"content": False}}},
        NO_OTEL,
    ),
    "no otel": ("opentelemetry", {"hooksConfig": {"telemetry": False}}, ""),
    "httpx": (
        "httpx",
        with_hook({"type": "http", "url": "https://guard.test/"}),
        f"{HOOK_TYPE} httpx is missing (hookline[http]): run ",
    ),
    "cedar": (
        "cedarpy",
        with_hook({"type": "cedar", "policies": "p.cedar"}),
        f"{HOOK_TYPE} cedarpy is missing (hookline[cedar]): run ",
    ),
}


@pytest.mark.parametrize("name", MISSING)
def test_check_names_a_package_that_is_missing(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The settings ask for it."""
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

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.cli.main import main
from hookline.errors import MissingExtraError
from hookline.settings.fields import Report, Severity
from hookline.settings.lint import check_places, lint
from hookline.settings.locations import SettingsPlaces


class Project:
    """A project with settings that can be checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / ".hookline" / "settings.json"
        self.file.parent.mkdir(parents=True)

    def write(self, content: Any) -> Path:
        is_text = isinstance(content, str)
        self.file.write_text(content if is_text else json.dumps(content, indent=1))
        return self.file

    def write_hook(
        self, event: str = "BeforeTool", matcher: str = "", /, **hook: Any
    ) -> None:
        entry = {"type": "command", "command": "true", **hook}
        group = {"matcher": matcher, "hooks": [entry]}
        self.write({"hooks": {event: [group]}})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Project(tmp_path / "project")


class Checker:
    """Runs ``hookline check`` and reads what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> tuple[int, list[str]]:
        status = main(["check", *map(str, words)])
        return status, self._capsys.readouterr().out.splitlines()

    def findings(self, *words: object) -> list[dict[str, Any]]:
        main(["check", "--json", *map(str, words)])
        found: list[dict[str, Any]] = json.loads(self._capsys.readouterr().out)
        return found


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Checker:
    return Checker(capsys)


def test_good_file_has_no_findings(project: Project, check: Checker) -> None:
    project.write_hook("BeforeTool", "write_.*", timeout=5000)
    status, lines = check(project.file)
    assert (status, lines) == (0, ["1 file checked: 0 errors, 0 warnings"])


def test_finding_is_one_line_with_file_line_severity_and_place(
    project: Project, check: Checker
) -> None:
    project.write('{\n "hooks": {\n  "BeforTool": []\n }\n}')
    status, lines = check(project.file)
    assert status == 1
    finding, summary = lines
    assert finding == (
        f"{project.file}:3: error: hooks.BeforTool: dropped: "
        "unknown event 'BeforTool': did you mean 'BeforeTool'?"
    )
    assert summary == "1 file checked: 1 error, 0 warnings"


def test_broken_json_is_an_error_with_line_and_column(
    project: Project, check: Checker
) -> None:
    project.write('{\n "hooks": ,}')
    status, lines = check(project.file)
    assert status == 1
    assert lines[0].startswith(f"{project.file}:2: error: is not valid JSON")
    assert "(column 11)" in lines[0]
    (finding,) = check.findings(project.file)
    assert (finding["line"], finding["column"]) == (2, 11)


@pytest.mark.parametrize(
    ("hook", "severity", "where", "message"),
    [
        ({"timeout": "5"}, "error", ".timeout", "expected a number of milliseconds"),
        ({"timeout": 30}, "error", ".timeout", "for 30 s write 30000"),
        ({"tiemout": 5}, "error", ".tiemout", "did you mean 'timeout'?"),
        ({"matcher": "x"}, "error", ".matcher", "it belongs to a group"),
        ({"qqqqq": 1}, "error", ".qqqqq", "one of type, command,"),
        (
            {"onError": {"crahs": "block"}},
            "error",
            ".onError.crahs",
            "did you mean 'crash'?",
        ),
        ({"managed": True}, "warning", ".managed", "only system settings"),
        ({"type": "teleport"}, "error", "", "unknown type 'teleport'"),
        ({"command": "./gone.sh"}, "error", ".command", "does not exist"),
        ({"command": "sh gone.sh"}, "error", ".command", "does not exist"),
        ({"command": "/etc/x"}, "error", ".command", "'/etc/x' does not exist"),
        ({"command": "./plain.sh"}, "error", ".command", "is not executable"),
        (
            {"command": '"$CLAUDE_PROJECT_DIR"/plain.sh'},
            "error",
            ".command",
            "is not executable",
        ),
        ({"command": "./.hookline"}, "error", ".command", "is a directory"),
        ({"shell": "/bin/nosuchshell"}, "error", ".shell", "does not exist"),
        ({"trustFiles": ["gone.txt"]}, "error", ".trustFiles[0]", "does not exist"),
        (
            {"type": "python", "function": "a:b", "timeout": 50},
            "warning",
            ".timeout",
            "looks like seconds",
        ),
    ],
)
def test_mistake_in_a_hook_is_found(
    project: Project,
    check: Checker,
    hook: dict[str, Any],
    severity: str,
    where: str,
    message: str,
) -> None:
    (project.folder / "plain.sh").write_text("#!/bin/sh\n")
    project.write_hook(**hook)
    # The command of the template has no effect on a hook of another type.
    (finding,) = [
        one
        for one in check.findings(project.file)
        if "has no effect on" not in one["message"]
    ]
    assert finding["severity"] == severity
    assert finding["where"] == f"hooks.BeforeTool[0].hooks[0]{where}"
    assert message in finding["message"]
    assert finding["line"] > 1


@pytest.mark.parametrize(
    "command",
    ["sh plain.sh", "./run.sh", '"$HOOKLINE_PROJECT_DIR/run.sh"', "python3 -m x"],
)
def test_good_command_has_no_findings_but_a_hint_about_a_slow_start(
    project: Project, check: Checker, command: str
) -> None:
    (project.folder / "plain.sh").write_text("")
    (project.folder / "run.sh").write_text("")
    (project.folder / "run.sh").chmod(0o755)
    project.write_hook(command=command)
    found = [finding["severity"] for finding in check.findings(project.file)]
    assert found == (["hint"] if "python3" in command else [])


def test_trust_files_can_be_folders_and_use_the_home_folder(
    project: Project, check: Checker
) -> None:
    (project.folder / "lib").mkdir()
    project.write_hook(trustFiles=["lib", "~/lists"])
    assert check.findings(project.file) == []


@pytest.mark.parametrize(
    ("event", "matcher", "severity", "message"),
    [
        ("BeforeTool", "write_(", "error", "invalid regular expression"),
        ("BeforeModel", "gpt", "warning", "takes no matcher"),
        (
            "SessionStart",
            "startup|resume",
            "warning",
            "one of startup, resume, clear",
        ),
    ],
)
def test_matcher_that_cannot_work_is_found(
    project: Project,
    check: Checker,
    event: str,
    matcher: str,
    severity: str,
    message: str,
) -> None:
    project.write_hook(event, matcher)
    (finding,) = check.findings(project.file)
    assert finding["severity"] == severity
    assert finding["where"] == f"hooks.{event}[0].matcher"
    assert message in finding["message"]


@pytest.mark.parametrize(
    ("event", "matcher"),
    [
        ("BeforeTool", "[[a]b"),
        ("BeforeModel", "*"),
        ("BeforeModel", " "),
        ("SessionStart", "resume"),
        ("Notification", "Anything"),
    ],
)
def test_matcher_that_works_has_no_findings(
    project: Project, check: Checker, event: str, matcher: str
) -> None:
    project.write_hook(event, matcher)
    assert check.findings(project.file) == []


@pytest.mark.parametrize(
    ("settings", "where", "message"),
    [
        ({"enableHook": 1}, "enableHook", "did you mean 'enableHooks'?"),
        ({"disabled": []}, "disabled", "it belongs to hooksConfig"),
        ({"hooksConfig": {"onask": "block"}}, "hooksConfig.onask", "'onAsk'"),
        ({"hooksConfig": {"breaker": {"x": 1}}}, "hooksConfig.breaker.x", "timeouts"),
        (
            {"hooksConfig": {"telemetry": {"contnet": True}}},
            "hooksConfig.telemetry.contnet",
            "did you mean 'content'?",
        ),
        (
            {"hooks": {"BeforeTool": [{"hooks": [], "mathcer": "x"}]}},
            "hooks.BeforeTool[0].mathcer",
            "did you mean 'matcher'?",
        ),
    ],
)
def test_unknown_key_is_found_at_any_level(
    project: Project, check: Checker, settings: Any, where: str, message: str
) -> None:
    project.write(settings)
    (finding,) = check.findings(project.file)
    assert (finding["where"], finding["severity"]) == (where, "error")
    assert message in finding["message"]


def test_repeated_key_is_found(project: Project, check: Checker) -> None:
    project.write('{"hooks": {},\n"hooks": {}}')
    (finding,) = check.findings(project.file)
    assert (finding["line"], finding["where"]) == (2, "hooks")
    assert "repeated key" in finding["message"]


def test_world_writable_file_is_found(project: Project, check: Checker) -> None:
    project.write({}).chmod(0o666)
    status, lines = check(project.file)
    assert status == 1
    assert "error: is world-writable" in lines[0]


def test_toml_is_checked(project: Project, check: Checker) -> None:
    file = project.file.with_suffix(".toml")
    file.write_text('[[hooks.BeforeTool]]\n[[hooks.BeforeTool.hooks]]\ntype = "x"\n')
    (finding,) = check.findings(file)
    assert (finding["line"], finding["where"]) == (2, "hooks.BeforeTool[0].hooks[0]")


def test_missing_file_is_an_error(check: Checker, tmp_path: Path) -> None:
    status, lines = check(tmp_path / "gone.json")
    assert status == 1
    assert "gone.json: error: cannot be read: No such file" in lines[0]


def test_strict_makes_warnings_count(project: Project, check: Checker) -> None:
    project.write_hook("BeforeModel", "gpt")
    assert check(project.file)[0] == 0
    assert check("--strict", project.file)[0] == 1


def test_all_places_are_checked_without_a_file(
    project: Project, check: Checker, tmp_path: Path
) -> None:
    project.write({"x": 1})
    user = tmp_path / "config" / "hookline"
    user.mkdir(parents=True)
    relative = {"type": "command", "command": "./in-any-project.sh"}
    hooks = {"BeforeTool": [{"hooks": [relative]}]}
    (user / "settings.json").write_text(json.dumps({"y": 1, "hooks": hooks}))
    status, lines = check("--cwd", project.folder)
    assert status == 1
    assert lines[0].startswith(f"{project.file}:2: error: x: unknown key")
    assert lines[1].startswith(f"{user / 'settings.json'}:1: error: y: unknown key")
    assert lines[2] == "2 files checked: 2 errors, 0 warnings"


def test_both_languages_in_one_place_are_found(
    project: Project, check: Checker
) -> None:
    project.write({})
    project.file.with_suffix(".toml").write_text("")
    status, lines = check("--cwd", project.folder)
    assert status == 1
    assert "there are both" in lines[0]


def test_missing_settings_are_not_an_error(
    project: Project, check: Checker, tmp_path: Path
) -> None:
    status, (line,) = check("--cwd", tmp_path)
    assert status == 0
    assert line.startswith(f"no settings files in {tmp_path / '.hookline'}, ")


def test_cwd_that_is_not_a_directory_is_an_error(check: Checker) -> None:
    assert check("--cwd", "/nowhere/at/all") == (1, [])


def test_managed_has_no_findings_in_system_settings(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "true", "managed": True}
    system = tmp_path / "system"
    system.mkdir()
    (system / "settings.json").write_text(
        json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    )
    places = SettingsPlaces(user_dir=tmp_path / "user", system_dir=system)
    checked = check_places(places)
    assert (len(checked.files), checked.findings) == (1, ())


def test_nothing_is_run_or_imported(project: Project, check: Checker) -> None:
    """A project that is not trusted can be checked."""
    (project.folder / "evil.py").write_text("raise SystemExit('imported')")
    mark = project.folder / "ran"
    hooks = [
        {"type": "command", "command": f"touch '{mark}'"},
        {"type": "python", "function": "evil:main"},
    ]
    project.write({"hooks": {"BeforeTool": [{"hooks": hooks}]}})
    code = "import sys; sys.path.insert(0, '.'); from hookline.cli.main import main; "
    argv = [sys.executable, "-c", code + "sys.exit(main(['check']))"]
    run = subprocess.run(argv, cwd=project.folder, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    assert not mark.exists()


def objects_of(inner: Any) -> Any:
    keys = st.sampled_from(
        ["hooks", "BeforeTool", "type", "command", "timeout", "matcher", "onError", "x"]
    )
    return st.dictionaries(keys | st.text(max_size=3), inner, max_size=4)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | objects_of(inner),
    max_leaves=15,
)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(objects_of(json_values))
def test_check_never_raises_whatever_the_json(
    project: Project, capsys: pytest.CaptureFixture[str], value: Any
) -> None:
    try:
        project.write(value)
    except (UnicodeEncodeError, ValueError):
        return
    assert main(["check", str(project.file)]) in (0, 1)
    assert "1 file checked" in capsys.readouterr().out


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.trace"])
@pytest.mark.parametrize(
    ("value", "warns"), [("otel", True), ({"content": False}, True), (False, False)]
)
def test_telemetry_without_its_package_is_warned_about(
    monkeypatch: pytest.MonkeyPatch, missing: str, value: Any, warns: bool
) -> None:
    """Issue 16: settings ask for telemetry, and the extra is missing."""
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    report = Report([])
    lint({"hooksConfig": {"telemetry": value}}, None, report)
    message = f"ignored: {MissingExtraError('otel', 'opentelemetry-api')}"
    expected = [f"hooksConfig.telemetry: {message}"] if warns else []
    assert [str(problem) for problem in report.problems] == expected
    assert all(one.severity is Severity.WARNING for one in report.problems)

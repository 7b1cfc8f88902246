"""Reading settings is bounded, whatever a file holds (protocol.md#settings)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hookline import Settings, SettingsError
from tests.support.commandline import run_command

HOOK = '{"type": "command", "command": "x"}'
GROUP = f'{{"hooks": [{HOOK}]}}'
EVENT = '{{"hooks": {{"BeforeTool": [{}]}}}}'
TOML = '[[hooks.BeforeTool]]\n[[hooks.BeforeTool.hooks]]\ntype = "x"\n'
TOO_MUCH = {
    "empty groups": EVENT.format(",".join(["{}"] * 1_000_000)),
    "no objects": EVENT.format(",".join("0" * 10_001)),
    "hooks in one group": EVENT.format(f'{{"hooks": [{",".join([HOOK] * 10_001)}]}}'),
    "hooks that are dropped": EVENT.format(f'{{"hooks": [{",".join("0" * 10_001)}]}}'),
    "groups with a comment": "// x\n" + EVENT.format(",".join([GROUP] * 10_001)),
    "unknown events": json.dumps({"hooks": dict.fromkeys(range(10_001), 0)}),
    "a broken file": '{"hooks": {"BeforeTool": [' + "{}," * 1_000_000,
    "a deep file": '{"a": ' + "[" * 400_000,
    "more than 16 MiB": " " * (16 * 1024 * 1024) + "{}",
}
TOO_MUCH_TOML = {
    "hooks": TOML * 10_001,
    "parts of a key": f"[{'a.' * 500_000}a]\n",
    "parts of a key in a table": f"x = {{{'a.' * 500_000}a = 1}}\n",
    "nested lists": f"x = {'[' * 100_000}{']' * 100_000}\n",
}
FILES = {
    **{f"json: {name}": ("json", text) for name, text in TOO_MUCH.items()},
    **{f"toml: {name}": ("toml", text) for name, text in TOO_MUCH_TOML.items()},
}


@pytest.mark.parametrize("name", FILES)
def test_file_that_holds_too_much_is_one_error_at_once(
    tmp_path: Path, name: str
) -> None:
    ending, text = FILES[name]
    stem = "settings.local" if "hooks" in name else "settings"
    file = tmp_path / "project" / ".hookline" / f"{stem}.{ending}"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    began = time.monotonic()
    settings = Settings.load(tmp_path / "project")
    assert time.monotonic() - began < 10
    (error,) = settings.errors
    assert str(error).startswith(f"{file}:")
    assert len(str(error)) < 1000
    assert not any(layer.file == str(file) for layer in settings.layers)
    with pytest.raises(SettingsError):
        Settings.from_file(file)


def test_ten_thousand_hooks_are_not_too_many(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(EVENT.format(",".join([GROUP] * 10_000)))
    assert len(list(Settings.from_file(file).layers[0].hooks())) == 10_000


def test_rule_says_nothing_that_is_nested_too_deeply(tmp_path: Path) -> None:
    """It denies, as one that says nothing (protocol.md#settings)."""
    deep = '{"a": ' * 600 + "1" + "}" * 600
    rule = f'{{"type": "rule", "name": "r", "when": "true", "then": {deep}}}'
    file = tmp_path / "settings.json"
    file.write_text(EVENT.format(f'{{"hooks": [{rule}]}}'))
    settings = Settings.from_file(file)
    assert [hook.then for *_, hook in settings.layers[0].hooks()] == [None]
    assert "then: ignored: it is nested too deeply" in settings.warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        EVENT.format(",".join(["{}"] * 9_000)),
        f'{{"hooksConfig": {{"disabled": [{",".join("0" * 1_000_000)}]}}}}',
        EVENT.format(
            '{"hooks": [{"type": "command", "command": "x", "env": {'
            + ",".join(f'"{n}=": 1' for n in range(100_000))
            + "}}]}"
        ),
    ],
    ids=["groups", "list", "object"],
)
def test_hundred_warnings_are_told_and_the_rest_is_one_line(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    began = time.monotonic()
    warnings = Settings.from_file(file).warnings
    assert time.monotonic() - began < 10
    assert len(warnings) == 101
    assert "further problems: 'hookline check' shows them" in warnings[-1]
    fired = run_command("fire", "BeforeTool", "--tool", "x", "--settings", file)
    assert fired.returncode == 0
    assert len(fired.stderr) < 50_000

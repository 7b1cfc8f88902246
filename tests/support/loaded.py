"""Rows of settings: the files of all places in; hooks, options and findings out.

Settings are watched from inside: a host cannot say where those of the system are.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from hookline import Config, HookSystem, Settings, SettingsError
from hookline.settings.places import SettingsPlaces
from hookline.settings.watch import SettingsWatch

from .commandline import run_command

PLAIN_HOOK = {"type": "command", "command": "true"}
WITH_COMMAND = ("command", "worker", "plugin")
FILES = {
    "project": "project/.hookline/settings",
    "local": "project/.hookline/settings.local",
    "user": "config/hookline/settings",
    "system": "system/settings",
    "named": "named",
}
"""Where the settings of a row are written, without the ending."""


def write_settings(row: dict[str, Any], folder: Path) -> None:
    """Write the files of a row.

    ``hook`` is one hook in a ``group`` of an ``event`` of the project; ``project``,
    ``local``, ``user``, ``system`` and ``named`` are whole settings: JSON, or text as
    it is on disk; ``toml`` says which are TOML. ``files`` are further ones, and
    ``extensions`` are modules of installed packages by name. ``each``: every place has
    a hook named after it, and the system also one that is managed.
    """
    if row.get("each"):
        row = _with_hooks(row)
    (folder / "project" / ".hookline").mkdir(parents=True)
    for name, content in row.get("files", {}).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(0o755 if content.startswith("#!") else 0o644)
    contents = {place: row[place] for place in FILES if place in row}
    if "hook" in row:
        fields = row["hook"]
        if isinstance(fields, dict) and fields.get("type", "command") in WITH_COMMAND:
            fields = {**PLAIN_HOOK, **fields}
        group = {**row.get("group", {}), "hooks": [fields]}
        contents["project"] = {"hooks": {row.get("event", "BeforeTool"): [group]}}
    for place, content in contents.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1)
        ending = "toml" if place in row.get("toml", ()) else "json"
        file = folder / f"{FILES[place]}.{ending}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    for name, content in row.get("extensions", {}).items():
        code = content if isinstance(content, str) else f"settings = {content!r}"
        install_extension(folder / "packages", name, code)


def _with_hooks(row: dict[str, Any]) -> dict[str, Any]:
    """Settings with a hook for each place, beside what the row says."""

    def settings(content: Any, *names: str) -> Any:
        hooks = [
            {**PLAIN_HOOK, "name": name, **({"managed": True} if name == "m" else {})}
            for name in names
        ]
        groups = {"hooks": {"BeforeTool": [{"hooks": hooks}]}}
        return {**groups, **content} if isinstance(content, dict) else content

    places = {"project": "p", "local": "l", "user": "u"}
    if "named" in row:
        places["named"] = "n"
    more = row.get("extensions", {}).get("acme", {})
    return {
        **row,
        **{place: settings(row.get(place, {}), name) for place, name in places.items()},
        "system": settings(row.get("system", {}), "s", "m"),
        "extensions": {"acme": settings(more, "e")},
    }


def install_extension(packages: Path, name: str, code: str) -> Path:
    """An installed package with settings; returns its metadata."""
    module = f"hookline_test_{name}"
    metadata = packages / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (packages / f"{module}.py").write_text(code)
    (metadata / "METADATA").write_text(f"Name: {module}\nVersion: 1.0\n")
    points = f"[console_scripts]\na = b:c\n[hookline.extensions]\n{name} = {module}:"
    (metadata / "entry_points.txt").write_text(f"{points}settings\n")
    return metadata


@contextmanager
def installed(packages: Path) -> Iterator[None]:
    """With the packages of a folder on the import path, which are forgotten after."""
    folders = sys.path
    folders.insert(0, str(packages))
    try:
        yield
    finally:
        folders.remove(str(packages))
    for module in [name for name in sys.modules if name.startswith("hookline_test_")]:
        del sys.modules[module]


def load_row(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What comes of the settings of a row; ``<folder>`` stands for where they are."""
    filled = json.loads(json.dumps(row).replace("<folder>", str(folder)))
    write_settings(filled, folder)
    homes = {"XDG_CONFIG_HOME": str(folder / "config"), "HOME": str(folder / "home")}
    env = {**homes, **filled.get("env", {})}
    with patch.dict(os.environ, env), installed(folder / "packages"):
        then = _loaded(filled, folder)
        then["findings"] = _findings(filled, folder, then)
    text = json.dumps(then).replace(str(folder), "<folder>")
    # Long paths are cut where they are quoted, which depends on the folder.
    text = re.sub(r"'(<folder>[^']*'(\.\.\.)?|/[^']*'\.\.\.)", "'<path>'", text)
    described: dict[str, Any] = json.loads(text)
    return {name: value for name, value in described.items() if value not in ([], {})}


def _loaded(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    try:
        settings = load_settings(folder, named="named" in row)
        described = describe_settings(settings)
    except SettingsError as error:
        return {"raises": str(error)}
    return described | {
        "errors": [str(error) for error in settings.errors],
        "warnings": list(settings.warnings),
    }


def load_settings(folder: Path, *, named: bool = False) -> Settings:
    """The settings of all places in a folder, or of the file that is named."""
    if named:
        file = next(folder.glob("named.*"))
        return Settings.from_file(file, system_dir=folder / "system")
    places = SettingsPlaces(
        project_dir=folder / "project", system_dir=folder / "system"
    )
    return Settings.load(places=places)


def describe_settings(settings: Settings) -> dict[str, Any]:
    """The hooks with their options, and the options of all: what is not the default."""
    with patch.dict(os.environ, {"HOOKLINE_TRUST": "all"}):
        config = Config("s-1", settings.folder or ".", settings)
    described: dict[str, Any] = {}
    if (system := config.get_hook_system()) is None:
        described["hooks enabled"] = False
    else:
        described["hooks"] = [_hook_as_data(hook) for hook in system.get_all_hooks()]
    applying = config.settings
    options = {
        **msgspec.to_builtins(applying.global_options),
        "untrusted": applying.untrusted.value,
    }
    usual = {
        **msgspec.to_builtins(Settings().global_options),
        "untrusted": Settings().untrusted.value,
    }
    described["options"] = _different(options, usual)
    return described


def _hook_as_data(hook: Any) -> str | dict[str, Any]:
    """Source, event and name; with what makes it another hook than a plain one."""
    usual_config, usual_options = _usual()
    place = {
        "matcher": hook.matcher,
        "sequential": hook.sequential or None,
        "disabled": not hook.enabled or None,
    }
    config = msgspec.to_builtins(msgspec.structs.asdict(hook.config))
    title = f"{hook.source.value} {hook.event.value} {config.pop('name')}"
    fields = {
        **_different(config, usual_config),
        **{name: value for name, value in place.items() if value is not None},
        **_different(msgspec.to_builtins(hook.options), usual_options),
    }
    return {title: fields} if fields else title


@cache
def _usual() -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields and options of a plain hook."""
    hooks = {"BeforeTool": [{"hooks": [PLAIN_HOOK]}]}
    config = Config(settings=Settings.from_mapping({"hooks": hooks}))
    (hook,) = HookSystem(config).get_all_hooks()
    config = msgspec.to_builtins(msgspec.structs.asdict(hook.config))
    return config, msgspec.to_builtins(hook.options)


def _different(values: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """The values that are not the usual ones, also inside."""
    return {
        name: _different(value, usual[name])
        if isinstance(value, dict) and isinstance(usual.get(name), dict)
        else value
        for name, value in values.items()
        if value != usual.get(name)
    }


def _findings(row: dict[str, Any], folder: Path, then: dict[str, Any]) -> list[str]:
    """What ``hookline check`` says; with a star what loading tells as well.

    That is taken out of the errors and warnings.
    """
    words: list[str | Path] = ["check", "--json", "--cwd", folder / "project"]
    if "named" in row:
        words = ["check", "--json", next(folder.glob("named.*"))]
    elif "system" in row:
        words = ["check", "--json", "--system", next((folder / "system").iterdir())]
    elif not row.keys() & {"local", "user", "extensions", "places"}:
        files = sorted((folder / "project" / ".hookline").glob("settings.*"))
        words = ["check", "--json", *files[:1]]
    checked = run_command(*words, cwd=folder)
    if not checked.stdout:
        return [checked.stderr.strip()]
    return [_finding_line(finding, then) for finding in checked.json()]


def _finding_line(finding: dict[str, Any], then: dict[str, Any]) -> str:
    file = Path(finding["file"])
    line = "" if finding["line"] is None else f":{finding['line']}"
    column = "" if finding["column"] is None else f":{finding['column']}"
    text = f"{finding['where']}: {finding['message']}".removeprefix(": ")
    star = ""
    for name, message in (
        ("warnings", f"{file}: {text}"),
        ("errors", f"{file}{line}{column}: {text}"),
    ):
        if message in then.get(name, ()):
            then[name].remove(message)
            star = "*"
    start = "" if file.stem == "named" else f"{file.parent.name}/"
    place = f"{start}{file.name}{line}{column}"
    return f"{finding['severity']}{star} {place} [{finding['rule']}] {text}"


def watch_row(row: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """What is loaded, and what is refused, after each of the ``changes`` of a row.

    A place has rules by their names, other settings or text; null is no file, and
    ``directory`` one in its place. At the ``start`` project and user have a rule.
    """
    homes = {"XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"}
    (folder / "project" / ".hookline").mkdir(parents=True)
    _change_files({"project": ["project"], "user": ["user"]}, folder)
    _change_files(row.get("start", {}), folder)
    places = SettingsPlaces(
        project_dir=folder / "project", system_dir=folder / "system"
    )
    env = {name: str(folder / home) for name, home in homes.items()}
    loads: list[dict[str, Any]] = []
    with patch.dict(os.environ, env):
        config = Config(working_dir=folder / "project")
        watch = SettingsWatch.start(places)
        for changes in row["changes"]:
            _change_files(changes, folder)
            assert watch.has_changed() or not changes
            before = watch.settings
            settings = config.prepared(watch.load())
            assert changes or before == watch.settings, "the same files, other settings"
            assert not watch.has_changed(), "it is told once, not at each event"
            hooks = [
                hook.name for layer in settings.layers for *_, hook in layer.hooks()
            ]
            errors = [str(error) for error in settings.errors]
            loads.append({"hooks": hooks, "refused": watch.refused, "errors": errors})
    text = json.dumps(loads).replace(str(folder), "<folder>")
    return [{k: v for k, v in load.items() if v} for load in json.loads(text)]


def _change_files(changes: dict[str, Any], folder: Path) -> None:
    for place, content in changes.items():
        name, _, ending = place.partition(".")
        file = folder / f"{FILES[name]}.{ending or 'json'}"
        file.parent.mkdir(parents=True, exist_ok=True)
        if content in (None, "directory"):
            file.unlink()
            if content:
                file.mkdir()
        elif isinstance(content, list):
            rules = [{"type": "rule", "name": rule, "when": "true"} for rule in content]
            groups = {"BeforeTool": [{"hooks": rules}]}
            file.write_text(json.dumps({"hooks": groups}))
        else:
            is_text = isinstance(content, str)
            file.write_text(content if is_text else json.dumps(content))

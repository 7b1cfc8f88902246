"""Find the hook settings of Claude Code, Gemini CLI and llxprt-code, and convert them.

A folder has the settings of a project, or it is a plugin (an extension in Gemini CLI),
whose hooks find their files by a variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import HooklineError, SettingsError
from hookline.settings.read import read_settings, read_text

from .converter import ClaudeConverter, Converter, LlxprtConverter, Migrated, Wire
from .foreign_files import foreign_file, foreign_files
from .host_files import Scope, file_of
from .registry import HOSTS

_HOOKS_FILE = "hooks/hooks.json"
_DATA = b"CLAUDE_PLUGIN_DATA"
_MOST_SEARCHED, _LARGE = 2000, 1 << 20
_MANIFEST_PARTS = ("description", "$schema", "version", "name")


class MigrationSource(Struct, frozen=True, kw_only=True):
    """The agent that the settings belong to."""

    name: str
    converter: type[Converter]
    manifest: str
    """The file that makes a folder a plugin."""
    root_variable: str
    """The variable that leads hooks of a plugin to its files."""
    settings_names: tuple[str, ...] = ("settings.json",)

    @property
    def folder(self) -> str:
        """The folder in a project that holds its settings."""
        return f".{self.name}"

    @property
    def plugin_files(self) -> tuple[str, str]:
        """The files of which a plugin has one."""
        return self.manifest, _HOOKS_FILE


_GEMINI = MigrationSource(
    name="gemini",
    converter=Converter,
    manifest="gemini-extension.json",
    root_variable="extensionPath",
)
SOURCES = {
    "claude": MigrationSource(
        name="claude",
        converter=ClaudeConverter,
        manifest=".claude-plugin/plugin.json",
        root_variable="CLAUDE_PLUGIN_ROOT",
        settings_names=("settings.json", "settings.local.json"),
    ),
    "gemini": _GEMINI,
    "llxprt": replace(_GEMINI, name="llxprt", converter=LlxprtConverter),
}


def migrate(
    source: MigrationSource, content: Wire, env: Mapping[str, str] | None = None
) -> Migrated:
    """Convert one settings file; ``env`` is what a plugin's hooks are given."""
    return source.converter(env or {}).convert(content)


class HookFile(Struct, frozen=True):
    """One file with hooks of another agent."""

    path: Path
    content: Wire
    env: dict[str, str] = {}
    """What the hooks of a plugin are given."""
    problem: str = ""
    """Why it is not converted."""

    @property
    def is_local(self) -> bool:
        """Whether it is the one that people keep to themselves."""
        return self.path.name == "settings.local.json"


def has_hooks(source: MigrationSource, folder: Path) -> bool:
    """Whether a folder has settings or is a plugin."""
    return bool(_settings_files(source, folder)) or _is_plugin(source, folder)


def find_hooks(source: MigrationSource, path: Path) -> list[HookFile]:
    """Read what a path means: a file, a project, a folder of settings or a plugin."""
    files = [
        replace(file, problem=foreign_file(source.name, file.path, file.content) or "")
        for file in _hook_files(source, path)
    ]
    if not files:
        raise HooklineError(_missing(source, path))
    if all(file.problem for file in files):
        raise HooklineError(files[0].problem)
    return files


def _hook_files(source: MigrationSource, path: Path) -> Iterator[HookFile]:
    full = path.absolute()
    if not path.is_dir():
        for name in source.plugin_files:
            if full.is_file() and full.as_posix().endswith(f"/{name}"):
                return _plugin(source, full.parents[name.count("/")])
        return iter([HookFile(path, read_settings(path))])
    if source.manifest == f"{full.name}/{Path(source.manifest).name}":
        return _plugin(source, full.parent)
    is_inside = full.name == source.folder
    settings = _settings_files(source, full.parent if is_inside else path)
    if not settings and source.name == "llxprt":
        # Its user's folder has another name than a project's.
        settings = [f for f in [path / "settings.json"] if f.is_file()]
    files = [HookFile(file, read_settings(file)) for file in settings]
    if not is_inside and _is_plugin(source, path):
        files += _plugin(source, path)
    return iter(files)


def _missing(source: MigrationSource, path: Path) -> str:
    if (path / ".claude-plugin" / "marketplace.json").is_file():
        return f"{path} has several plugins: name the folder of one of them"
    inside = path / source.folder / "settings.json"
    foreign = [foreign_file(source.name, path / "hooks.json", None)]
    foreign += foreign_files(source.name, path)
    hint = next(filter(None, foreign), "name the settings file to read")
    return f"{inside} does not exist: {hint}"


def _settings_files(source: MigrationSource, project: Path) -> list[Path]:
    files = (project / source.folder / name for name in source.settings_names)
    return [file for file in files if file.is_file()]


def _is_plugin(source: MigrationSource, folder: Path) -> bool:
    return any((folder / name).is_file() for name in source.plugin_files)


def _plugin(source: MigrationSource, root: Path) -> Iterator[HookFile]:
    """The hooks of a plugin: of its usual file, and those that its manifest names."""
    manifest, usual = root / source.manifest, root / _HOOKS_FILE
    env = {source.root_variable: str(root.resolve())}
    described = read_settings(manifest) if manifest.is_file() else {}
    if source.name == "claude" and _uses_data_folder(root):
        name = re.sub(r"[^\w-]", "-", str(described.get("name") or root.resolve().name))
        settings = Path(file_of(HOSTS["claude"].files, Scope.USER, ""))
        env["CLAUDE_PLUGIN_DATA"] = str(settings.parent / "plugins" / "data" / name)
    if usual.is_file():
        yield HookFile(usual, _with_hooks(read_settings(usual)), env)
    declared = described.get("hooks")
    for hooks in declared if isinstance(declared, list) else [declared]:
        if isinstance(hooks, dict):
            yield HookFile(manifest, _with_hooks(hooks), env)
        elif isinstance(hooks, str):
            file = (root / hooks).resolve()
            if not file.is_relative_to(root.resolve()):
                problem = f"{hooks!r} in its manifest is outside of the plugin"
                raise HooklineError(f"{root}: {problem}")
            if file != usual.resolve():
                yield HookFile(file, _with_hooks(read_settings(file)), env)


def _uses_data_folder(root: Path) -> bool:
    """Whether any file of a plugin names the folder that Claude Code makes for it."""
    skipped = {".git", "node_modules"}
    paths = (path for path in root.rglob("*") if skipped.isdisjoint(path.parts))
    files = (path for path in paths if path.is_file())
    for file in islice(files, _MOST_SEARCHED):
        with suppress(OSError):
            if file.stat().st_size < _LARGE and _DATA in file.read_bytes():
                return True
    return False


def _with_hooks(content: Wire) -> Wire:
    """Hooks under the key ``hooks``, as in settings; some files have only events."""
    if "hooks" in content:
        return content
    return {"hooks": {k: v for k, v in content.items() if k not in _MANIFEST_PARTS}}


def unread_hooks(source: MigrationSource, folder: Path) -> list[str]:
    """Notes on hooks of agents, skills and commands, which are not converted."""
    is_inside = folder.absolute().name == source.folder
    places = [folder if is_inside else folder / source.folder]
    places += [folder] if _is_plugin(source, folder) else []
    kinds = ("agents", "skills", "commands")
    files = [f for place in places for k in kinds for f in place.glob(f"{k}/**/*.md")]
    notes: list[str] = []
    for file in sorted(files):
        with suppress(SettingsError):
            head = re.match(r"(?s)---\r?\n(.*?)\n---", read_text(file))
            if head is not None and re.search(r"(?m)^hooks:", head[1]):
                notes.append(f"{file}: hooks in its front matter are not converted")
    return notes

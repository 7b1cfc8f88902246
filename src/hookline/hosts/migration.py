"""Find the hook settings of Claude Code, Gemini CLI and llxprt-code, and convert them.

A folder has the settings of a project, or it is a plugin (an extension in Gemini CLI),
whose hooks find their files by a variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import HooklineError, SettingsError
from hookline.settings.read import read_settings, read_text

from .claude_converter import ClaudeConverter
from .converter import Converter, LlxprtConverter, Migrated, Wire
from .foreign_files import foreign_file, foreign_files
from .host_files import Scope, file_of
from .registry import HOSTS

_HOOKS_FILE = Path("hooks", "hooks.json")
_DATA = b"CLAUDE_PLUGIN_DATA"
_MOST_SEARCHED, _LARGE = 2000, 1 << 20
_MANIFEST_PARTS = ("description", "$schema", "version", "name")


class MigrationSource(StrEnum):
    """The agent that the settings belong to."""

    CLAUDE = "claude"
    GEMINI = "gemini"
    LLXPRT = "llxprt"

    @property
    def folder(self) -> str:
        """The folder in a project that holds its settings."""
        return f".{self.value}"

    @property
    def manifest(self) -> Path:
        """The file that makes a folder a plugin."""
        is_claude = self is MigrationSource.CLAUDE
        return Path(
            ".claude-plugin/plugin.json" if is_claude else "gemini-extension.json"
        )

    @property
    def root_variable(self) -> str:
        """The variable that leads hooks of a plugin to its files."""
        is_claude = self is MigrationSource.CLAUDE
        return "CLAUDE_PLUGIN_ROOT" if is_claude else "extensionPath"


def migrate(
    source: MigrationSource, theirs: Wire, env: Mapping[str, str] | None = None
) -> Migrated:
    """Convert one settings file; ``env`` is what a plugin's hooks are given."""
    converters: dict[MigrationSource, type[Converter]] = {
        MigrationSource.CLAUDE: ClaudeConverter,
        MigrationSource.GEMINI: Converter,
        MigrationSource.LLXPRT: LlxprtConverter,
    }
    return converters[source](env or {}).convert(theirs)


class HookFile(Struct, frozen=True):
    """One file with hooks of another agent."""

    path: Path
    theirs: Wire
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


def find_hooks(source: MigrationSource, given: Path) -> list[HookFile]:
    """Read what a path means: a file, a project, a folder of settings or a plugin."""
    if not given.is_dir():
        root = _root_of(source, given)
        if root is not None:
            return _checked(source, _plugin(source, root))
        return _checked(source, [HookFile(given, read_settings(given))])
    if source.manifest.parent.name and given.name == source.manifest.parent.name:
        return _checked(source, _plugin(source, given.absolute().parent))
    own = given.absolute().name == source.folder
    project = given.absolute().parent if own else given
    settings = _settings_files(source, project)
    if not settings and source is MigrationSource.LLXPRT:
        # Its user's folder has another name than a project's.
        settings = [f for f in [given / "settings.json"] if f.is_file()]
    found = [HookFile(file, read_settings(file)) for file in settings]
    if not own and _is_plugin(source, given):
        found += _plugin(source, given)
    if not found:
        raise HooklineError(_missing(source, given))
    return _checked(source, found)


def _checked(source: MigrationSource, files: Iterable[HookFile]) -> list[HookFile]:
    """Mark the files of other agents; raises where there are no others."""
    host = source.value
    checked = [
        replace(file, problem=foreign_file(host, file.path, file.theirs) or "")
        for file in files
    ]
    if checked and all(file.problem for file in checked):
        raise HooklineError(checked[0].problem)
    return checked


def _missing(source: MigrationSource, given: Path) -> str:
    if (given / ".claude-plugin" / "marketplace.json").is_file():
        return f"{given} has several plugins: name the folder of one of them"
    inside, host = given / source.folder / "settings.json", source.value
    foreign = [foreign_file(host, given / "hooks.json", None)]
    foreign += foreign_files(host, given)
    hint = next(filter(None, foreign), "name the settings file to read")
    return f"{inside} does not exist: {hint}"


def _settings_files(source: MigrationSource, project: Path) -> list[Path]:
    is_claude = source is MigrationSource.CLAUDE
    names = ("settings.json", *(["settings.local.json"] if is_claude else []))
    files = (project / source.folder / name for name in names)
    return [file for file in files if file.is_file()]


def _is_plugin(source: MigrationSource, folder: Path) -> bool:
    return any((folder / one).is_file() for one in (source.manifest, _HOOKS_FILE))


def _root_of(source: MigrationSource, file: Path) -> Path | None:
    """The plugin that a file makes; None if it is an ordinary settings file."""
    full = file.absolute()
    for known in (source.manifest, _HOOKS_FILE):
        root = full.parents[len(known.parts) - 1]
        if full == root / known and full.is_file():
            return root
    return None


def _plugin(source: MigrationSource, root: Path) -> Iterator[HookFile]:
    """The hooks of a plugin: of its usual file, and those that its manifest names."""
    manifest, usual = root / source.manifest, root / _HOOKS_FILE
    env = {source.root_variable: str(root.resolve())}
    described = read_settings(manifest) if manifest.is_file() else {}
    if source is MigrationSource.CLAUDE and _uses_data_folder(root):
        name = re.sub(r"[^\w-]", "-", str(described.get("name") or root.resolve().name))
        data = (
            Path(file_of(HOSTS["claude"].files, Scope.USER, "")).parent
            / "plugins"
            / "data"
            / name
        )
        env["CLAUDE_PLUGIN_DATA"] = str(data)
    declared = described.get("hooks")
    if usual.is_file():
        yield HookFile(usual, _with_hooks(read_settings(usual)), env)
    for one in declared if isinstance(declared, list) else [declared]:
        if isinstance(one, dict):
            yield HookFile(manifest, _with_hooks(one), env)
        elif isinstance(one, str) and (file := _inside(root, one)) != usual.resolve():
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


def _inside(root: Path, name: str) -> Path:
    file = (root / name).resolve()
    if not file.is_relative_to(root.resolve()):
        raise HooklineError(
            f"{root}: {name!r} in its manifest is outside of the plugin"
        )
    return file


def _with_hooks(theirs: Wire) -> Wire:
    """Hooks under the key ``hooks``, as in settings; some files have only events."""
    if "hooks" in theirs:
        return theirs
    return {"hooks": {k: v for k, v in theirs.items() if k not in _MANIFEST_PARTS}}


def unread_hooks(source: MigrationSource, folder: Path) -> list[str]:
    """Notes on hooks of agents, skills and commands, which are not converted."""
    own = folder.absolute().name == source.folder
    places = [folder if own else folder / source.folder]
    places += [folder] if _is_plugin(source, folder) else []
    kinds = ("agents", "skills", "commands")
    files = (f for place in places for k in kinds for f in place.glob(f"{k}/**/*.md"))
    found = sorted(file for file in files if _has_front_matter_hooks(file))
    return [f"{file}: hooks in its front matter are not converted" for file in found]


def _has_front_matter_hooks(file: Path) -> bool:
    try:
        text = read_text(file)
    except SettingsError:
        return False
    head = re.match(r"(?s)---\r?\n(.*?)\n---", text)
    return head is not None and re.search(r"(?m)^hooks:", head[1]) is not None

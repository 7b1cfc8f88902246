"""Which files a hook depends on, as far as its own words tell.

A command is not understood, only searched: every word that is a path inside the project
counts, also where the shell would make something else of it. One file too many costs
a question now and then; one too few would be a guard that can be edited.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from hookline.settings.model import HookConfig, HookType

_PROJECT = "\x01"  # stands for the project while its commands are cut into words
_PROJECT_DIR = re.compile(
    r"\$\{?(?:(?:HOOKLINE|LLXPRT|GEMINI|CLAUDE)_PROJECT_DIR|PWD)\b\}?"
)
_HOME = re.compile(r"(?:(?<=[\s'\"=:])|^)~(?=/)|\$\{?HOME\b\}?")
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_BREAKS = re.compile(r"[\s'\"`;|&()<>=,:{}$!\\]+")
_MODULE = re.compile(r"-m[\s'\"]*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_MAX_WORDS = 1000


def named_paths(hook: HookConfig, project: str) -> list[str]:
    """Full paths inside the project that a hook names, whether or not they are there.

    A bare word without a dot or a slash counts where such a file is there: ``make`` is
    a program on the path, as a rule.
    """
    words = list(_words(hook, project))
    folders = _folders(words, project)
    found: dict[str, None] = {}
    for word in words:
        for base in folders:
            path = _inside(base, word, project)
            if path is not None and _is_meant(path, word):
                found[path] = None
                if _is_folder(path):
                    found[f"{path}/__main__.py"] = None
    for path in _module_paths(hook, folders):
        found[path] = None
    return list(found)


def trust_paths(hook: HookConfig, project: str) -> list[str]:
    """Full paths of a hook's ``trustFiles``; they may lie anywhere."""
    given = (_expanded(text).replace(_PROJECT, project) for text in hook.trust_files)
    return [os.path.normpath(os.path.join(project, path)) for path in given]  # noqa: PTH118


def names_nothing(hook: HookConfig, project: str) -> bool:
    """Whether no file that is there now is pinned by the hook's own words."""
    paths = (*named_paths(hook, project), *trust_paths(hook, project))
    folder = f"{project}/.hookline"
    inside = any(
        os.path.exists(path)  # noqa: PTH110
        for word in _words(hook, project)
        if (path := _inside(project, word, project, within=folder)) is not None
    )
    return not inside and not any(map(os.path.exists, paths))


def _words(hook: HookConfig, project: str) -> Iterator[str]:
    for text in (hook.command, hook.shell, *hook.env.values()):
        if text:
            yield from _cut(text, project)


def _cut(text: str, project: str) -> Iterator[str]:
    marked = _expanded(text)
    spaced = marked.replace("\\ ", "\x02")
    quoted = (double or single for double, single in _QUOTED.findall(marked))
    pieces = (*_BREAKS.split(spaced), *quoted)
    for piece in dict.fromkeys(pieces[:_MAX_WORDS]):
        word = piece.replace("\x02", " ").replace(_PROJECT, project)
        if word and "\0" not in word:
            yield from _globbed(word, project)


def _expanded(text: str) -> str:
    marked = _PROJECT_DIR.sub(_PROJECT, text)
    return _HOME.sub(lambda _: os.path.expanduser("~"), marked)  # noqa: PTH111


def _globbed(word: str, project: str) -> Iterator[str]:
    yield word
    if "*" in word or "?" in word:
        import glob

        # The folder too: what is added to it later may match as well.
        yield os.path.dirname(word)  # noqa: PTH120
        matches = glob.iglob(os.path.join(glob.escape(project), word))  # noqa: PTH118, PTH207
        for _, path in zip(range(_MAX_WORDS), matches, strict=False):
            yield path


def _folders(words: Iterable[str], project: str) -> list[str]:
    """Where relative paths may start: the project, and every folder that is named."""
    found = {project: None}
    for word in words:
        path = _inside(project, word, project)
        if path is not None and _is_folder(path):
            found[path] = None
    return list(found)


def _inside(
    base: str, word: str, project: str, within: str | None = None
) -> str | None:
    path = os.path.normpath(os.path.join(base, word))  # noqa: PTH118
    folder = f"{project}/.hookline"
    in_folder = path == folder or path.startswith(f"{folder}/")
    if within is not None:
        return path if in_folder else None
    # All of .hookline is pinned anyway.
    return path if path.startswith(f"{project}/") and not in_folder else None


def _is_folder(path: str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - no Path on this path


def _is_meant(path: str, word: str) -> bool:
    return "/" in word or "." in word or os.path.lexists(path)


def _module_paths(hook: HookConfig, folders: list[str]) -> Iterator[str]:
    if hook.type is HookType.PYTHON and hook.function is not None:
        name = hook.function.partition(":")[0]
        yield from module_files(name)
        roots = (*folders, f"{folders[0]}/src")
        yield from _places_of(name, roots)
    for name in _MODULE.findall(hook.command or ""):
        yield from _places_of(name, folders)


def _places_of(name: str, roots: Iterable[str]) -> Iterator[str]:
    steps = name.split(".")
    for root in roots:
        stem = f"{root}/{'/'.join(steps)}"
        yield f"{stem}.py"
        yield f"{stem}/__main__.py"
        for end in range(1, len(steps) + 1):
            yield f"{root}/{'/'.join(steps[:end])}/__init__.py"


def module_files(name: str) -> list[str]:
    """The files that importing a module would run, found without importing any."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    found = []
    try:
        top, *rest = name.split(".")
        spec = find_spec(top)
        at = top
        for step in (*rest, None):
            if spec is None:
                break
            if spec.origin is not None and spec.has_location:
                found.append(os.path.abspath(spec.origin))  # noqa: PTH100
            if step is None or spec.submodule_search_locations is None:
                break
            at = f"{at}.{step}"
            spec = PathFinder.find_spec(at, spec.submodule_search_locations)
    except (ImportError, ValueError, AttributeError):
        pass  # it will not load either, and that is a failure of its own
    return found

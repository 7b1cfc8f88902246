"""No option without a page, and no page with an option that does not exist.

Options are parameters of the Python API, options of commands, and keys of settings.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.completion import arguments_of, command_tree
from hookline.errors import SettingsError
from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import EVENT_FIELDS
from hookline.settings.check import find_problems
from hookline.settings.model import HookSource, HookType, Severity
from hookline.settings.read import parse_text
from hookline.settings.schema import settings_schema

from .api import Parameters, public_callables
from .pages import PAGES, ROOT

COMMANDS = ROOT / "docs" / "reference" / "commands"
SETTINGS = ROOT / "docs" / "reference" / "settings.md"
PRESENT = [
    page
    for page in PAGES
    if page.name != "CHANGELOG.md" and page.parent.name != "decisions"
]
"""Pages that say how it is now."""
ACTIONS = {
    name: [action.option_strings for action in arguments_of(parser)]
    for name, parser in command_tree()[1].items()
}
OPTIONS = {
    name: {option for options in actions for option in options}
    for name, actions in ACTIONS.items()
}


@cache
def callables() -> list[Parameters]:
    """What is public and called; not errors, which nobody else makes."""
    everything = public_callables()
    return [it for it in everything if not it.name.startswith("hookline.errors.")]


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


class Section:
    """What stands under one heading."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks = re.findall(r"(?ms)^```(\w*)\n(.*?)^```", text)
        without = re.sub(r"(?ms)^```.*?^```", "", text)
        self.spans = re.findall(r"`([^`\n]+)`", without)
        self.code = "\n".join([*(block for _, block in self.blocks), *self.spans])


def sections(page: Path) -> list[Section]:
    parts = re.split(r"(?m)^#+ .*$", page.read_text())
    return [Section(part) for part in parts]


ALL_SECTIONS = [(page, section) for page in PRESENT for section in sections(page)]
ALL_CODE = "\n".join(section.code for _, section in ALL_SECTIONS)


def is_explained(one: Parameters, name: str) -> bool:
    if has_word(one.docs, name):
        return True
    if one.called.startswith("fire_") and any(name in f for f in EVENT_FIELDS.values()):
        return True  # a field of the event: on the page of the protocol
    if name in one.optional:
        return any(
            has_word(section.code, name) and has_word(section.text, one.called)
            for _, section in ALL_SECTIONS
        )
    words = [word for word in name.split("_") if word != "or"]
    in_prose = all(re.search(rf"\b{word}", one.docs, re.IGNORECASE) for word in words)
    return in_prose or has_word(ALL_CODE, name)


def test_every_parameter_is_explained() -> None:
    """No option is undocumented; in its docstring, or beside it on a page."""
    assert [
        f"{function.name}({name})"
        for function in callables()
        for name in sorted(function.names)
        if not is_explained(function, name)
    ] == []


def test_all_packages_have_callables() -> None:
    """Otherwise the tests here compare nothing."""
    found = {".".join(one.name.split(".")[:2]) for one in callables()}
    packages = ("agent", "bus", "testing", "adapters", "translators", "script")
    assert {f"hookline.{name}" for name in packages} <= found
    assert {"hookline.Config", "hookline.HookSystem"} <= found
    assert len(callables()) > 200


FOREIGN_OWNERS = {"asyncio", "subprocess", "app", "uvicorn"}
"""Their functions are not ours, though some have the same name."""


def calls(code: str) -> Iterator[tuple[str, list[str]]]:
    """The calls in some code: what is called, and the names of the keywords."""
    try:
        tree = ast.parse(textwrap.dedent(code))
    except SyntaxError:  # a part of something, or no Python
        for name, given in re.findall(r"([\w.]+)\(([^()]*)\)", code):
            yield name, re.findall(r"(\w+)=(?!=)", given)
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), [one.arg for one in node.keywords if one.arg]


def keywords(code: str) -> Iterator[tuple[str, str]]:
    """The keywords of all calls in some code, with the name of the function."""
    for called, given in calls(code):
        owner, _, name = called.rpartition(".")
        if owner.partition(".")[0] not in FOREIGN_OWNERS:
            yield from ((name, keyword) for keyword in given)


def test_every_keyword_on_the_pages_exists() -> None:
    """No page with an option that does not exist."""
    parameters: dict[str, set[str]] = {}
    for function in callables():
        parameters.setdefault(function.called, set()).update(function.names)
        if function.takes_any:
            parameters[function.called].add("**")
    assert [
        f"{page_id(page)}: {name}({keyword}=...)"
        for page, section in ALL_SECTIONS
        for code in (*(text for _, text in section.blocks), *section.spans)
        for name, keyword in keywords(code)
        if not parameters.get(name, {"**"}) & {keyword, "**"}
    ] == []


COMMON = (COMMANDS / "README.md").read_text().partition("Common to all")[2]


def test_every_option_of_a_command_is_on_its_page(subtests: pytest.Subtests) -> None:
    """One of its spellings; or in what all commands have in common."""
    for command, actions in ACTIONS.items():
        with subtests.test(command):
            page = COMMANDS / f"{command}.md"
            text = COMMON + (page.read_text() if page.exists() else "")
            assert [
                options
                for options in actions
                if options
                and "--help" not in options
                and not any(has_word(text, option) for option in options)
            ] == []
            assert page.exists() or has_word(ALL_CODE, f"hookline {command}")


OF_OTHERS = {
    "--bare": "of Claude Code",
    "--trust-folder": "of GitHub Copilot",
    "--exclude=.env": "of programs that read files",
    "--config": "of programs whose configuration is approved",
    "--workers": "of uvicorn",
    "--reload": "of uvicorn",
    "--preload": "of gunicorn",
}


def shown_options(code: str) -> Iterator[tuple[str, str]]:
    """The options of our commands in some code: command and option."""
    for command, rest in re.findall(r"\bhookline (\w+)((?:[^\n]|\\\n)*)", code):
        if command not in OPTIONS:
            continue
        try:
            words = shlex.split(rest.replace("\\\n", " "), comments=True)
        except ValueError:  # the end of a quoted text
            words = re.findall(r"--[a-z][\w-]*", rest.partition("'")[0])
        for word in words:
            if word in {"|", "&&", ";", "||", ">", "--worker"} or word.endswith(";"):
                break
            if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word):
                yield command, word.partition("=")[0]


def test_every_option_of_a_command_on_the_pages_exists() -> None:
    """For the command that it is shown with."""
    every = set().union(*OPTIONS.values(), {"--version"}, OF_OTHERS)
    unknown: list[str] = []
    for page, section in ALL_SECTIONS:
        here = OPTIONS.get(page.stem, every) if page.parent == COMMANDS else every
        for code in (*(text for _, text in section.blocks), *section.spans):
            for command, option in shown_options(code):
                if option not in OPTIONS[command]:
                    unknown.append(f"{page_id(page)}: hookline {command} {option}")
        spans = [span.split()[0] for span in section.spans if span[:2] == "--" != span]
        unknown += [f"{page_id(page)}: {span}" for span in spans if span not in here]
    assert unknown == []


def test_every_key_is_on_the_page_of_settings() -> None:
    """No option is undocumented."""
    code = "\n".join(section.code for section in sections(SETTINGS))
    schema = settings_schema()
    levels = [schema, *schema["$defs"].values()]
    keys = {key for level in levels for key in level.get("properties", ())}
    assert [key for key in sorted(keys) if not has_word(code, key)] == []


OF_CLAUDE = set(CLAUDE_EVENTS) - set(HookEventName)
SHOWS_MISTAKES = COMMANDS / "check.md"
"""Its settings have mistakes, which it shows how to find."""


def settings_on(page: Path) -> Iterator[dict[str, Any]]:
    """The settings on a page, whole ones or single hooks; not those of other hosts."""
    for section in () if page == SHOWS_MISTAKES else sections(page):
        for kind, text in [*section.blocks, *(("json", it) for it in section.spans)]:
            if kind not in {"json", "jsonc", "toml"}:
                continue
            try:
                found: Any = parse_text(text, f"settings.{kind}")
            except SettingsError:
                continue
            if found.get("type") in list(HookType):
                found = {"hooks": {"BeforeTool": [{"hooks": [found]}]}}
            if not {"hooks", "hooksConfig", "enableHooks"} & set(found):
                continue
            if not OF_CLAUDE & set(found.get("hooks", {})):
                yield found


def test_settings_on_the_pages_have_no_mistakes() -> None:
    """Every key and value in them is known to ``hookline check``."""
    problems: list[str] = []
    for page in PRESENT:
        for settings in settings_on(page):
            managed = '"managed"' in json.dumps(settings)
            source = HookSource.SYSTEM if managed else HookSource.EXPLICIT
            problems += [
                f"{page_id(page)}: {problem}"
                for problem in find_problems(settings, source, None)
                if problem.severity is Severity.ERROR
            ]
    assert problems == []

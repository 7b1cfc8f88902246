"""The coding agents that are run, from ``programs.toml``, and the calls of their tools.

The calls of a program are templates: its own tools have other names and fields.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

Call = tuple[str, dict[str, Any] | str]
PROMPT = "please work"


def filled(value: Any, texts: Mapping[str, str]) -> Any:
    """A value with texts in place of their names, such as ``@PATH@``."""
    if isinstance(value, str):
        for name, text in texts.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, dict):
        return {key: filled(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, texts) for item in value]
    return value


class Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program: its package, its command line, its own settings and tools."""

    package: str
    version: str
    arguments: str
    """Its command line."""
    shell: Call
    write: Call | None = None
    """None: it writes files with patches, and several of them in one."""
    environ: Mapping[str, str] = {}
    files: Mapping[str, str | dict[str, Any]] = {}
    mcp_tool: str | None = None
    agent: Call | None = None
    """A call that starts a subagent, where the program has them."""

    def run(self, command: str) -> Call:
        """A call that runs a command in a shell."""
        name, fields = self.shell
        return name, filled(fields, {"@COMMAND@": command})

    def write_file(self, path: str, text: str) -> Call:
        """A call that writes one file."""
        if self.write is None:
            return self.patch({path: text})
        name, fields = self.write
        return name, filled(fields, {"@PATH@": path, "@TEXT@": text})

    def patch(self, files: Mapping[str, str]) -> Call:
        """A call of Codex's one tool for files, which takes a text."""
        added = [f"*** Add File: {path}\n+{text}" for path, text in files.items()]
        return "apply_patch", "\n".join(["*** Begin Patch", *added, "*** End Patch"])


PROGRAMS = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("programs.toml").read_text()),
    dict[str, Program],
)

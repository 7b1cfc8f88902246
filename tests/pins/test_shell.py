"""What rules see of shell text, and which of its files an approval covers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.evaluated import fire_rules
from tests.support.pins import PinTable
from tests.support.reviewed import review_of

PROJECT_FILES = (
    *(
        "tools/a.sh",
        "tools/a.py",
        "tools/b.sh",
        "tools/g.sh",
        "tools/008.sh",
        "my tools/a b.py",
    ),
    *("data/x.json", "conf.toml", "x.sh", "x.js", "x.py", "x.cedar", "x.cedarschema"),
    *("acme/hook.py", "a/b.py", "b/c.py", "lib/acme.py", ".hookline/hooks/guard.sh"),
    *("scripts/used.py", "scripts/other.py", "a\ue12ab.sh", "a\ue000b.sh"),
    *("../outside/guard.sh", "../outside/data.txt"),
)


async def test_programs_of_a_line_are_named_however_they_are_hidden(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """``programs()`` and ``runs()``; ``?`` is what cannot be told.

    A row is named after its line; ``runs`` is a pattern.
    """

    async def programs(name: str, row: dict[str, Any]) -> object:
        pattern = json.dumps(row.get("runs", "*"))
        fields = {"programs": "${tool_input.command.programs()}"}
        if "runs" in row:
            fields["runs"] = f"${{tool_input.command.runs({pattern})}}"
        then = {"hookSpecificOutput": {"tool_input": fields}}
        rule = {"type": "rule", "when": "true", "then": then}
        line = {"command": row.get("line", name)}
        result = await fire_rules([rule], line, tmp_path)
        assert result.final_output is not None
        changed = dict(result.final_output.modified_tool_input or {})
        del changed["command"]
        return changed

    await pin_table("shell/programs").check(programs)


async def test_files_of_a_command_are_pinned_or_named(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """What ``hookline trust`` says of each hook (protocol.md#settings).

    A row is named after its command, or has a ``hook``. What a command runs, or hands
    to a program that is not known, is pinned; what cannot be known, and data that is
    not pinned, is noted. A file that would be pinned if it were there is a change once
    it appears.
    """
    project = tmp_path / "project"
    for name in PROJECT_FILES:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    (project / "scripts" / "a.py").write_text("import used")
    (tmp_path / "outside" / "link").symlink_to(project)

    def shown(name: str, row: dict[str, Any]) -> list[str]:
        hook = {"type": "command", **row.get("hook", {"command": name})}
        filled = json.loads(json.dumps(hook).replace("<above>", str(tmp_path)))
        return review_of(filled, project.resolve())

    await pin_table("shell/files").check(shown)

"""With the resident helper and without it the answer is the same, byte for byte.

A person works on a project and edits something between the events. Each event is
answered twice, by the helper and without it, and recorded twice.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.main import main
from tests.support.bridged import HOSTS_FOLDER, VERDICTS, answer_as_data, payload
from tests.support.commandline import Finished
from tests.support.resident import SCRIPT, Desk

WORKER = """
from hookline.script import block, run
def guard(event):
    if event.get("tool_input", {}).get("path", "").endswith(".env"):
        return block("worker: {word}")
run(guard)
"""
SURROUNDINGS = """
import os, sys
def guard(event):
    if not event["tool_input"]["path"].endswith("where"):
        return None
    mask = os.umask(0o22); os.umask(mask)
    names = sorted(name for name in os.environb if not name.startswith(b"_"))
    env = [(name, os.environb[name]) for name in names]
    facts = (os.getcwdb(), oct(mask), sys.path[1:], env, os.getpriority(0, 0))
    return {"decision": "deny", "reason": repr(facts)}
"""
COMMAND = {"type": "command", "name": "c", "command": "bash .hookline/c.sh"}
HOOKS: dict[str, list[dict[str, Any]]] = {
    "BeforeTool": [
        COMMAND,
        {
            "type": "worker",
            "name": "w",
            "command": "$HOOKLINE_PYTHON .hookline/w.py",
        },
        {"type": "rule", "name": "r", "when": "tool_input.path.endsWith('.key')"},
        {"type": "command", "name": "bad", "command": "echo oops >&2; exit 1"},
        {"type": "command", "name": "later", "command": "true", "async": True},
    ],
    "AfterTool": [{"type": "command", "name": "after", "command": "echo seen; pwd"}],
    "BeforeAgent": [
        {
            "type": "command",
            "name": "prompt",
            "command": "echo $PPID >/dev/null; echo hi",
        }
    ],
    "SessionStart": [
        {"type": "command", "name": "start", "command": "umask; ulimit -n"}
    ],
    "AfterAgent": [
        {"type": "command", "name": "stop", "command": "echo go on >&2; exit 2"}
    ],
}


def write_settings(
    desk: Desk, hooks: dict[str, Any] | None = None, **more: Any
) -> None:
    desk.project.settings(**more)
    events = {name: [{"hooks": some}] for name, some in (hooks or HOOKS).items()}
    settings = {"hooks": events, "hooksConfig": {"journal": True}, **more}
    desk.project.write(".hookline/settings.json", json.dumps(settings))


def start(desk: Desk) -> None:
    desk.project.write(
        ".hookline/c.sh", "read -r event; case $event in *c.txt*) exit 2;; esac"
    )
    desk.project.write(".hookline/w.py", WORKER.replace("{word}", "no"))
    desk.python_hook(SURROUNDINGS)
    write_settings(desk)
    desk.project.trust()


def events(desk: Desk) -> list[bytes]:
    """What a host sends, and what none should."""
    response = {"filePath": "a", "success": True}
    return [
        *map(desk.event, ("a.py", ".env", "c.txt", "a.key", "where")),
        desk.event(hook_event_name="PostToolUse", tool_response=response),
        desk.event(hook_event_name="UserPromptSubmit", prompt="hi"),
        desk.event(hook_event_name="SessionStart", source="startup"),
        desk.event(hook_event_name="Stop", stop_hook_active=False),
        desk.event(hook_event_name="Tomorrow"),
        *(b"", b"[]", b"{", b'{"hook_event_name": 1}', b"\xff\xfe"),
    ]


def compare(
    desk: Desk, *sent: bytes, times: int = 1, **more: Any
) -> tuple[int, bytes, bytes]:
    """Have events answered by the helper and, at the same time, without it."""
    if more:
        desk.start_helper(**more)
    for event in sent or events(desk):
        with ThreadPoolExecutor(1) as pool:
            cold = pool.submit(desk.cold, event, **more)
            warm = [desk.bridge(event, **more) for _ in range(times)]
        assert warm == [cold.result()] * times, event[:200]
    # The helper took part, or there is nothing to compare.
    assert desk.helpers()
    return cold.result()


def recorded(desk: Desk) -> Counter[str]:
    """What was recorded, without what differs from one time to the next."""
    argv = [sys.executable, str(SCRIPT), "log", "--json", "-n", "0"]
    rows = map(json.dumps, json.loads(desk.run(argv, b"").stdout))
    return Counter(re.sub(VARYING, "", row) for row in rows)


VARYING = r'"(id|at|time|timestamp|duration_ms|total_duration_ms)": [^,}]+'


def test_every_event_of_every_type_of_hook(desk: Desk) -> None:
    start(desk)
    desk.warm_up()
    compare(desk)
    # Both ways, and what started the helper.
    rows = 2 * len(events(desk)) + 2
    desk.until(lambda: is_twofold(recorded(desk), rows))


def is_twofold(rows: Counter[str], expected: int) -> bool:
    return rows.total() == expected and all(n % 2 == 0 for n in rows.values())


Edit = Callable[[Desk], object]


def edit_script(desk: Desk) -> None:
    desk.project.write(".hookline/c.sh", "echo changed >&2; exit 2")


def edit_worker(desk: Desk) -> None:
    desk.project.write(".hookline/w.py", WORKER.replace("{word}", "never"))


def edit_module(desk: Desk) -> None:
    desk.python_hook(
        "def guard(event):\n    return {'decision': 'deny', 'reason': 'new'}\n"
    )


def remove_module(desk: Desk) -> None:
    desk.python_hook("").unlink()


def more_hooks(desk: Desk) -> None:
    write_settings(desk, {**HOOKS, "BeforeTool": [COMMAND]})
    desk.project.trust()


def local_settings(desk: Desk) -> None:
    hook = {"type": "command", "name": "local", "command": "echo local >&2; exit 2"}
    text = json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    desk.project.write(".hookline/settings.local.json", text)
    desk.project.trust()


def user_settings(desk: Desk) -> None:
    desk.user_settings(
        {"type": "command", "name": "u", "command": "echo u >&2; exit 2"}
    )


EDITS: list[Edit] = [
    edit_script,
    lambda desk: desk.project.trust(),
    edit_worker,
    lambda desk: desk.project.trust(),
    edit_module,
    remove_module,
    edit_module,
    more_hooks,
    lambda desk: desk.project.trust("--revoke"),
    lambda desk: desk.project.trust(),
    local_settings,
    lambda desk: (desk.project.folder / ".hookline/settings.local.json").unlink(),
    lambda desk: (desk.project.folder / ".hookline/settings.json").unlink(),
    user_settings,
    lambda desk: user_settings_path(desk).write_text("{}"),
    lambda desk: user_settings_path(desk).unlink(),
    start,
]


def user_settings_path(desk: Desk) -> Path:
    return Path(desk.env["XDG_CONFIG_HOME"]) / "hookline" / "settings.json"


def test_what_a_person_edits_counts_at_once(desk: Desk) -> None:
    start(desk)
    desk.warm_up()
    for edit in EDITS:
        edit(desk)
        compare(desk, desk.event(".env"), times=3)


def test_projects_around_and_below_count_at_once(desk: Desk) -> None:
    """Every folder with a ``.hookline`` up to the repository's root.

    protocol.md#settings
    """
    start(desk)
    desk.warm_up()
    inner = desk.project.folder / "inner"
    hook = {"type": "command", "name": "inner", "command": "echo inner >&2; exit 2"}
    steps: list[Callable[[], object]] = [
        inner.mkdir,
        (desk.project.folder / ".git").mkdir,
        (inner / ".hookline").mkdir,
        lambda: (inner / ".hookline/settings.json").write_text(
            json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
        ),
        lambda: main(["trust", str(inner), "--yes"]),
        (inner / ".git").mkdir,
        lambda: main(["trust", str(desk.project.folder), "--revoke"]),
        lambda: (inner / ".hookline").rename(inner / "away"),
    ]
    for step in steps:
        step()
        compare(desk, desk.event(".env", cwd=str(inner)), cwd=inner)


def test_an_edit_that_keeps_size_and_time_counts_too(desk: Desk) -> None:
    settings = desk.user_settings(
        {"type": "command", "name": "u", "command": "echo a >&2; exit 2"}
    )
    desk.warm_up()
    before = settings.stat()
    settings.write_text(settings.read_text().replace("echo a", "echo b"))
    os.utime(settings, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert desk.reason() == "b"


@pytest.mark.parametrize("size", [100_000, 50_000_000], ids=["100 kB", "50 MB"])
def test_an_event_of_any_size(desk: Desk, size: int) -> None:
    """50 MB."""
    desk.user_settings({"type": "command", "name": "u", "command": "wc -c >&2; exit 2"})
    desk.warm_up()
    tool_input = {"file_path": "a.py", "content": "x" * size}
    compare(desk, desk.event(tool_input=tool_input))


def test_the_surroundings_of_the_client_are_those_of_the_hooks(
    desk: Desk, tmp_path: Path
) -> None:
    """The caller's environment and directory travel with each request."""
    desk.python_hook(SURROUNDINGS)
    where = desk.event("where")
    desk.warm_up()
    other = tmp_path / os.fsdecode(b"not \xff text")
    other.mkdir()
    strange = {os.fsdecode(b"\xffNAME"): os.fsdecode(b"a\xffb\n"), "EMPTY": ""}
    for more in (
        {},
        {"env": {"SECRET": "one"}},
        {"env": {"SECRET": "two", "HOOKLINE_DEPTH": "2"}},
        {"env": strange},
        {"env": {"HUGE": "x" * 100_000}},
        {"cwd": other},
        {"cwd": other, "umask": 0o27},
        {"umask": 0},
    ):
        assert b"deny" in compare(desk, where, **more)[1]


def test_limits_of_the_client_are_those_of_the_hooks(desk: Desk) -> None:
    command = "(ulimit -n; ulimit -Hn; ulimit -c; ulimit -s; ulimit -u) >&2; exit 2"
    desk.user_settings({"type": "command", "name": "u", "command": command})
    desk.warm_up()

    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))

    compare(desk, desk.event())
    compare(desk, desk.event(), preexec_fn=lower)
    assert "300" in desk.reason(preexec_fn=lower)


def test_a_hook_that_prints_does_not_spoil_the_answer(desk: Desk) -> None:
    desk.python_hook("def guard(event):\n    print('{}')\n")
    desk.warm_up()
    assert desk.bridge()[:2] == desk.cold()[:2] == (0, b"{}\n")


def test_a_directory_that_is_gone(desk: Desk, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    desk.python_hook(SURROUNDINGS)
    desk.warm_up()
    program = shlex.join([sys.executable, str(SCRIPT), "bridge", "claude"])
    script = "rmdir {0}; {1} {2}; mkdir {0}"
    warm, cold = (
        desk.run(
            ["bash", "-c", script.format(gone, program, more)], desk.event(), cwd=gone
        )
        for more in ("", "--no-resident")
    )
    assert (warm.stdout, warm.stderr) == (cold.stdout, cold.stderr)
    assert warm.returncode == 0


def test_a_new_directory_of_the_same_name_is_another(
    desk: Desk, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    desk.python_hook(SURROUNDINGS)
    desk.warm_up()
    for _ in range(2):
        place.mkdir()
        compare(desk, desk.event("where"), cwd=place)
        place.rmdir()


def test_recorded_answers_of_every_host_are_the_same_with_the_helper(
    desk: Desk, subtests: pytest.Subtests
) -> None:
    """A sample of ``tests/pins/hosts/answers``: the bytes that were recorded."""
    answers = HOSTS_FOLDER.parent / "pins" / "hosts" / "answers"
    desk.user_settings({"type": "rule", "name": "guard", "when": "false"})
    desk.warm_up()
    for table in sorted(answers.glob("*.json")):
        name, row = next(iter(json.loads(table.read_text()).items()))
        for verdict in ("block", "context and message"):
            then = VERDICTS[verdict]
            rule = {"type": "rule", "name": "guard", "when": "true", "then": then}
            desk.user_settings(rule, event=row["fires"])
            words = (table.stem, *([row["event"]] if "event" in row else []))
            sent = json.dumps(payload(row["payload"])).encode()
            status, stdout, stderr = desk.bridge(sent, *words)
            ended = Finished(status, stdout.decode(), stderr.decode())
            recorded = next(
                answer
                for verdicts, answer in row["then"].items()
                if verdict in verdicts.split(" | ")
            )
            with subtests.test(f"{table.stem} {name}, {verdict}"):
                assert answer_as_data(ended) == recorded
    assert desk.helpers()

"""``hookline replay``: which verdicts change, and which events do not count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .bench import (
    CRASH,
    GUARD,
    Bench,
    before_tool,
    command,
    group,
    on_terminal,
    says,
)

ALLOW = command("true", "allow")


def settings_of(bench: Bench, name: str, *hooks: dict[str, Any]) -> str:
    return bench.settings(name, before_tool(group(*hooks)))


def test_replay_on_the_same_settings_changes_nothing(bench: Bench) -> None:
    same = settings_of(bench, "s.json", GUARD)
    bench.fire(same, "write_file", path="a")
    bench.fire(same, "write_file", path="forbidden")
    done = bench.run("replay", "--settings", same)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2 events replayed: no verdict changes\n"


def test_replay_of_a_hook_that_replaces_the_whole_input_changes_nothing(
    bench: Bench,
) -> None:
    """Issue 12.15: the keys that were dropped do not come back."""
    whole = {"tool_input": {"path": "b"}, "replacesToolInput": True}
    same = settings_of(bench, "s.json", says({"hookSpecificOutput": whole}, "r"))
    bench.fire(same, "write_file", path="a", content="x")
    done = bench.run("replay", "--settings", same)
    assert done.stdout == "1 event replayed: no verdict changes\n"


def test_replay_shows_only_the_verdicts_that_change_and_exits_1(bench: Bench) -> None:
    bench.fire(settings_of(bench, "old.json", ALLOW), "write_file", path="a")
    bench.fire(settings_of(bench, "old.json", ALLOW), "write_file", path="forbidden")
    done = bench.run("replay", "--settings", settings_of(bench, "new.json", GUARD))
    assert done.returncode == 1
    assert "event 2," in done.stdout
    assert "event 1," not in done.stdout
    assert "allowed → blocked" in done.stdout
    assert "now: not this one" in done.stdout


def test_replay_includes_events_that_matched_no_hook(bench: Bench) -> None:
    old = bench.settings("old.json", before_tool(group(ALLOW, matcher="other")))
    bench.fire(old, "write_file", path="forbidden")
    found = bench.json("replay", "--settings", settings_of(bench, "new.json", GUARD))
    (change,) = found["changed"]
    assert change["changes"] == [{"what": "blocked", "before": False, "after": True}]


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"decision": "block"}, "blocked"),
        ({"decision": "ask"}, "ask"),
        ({"continue": False}, "stop"),
        ({"hookSpecificOutput": {"tool_input": {"path": "b"}}}, "changed input"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_replay_finds_every_kind_of_change(
    bench: Bench, said: dict[str, Any], what: str
) -> None:
    bench.fire(settings_of(bench, "old.json", ALLOW), "t", path="a")
    new = settings_of(bench, "new.json", says(said, "new"))
    found = bench.json("replay", "--settings", new)
    assert [change["what"] for change in found["changed"][0]["changes"]] == [what]
    back = bench.run("replay", "--settings", settings_of(bench, "x.json", ALLOW))
    assert back.returncode == 0


MODEL = {"llm_request": {"model": "m", "messages": [{"role": "user", "content": "x"}]}}
RESPONSE = {"candidates": [{"content": {"role": "model", "parts": ["y"]}}]}


@pytest.mark.parametrize(
    ("event", "given", "specific", "what"),
    [
        ("BeforeModel", MODEL, {"llm_request": {"model": "n"}}, "changed request"),
        (
            "AfterModel",
            MODEL | {"llm_response": RESPONSE},
            {"llm_response": {"text": "z"}},
            "changed response",
        ),
        (
            "BeforeToolSelection",
            MODEL,
            {"toolConfig": {"mode": "NONE", "allowedFunctionNames": []}},
            "restricted tools",
        ),
    ],
)
def test_replay_finds_changes_of_model_events(
    bench: Bench, event: str, given: dict[str, Any], specific: dict[str, Any], what: str
) -> None:
    (bench.project / "in.json").write_text(json.dumps(given))
    fired = bench.run("fire", event, "--input", "in.json", "--record")
    assert fired.returncode == 0, fired.stderr
    hook = says({"hookSpecificOutput": specific}, "new")
    new = bench.settings("new.json", {"hooks": {event: [group(hook)]}})
    found = bench.json("replay", "--settings", new)
    assert [change["what"] for change in found["changed"][0]["changes"]] == [what]


def test_replay_ignores_another_wording(bench: Bench) -> None:
    for name, reason in (("old.json", "one"), ("new.json", "two")):
        said = {"decision": "block", "reason": reason, "systemMessage": reason}
        settings_of(bench, name, says(said, "guard"))
    bench.fire(str(bench.project / "old.json"), "t")
    assert bench.run("replay", "--settings", "new.json").returncode == 0


@pytest.mark.parametrize(
    ("tool_input", "why"),
    [
        ({"password": "hunter2"}, "input masked"),
        ({"content": "x" * 300_000}, "input truncated"),
    ],
    ids=["masked", "truncated"],
)
def test_replay_does_not_count_masked_and_truncated_events(
    bench: Bench, tool_input: dict[str, Any], why: str
) -> None:
    old = settings_of(bench, "old.json", ALLOW)
    given = {"tool_name": "t", "tool_input": tool_input}
    (bench.project / "in.json").write_text(json.dumps(given))
    bench.run(
        *("fire", "BeforeTool", "--settings", old, "--record", "--input", "in.json")
    )
    block = settings_of(bench, "new.json", says({"decision": "block"}, "all"))
    done = bench.run("replay", "--settings", block)
    assert done.returncode == 0
    assert f"allowed → blocked ({why})" in done.stdout
    found = bench.json("replay", "--settings", block)
    assert (found["changed"], len(found["apart"])) == ([], 1)


def test_replay_tells_hooks_and_records_nothing(bench: Bench) -> None:
    spy = command('echo "$HOOKLINE_REPLAY" >> seen', "spy", envPolicy="clean")
    settings = bench.settings("s.json", before_tool(group(spy), journal=True))
    bench.run("fire", "BeforeTool", "--settings", settings, "--tool", "t")
    assert bench.run("replay", "--settings", settings).returncode == 0
    assert (bench.project / "seen").read_text() == "\n1\n"
    assert len(bench.json("log")) == 1


def test_replay_does_not_record_what_its_hooks_fire(bench: Bench) -> None:
    inner = f"{' '.join(bench.argv('fire', 'BeforeAgent', '--record'))} --input in.json"
    (bench.project / "in.json").write_text('{"prompt": "x"}')
    old = settings_of(bench, "old.json", ALLOW)
    bench.fire(old, "t")
    new = settings_of(bench, "new.json", command(f"{inner} && touch ran", "inner"))
    assert bench.run("replay", "--settings", new).returncode == 0
    assert (bench.project / "ran").exists()
    assert len(bench.json("log")) == 1


def test_replay_runs_only_trusted_hooks(bench: Bench) -> None:
    bench.fire(settings_of(bench, "old.json", ALLOW), "t")
    folder = bench.project / ".hookline"
    folder.mkdir()
    hook = command("touch ran; exit 2", "evil")
    (folder / "settings.json").write_text(json.dumps(before_tool(group(hook))))
    done = bench.run("replay")
    assert done.returncode == 0
    assert "not trusted" in done.stderr
    assert not (bench.project / "ran").exists()
    assert bench.run("trust", "--yes").returncode == 0
    assert bench.run("replay").returncode == 1
    assert (bench.project / "ran").exists()


def test_replay_dry_run_counts_and_runs_nothing(bench: Bench) -> None:
    bench.fire(settings_of(bench, "old.json", ALLOW), "t")
    bench.fire(settings_of(bench, "old.json", ALLOW), "u", password="hunter2")
    new = settings_of(bench, "new.json", command("touch ran; exit 2", "all"))
    done = bench.run("replay", "--settings", new, "--dry-run")
    assert done.returncode == 0
    assert "2 events would be replayed, with 2 hook runs" in done.stdout
    assert "1 of them not exactly: input masked" in done.stdout
    assert not (bench.project / "ran").exists()
    counted = bench.json("replay", "--settings", new, "--dry-run")
    assert (counted["events"], counted["apart"]) == (2, {"masked": 1})


def test_replay_matches_hooks_of_other_hosts_by_what_they_are_shown(
    bench: Bench,
) -> None:
    """protocol.md#dialects: by more than the recorded name of the tool."""
    old = settings_of(bench, "old.json", ALLOW)
    bench.fire(old, "run_shell_command")
    bench.fire(old, "write_file")
    theirs = command("exit 2", "theirs") | {"dialect": "claude"}
    groups = [{"matcher": "Bash", "hooks": [theirs]}]
    file = bench.project / "new.json"
    file.write_text(json.dumps({"hooks": {"BeforeTool": groups}}))
    counted = bench.json("replay", "--settings", str(file), "--dry-run")
    assert (counted["events"], counted["hook_runs"]) == (2, 1)
    found = bench.json("replay", "--settings", str(file))
    assert [change["id"] for change in found["changed"]] == [1]


def test_replay_takes_the_filters_of_log(bench: Bench) -> None:
    old = settings_of(bench, "old.json", ALLOW)
    for tool in ("a", "b"):
        bench.fire(old, tool)
    new = settings_of(bench, "new.json", says({"decision": "block"}, "all"))
    found = bench.json("replay", "--settings", new, "--tool", "b", "--since", "1h")
    assert [change["id"] for change in found["changed"]] == [2]
    assert (
        bench.json("replay", "--settings", new, "--since", "2099-01-01")["events"] == 0
    )


def test_replay_leaves_other_projects_alone(bench: Bench, tmp_path: Path) -> None:
    bench.fire(settings_of(bench, "old.json", GUARD), "t", path="forbidden")
    other = tmp_path / "other"
    other.mkdir()
    done = bench.run("replay", cwd=other)
    assert (done.returncode, done.stdout) == (
        0,
        "0 events replayed: no verdict changes\n",
    )
    assert "1 event of other projects left out" in done.stderr
    assert bench.run("replay", "--everywhere", cwd=other).returncode == 1
    assert bench.run("replay").returncode == 1


def test_replay_reports_failed_hooks(bench: Bench) -> None:
    bench.fire(settings_of(bench, "old.json", ALLOW), "t")
    done = bench.run("replay", "--settings", settings_of(bench, "new.json", CRASH))
    assert done.returncode == 0
    assert "hooks failed on 1 event; the first, event 1: hook 'crash'" in done.stdout


def test_replay_shows_its_progress_on_a_terminal_after_a_second(bench: Bench) -> None:
    old = settings_of(bench, "old.json", ALLOW)
    for tool in ("a", "b"):
        bench.fire(old, tool)
    slow = settings_of(bench, "new.json", command("sleep 0.8", "slow"))
    words = ("replay", "--settings", slow, "--jobs", "1")
    shown = on_terminal(bench, *words)
    assert "replaying" in shown
    assert "2/2" in shown
    assert shown.endswith("\x1b[2K")
    assert bench.run(*words).stderr == ""


def test_replay_does_not_count_events_of_hooks_in_code(bench: Bench) -> None:
    import asyncio

    from hookline import Config, HookSystem, Settings

    named = str(bench.project / "code.sqlite")

    async def record() -> None:
        settings = Settings.from_mapping({"hooksConfig": {"journal": named}})
        async with HookSystem(Config("s", bench.project, settings)) as system:
            system.on("BeforeTool")(lambda event: {"decision": "block"})
            await system.event_handler.fire_before_tool_event("t", {})

    asyncio.run(record())
    done = bench.run("replay", "--journal", named)
    assert done.returncode == 0
    assert "blocked → allowed (a hook in code took part)" in done.stdout


def test_replay_fires_the_events_of_a_session_in_their_order(bench: Bench) -> None:
    old = settings_of(bench, "old.json", ALLOW)
    for number in range(4):
        (bench.project / "in.json").write_text(
            json.dumps({"tool_name": f"t{number}", "session_id": "one"})
        )
        bench.run(
            *("fire", "BeforeTool", "--settings", old, "--record", "--input", "in.json")
        )
    note = command("grep -o 't[0-9]' | head -n 1 >> order", "note")
    new = settings_of(bench, "new.json", note)
    assert bench.run("replay", "--settings", new, "--jobs", "4").returncode == 0
    assert (bench.project / "order").read_text().split() == ["t0", "t1", "t2", "t3"]

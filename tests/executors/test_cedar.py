"""Cedar hooks: what policies decide, and with which reason (protocol.md#rules)."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.executors.cedar import CedarExecutor
from hookline.executors.contract import HookCall, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause
from hookline.settings.load import HookOptions
from hookline.settings.model import HookConfig, HookSource, HookType, Stamp
from tests.support.python import run_python

from .policies import PERMIT, PolicyBench, entities, entity, failure, the_hook

NO_ENV = """
@id("no-env")
@reason("keep secrets out of .env files")
forbid(principal, action == Action::"write_file", resource)
when { context.tool_input.path like "*.env" };
"""


def guard(condition: str) -> str:
    return f'@id("no-env") forbid(principal, action, resource) when {{ {condition} }};'


@pytest.fixture
def bench(tmp_path: Path) -> PolicyBench:
    return PolicyBench(tmp_path)


async def test_forbid_denies_with_the_reason_of_its_annotation(
    bench: PolicyBench,
) -> None:
    """protocol.md#rules: deny blocks; the reason is the @reason annotation."""
    hook = bench.hook(NO_ENV + PERMIT)
    result = await bench.ask(hook, path="src/.env")
    assert result.blocked
    assert result.reason == "keep secrets out of .env files"
    assert the_hook(result).success, "a denial is a healthy answer"
    assert the_hook(result).stderr == "forbid: no-env (tools.cedar)"


async def test_permit_has_no_output(bench: PolicyBench) -> None:
    """protocol.md#rules: it allows, and says nothing for other hooks."""
    result = await bench.ask(bench.hook(NO_ENV + PERMIT), path="src/a.py")
    assert not result.blocked
    assert the_hook(result).success
    assert the_hook(result).output is None
    assert the_hook(result).stderr == "permit: policy1 (tools.cedar)"


async def test_permit_does_not_override_another_hook(bench: PolicyBench) -> None:
    async with bench.system(
        {"type": "command", "command": "echo no >&2; exit 2"}, bench.hook(PERMIT)
    ) as hooks:
        result = await hooks.event_handler.fire_before_tool_event("a", {})
    assert result.blocked
    assert result.reason == "no"


async def test_nothing_that_permits_is_a_denial(bench: PolicyBench) -> None:
    """protocol.md#rules: no policy that permits is a denial, as Cedar says."""
    result = await bench.ask(bench.hook(NO_ENV), "deploy", path="a")
    assert result.blocked
    assert result.reason == 'no policy permits Action::"deploy" for Agent::"default"'
    assert the_hook(result).success


async def test_policy_without_reason_is_named_by_id_and_file(
    bench: PolicyBench,
) -> None:
    """protocol.md#rules: else their ids."""
    text = '@id("never") forbid(principal, action, resource);'
    result = await bench.ask(bench.hook(text))
    assert result.reason == "denied by policy never (tools.cedar)"
    result = await bench.ask(bench.hook("forbid(principal, action, resource);"))
    assert result.reason == "denied by policy policy0 (tools.cedar)"


async def test_reasons_of_several_policies_come_in_the_order_of_the_files(
    bench: PolicyBench,
) -> None:
    def forbid(number: int) -> str:
        return f'@reason("r{number}") forbid(principal, action, resource);\n'

    bench.write("b.cedar", "".join(map(forbid, range(12))))
    bench.write("a.cedar", PERMIT + forbid(12) + "// no newline at the end")
    bench.write("c.cedar", "forbid(principal, action, resource);")
    hook = {"type": "cedar", "policies": ["b.cedar", "a.cedar", "c.cedar"]}
    result = await bench.ask(hook)
    wanted = [*(f"r{n}" for n in range(13)), "denied by policy policy0 (c.cedar)"]
    assert (result.reason or "").splitlines() == wanted


async def test_same_reason_is_given_once(bench: PolicyBench) -> None:
    text = '@reason("no") forbid(principal, action, resource);' * 2
    assert (await bench.ask(bench.hook(text))).reason == "no"


@pytest.mark.parametrize("note", ["@reason", '@reason("")', '@id("") @reason("")'])
async def test_empty_annotation_counts_as_none(bench: PolicyBench, note: str) -> None:
    result = await bench.ask(bench.hook(f"{note} forbid(principal, action, resource);"))
    assert result.reason == "denied by policy policy0 (tools.cedar)"


async def test_principal_is_the_agent_of_the_settings(bench: PolicyBench) -> None:
    """Principal Agent::"<principal>"; "default" where none is given.

    protocol.md#rules
    """
    text = 'permit(principal == Agent::"re\\"viewer", action, resource);'
    assert (await bench.ask(bench.hook(text))).blocked
    named = bench.hook(text, principal='re"viewer')
    assert not (await bench.ask(named)).blocked
    text = 'permit(principal == Agent::"default", action, resource);'
    assert not (await bench.ask(bench.hook(text))).blocked


async def test_resource_is_the_folder_of_the_project(tmp_path: Path) -> None:
    """protocol.md#rules: resource Project::"<project folder name>"."""
    (tmp_path / "web shop").mkdir()
    bench = PolicyBench(tmp_path / "web shop")
    text = 'permit(principal, action, resource == Project::"web shop");'
    assert await bench.allows(text)


@pytest.mark.parametrize(
    ("event", "given"),
    [
        ("BeforeAgent", {"prompt": "hi"}),
        ("SessionStart", {"source": "startup"}),
        ("SubagentStart", {"agent_id": "1", "agent_type": "x"}),
        ("BeforeModel", {"llm_request": {"model": "m", "messages": []}}),
        ("Notification", {"message": "m"}),
    ],
)
async def test_action_of_an_event_without_a_tool_is_its_name(
    bench: PolicyBench, event: str, given: dict[str, Any]
) -> None:
    """protocol.md#rules: action Action::"<tool name>" (or the event's name)."""
    text = f'permit(principal, action == Action::"{event}", resource);'
    async with bench.system(bench.hook(text), event=event) as hooks:
        result = await hooks.event_handler.fire(event, given)
    assert the_hook(result).stderr == "permit: policy0 (tools.cedar)"


async def test_fields_of_the_event_are_the_context(bench: PolicyBench) -> None:
    """protocol.md#rules: the event's fields as context."""
    text = """permit(principal, action, resource) when {
        context.hook_event_name == "BeforeTool" && context.session_id == "s-1" &&
        context.tool_name == "write_file" && context.tool_input.deep.list.contains(3) &&
        context.tool_input["odd key"] && context has cwd && !(context has prompt) };"""
    given = {"deep": {"list": [1, 3]}, "odd key": True}
    assert await bench.allows(text, **given)


async def test_entities_give_agents_and_tools_their_groups(bench: PolicyBench) -> None:
    """protocol.md#rules: entities from a JSON file."""
    found = entities(
        entity("Agent::fixer", "Agent::writers", level=3),
        entity("Action::write_file", "Action::writing"),
    )
    bench.write("agents.json", found)
    text = """
        permit(principal in Agent::"writers", action in Action::"writing", resource)
        when { principal.level > 2 };"""
    hook = bench.hook(text, entities="agents.json", principal="fixer")
    assert not (await bench.ask(hook)).blocked
    assert (await bench.ask(hook, "read_file")).blocked
    assert (await bench.ask({**hook, "principal": "reader"})).blocked


async def test_changed_files_count_from_the_next_event_on(bench: PolicyBench) -> None:
    """Issue 13.2: entities reloaded when they change; policies and schema as well."""
    bench.write("agents.json", entities(entity("Agent::default", "Agent::in")))
    text = 'permit(principal in Agent::"in", action, resource);'
    hook = bench.hook(text, entities="agents.json")
    async with bench.system(hook) as hooks:

        async def blocked() -> bool:
            result = await hooks.event_handler.fire_before_tool_event("a", {})
            return result.blocked

        assert not await blocked()
        for _ in range(3):  # of the same length, within one tick of the clock
            bench.write("agents.json", entities(entity("Agent::default", "Agent::on")))
            assert await blocked()
            bench.write("agents.json", entities(entity("Agent::default", "Agent::in")))
            assert not await blocked()
        bench.write("tools.cedar", text.replace('"in"', '"on"'))
        assert await blocked()
        os.utime(bench.write("tools.cedar", text), ns=(1, 1))
        assert not await blocked()
        (bench.folder / "tools.cedar").unlink()
        assert await blocked()
        bench.write("tools.cedar", text)
        assert not await blocked(), "it works again as soon as the file is there"


async def test_unchanged_files_are_read_once(bench: PolicyBench) -> None:
    """Issue 13.2: parsed once."""
    hook = bench.hook(PERMIT, entities="agents.json")
    bench.write("agents.json", "[]")
    for name in ("tools.cedar", "agents.json"):
        _let_it_settle(bench.folder / name)
    opened: list[str] = []
    watching = True

    def note(event: str, args: tuple[Any, ...]) -> None:
        if watching and event == "open" and str(args[0]).startswith(str(bench.folder)):
            opened.append(Path(args[0]).name)

    sys.addaudithook(note)
    async with bench.system(hook) as hooks:
        for _ in range(5):
            await hooks.event_handler.fire_before_tool_event("a", {})
    watching = False
    assert sorted(opened) == ["agents.json", "tools.cedar"]


async def test_hooks_of_no_project_are_parsed_once_for_all_folders(
    bench: PolicyBench, tmp_path: Path
) -> None:
    """Their paths are absolute: a server with many folders keeps one copy."""
    file = bench.write("tools.cedar", PERMIT)
    _let_it_settle(file)
    hook = RegisteredHook(
        config=HookConfig(type=HookType.CEDAR, name="p", policies=(str(file),)),
        event=HookEventName.BeforeTool,
        source=HookSource.USER,
        options=HookOptions(),
    )
    executor = CedarExecutor()
    for number in range(3):
        given = {"cwd": str(tmp_path / str(number)), "session_id": "s"}
        tool = {"tool_name": "a", "tool_input": {}}
        assert (await executor.run(hook, HookCall(hook.event, given | tool))).success
        if number == 0:
            reads = _count_reads(file)
    assert reads == []


def _count_reads(path: Path) -> list[str]:
    """The times that a file is opened from now on."""
    found: list[str] = []

    def note(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]) == str(path):
            found.append(event)

    sys.addaudithook(note)
    return found


def _let_it_settle(path: Path) -> None:
    """Wait until a second change of the file could be told from the first one."""
    while time.time_ns() - path.stat().st_ctime_ns < 100_000_000:
        pass


@pytest.mark.parametrize("key", ["policies", "entities", "schema"])
async def test_missing_file_is_a_failure_that_blocks(
    bench: PolicyBench, key: str
) -> None:
    """protocol.md#rules: onError is block by default for cedar."""
    result = await bench.ask({**bench.hook(PERMIT), key: "missing"})
    cause, error = failure(result)
    assert cause is FailureCause.SPAWN
    assert f"{bench.folder}/missing: cannot be read: No such file" in error
    assert result.blocked
    assert "onError blocks on spawn" in (result.reason or "")


async def test_failure_allows_where_the_hook_says_so(bench: PolicyBench) -> None:
    result = await bench.ask({**bench.hook("permit(", onError="allow")})
    assert failure(result)[0] is FailureCause.OUTPUT
    assert not result.blocked


async def test_pipe_in_the_place_of_a_file_does_not_hang(bench: PolicyBench) -> None:
    os.mkfifo(bench.folder / "pipe")
    result = await bench.ask({"type": "cedar", "policies": "pipe"})
    assert failure(result)[0] is FailureCause.SPAWN
    assert "not a regular file" in failure(result)[1]


async def test_folder_in_the_place_of_a_file_is_a_failure(bench: PolicyBench) -> None:
    result = await bench.ask({"type": "cedar", "policies": "."})
    assert failure(result)[0] is FailureCause.SPAWN
    assert "is a directory" in failure(result)[1]


async def test_broken_policy_is_a_failure_that_names_file_and_line(
    bench: PolicyBench,
) -> None:
    text = f'{PERMIT}\n// "quoted; comment\nforbid(principal, action resource);'
    cause, error = failure(await bench.ask(bench.hook(text)))
    assert cause is FailureCause.OUTPUT
    assert f"{bench.folder}/tools.cedar:3: " in error
    assert "unexpected token `resource`" in error


async def test_broken_entities_are_a_failure(bench: PolicyBench) -> None:
    bench.write("agents.json", '[\n{"uid": 1},\n]')
    hook = bench.hook(PERMIT, entities="agents.json")
    cause, error = failure(await bench.ask(hook))
    assert cause is FailureCause.OUTPUT
    assert f"{bench.folder}/agents.json:3: not valid Cedar entities" in error
    bench.write("agents.json", entities({"uid": {"type": "A", "id": "b"}}))
    assert "missing field `attrs`" in failure(await bench.ask(hook))[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (NO_ENV, "record does not have the attribute `path`"),
        (guard("context.tool_input < 5"), "type error: expected long, got record"),
        (guard("principal.level > 5"), 'entity `Agent::"default"` does not exist'),
        (
            guard('context.tool_input.path == "a"').replace("forbid", "permit"),
            "record does not have the attribute `path`",
        ),
        (guard("9223372036854775807 + 1 == 0"), "integer overflow"),
    ],
    ids=["attribute", "type", "entity", "permit", "overflow"],
)
async def test_policy_that_cannot_be_evaluated_is_a_failure(
    bench: PolicyBench, text: str, problem: str
) -> None:
    """protocol.md#rules: Cedar would skip it, and a forbid with it."""
    result = await bench.ask(bench.hook(text + PERMIT))
    cause, error = failure(result)
    assert cause is FailureCause.OUTPUT
    assert error.startswith("policy no-env (tools.cedar) cannot be evaluated: ")
    assert problem in error
    assert result.blocked
    assert not the_hook(result).success


@pytest.mark.parametrize("policy", ["allow", "block"])
async def test_failed_policy_takes_nothing_from_one_that_forbids(
    bench: PolicyBench, policy: str
) -> None:
    text = f'{NO_ENV} @reason("never") forbid(principal, action, resource); {PERMIT}'
    result = await bench.ask(bench.hook(text, onError=policy))
    assert failure(result)[0] is FailureCause.OUTPUT
    assert result.blocked
    assert "never" in (result.reason or "")


async def test_template_is_refused(bench: PolicyBench) -> None:
    text = f"{PERMIT} forbid(principal == ?principal, action, resource);"
    cause, error = failure(await bench.ask(bench.hook(text)))
    assert cause is FailureCause.OUTPUT
    assert "?principal" in error


async def test_condition_that_is_nested_too_deeply_is_a_failure(
    bench: PolicyBench,
) -> None:
    words = " || ".join(f'context.tool_input.path == "{n}"' for n in range(5000))
    text = f"forbid(principal, action, resource) when {{ {words} }}; {PERMIT}"
    result = await bench.ask(bench.hook(text), path="3")
    assert result.blocked
    assert "[...].contains(...)" in failure(result)[1]


async def test_without_the_engine_the_message_installs_it(
    bench: PolicyBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13.2: fails closed with the command that installs it."""
    monkeypatch.setitem(sys.modules, "cedarpy", None)
    result = await bench.ask(bench.hook(PERMIT))
    cause, error = failure(result)
    assert cause is FailureCause.SPAWN
    assert error is not None
    assert error.startswith("cedarpy is missing (hookline[cedar]): run ")
    assert error.endswith("install 'cedarpy>=4.12'")
    assert result.blocked


@pytest.mark.parametrize("source", [HookSource.USER, HookSource.SYSTEM])
@pytest.mark.parametrize("key", ["policies", "entities", "schema"])
async def test_relative_path_outside_of_project_settings_is_a_failure(
    bench: PolicyBench, source: HookSource, key: str
) -> None:
    """A relative path would be that of any project: a repository could bring it."""
    path = str(bench.write("whole.cedar", PERMIT))
    bench.write("rel", "")
    hook = {"type": "cedar", "name": "policy", "policies": path, key: "rel"}
    chosen = Settings.from_mapping(
        {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}, source
    )
    assert "'rel' is relative, so the hook fails" in "".join(chosen.warnings)
    async with HookSystem(Config("s-1", bench.folder, chosen)) as hooks:
        result = await hooks.event_handler.fire_before_tool_event("a", {})
    assert failure(result)[0] is FailureCause.SPAWN
    assert result.blocked


async def test_user_settings_name_the_home_folder(
    bench: PolicyBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(bench.folder))
    bench.write("tools.cedar", PERMIT)
    hook = {"type": "cedar", "policies": "~/tools.cedar"}
    given = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    chosen = Settings.from_mapping(given, HookSource.USER)
    assert chosen.warnings == ()
    async with HookSystem(Config("s-1", bench.folder, chosen)) as hooks:
        result = await hooks.event_handler.fire_before_tool_event("a", {})
    assert the_hook(result).success


class OtherBytesApproved:
    """An approval whose check came before the file was exchanged."""

    def check(self) -> tuple[str | None, Stamp]:
        return None, ("checked",)

    def unchanged_since(self, stamp: Stamp) -> bool:
        return True

    def when_changed(self, callback: Callable[[], object]) -> None:
        """Never called."""

    def environment(self) -> dict[str, str]:
        return {}

    def digest_of(self, path: str) -> str | None:
        return hashlib.sha256(b"forbid(principal, action, resource);").hexdigest()

    def has_files_in(self, folder: str) -> bool:
        return True


async def test_bytes_that_were_not_approved_are_not_parsed(bench: PolicyBench) -> None:
    hook = RegisteredHook(
        config=HookConfig(type=HookType.CEDAR, name="p", policies=("tools.cedar",)),
        event=HookEventName.BeforeTool,
        source=HookSource.PROJECT,
        options=HookOptions(),
        project=str(bench.folder),
        approval=OtherBytesApproved(),
    )
    base = {"cwd": str(bench.folder), "session_id": "s"}
    call = HookCall(hook.event, {**base, "tool_name": "a", "tool_input": {}})
    bench.write("tools.cedar", PERMIT)
    result = await CedarExecutor().run(hook, call)
    assert result.cause is FailureCause.CHANGED
    bench.write("tools.cedar", "forbid(principal, action, resource);")
    result = await CedarExecutor().run(hook, call)
    assert result.success
    assert result.output is not None
    assert result.output.is_blocking


class Panic(BaseException):
    """What a Rust library raises where it gives up: not an ``Exception``."""


async def test_panic_of_the_engine_is_a_failure_that_blocks(
    bench: PolicyBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends neither the host nor the other hooks."""

    def panic(*_: object) -> None:
        raise Panic("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr("cedarpy.is_authorized", panic)
    result = await bench.ask(bench.hook(PERMIT))
    assert result.blocked
    cause, error = failure(result)
    assert cause is FailureCause.CRASH
    assert "Panic: called `Option::unwrap()`" in error


async def test_only_hosts_with_cedar_hooks_load_the_engine(bench: PolicyBench) -> None:
    code = """
        import sys
        from hookline import Config, HookSystem, Settings
        HookSystem(Config("s", ".", Settings.from_mapping({"hooks": {"BeforeTool": [
            {"hooks": [{"type": "command", "command": "true"}]}]}})))
        assert "cedarpy" not in sys.modules
        assert "hookline.executors.cedar" not in sys.modules
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr

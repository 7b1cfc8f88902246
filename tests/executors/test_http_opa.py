"""``"dialect": "opa"``: policies in Rego, asked as OPA's API says (issue 13.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline import ProcessedHookResult
from hookline.protocol.results import FailureCause
from tests.support.opa import OpaServer
from tests.support.web import WebServer, hook, reply
from tests.support.workshop import Workshop

EXAMPLE = Path(__file__).parents[2] / "examples" / "opa" / "guard.rego"
GUARD = "/v1/data/hookline/guard"
ENV = {"tool_name": "write_file", "tool_input": {"path": "a.env"}}
PROD = {"tool_name": "write_file", "tool_input": {"path": "prod/a"}}
FINE = {"tool_name": "write_file", "tool_input": {"path": "a.txt"}}
PUSH = {"tool_name": "run_shell_command", "tool_input": {"command": "git push -f"}}


async def ask(
    workshop: Workshop, server: WebServer, path: str, given: Any = FINE, **more: Any
) -> ProcessedHookResult:
    service = hook(server, path, dialect="opa", **more)
    return await workshop.fire("BeforeTool", service, given=given)


@pytest.mark.parametrize(
    ("rule", "given", "verdict"),
    [
        ("deny", ENV, (True, False, "keep secrets out of a.env")),
        ("deny", PUSH, (True, False, "no pushes on behalf of a person")),
        ("deny", FINE, (False, False, None)),
        ("allow", ENV, (True, False, "denied by service")),
        ("allow", FINE, (False, False, None)),
        ("output", ENV, (True, False, "keep secrets out of a.env")),
        ("output", PROD, (False, True, None)),
        ("output", FINE, (False, False, None)),
        ("", ENV, (True, False, "keep secrets out of a.env")),
        ("", FINE, (False, False, None)),
    ],
)
async def test_the_example_decides_at_each_of_its_paths(
    workshop: Workshop, rule: str, given: Any, verdict: tuple[bool, bool, str | None]
) -> None:
    """Real Rego; the last two ask for the whole package at once."""
    with OpaServer(EXAMPLE.read_text()) as server:
        result = await ask(workshop, server, f"{GUARD}/{rule}", given)
    assert (result.blocked, result.ask, result.reason) == verdict
    assert result.aggregated.success


@pytest.mark.parametrize("path", [f"{GUARD}/nothing", "/v1/data/other", "/v1/data/x/y"])
async def test_an_undefined_decision_is_not_a_yes(
    workshop: Workshop, path: str
) -> None:
    with OpaServer(EXAMPLE.read_text()) as server:
        result = await ask(workshop, server, path)
        closed = await ask(workshop, server, path, onError={"output": "block"})
    [found] = result.aggregated.hook_results
    assert found.cause is FailureCause.OUTPUT
    assert found.error is not None
    assert "it is undefined: check the path of the url" in found.error
    assert closed.blocked


async def test_the_event_is_the_input_and_nothing_beside_it(workshop: Workshop) -> None:
    with WebServer(reply({"result": True})) as server:
        await workshop.fire(
            "BeforeTool",
            workshop.runs("cat > seen.json", "reader"),
            hook(server, dialect="opa"),
        )
    [sent] = server.exchanges
    assert sent.event == {"input": workshop.seen()}
    assert sent.headers["content-length"] == str(len(sent.body))


DENIED = "denied by service"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (False, DENIED),
        (["a", "b"], "a\nb"),
        ([{"msg": "m"}, {"message": "n"}, {"reason": "o"}, {"code": 7}, 8, True],
         'm\nn\no\n{"code":7}\n8'),
        ([""], DENIED),
        ([False], DENIED),
        ([None], "null"),
        ("deny", "No reason provided"),
        ({"allow": False}, DENIED),
        ({"allow": False, "reason": "r"}, "r"),
        ({"allow": False, "reason": ["r", "s"]}, "r\ns"),
        ({"allow": False, "deny": ["d"]}, "d"),
        ({"allow": False, "deny": []}, DENIED),
        ({"allow": True, "deny": ["d"]}, "d"),
        ({"deny": True}, DENIED),
        ({"deny": "d"}, "d"),
        ({"deny": {"msg": "d"}}, "d"),
        ({"allow": False, "decision": "allow"}, DENIED),
        ({"allow": True, "decision": "block", "reason": "r"}, "r"),
        ({"decision": "deny", "reason": "r", "other": 1}, "r"),
        ({"decision": " DENY", "reason": "r"}, "r"),
        ({"permissionDecision": "Deny", "permissionDecisionReason": "r"}, "r"),
        ({"hookSpecificOutput": {"permissionDecision": "deny",
          "permissionDecisionReason": "p"}}, "p"),
    ],
)  # fmt: skip
async def test_what_denies(workshop: Workshop, result: Any, reason: str) -> None:
    with WebServer(reply({"result": result, "decision_id": "1"})) as server:
        found = await ask(workshop, server, "/v1/data/x")
    assert (found.blocked, found.reason) == (True, reason)


@pytest.mark.parametrize(
    "result",
    [
        *(True, [], "allow", {"allow": True}, {"deny": []}, {"deny": {}}),
        *({"deny": False}, {"deny": ""}, {"allow": True, "deny": []}),
        *({"allow": True, "reason": "r"}, {"continue": True, "systemMessage": "m"}),
        *({"decision": "allow"}, {"decision": "ask"}, "ask"),
        {"hookSpecificOutput": {"permissionDecision": "allow"}},
    ],
)
async def test_what_does_not_deny(workshop: Workshop, result: Any) -> None:
    with WebServer(reply({"result": result})) as server:
        found = await ask(workshop, server, "/v1/data/x")
    assert not found.blocked
    assert found.aggregated.success


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"decision_id": "1"}, {"result": {}}, {"result": {"other": True}}),
        *({"result": None}, {"result": 1}, {"result": "yes"}, {"result": ""}),
        *({"result": {"allow": "true"}}, {"result": {"allow": None}}),
        *({"result": {"deny": 1}}, {"result": {"deny": None}}, {"allow": True}, True),
        # The rule that decides has no value, others of the package have one.
        *(
            {"result": {"reason": "not on the list"}},
            {"result": {"systemMessage": "m"}},
        ),
        {"result": {"hookSpecificOutput": {"tool_input": {"path": "b"}}}},
        *({"result": {"decision": "refuse"}}, {"result": {"decision": None}}),
        *({"result": {"decision": False}}, {"result": {"decision": " "}}),
        *(
            {"result": {"allow": True, "decision": ["deny"]}},
            {"result": {"continue": 0}},
        ),
        {"result": {"allow": True, "hookSpecificOutput": "deny"}},
        {"result": {"hookSpecificOutput": {"permissionDecision": "no"}}},
        *([], b"", b"true", b"fine", b'{"result": tru'),
        *(b'{"result": true, "result": false}', b'{"result": false, "result": true}'),
    ],
)
async def test_what_is_no_decision_is_a_failure(workshop: Workshop, body: Any) -> None:
    with WebServer(reply(body)) as server:
        found = await ask(workshop, server, "/v1/data/x", onError={"output": "block"})
    [result] = found.aggregated.hook_results
    assert result.cause is FailureCause.OUTPUT
    assert (result.success, result.exit_code) == (False, None)
    assert found.blocked


async def test_a_changed_input_and_a_message_come_through(workshop: Workshop) -> None:
    said = {
        "decision": "allow",
        "systemMessage": "m",
        "hookSpecificOutput": {"tool_input": {"path": "b"}},
    }
    with WebServer(reply({"result": said})) as server:
        found = await ask(workshop, server, "/v1/data/x")
    assert found.system_message == "m"
    assert found.final_output is not None
    assert found.final_output.modified_tool_input == {"path": "b"}


async def test_the_description_is_the_reason_where_the_policy_gives_none(
    workshop: Workshop,
) -> None:
    with WebServer(reply({"result": False})) as server:
        found = await ask(workshop, server, "/x", description="only the platform team")
    assert found.reason == "only the platform team"


@pytest.mark.parametrize(("status", "code"), [(400, "invalid_parameter"), (500, "x")])
async def test_an_error_of_opa_is_a_crash(
    workshop: Workshop, status: int, code: str
) -> None:
    with WebServer(reply({"code": code, "message": "m"}, status)) as server:
        found = await ask(workshop, server, "/v1/data/x", onError={"crash": "block"})
    assert found.blocked
    assert found.reason is not None
    assert code in found.reason


async def test_an_answer_of_opa_without_its_dialect_is_pointed_out(
    workshop: Workshop,
) -> None:
    """It is no verdict: a guard would be open without anybody knowing."""
    with WebServer(reply({"result": False})) as server:
        found = await workshop.fire("BeforeTool", hook(server, "/v1/data/x"))
    [result] = found.aggregated.hook_results
    assert result.warnings == (
        'result: unknown key, ignored: Open Policy Agent needs "dialect": "opa"',
    )

"""Content is exported only if asked for, masked and cut (issue 16: OpenTelemetry)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookline.telemetry.content import MAX_CONTENT

from .recorded import Recorded, attributes

SECRET = "hunter2-hunter2-hunter2"
EVENT = {
    "tool_name": "http_get",
    "tool_input": {"url": "https://example.org/hush", "password": SECRET},
}
BROKEN = f"echo hush token={SECRET} >&2; exit 3"


def says(_: dict[str, Any]) -> dict[str, Any]:
    return {"decision": "block", "reason": "hush", "systemMessage": "hush"}


async def fire(host: Recorded, *, content: bool) -> None:
    hook = {"type": "command", "command": BROKEN, "name": "broken"}
    async with host.system(hook, content=content) as hooks:
        hooks.on("BeforeTool", name="says")(says)
        await hooks.event_handler.fire("BeforeTool", EVENT)


async def test_content_stays_here_by_default(host: Recorded) -> None:
    await fire(host, content=False)
    shown = [(span.name, attributes(span), span.status.description, span.events)
             for span in host.spans]  # fmt: skip
    assert len(shown) == 3
    assert "hush" not in str(shown)
    assert SECRET not in str(shown)


async def test_content_is_exported_masked_if_asked_for(host: Recorded) -> None:
    await fire(host, content=True)
    event = attributes(host.event())
    masked = {"url": "https://example.org/hush", "password": "[masked]"}
    assert json.loads(event["gen_ai.tool.call.arguments"]) == masked
    assert event["hookline.reason"] == "hush"
    warning = "hush\nWarning: hush token=[masked]"
    assert event["hookline.system_message"] == warning
    assert json.loads(event["hookline.output"])["decision"] == "block"
    broken = attributes(host.hook("broken"))
    assert broken["hookline.hook.stderr"] == "hush token=[masked]"
    assert host.hook("broken").status.description == broken["hookline.hook.error"]
    said = json.loads(attributes(host.hook("says"))["hookline.hook.output"])
    assert said["reason"] == "hush"
    shown = str([(s.name, attributes(s), s.status.description) for s in host.spans])
    assert SECRET not in shown


async def test_content_is_cut(host: Recorded) -> None:
    big = {"tool_name": "t", "tool_input": {"text": "x" * 5_000_000}}
    async with host.system(content=True) as hooks:
        long = {"reason": "y" * 5_000_000, "decision": "block"}
        hooks.on("BeforeTool", name="long")(lambda _: long)
        await hooks.event_handler.fire("BeforeTool", big)
    for span in host.spans:
        for value in attributes(span).values():
            assert len(str(value)) < MAX_CONTENT + 100


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"\xff", float("nan"), "\ud800", {"a": {"b": object()}}],
    ids=["object", "set", "bytes", "nan", "surrogate", "nested"],
)
async def test_any_value_is_valid_content(host: Recorded, value: Any) -> None:
    async with host.system(content=True) as hooks:
        hooks.on("BeforeTool", name="look")(lambda _: None)
        event = {"tool_name": "t", "tool_input": {"value": value}}
        result = await hooks.event_handler.fire("BeforeTool", event)
    assert result.aggregated.success
    text = attributes(host.event())["gen_ai.tool.call.arguments"]
    assert "value" in json.loads(text)
    text.encode()


async def test_other_fields_of_an_event_are_content(host: Recorded) -> None:
    for content in (False, True):
        async with host.system(content=content) as hooks:
            await hooks.event_handler.fire("BeforeAgent", {"prompt": "hush"})
    without, shown = map(attributes, host.named("hookline BeforeAgent"))
    assert json.loads(shown["hookline.input"]) == {"prompt": "hush"}
    assert "hush" not in str(without)


async def test_result_of_a_tool_is_content(host: Recorded) -> None:
    async with host.system(content=True) as hooks:
        event = {"tool_name": "t", "tool_input": {}, "tool_response": {"text": "hi"}}
        await hooks.event_handler.fire("AfterTool", event)
    found = attributes(host.event("AfterTool"))
    assert json.loads(found["gen_ai.tool.call.result"]) == {"text": "hi"}

"""The messages on the page about the bus are those that a server takes and gives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings
from hookline.bus import NatsBus, ResponseCode
from hookline.bus.nats import PREFIX
from hookline.settings.model import HookSource
from tests.support.nats import NatsServer

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "bus.md").read_text()


def example(heading: str) -> Any:
    """The message below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    (found,) = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    return json.loads(found)


def timeless(value: Any) -> Any:
    """A message without what differs from run to run."""
    if isinstance(value, dict):
        return {k: 0 if "uration" in k else timeless(v) for k, v in value.items()}
    return [timeless(item) for item in value] if isinstance(value, list) else value


async def test_the_page_shows_a_whole_request_response_and_error(
    server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    settings = Settings.from_mapping(example("The hooks behind it"), HookSource.USER)
    config = Config("s", tmp_path, settings)
    bus = await NatsBus.connect(server.url, prefix=prefix)
    async with bus, HookSystem(config, bus):
        request = example("Request")
        subject, timeout_s = bus.subject, request.pop("timeoutMs") / 1000
        response = await bus.request(request, timeout_s)
        bad: Any = {**request, "input": {"tool_input": {}}}
        failed = await bus.request(bad, timeout_s)
    assert timeless(json.loads(json.dumps(response))) == timeless(example("Response"))
    assert json.loads(json.dumps(failed)) == example("Error")
    assert subject.replace(prefix, PREFIX) in PAGE


def test_the_page_says_what_causes_each_code() -> None:
    for code in ResponseCode:
        assert re.search(rf"^\| `{code}` \| \w+", PAGE, re.MULTILINE), code

"""AfterTool: stop an agent that runs the same failing tests again and again."""

from pathlib import Path
from typing import Any

from hookline.script import Output, add_context, run, stop

LIMIT = 3


def runaway(event: dict[str, Any]) -> Output | None:
    """Count failing runs, and stop at the limit."""
    if "failed" not in event["tool_response"]["llmContent"]:
        return None
    seen = Path(event["cwd"], ".hookline", f"runs-{event['session_id']}")
    count = len(seen.read_text()) + 1 if seen.exists() else 1
    if count >= LIMIT:
        return stop(f"the same test failed {count} times")
    seen.write_text("x" * count)
    return add_context(f"failed run {count} of at most {LIMIT}")


run(runaway)

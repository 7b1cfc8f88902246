"""Stop the agent when the day's token budget is spent.

AfterModel records what each call used, BeforeModel stops when the sum has reached
``TOKEN_BUDGET`` (default one million). The count is per project and day, outside the
project, one line per call, so that agents running at the same time do not overwrite
each other. A call that reports no usage is estimated from its text.
"""

import os
from pathlib import Path
from typing import Any

from hookline.recipes.state import state_folder
from hookline.script import Output, run, stop, system_message

BUDGET = 1_000_000
CHARACTERS_PER_TOKEN = 3
COUNTS = ("totalTokenCount", "promptTokenCount", "candidatesTokenCount")


def check(event: dict[str, Any]) -> Output | None:
    """Count after a call, check before one."""
    day = event.get("timestamp", "")[:10] or "today"
    file = state_folder(event["cwd"], "cost") / day
    if event["hook_event_name"] == "AfterModel":
        _note(file, used(event))
        return None
    budget = int(os.environ.get("TOKEN_BUDGET") or BUDGET)
    spent = _sum(file)
    if spent >= budget:
        return stop(f"the budget of {budget:,} tokens for {day} is spent ({spent:,})")
    if spent >= budget * 0.9:
        return system_message(f"{budget - spent:,} tokens of the budget are left")
    return None


def used(event: dict[str, Any]) -> int:
    """The tokens of one call, as reported; estimated where nothing is reported."""
    usage = event["llm_response"].get("usageMetadata") or {}
    total, *parts = (_whole(usage.get(key)) for key in COUNTS)
    return max(total, sum(parts)) or _estimate(event)


def _estimate(event: dict[str, Any]) -> int:
    messages = event["llm_request"].get("messages") or []
    text = event["llm_response"].get("text") or ""
    length = sum(len(message.get("content", "")) for message in messages) + len(text)
    return length // CHARACTERS_PER_TOKEN + 1


def _whole(count: Any) -> int:
    return max(0, int(count)) if isinstance(count, int | float) else 0


def _note(file: Path, count: int) -> None:
    # A short line appended in one write is whole, whoever else writes.
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, b"%d\n" % count)
    os.close(descriptor)


def _sum(file: Path) -> int:
    lines = file.read_bytes().splitlines() if file.exists() else []
    return sum(int(line) for line in lines if line.strip().isdigit())


if __name__ == "__main__":
    run(check)

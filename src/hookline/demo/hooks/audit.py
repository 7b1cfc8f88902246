"""Notification, PreCompress, SessionEnd: write them to a file, and say so."""

from pathlib import Path
from typing import Any

from hookline.script import Output, run, system_message

DETAIL = ("notification_type", "trigger", "reason")


def audit(event: dict[str, Any]) -> Output:
    """Append one line."""
    [detail] = [event[name] for name in DETAIL if name in event]
    with Path(event["cwd"], ".hookline", "audit.log").open("a") as file:
        file.write(f"{event['hook_event_name']}: {detail}\n")
    return system_message(f"audit.log: {detail}")


run(audit)

"""A Celery worker whose tasks are tools with hooks.

BROKER_URL=redis://localhost celery --workdir examples/web -A celery_app worker
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import refunds
from celery import Celery
from celery.signals import worker_process_shutdown

from hookline.agent import hooked_tool
from hookline.errors import ToolBlockedError

app = Celery(
    "refunds",
    broker=os.environ.get("BROKER_URL", "memory://"),
    backend=os.environ.get("RESULT_BACKEND"),
)
# The pool forks after this; each process starts workers of its own when it needs them.
config = refunds.make_config()


@app.task(throws=(ToolBlockedError,))
def refund(conversation: str, order: str, amount: float) -> str:
    """A blocked call fails the task with the reason, and is not retried."""
    session = config.session(conversation)
    tool = hooked_tool(session, blocked="raise")(refunds.refund)
    return tool(order, amount)


@worker_process_shutdown.connect
def close(**_: Any) -> None:
    asyncio.run(config.dispose())

"""What hosts sent, as captured from them."""

from __future__ import annotations

from typing import Any

from tests.support.bridged import payload


def captured(host: str, name: str) -> dict[str, Any]:
    """What a host wrote to a hook's standard input."""
    return payload(f"{host}/{name}")

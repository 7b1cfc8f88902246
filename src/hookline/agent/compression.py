"""Keep a history short: ask the PreCompress hooks, then leave the oldest turns out.

A host with a better way to compress (a summary, say) gives its own function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import Any

from hookline.config import Config
from hookline.events import PreCompressTrigger

from .conversation import Role, Turn
from .lifecycle import fire_pre_compress_hook

Compress = Callable[[Sequence[Turn]], Any]
"""Makes a shorter history of a history; plain or async."""


def keep_latest(turns: Sequence[Turn]) -> list[Turn]:
    """Keep the latest half, from where the person speaks: no call loses its answer."""
    starts = [at for at, turn in enumerate(turns) if turn.role is Role.USER]
    later = [at for at in starts if at >= len(turns) // 2]
    return list(turns[(later or starts[-1:] or [0])[0] :])


class Compression:
    """Compresses a history that has reached its limit, in turns."""

    def __init__(
        self, config: Config, limit: int | None, compress: Compress = keep_latest
    ) -> None:
        self._config = config
        self._limit = limit
        self._compress = compress
        self._shortest = 0

    async def apply(
        self,
        history: list[Turn],
        trigger: PreCompressTrigger | None = None,
    ) -> str | None:
        """Compress in place where it is due; the hooks' word for the model."""
        if trigger is None:
            if not self._is_due(len(history)):
                return None
            trigger = PreCompressTrigger.Auto
        verdict = await fire_pre_compress_hook(self._config, trigger)
        shorter = self._compress(history)
        if isawaitable(shorter):
            shorter = await shorter
        history[:] = list(shorter)
        self._shortest = len(history)
        return None if verdict is None else verdict.system_message

    def _is_due(self, length: int) -> bool:
        # One long turn may leave nothing to cut: it is not asked for again at once.
        return self._limit is not None and length >= max(
            self._limit, 2 * self._shortest
        )

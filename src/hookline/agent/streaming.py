"""Whether a stream's chunks wait for the AfterModel hooks (decision 0052)."""

from __future__ import annotations

from enum import StrEnum

from hookline.config import Config
from hookline.events import HookEventName
from hookline.log import logger

from .firer import listens


class StreamMode(StrEnum):
    """What becomes of chunks while an AfterModel hook may still change the answer."""

    BUFFER = "buffer"
    PASS = "pass"  # noqa: S105 - no password


class HoldBack:
    """Decides for one session or client, and says once what passing on means."""

    def __init__(self, config: Config, mode: StreamMode | str) -> None:
        self._config = config
        self._mode = StreamMode(mode)
        self._has_said_so = False

    async def is_due(self) -> bool:
        """Whether chunks are to be held back now."""
        if not await listens(self._config, HookEventName.AfterModel):
            return False
        if self._mode is StreamMode.BUFFER:
            return True
        if not self._has_said_so:
            self._has_said_so = True
            logger.warning(
                "stream_mode 'pass': answers are shown before AfterModel hooks have "
                "spoken; what they change reaches the history only"
            )
        return False

"""What is counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hookline.execute.child import GRACE_S

_KEPT = 50


class Tally:
    """The figures of one run; wrong ones keep an example."""

    def __init__(self) -> None:
        self.fires = 0
        self.faults: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.leaks: list[str] = []
        self.wrong_count = 0
        self.worst_over_ms = -GRACE_S * 1000

    def fired(self, kind: str, problem: str | None) -> None:
        """Count one fire."""
        self.fires += 1
        self.faults[kind] += 1
        if problem is not None:
            self.wrong_count += 1
            if len(self.wrong) < _KEPT:
                self.wrong.append(f"{kind}: {problem}")

    def answered(self, duration_ms: float, timeout_ms: float) -> None:
        """Note how long after deadline plus grace an answer came; mostly before."""
        over = duration_ms - timeout_ms - GRACE_S * 1000
        self.worst_over_ms = max(self.worst_over_ms, over)

    def add(self, other: dict[str, Any]) -> None:
        """Count in what another process has counted."""
        self.fires += other["fires"]
        self.faults.update(other["faults"])
        self.wrong_count += other["wrong_verdicts"]
        self.wrong += other["wrong"][:_KEPT]
        self.leaks += other["leaked"]

    def report(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "fires": self.fires,
            "faults": dict(sorted(self.faults.items())),
            "wrong_verdicts": self.wrong_count,
            "wrong": self.wrong,
            "leaks": len(self.leaks),
            "leaked": self.leaks,
            "worst_over_deadline_plus_grace_ms": round(self.worst_over_ms, 1),
        }

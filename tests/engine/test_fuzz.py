"""Random settings and outputs: read without a crash, a block never lost."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from soak.fuzzing import BYTES, check_outputs, check_settings, makers

from hookline.protocol.events import HookEventName

bounds = settings(
    max_examples=20, deadline=None, suppress_health_check=list(HealthCheck)
)


@bounds
@given(BYTES)
def test_any_settings_can_be_read_and_planned(data: bytes) -> None:
    for maker in makers(data):
        check_settings(maker.settings())


@bounds
@given(BYTES)
def test_no_output_invents_a_block_or_loses_one(data: bytes) -> None:
    events = list(HookEventName)
    for maker in makers(data):
        event = events[maker.below(len(events))]
        check_outputs(event, [maker.run() for _ in range(1 + maker.below(3))])

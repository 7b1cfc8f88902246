from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.model_servers import model_server, wire_server  # noqa: F401
from tests.support.pins import PinTable


@pytest.fixture
def pin_table(subtests: pytest.Subtests) -> Callable[[str], PinTable]:
    """The table of a file in this folder, by its name without ``.json``."""
    return lambda name: PinTable(name, subtests)

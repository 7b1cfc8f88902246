from __future__ import annotations

from tests.support.model_servers import model_server, wire_server  # noqa: F401

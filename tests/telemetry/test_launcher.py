"""The launcher of OpenTelemetry starts a worker, as its page says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from tests.support.nats import NatsServer

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "telemetry.md"


def test_a_worker_with_metrics_starts_under_the_launcher_as_documented(
    server: NatsServer, tmp_path: Path
) -> None:
    (line,) = re.findall(
        r"^opentelemetry-instrument .*$", PAGE.read_text(), re.MULTILINE
    )
    command = line.replace("nats://localhost:4222", server.url).replace("9464", "0")
    rule = {"type": "rule", "name": "r", "when": "true"}
    settings = {
        "hooksConfig": {"telemetry": "otel"},
        "hooks": {"BeforeTool": [{"hooks": [rule]}]},
    }
    (tmp_path / "s.json").write_text(json.dumps(settings))
    exporters = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = subprocess.Popen(
        [*shlex.split(command), "--settings", "s.json"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, **dict.fromkeys(exporters, "none")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert "ready, serving 1 hook" in process.stdout.readline()
        address = process.stderr.readline().split()[-1]
        with urlopen(address) as response:
            assert b'hookline_hooks{state="enabled"} 1.0' in response.read()
    finally:
        process.terminate()
        _, errors = process.communicate()
    assert errors == ""

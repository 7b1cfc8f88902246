from __future__ import annotations

from pathlib import Path

import pytest

from .project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of its own, and a state folder outside it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HOOKLINE_TRUST", raising=False)
    monkeypatch.delenv("HOOKLINE_DEPTH", raising=False)
    return Project(tmp_path / "project", tmp_path / "state")

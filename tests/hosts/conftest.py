from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent_files import AgentFiles
from tests.support.bridged import bridged
from tests.support.project import Project
from tests.support.resident import Desk

__all__ = ["bridged"]


@pytest.fixture
def desk(project: Project, tmp_path: Path) -> Iterator[Desk]:
    """A project with a helper of its own, of which nothing is left in the end."""
    desk = Desk(project, tmp_path / "run")
    yield desk
    desk.close()


@pytest.fixture
def files(tmp_path: Path) -> AgentFiles:
    """A person's home folder and project."""
    return AgentFiles(tmp_path)

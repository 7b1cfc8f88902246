"""Names of ``tests.support.agent_files`` that tests of the command line use."""

from __future__ import annotations

from tests.support.agent_files import GUARD, AgentFiles
from tests.support.agent_files import PROGRAMS as SCRIPTS

__all__ = ["GUARD", "SCRIPTS", "Shell"]
Shell = AgentFiles

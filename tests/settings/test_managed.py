"""Managed hooks hold in every process of the machine, however a Config was made.

Each test has an ``/etc/hookline`` of its own, in a mount namespace.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare")

RULE = {"type": "rule", "name": "m", "when": "true", "managed": True}
MANAGED = json.dumps({"hooks": {"BeforeTool": [{"hooks": [RULE]}]}})
OFF = '{"enableHooks": false, "hooksConfig": {"disabled": ["m"]}}'
SPACE = """\
cp -r /etc "$1" 2> /dev/null
mount --bind "$1" /etc && mkdir -p /etc/hookline || exit 99
cat > /etc/hookline/settings.json
eval "$2"
shift 2
exec "$@"
"""
FIRE = """\
import asyncio
from hookline import *
from hookline.agent import execute_tool_with_hooks
async def main():
    {make}
    assert config.get_hook_system() is not None
    ran = []
    result = await execute_tool_with_hooks(config, "t", {{}}, lambda **_: ran.append(1))
    told = await config.session("s").fire_before_tool_event("t", {{}})
    print(ran, told.blocked, result.error)
    await config.dispose()
asyncio.run(main())
"""
MAPPING = "config = Config(settings=Settings.from_mapping(off))"
REMOTE = "config.use_hooks(RemoteHooks(HookBusClient(InMemoryMessageBus())))"


def run(
    tmp_path: Path, *command: str, content: str = MANAGED, then: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine with these settings of the system."""
    (tmp_path / "off.json").write_text(OFF)
    space = ["unshare", "-rm", "bash", "-c", SPACE, "-", str(tmp_path / "etc"), then]
    done = subprocess.run(
        [*space, *command],
        input=content,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    if done.returncode == 99 or "unshare:" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr}")
    return done


@pytest.mark.parametrize(
    "make",
    [
        "config = Config()",
        "config = Config.load('.')",
        "config = Config(settings=Settings())",
        "config = Config(settings=Settings.from_mapping({}))",
        f"off = dict(enableHooks=False, hooksConfig=dict(disabled=['m'])); {MAPPING}",
        "config = Config(settings=Settings.from_file('off.json'))",
        f"config = Config(); {REMOTE}",
        f"config = Config(settings=Settings.from_file('off.json')); {REMOTE}",
        "config = Config(); HookSystem(config).set_hook_enabled('m', False)",
    ],
)
def test_a_managed_hook_holds_however_the_config_was_made(
    tmp_path: Path, make: str
) -> None:
    """protocol.md#settings: nothing turns it off."""
    done = run(tmp_path, sys.executable, "-c", FIRE.format(make=make))
    assert done.stdout == "[] True m\n", done.stderr


@pytest.mark.parametrize(
    ("content", "then"),
    [
        ("{broken", ""),
        (MANAGED, "chmod o+w /etc/hookline/settings.json"),
        (MANAGED, "cp /etc/hookline/settings.json /etc/hookline/settings.toml"),
        (MANAGED, "cd /etc/hookline; rm settings.json; mkdir settings.json; cd -"),
    ],
    ids=["broken", "writable by all", "two files", "a folder"],
)
@pytest.mark.parametrize("make", ["Config()", "Config.load('.')"])
def test_system_settings_that_cannot_be_read_are_never_none(
    tmp_path: Path, content: str, then: str, make: str
) -> None:
    """protocol.md#settings: managed hooks that nobody can read are not absent."""
    script = FIRE.format(make=f"config = {make}")
    done = run(tmp_path, sys.executable, "-c", script, content=content, then=then)
    assert done.returncode == 1
    assert "SettingsError: /etc/hookline/settings.json" in done.stderr


def test_hook_tests_are_about_their_own_hooks_alone(tmp_path: Path) -> None:
    (tmp_path / "guard.sh").write_text("")
    case = '[[case]]\nname = "all is well"\nevent = "BeforeTool"\nexpect = "allow"\n'
    (tmp_path / "guard.hooktest.toml").write_text(f'hook = "guard.sh"\n{case}')
    done = run(tmp_path, sys.executable, "-m", "hookline", "test", ".")
    assert done.returncode == 0, done.stdout + done.stderr

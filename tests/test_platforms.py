"""Systems other than this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pkgutil import walk_packages

import pytest

import hookline
from hookline.processes import watcher

SENTENCE = "hookline runs hooks on Linux and macOS only: on Windows, use WSL"

WINDOWS = """
import asyncio, importlib, multiprocessing, os, pathlib, signal, socket, sys, time
import json, logging, select, selectors, shutil, sqlite3, ssl, subprocess, tempfile
import platformdirs, msgspec

# What Windows has in these modules, among the names that Linux has (Python 3.11).
ONLY_POSIX = {
    os: "fork forkpty killpg getuid geteuid getgid getegid getgroups setsid getpgid "
    "setpgid getsid fchmod fchown chown lchown fchdir pread pwrite preadv pwritev "
    "posix_spawn posix_spawnp POSIX_SPAWN_OPEN register_at_fork waitid wait WNOHANG "
    "WEXITED WNOWAIT P_PID pidfd_open memfd_create environb getenvb O_NONBLOCK "
    "O_CLOEXEC O_NOFOLLOW O_DIRECTORY O_NOCTTY O_PATH O_TMPFILE uname mkfifo "
    "sched_getaffinity sendfile set_blocking get_blocking getloadavg sysconf "
    "ttyname openpty tcgetpgrp ctermid nice splice eventfd WIFEXITED WEXITSTATUS",
    signal: "SIGKILL SIGHUP SIGCHLD SIGUSR1 SIGUSR2 SIGPIPE SIGALRM SIGQUIT SIGSTOP "
    "SIGCONT SIGTSTP SIGWINCH pthread_sigmask setitimer alarm sigwait pause",
    socket: "AF_UNIX send_fds recv_fds SO_PEERCRED SCM_RIGHTS",
    time: "tzset clock_gettime clock_gettime_ns CLOCK_BOOTTIME CLOCK_REALTIME",
    asyncio: "open_unix_connection start_unix_server",
}
for module, names in ONLY_POSIX.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
MISSING = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog",
           "termios", "tty", "_posixsubprocess", "_posixshmem"}
for name in MISSING:
    sys.modules[name] = None
sys.platform = "win32"


class NoPackages:
    "Finds no package but ours, as where no extra is installed."

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = {"hookline", "msgspec", "platformdirs", *sys.stdlib_module_names}
        if top not in known:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)
        return None


sys.meta_path.insert(0, NoPackages())
"""

IMPORT_EACH = """
for name in json.load(sys.stdin):
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
        if attribute:
            getattr(found, attribute)
    except ImportError as error:
        extra = hasattr(error, "extra") or error.name not in {None, *MISSING}
        said = "needs an extra" if extra else str(error)
    except BaseException as error:
        said = repr(error)
    else:
        said = "loaded"
    print(json.dumps([name, said]))
"""


def every_module() -> list[str]:
    """All of Hookline but the scripts that it brings for hooks."""
    modules = walk_packages(hookline.__path__, "hookline.")
    names = ["hookline", *(module.name for module in modules)]
    return [name for name in names if not name.startswith("hookline.recipes.hooks")]


def on_windows(code: str, stdin: object = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WINDOWS + code],
        input=json.dumps(stdin),
        capture_output=True,
        text=True,
        check=False,
    )


LOADED = [
    *("hookline", "hookline.script", "hookline.types", "hookline.errors"),
    *("hookline.testing", "hookline:HookEventName", "hookline:HooklineError"),
    *("hookline:HookBusClient", "hookline:RemoteHooks"),
    *("hookline.translators.openai", "hookline.translators.anthropic"),
]
"""What hook authors and remote agents need."""
REFUSED = [
    *("hookline:Config", "hookline:HookSystem", "hookline.agent", "hookline.cli"),
    *("hookline.engine.system", "hookline.processes.process", "hookline.hosts"),
    *("hookline.executors.command", "hookline.testing.tester", "hookline.config"),
]
"""What runs hooks."""


def test_on_windows_every_module_loads_or_says_what_to_do() -> None:
    public = [f"hookline:{name}" for name in hookline.__all__]
    done = on_windows(IMPORT_EACH, [*public, *every_module()])
    assert done.returncode == 0, done.stderr
    imported = dict(json.loads(line) for line in done.stdout.splitlines())
    assert len(imported) > 250
    assert set(imported.values()) <= {"loaded", SENTENCE, "needs an extra"}
    assert {imported[name] for name in LOADED} == {"loaded"}
    assert {imported[name] for name in REFUSED} == {SENTENCE}


def test_on_windows_a_hook_of_an_author_answers() -> None:
    code = """
from hookline.script import block, run
run(lambda event: block(event["tool_name"]))
"""
    done = on_windows(code, {"tool_name": "write_file"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{"decision": "block", "reason": "write_file"}'


@pytest.mark.parametrize("words", [[], ["bridge", "claude"], ["fire", "BeforeTool"]])
def test_on_windows_the_command_says_what_to_do(words: list[str]) -> None:
    code = f"""
sys.argv[1:] = {words}
from hookline.__main__ import main
sys.exit(main())
"""
    done = on_windows(code)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"hookline: {SENTENCE}\n"


def test_on_macos_the_command_does_without_the_resident_helper() -> None:
    code = """
import sys
sys.platform = "darwin"
sys.argv[1:] = ["bridge", "--status"]
from hookline.__main__ import main
status = main()
assert not [name for name in sys.modules if "resident" in name], sys.modules
sys.exit(status)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the resident helper runs on Linux only\n"


def test_without_files_in_memory_the_table_of_the_watcher_is_a_file_without_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    table = watcher._memory_file()
    try:
        assert os.fstat(table).st_nlink == 0
        assert os.pwrite(table, b"row", 33) == 3
    finally:
        os.close(table)

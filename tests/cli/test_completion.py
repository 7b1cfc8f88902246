"""``hookline completion`` in real shells."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commandline import run_command

PATIENCE_S = 60.0
SHELLS = ("bash", "zsh", "fish")
CASES: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("completions.json").read_text()
)
"""What is typed, and the words that a shell offers to end it."""
EVIL = "gua$(touch evil)`touch evil`"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with hooks, one of which has a hostile name."""
    folder = tmp_path_factory.mktemp("project")
    names = ("guard-one", "guard-two", EVIL)
    hooks = [{"name": name, "type": "command", "command": "true"} for name in names]
    (folder / ".hookline").mkdir()
    settings = {"hooks": {"BeforeTool": [{"hooks": hooks}]}}
    (folder / ".hookline/settings.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the scripts where each shell looks for them."""
    folder = tmp_path_factory.mktemp("home")
    program = folder / "bin/hookline"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hookline "$@"\n')
    program.chmod(0o755)
    for shell in SHELLS:
        ended = run_command("completion", shell)
        assert (ended.returncode, ended.stderr) == (0, "")
        (folder / f"_{shell}").write_text(ended.stdout)
    (folder / "functions").mkdir()
    (folder / "_zsh").rename(folder / "functions/_hookline")
    return folder


# What is completed is printed word by word instead of run.
STAND_IN = """\
hookline() { printf '<%s>' "$@"; echo '<end>'; }
PS1='' PS2=''
"""
SETUP = {
    "bash": "bind 'set enable-bracketed-paste off'; . ~/_bash\n",
    "zsh": """\
unsetopt zle_bracketed_paste
fpath=(~/functions $fpath); autoload -Uz compinit; compinit -u -D
zstyle ':completion:*' completer _all_matches _complete
zstyle ':completion:*' insert true
""",
}
START = {"bash": ["bash", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"]}
INSERT_ALL = {"bash": "\x1b*", "zsh": "\t"}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shell_completes_at_its_prompt(shell: str, project: Path, home: Path) -> None:
    (home / "setup").write_text(f"{STAND_IN}{SETUP[shell]}")
    typed = [". ~/setup; echo '<ready>'\n"]
    typed += [f"{line}{INSERT_ALL[shell]}\n" for line in CASES]
    screens = [*at_prompt(required(START[shell]), typed, project, home)]
    for (line, wanted), screen in zip(CASES.items(), screens[1:], strict=True):
        words = re.findall(r"<([^<>]+)>", screen)[:-1]
        typed_words = line.split()[1:-1]
        count = len(typed_words)
        assert words[:count] == typed_words, screen
        assert {word.rstrip("/") for word in words[count:]} == {*wanted}, screen
    assert not (project / "evil").exists()


def at_prompt(
    command: list[str], typed: list[str], folder: Path, home: Path
) -> Iterator[str]:
    """Type lines into a shell; what it prints for each."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, environment(home))
    try:
        for line in typed:
            os.write(terminal, line.encode())
            yield until(terminal, "<ready>\r" if "ready" in line else "<end>")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def until(terminal: int, mark: str) -> str:
    text, deadline = "", time.monotonic() + PATIENCE_S
    while mark not in text:
        ready, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
        assert ready, text
        text += os.read(terminal, 65536).decode(errors="replace")
    return text


def environment(home: Path) -> dict[str, str]:
    path = f"{home}/bin:{os.environ['PATH']}"
    return {**os.environ, "HOME": str(home), "PATH": path, "TERM": "dumb"}


def required(command: list[str]) -> list[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return command


def test_fish_completes(project: Path, home: Path) -> None:
    ask = "".join(f"complete -C {line!r}; echo '<end>'\n" for line in CASES)
    ended = subprocess.run(
        required(["fish", "--no-config", "-c", f"source ~/_fish\n{ask}"]),
        cwd=project,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    for (line, wanted), answer in zip(
        CASES.items(), ended.stdout.split("<end>\n")[:-1], strict=True
    ):
        words = {row.split("\t")[0].rstrip("/") for row in answer.splitlines()}
        assert words == {*wanted}, line
    assert not (project / "evil").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_script_names_one_place_to_save_it(shell: str) -> None:
    """The generator's own advice names another folder."""
    script = run_command("completion", shell).stdout
    assert "# 'hookline help completion' says where to save this." in script
    assert "Usage" not in script

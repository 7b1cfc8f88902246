"""What the three examples share: the hooks, a tool, a prompt, and a local server."""

import argparse
import contextlib
from pathlib import Path

from hookline import Config, Settings
from hookline.testing.modelapi import Answer, ModelServer

HERE = Path(__file__).parent
PROMPT = "Write the database login down, then tell me whom to ask about it."
WRITTEN: dict[str, str] = {}

# The answers of the local server: a mistake, its correction, an answer.
ANSWERS = (
    Answer("", (("write_file", {"path": "db.txt", "content": "password: hunter2"}),)),
    Answer("", (("write_file", {"path": "db.txt", "content": "vault: db/main"}),)),
    Answer("Written. Ask grace@example.org about it."),
)


def write_file(path: str, content: str) -> str:
    """Write a file."""
    WRITTEN[path] = content
    return f"wrote {path}"


def load_config() -> Config:
    """The hooks beside this file."""
    return Config(working_dir=HERE, settings=Settings.from_file(HERE / "settings.json"))


def is_offline() -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--offline", action="store_true", help="use a local server")
    return bool(parser.parse_args().offline)


def local_server(
    offline: bool,
) -> contextlib.AbstractContextManager[ModelServer | None]:
    return ModelServer(ANSWERS) if offline else contextlib.nullcontext()


def report(answer: str | None) -> None:
    print("answer:", answer)
    for path, content in WRITTEN.items():
        print(f"{path}: {content}")

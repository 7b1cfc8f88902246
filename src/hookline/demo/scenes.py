"""What is played: prompts, and what the scripted model makes of them."""

from __future__ import annotations

from msgspec import Struct

from hookline.agent.backends.scripted import Says, Step

# Put together here, so that no scanner takes this file for a leak.
_KEY = "AKIA" + "IOSFODNN7" + "EXAMPLE"
_BAD = f'ACCESS_KEY = "{_KEY}"\n'
_GOOD = 'import os\n\nACCESS_KEY = os.environ["ACCESS_KEY"]\n'


class Scene(Struct, frozen=True):
    """One prompt, what it is to show, and the model's part."""

    title: str
    prompt: str
    steps: tuple[Step, ...]
    temperature: float = 0.2


def _write(text: str, content: str) -> Says:
    return Says(text, (("write_file", {"path": "config.py", "content": content}),))


SCENES = (
    Scene(
        "A secret is kept out, a path put right",
        "Save the deploy settings.",
        (
            _write("I put the key into the settings.", _BAD),
            _write("Then I read it from the environment.", _GOOD),
            "Saved: the key comes from the environment.",
        ),
        temperature=0.9,
    ),
    Scene(
        "Personal data stays inside",
        "Who reported ticket 17?",
        (
            Says("", (("read_file", {"path": "tickets/17.md"}),)),
            "Ada Byron, ada.byron@example.org, +44 20 7946 0018.",
        ),
    ),
    Scene(
        "A review only reads",
        "Review the project and tidy it up.",
        (
            Says("", (("delete_file", {"path": "src/app.py"}),)),
            Says("I may not delete. I look instead.", (("list_files", {}),)),
            "Three files. I would remove nothing.",
        ),
    ),
    Scene(
        "A runaway is stopped",
        "Make the tests pass.",
        tuple(Says("Once more.", (("run_tests", {}),)) for _ in range(9)),
    ),
)

"""Faults put into the code on purpose, each of which a test must notice.

Cosmic Ray makes the mutants and keeps their results in ``.mutants/session.sqlite``: a
run that was interrupted goes on where it was. Added here: an even sample of the modules
in ``tests/mutants.toml``, copies of the repository for mutants side by side, and for
each mutant only the tests that run the changed lines, which one run of the tests
under coverage finds out.

``make mutants`` runs it and prints the survivors.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).parent.parent.parent
WORK = ROOT / ".mutants"
SESSION = WORK / "session.sqlite"
COVERAGE = WORK / "coverage"
DURATIONS = WORK / "durations.json"
SECONDS = 30.0
"""How long the tests of one mutant may take, as measured."""
TIMEOUT_S = 240
COPIES = 3
RUNNING: set[subprocess.Popen[bytes]] = set()
KILLERS: defaultdict[Path, Counter[str]] = defaultdict(Counter)
"""Per module, how many of its mutants each test has noticed."""
SOUND: set[str] = set()
"""Tests that failed for a mutant and pass without it."""
UNSOUND: set[str] = set()
"""Tests that fail in a copy of the repository anyway."""
FAILED_TEST = re.compile(
    r"^(?:FAILED|ERROR|SUBFAILED\[.*\]) (tests/[^\s\[]+)", re.MULTILINE
)
MEASURE = f"""
[run]
branch = true
source = hookline
parallel = true
patch = subprocess
data_file = {COVERAGE}
"""


def main() -> int:
    """Measure, make the mutants, run those without a result, report."""
    from cosmic_ray.work_db import WorkDB

    WORK.mkdir(exist_ok=True)
    if not COVERAGE.exists():
        measure(sys.argv[1:])
    made = SESSION.exists()
    session = WorkDB(str(SESSION), WorkDB.Mode.create)
    if not made:
        session.add_work_items(sampled())
    tests = Tests()
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(COPIES):
        copies.put(copied(WORK / f"copy-{number}"))

    def tested(work: Any) -> Any:
        copy = copies.get()
        try:
            mutation = work.mutations[0]
            lines = range(mutation.start_pos[0], mutation.end_pos[0] + 1)
            return run_mutant(work, copy, tests.running(mutation.module_path, lines))
        finally:
            copies.put(copy)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    pool = ThreadPoolExecutor(COPIES)
    runs = {pool.submit(tested, work): work for work in session.pending_work_items}
    try:
        for count, run in enumerate(as_completed(runs), 1):
            result, work = run.result(), runs[run]
            session.set_result(work.job_id, result)
            mutation = work.mutations[0]
            place = f"{mutation.module_path}:{mutation.start_pos[0]}"
            print(f"{count}/{len(runs)} {place} {result.test_outcome}", flush=True)
    except KeyboardInterrupt:
        # A mutant may loop for ever: its tests end with this process.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(RUNNING):
            os.killpg(process.pid, signal.SIGKILL)
        print("interrupted: run it again to go on", flush=True)
        os._exit(130)  # threads would start the tests of the next mutant
    print(report(session))
    return 0


def measure(paths: list[str]) -> None:
    """Run the tests once and note which test runs which line, and for how long."""
    settings = WORK / "coverage.ini"
    settings.write_text(MEASURE)
    python = str(ROOT / ".venv/bin/python")
    coverage = [python, "-m", "coverage"]
    options = [f"--rcfile={settings}"]
    plugin = ["-p", "tests.support.line_contexts", "-n", str(COPIES), "-q"]
    subprocess.run(
        [*coverage, "run", *options, "-m", "pytest", *plugin, *paths],
        cwd=ROOT,
        env={**os.environ, "TEST_DURATIONS": str(DURATIONS)},
        check=False,  # a test that needs a quiet machine may fail under coverage
    )
    subprocess.run([*coverage, "combine", "-q", *options], cwd=ROOT, check=True)


def sampled() -> list[Any]:
    """As many mutants of each module as the list asks for, always the same ones."""
    from cosmic_ray.commands.init import _all_work_items

    chosen = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
    os.chdir(ROOT)

    def order(work: Any) -> bytes:
        mutation = work.mutations[0]
        place = f"{mutation.module_path} {mutation.operator_name} {mutation.occurrence}"
        return hashlib.sha256(place.encode()).digest()

    works = []
    for module in chosen["modules"]:
        # Annotations are not run.
        made = [
            work
            for work in _all_work_items([Path(module)], {})
            if "_BitOr_" not in work.mutations[0].operator_name
            and "NoOp" not in work.mutations[0].operator_name
        ]
        works += sorted(made, key=order)[: chosen["each"]]
    return works


class Tests:
    """Which tests run which lines, and how long each takes."""

    def __init__(self) -> None:
        self._data = sqlite3.connect(
            f"file:{COVERAGE}?mode=ro", uri=True, check_same_thread=False
        )
        self._durations: dict[str, float] = json.loads(DURATIONS.read_text())
        query = "select path, id from file"
        self._files = {
            str(Path(path).relative_to(ROOT))
            if path.startswith(str(ROOT))
            else path: id_
            for path, id_ in self._data.execute(query)
        }

    def running(self, module: Path, lines: range) -> list[str]:
        """Tests that run one of the lines, as many as the time allows.

        First those that take the least time for each way through the module.
        """
        file_id = self._files.get(str(module), -1)
        rows = self._data.execute(
            "select context.context, count(*), max(abs(fromno) between ? and ?"
            " or abs(tono) between ? and ?) from arc join context"
            " on context.id = arc.context_id where file_id = ? group by context_id",
            (*(lines[0], lines[-1]) * 2, file_id),
        )
        tests = [row for row in rows if row[0]]
        # What runs when a module is imported is run by no test of its own.
        tests = [row for row in tests if row[2]] or tests
        seconds = {
            name: (self._durations.get(name, 0.2), ways) for name, ways, _ in tests
        }
        left = SECONDS
        chosen: list[str] = []
        for name in sorted(
            seconds, key=lambda name: seconds[name][0] / seconds[name][1]
        ):
            if seconds[name][0] <= left or not chosen:
                left -= seconds[name][0]
                chosen.append(name)
        # Most mutants of a module are noticed by the same few tests.
        return sorted(chosen, key=lambda name: -KILLERS[module][function_of(name)])


def function_of(test: str) -> str:
    """The test function, whatever its parameters."""
    return test.partition("[")[0]


def run_mutant(work: Any, copy: Path, tests: list[str]) -> Any:
    """Run the tests against one mutant in one copy."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator
    from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

    mutation = work.mutations[0]
    file = copy / mutation.module_path
    original = file.read_text()
    operator = get_operator(mutation.operator_name)(**mutation.operator_args)
    mutated = mutate_code(original, operator, mutation.occurrence)
    diff = changed_lines(original, mutated)
    while tests := [test for test in tests if function_of(test) not in UNSOUND]:
        file.write_text(mutated)
        try:
            passed, output = run_tests(tests, copy)
        finally:
            file.write_text(original)
        failure = FAILED_TEST.search(output)
        if passed or failure is None or failure[1] in SOUND:
            break
        # A test that fails without the mutant as well proves nothing.
        sound, _ = run_tests([failure[1]], copy)
        (SOUND if sound else UNSOUND).add(failure[1])
        if sound:
            break
    else:
        return WorkResult(WorkerOutcome.NO_TEST, "", TestOutcome.SURVIVED, diff)
    if failure is not None and not passed:
        KILLERS[mutation.module_path][failure[1]] += 1
    outcome = TestOutcome.SURVIVED if passed else TestOutcome.KILLED
    return WorkResult(WorkerOutcome.NORMAL, output[-3000:], outcome, diff)


def run_tests(tests: list[str], copy: Path) -> tuple[bool, str]:
    """Whether tests pass in a copy, and what pytest says."""
    plugins = ("no:randomly", "no:xdist", "no:cacheprovider")
    options = ["-x", "-q", *(word for name in plugins for word in ("-p", name))]
    (copy / "tests.txt").write_text("\n".join(tests))
    process = subprocess.Popen(
        [copy / ".venv/bin/python", "-m", "pytest", *options, "@tests.txt"],
        cwd=copy,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    RUNNING.add(process)
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False, "timeout"
    finally:
        RUNNING.discard(process)
    return process.returncode == 0, output.decode(errors="replace")


def changed_lines(original: str, mutated: str) -> str:
    """The lines that differ, before and after."""
    pairs = zip(original.splitlines(), mutated.splitlines(), strict=False)
    return "\n".join(f"- {old}\n+ {new}" for old, new in pairs if old != new)


def copied(folder: Path) -> Path:
    """A copy of the repository whose interpreter imports the code of the copy."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True)
    for name in names.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    python = ROOT / ".venv/bin/python"
    subprocess.run(
        [python, "-m", "venv", "--without-pip", folder / ".venv"], check=True
    )
    (packages,) = (ROOT / ".venv/lib").glob("python*/site-packages")
    copies = folder / ".venv/lib" / packages.parent.name / "site-packages"
    (copies / "copy.pth").write_text(f"{folder / 'src'}\n{packages}\n")
    script = (ROOT / ".venv/bin/hookline").read_text()
    program = folder / ".venv/bin/hookline"
    program.write_text(script.replace(str(ROOT / ".venv"), str(folder / ".venv")))
    program.chmod(0o755)
    for file in (ROOT / ".venv/bin").iterdir():  # nats-server and the like
        if not (folder / ".venv/bin" / file.name).exists():
            (folder / ".venv/bin" / file.name).symlink_to(file)
    # Mutants follow each other within a second: a time stamp would not tell them apart.
    compiled = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    subprocess.run([python, *compiled, folder / "src", folder / "tests"], check=True)
    return folder


def report(session: Any) -> str:
    """The survivors with their lines, and the number of mutants per module."""
    made: Counter[str] = Counter()
    survived: Counter[str] = Counter()
    works = {work.job_id: work.mutations[0] for work in session.work_items}
    lines = []
    for job_id, result in session.results:
        module = str(works[job_id].module_path)
        made[module] += 1
        if not result.is_killed:
            survived[module] += 1
            place = f"{module}:{works[job_id].start_pos[0]}"
            untested = " (no test runs it)" if not result.output else ""
            lines.append(
                f"{place} {works[job_id].operator_name}{untested}\n{result.diff}"
            )
    lines.sort()
    lines += [
        f"{module}: {survived[module]} of {made[module]}" for module in sorted(made)
    ]
    return "\n".join([*lines, f"survived: {survived.total()} of {made.total()}"])


if __name__ == "__main__":
    raise SystemExit(main())

"""``hookline test``: run hooktest files and show what was not as expected."""

from __future__ import annotations

import argparse
import asyncio
import logging
from pathlib import Path

from hookline.errors import HooklineError
from hookline.testing.cases import HookTestFile, find_files, read_file
from hookline.testing.run import CaseResult, run_cases

from .common import Progress, paint, plain, print_json

SUMMARY = "run hook tests"
DESCRIPTION = """\
Run the cases in *.hooktest.toml files through the real pipeline, many at once, each in
a scratch project of its own. Without FILES the folder you are in is searched.

  hookline test
  hookline test .hookline/hooks/secret_scan.hooktest.toml -v
  hookline test --junit results.xml

a case in such a file (the script beside it, of the same name, is what is tested):

  event = "BeforeTool"
  tool = "write_file"

  [[case]]
  name = "a .env file is blocked"
  tool_input = { file_path = ".env" }
  expect = "block"          # allow (the default), block, ask or stop
  message = "keep secrets"  # a pattern

exit status: 0 all as expected, 1 not so"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="hooktest files or folders of them"
    )
    parser.add_argument("-k", metavar="TEXT", help="only cases whose name holds this")
    parser.add_argument("--jobs", type=int, metavar="N", help="how many at once")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML as well")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("-v", "--verbose", action="store_true", help="name every case")


def run(options: argparse.Namespace) -> int:
    """Run the cases and return the exit status."""
    # A hook that fails on purpose is part of a case, and no news.
    logging.getLogger("hookline").setLevel(logging.CRITICAL)
    if options.jobs is not None and options.jobs < 1:
        raise HooklineError("--jobs must be 1 or more")
    files = _chosen(options)
    results = asyncio.run(_run(files, options))
    if options.junit:
        _write_junit(results, Path(options.junit))
    if options.json:
        print_json([_entry(result) for result in results])
    else:
        _print_results(results, options.verbose)
    return 0 if all(result.passed for result in results) else 1


def _chosen(options: argparse.Namespace) -> list[HookTestFile]:
    paths = find_files([Path(name) for name in options.files or ["."]])
    files = [_with_cases(read_file(path), options.k) for path in paths]
    if not any(file.cases for file in files):
        places = ", ".join(options.files) or "this folder"
        if options.k and any(file.cases for file in map(read_file, paths)):
            raise HooklineError(f"no case named like {options.k!r} in {places}")
        raise HooklineError(
            f"no *.hooktest.toml in {places}: 'hookline init' writes one to start from"
        )
    return files


def _with_cases(file: HookTestFile, text: str | None) -> HookTestFile:
    if not text:
        return file
    import msgspec

    kept = tuple(case for case in file.cases if text.lower() in case.name.lower())
    return msgspec.structs.replace(file, cases=kept)


async def _run(
    files: list[HookTestFile], options: argparse.Namespace
) -> list[CaseResult]:
    total = sum(len(file.cases) for file in files)
    results = []
    with Progress("testing hooks", total) as progress:
        async for result in run_cases(files, options.jobs):
            results.append(result)
            progress.step()
    order = {file.path: n for n, file in enumerate(files)}
    names = {(f.path, case.name): n for f in files for n, case in enumerate(f.cases)}
    return sorted(results, key=lambda r: (order[r.file], names[(r.file, r.name)]))


def _print_results(results: list[CaseResult], verbose: bool) -> None:
    for result in results:
        if not result.passed:
            print(f"{paint('FAIL', 'red')}  {result.file}: {plain(result.name)}")
            for problem in result.problems:
                print("      " + _painted(plain(problem)).replace("\n", "\n      "))
        elif verbose:
            print(f"{paint('ok', 'green')}    {result.file}: {plain(result.name)}")
    failed = sum(not result.passed for result in results)
    summary = f"{len(results) - failed} passed"
    if failed:
        summary += f", {failed} failed"
    print(paint(summary, "red" if failed else "green"))


def _painted(problem: str) -> str:
    styles = {"+": "green", "-": "red", "@": "dim"}
    lines = problem.splitlines()
    return "\n".join(
        paint(line, styles[line[0]]) if line[:1] in styles else line for line in lines
    )


def _entry(result: CaseResult) -> dict[str, object]:
    return {
        "file": str(result.file),
        "name": result.name,
        "kind": result.kind,
        "passed": result.passed,
        "problems": list(result.problems),
        "duration_ms": round(result.duration_ms, 3),
    }


def _write_junit(results: list[CaseResult], target: Path) -> None:
    from hookline.testing.run import write_junit

    try:
        write_junit(results, target)
    except OSError as error:
        raise HooklineError(f"--junit {target}: {error.strerror}") from error

"""``hookline uninstall``: take the bridge out of a coding agent's settings."""

from __future__ import annotations

import sys
from contextlib import suppress

from hookline.errors import HooklineError
from hookline.hosts.host_files import Scope
from hookline.hosts.install.changes import Change, apply, recorded_files
from hookline.hosts.install.installer import Installer
from hookline.hosts.registry import HOSTS, host_of
from hookline.settings.places import find_workspace

from .install import print_diffs, shown_path
from .options import Options, Parser
from .terminal import paint, printable, printable_text

SUMMARY = "take Hookline out of a coding agent's settings"
DESCRIPTION = f"""\
Remove what 'hookline install HOST' wrote, from the settings of this project and from
your own. A file that nobody changed since is restored byte for byte, one that install
made is removed; in any other file only Hookline's own entries are removed.

  hookline uninstall claude
  hookline uninstall codex --dry-run    show the change as a diff, write nothing

hosts: {", ".join(HOSTS)}

exit status: 0 done (or was not installed), 1 a file could not be changed"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("host", metavar="HOST", help="the coding agent, such as claude")
    parser.add_flag("--dry-run", "show the changes as a diff and write nothing")
    parser.add_cwd()


def run(options: Options) -> int:
    """Change the files of both scopes; one that fails does not keep the other."""
    host = host_of(options.host)
    workspace = find_workspace(options.cwd)
    installers = [Installer(host, scope, workspace) for scope in Scope]
    status = 0
    changes: list[Change] = []
    for installer in installers:
        try:
            changes += installer.uninstall()
        except HooklineError as error:
            status = 1
            print(f"hookline: {printable_text(str(error))}", file=sys.stderr)
    if options.dry_run:
        print_diffs(changes, would="remove")
        return status
    apply(changes)
    for change in changes:
        done = "changed" if change.after else "removed"
        print(f"{paint(done, 'green')}  {printable(shown_path(change.path))}")
    if not changes and not status:
        files = []
        for installer in installers:
            with suppress(HooklineError):  # no home folder
                files.append(shown_path(installer.file("*")))
        print(printable(f"{host.title}: not installed in {' and '.join(files)}"))
        if any(recorded_files()):
            print("'hookline paths' shows where else 'hookline install' was run")
    return status

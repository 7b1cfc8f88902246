"""Read the commands of a hook in order, and record every file that they name.

A named file counts as code, or as an argument of a program that is not known here. It
is data only where its place says so: the target of a redirection, what ``tee`` writes,
the arguments of a known set of readers. Where the output of a reader may be run, what
it reads is not data either. What cannot be known is reported, never left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import islice, product

from msgspec.structs import replace

from . import programs
from .parse import Piece, SimpleCommand, Word, parse_operators
from .uses import FileUse, Form, Role, imported_names
from .words import (
    MAX_VALUES,
    NAME,
    SPLIT,
    UNKNOWN,
    Arg,
    Words,
    as_glob,
    assignment,
    is_pattern,
    join,
    plain_text,
    reveal,
    without_keywords,
)

_MAX_QUOTING = 8
_BREAKS = r"[\s'\"`;|&()<>=,:{}$!\\@\[\]]+"
_ASK = "list the files that it may name in trustFiles"
_STDIN = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


def command_files(
    command: str,
    folder: str,
    variables: Mapping[str, str],
    shell: str | None = None,
    env: Mapping[str, str] | None = None,
) -> list[FileUse]:
    """The files of a command that runs in ``folder`` with these known variables."""
    reader = _CommandReader(variables, folder)
    try:
        reader.read_environment(env or {})
        if shell is not None:
            reader.run([Arg.of(shell), Arg.of("-c"), Arg.of(command)])
        reader.read(command)
        return reader.result()
    except RecursionError:
        why = "it is nested too deeply to be read: list its files in trustFiles"
        return [*reader.found(), FileUse(command[:80], Role.CODE, why=why)]


class _Input(StrEnum):
    """What a program does with its standard input."""

    SHELL = "runs it as shell text"
    CODE = "runs it"
    ARGUMENT = "is not known"
    SCRIPT = "its script reads it"
    READ = "reads it"

    @property
    def runs(self) -> bool:
        return self in {_Input.SHELL, _Input.CODE}


class _CommandReader:
    """One pass over the commands of a hook."""

    def __init__(self, variables: Mapping[str, str], folder: str) -> None:
        self._words = Words(variables, folder)
        self._uses: dict[FileUse, None] = {}
        self._printed: list[str] = []
        self._runs_output = False
        self._changes_text = False
        self._quoting = 0
        self._guessing = 0

    def result(self) -> list[FileUse]:
        """What was found; of several uses of one path the strongest counts."""
        strongest = self._strongest()
        if self._runs_output:
            for text in self._printed:
                self._guess(text)
            strongest = self._strongest()
        found = [use for use in self._uses if strongest[use.path, use.why] is use.role]
        if self._runs_output:
            return [_promoted(use) for use in found]
        return [use for use in found if use.role is not Role.READ or not use.why]

    def found(self) -> list[FileUse]:
        """Everything that was found so far, all of it to be pinned."""
        return [_promoted(use) for use in self._uses if use.role is not Role.WRITTEN]

    def _strongest(self) -> dict[tuple[str, str], Role]:
        order, found = list(Role), dict[tuple[str, str], Role]()
        for use in self._uses:
            before = found.setdefault((use.path, use.why), use.role)
            if {before, use.role} == {Role.CODE, Role.WRITTEN}:
                self._runs_output = True  # it writes what it runs
            found[use.path, use.why] = min(before, use.role, key=order.index)
        return found

    def read(self, text: str) -> None:
        """Read shell text."""
        if self._quoting > _MAX_QUOTING:
            self._cannot(text, "it is quoted too deeply to be read")
            return
        self._quoting += 1
        commands = parse_operators(text)
        self._words.note_assignments(commands)
        self._read_commands(commands)
        self._quoting -= 1

    def _guess(self, text: str) -> None:
        """Read what may be shell text; an unknown argument in it is not reported."""
        self._guessing += 1
        self.read(text)
        self._guessing -= 1

    def read_environment(self, env: Mapping[str, str]) -> None:
        """Read a hook's own variables, which programs look at on their own."""
        for name, value in env.items():
            if name in programs.OBEYED_VARIABLES:
                self._obeyed_variable(name, value)
            elif name in programs.SEARCH_PATHS:
                self._search_path(name, Arg.of(value))
            else:
                expand = self._words.expand_variable
                known = re.sub(rf"\$({NAME})|\$\{{({NAME})\}}", expand, value)
                self._fragments(known)

    def _obeyed_variable(self, name: str, value: str) -> None:
        """A variable that makes programs run or load what it says."""
        before = programs.OBEYED_VARIABLES[name]
        if before == "source" and '"' not in value:
            value = f'"{value}"'  # the shell expands it, and does not split it
        self.read(f"{before} {value}")
        self._fragments(value)

    def _search_path(self, name: str, value: Arg) -> None:
        for path in self._search_folders(value.texts):
            if f"{path}/".startswith(f"{self._words.folders[0]}/"):
                why = f"{name} names this folder of code: list it in trustFiles"
                if not self._guessing:  # whole: a review names this folder
                    self._uses.setdefault(FileUse(path, Role.ARGUMENT, why=why))

    def _search_folders(self, values: Iterable[str]) -> list[str]:
        parts = (part for value in values for part in reveal(value).split(":"))
        base = self._words.folders[0]
        return [join(base, part) for part in parts if part and UNKNOWN not in part]

    def _read_commands(self, commands: Sequence[SimpleCommand]) -> None:
        cases, in_pattern, in_test = 0, False, False
        for command in commands:
            self._read_substitutions(command)
            if command.operator == ")" and in_pattern:
                in_pattern = False
            elif command.operator in {";;", ";&", ";;&"}:
                in_pattern = cases > 0
            words = without_keywords(command.words)
            first = plain_text(words[0]) if words else ""
            if first == "esac":
                cases, in_pattern = max(cases - 1, 0), False
            if in_test or first == "[[":
                in_test = all(plain_text(word) != "]]" for word in words)
                self._read_redirections(command, _Input.READ)
            elif first == "case":
                cases, in_pattern = cases + 1, True
            elif not in_pattern:
                self._read_command(command, words)

    def _read_substitutions(self, command: SimpleCommand) -> None:
        pieces = [piece for word in command.all_words for piece in word]
        for piece in pieces:  # it grows while it is read
            pieces += piece.argument or ()
            if piece.unread:
                why = "it is nested too deeply to be read, or not closed"
                self._cannot(piece.source or "a quote", f"{why}: {_ASK}")
            self._read_commands(piece.operators)

    def _read_command(self, command: SimpleCommand, words: list[Word]) -> None:
        first = plain_text(words[0]) if words else ""
        if first == "function":
            words = without_keywords(words[2:])
        elif first in programs.ENDS | {"for", "select"}:
            words = []
        assigned: list[tuple[str, Arg]] = []
        while words and (found := assignment(words[0])) is not None:
            assigned.append((found[0], self._words.arg(found[1])))
            words = words[1:]
        args = [arg for word in words for arg in self._words.args(word)]
        reads = self.run(args)
        for name, arg in assigned:
            self._exported(name, arg, quiet=not args or reads is _Input.READ)
        is_piped = command.operator in {"|", "|&"}
        if is_piped and args and reads is _Input.ARGUMENT:
            self._runs_output = True
        self._read_pipeline(command, args, reads)
        self._read_redirections(command, reads)

    def _read_pipeline(
        self, command: SimpleCommand, args: list[Arg], reads: _Input
    ) -> None:
        """Report a text that changes on its way to the program that runs it."""
        is_piped = command.operator in {"|", "|&"}
        was_changed = is_piped and self._changes_text
        if was_changed and reads.runs:
            shown = f"what is piped into {args[0].shown}"
            self._cannot(shown, f"it is changed on the way: {_ASK}")
        has_text = is_piped or any("<<" in one for one, _ in command.redirections)
        name = args[0].text if args else "cat"
        changes = reads is _Input.READ and has_text and name not in {"cat", "tee"}
        self._changes_text = was_changed or changes

    def _exported(self, name: str, arg: Arg, *, quiet: bool = False) -> None:
        """A variable that programs look at on their own."""
        if name in programs.SEARCH_PATHS:
            self._search_path(name, arg)
        elif name in programs.OBEYED_VARIABLES:
            read = partial(self._obeyed_variable, name)
            self._read_code(arg, read, quiet=arg.texts == [UNKNOWN])
        elif not quiet:
            self._record(arg, Role.ARGUMENT, quiet=True)

    def _read_redirections(self, command: SimpleCommand, reads: _Input) -> None:
        is_fed = False
        for operator, word in command.redirections:
            arg = self._words.arg(word)
            if operator in {"<<", "<<-", "<<<"}:
                is_fed = True
                self._read_text(arg, reads)
            elif re.fullmatch(r"[0-9]*-?", arg.text or "x"):
                continue  # a descriptor
            elif operator[0] == "<":
                is_fed = True
                self._read_input(arg, reads)
            else:
                self._record(arg, Role.WRITTEN)
        if reads.runs and not is_fed:
            self._runs_output = True  # whatever is piped into it

    def _read_input(self, arg: Arg, reads: _Input) -> None:
        role = Role.CODE if reads.runs else Role.ARGUMENT
        self._record(arg, Role.READ if reads is _Input.READ else role)

    def _read_text(self, arg: Arg, reads: _Input) -> None:
        if reads is _Input.SHELL:
            self._read_code(arg, self.read)
        elif reads is _Input.CODE:
            self._read_code(arg, self._code)
        elif reads is _Input.ARGUMENT:
            self._read_code(arg, self._fragments, quiet=True)
        else:
            self._printed += [_known(text) for text in arg.texts]

    def run(self, args: list[Arg]) -> _Input:
        """Read a program and its arguments; returns what it does with its input."""
        if not args:
            return _Input.ARGUMENT
        program, rest = args[0], args[1:]
        name = program.text.rpartition("/")[2]
        if name not in programs.READERS | programs.QUIET:
            # Programs below look at the first text of a word only.
            self._record_some(arg for arg in rest if len(arg.texts) > 1)
        if not program.text or "/" in program.text or len(program.texts) > 1:
            self._record(program, Role.CODE)
        elif self._words.knows("PATH"):
            self._record_found(name)
        return self._handler(name)(name, rest)

    def _record_found(self, name: str) -> None:
        """A program that may be in a folder of the project's that PATH names."""
        for folder in self._search_folders(self._words.variable("PATH")):
            self._uses.setdefault(FileUse(f"{folder}/{name}", Role.CODE, Form.BARE))

    def _handler(self, name: str) -> Callable[[str, list[Arg]], _Input]:
        if name in programs.SHELLS:
            return self._shell
        if re.fullmatch(programs.PYTHON, name):
            return self._python
        for names, own in (
            ((".", "source"), self._source),
            (("eval", "trap"), self._eval),
            (("cd", "pushd", "chdir"), self._cd),
            (("find",), self._find),
            (("sqlite3",), self._sqlite),
            (("git",), self._git),
            (("export", "declare", "local", "readonly", "typeset"), self._export),
            (programs.WRAPPERS, self._wrapper),
            (programs.RUNNERS, self._runner),
            (programs.OBEYED_FILES, self._runner),
            (programs.CODE_OPTIONS, self._interpreter),
            (programs.STREAM_EDITORS, self._stream_editor),
            (programs.WRITERS, self._writer),
            (programs.COPIERS, self._copier),
            (programs.READERS | programs.QUIET, self._reader),
            (programs.OBEYED_OPTIONS, self._reader),
        ):
            if name in names:
                return own
        return self._unknown

    def _shell(self, name: str, rest: list[Arg]) -> _Input:
        letters, at = "", 0
        while at < len(rest) and rest[at].text[:1] in {"-", "+"}:
            text = rest[at].text
            at += 1
            if text in {"--rcfile", "--init-file"}:
                self._record_some(rest[at : at + 1], Role.CODE)
                at += 1
            elif text[:2] != "--":
                letters += text
                at += text[-1] in "oO"
        if at >= len(rest) or ("s" in letters and "c" not in letters):
            return _Input.SHELL
        if "c" in letters:
            self._read_code(rest[at], self.read)
        elif not self._script(rest[at], Form.FILE):
            return _Input.SHELL
        self._record_some(rest[at + 1 :])
        return _Input.SCRIPT

    def _python(self, name: str, rest: list[Arg]) -> _Input:
        at = 0
        while at < len(rest) and rest[at].text[:1] == "-" != rest[at].text:
            letter, value, at = _short_option(rest, at, "cmWX")
            if letter in {"c", "m"} and value:
                self._add_everywhere("", Role.CODE, Form.IMPORTS)
                read = self._python_code if letter == "c" else self._module
                self._read_code(value, read)
                self._record_some(rest[at:])
                if letter == "m":
                    self._module_arguments(rest[at:])
                return _Input.SCRIPT
        if at >= len(rest) or not self._script(rest[at], Form.PYTHON):
            return _Input.CODE
        self._record_some(rest[at + 1 :])
        return _Input.SCRIPT

    def _module_arguments(self, rest: list[Arg]) -> None:
        """Modules and code that ``unittest``, ``timeit`` and their like are given."""
        for text in (_known(text) for arg in rest for text in arg.texts):
            if re.fullmatch(rf"{NAME}(?:\.{NAME})+", text):
                self._module(text)
            for name in imported_names(text):
                self._module(name)

    def _python_code(self, code: str) -> None:
        self._code(code)
        for name in imported_names(code):
            self._module(name)

    def _module(self, name: str) -> None:
        if not name:
            return
        path = name.replace(".", "/")
        self._add_everywhere(path, Role.CODE, Form.MODULE)
        for folder in self._search_folders(self._words.variable("PYTHONPATH")):
            self._uses.setdefault(FileUse(f"{folder}/{path}", Role.CODE, Form.MODULE))

    def _interpreter(self, name: str, rest: list[Arg]) -> _Input:
        """Node, Ruby, Perl and their like: options, a script, its arguments."""
        form = Form.NODE if name in programs.NODES else Form.FILE
        at, is_given = 0, False
        while at < len(rest) and rest[at].text[:1] == "-" != rest[at].text:
            option, value, after = _option(rest, at)
            at += 1
            if re.fullmatch(programs.CODE_OPTIONS[name], option) and value:
                is_node = form is Form.NODE
                self._read_code(value, self._node_code if is_node else self._code)
                is_given, at = True, after
            elif option in programs.LOADING_OPTIONS and value:
                self._record(value, Role.CODE, form)
                at = after
            else:
                self._record(rest[at - 1], Role.ARGUMENT, quiet=True)
        if at < len(rest) and not is_given:
            is_given = self._script(rest[at], form)
            at += 1
        self._record_some(rest[at:])
        return _Input.SCRIPT if is_given else _Input.CODE

    def _script(self, arg: Arg, form: Form) -> bool:
        """Record a script; False where it is the standard input."""
        if arg.text in _STDIN:
            return False
        self._record(arg, Role.CODE, form)
        return True

    def _source(self, name: str, rest: list[Arg]) -> _Input:
        if rest and not self._script(rest[0], Form.FILE):
            return _Input.SHELL
        self._record_some(rest[1:])
        return _Input.SCRIPT

    def _eval(self, name: str, rest: list[Arg]) -> _Input:
        rest = rest[bool(rest) and rest[0].text == "--" :]
        rest = rest[:1] if name == "trap" else rest
        shown = " ".join(arg.shown for arg in rest)
        choices = islice(product(*(arg.texts for arg in rest)), MAX_VALUES + 1)
        texts = [" ".join(one) for one in choices]
        too_many = [UNKNOWN] if len(texts) > MAX_VALUES else []
        self._read_code(Arg([*texts, *too_many], shown), self.read)
        return _Input.READ

    def _wrapper(self, name: str, rest: list[Arg]) -> _Input:
        at = 0
        while at < len(rest) and rest[at].text[:1] == "-":
            text, (option, value, after) = rest[at].text, _option(rest, at)
            at += 1
            if name == "command" and text in {"-v", "-V"}:
                return _Input.READ
            split = re.match(r"-[iv0]*S(.*)|--s.*?(=|$)", text, re.DOTALL)
            if name == "env" and split is not None:
                is_attached = bool(split[1] or split[2])
                value = rest[at - 1].after(split.start(1)) if split[1] else value
                return self._split_string(value, rest[at if is_attached else after :])
            self._wrapper_option(name, option, value)
            if len(text) == 2 and text[1] in programs.WRAPPERS[name]:
                at = after
        while at < len(rest) and name in {"env", "sudo", "doas"}:
            found = re.match(rf"({NAME})=", rest[at].texts[0])
            if found is None:
                break
            self._set(found[1], rest[at].after(found.end()))
            at += 1
        rest = rest[at + (name in programs.FIRST_IS_NO_PROGRAM) :]
        if name == "xargs":
            rest = [*rest, Arg([UNKNOWN], "what xargs adds")]
        if name == "watch" or (name == "flock" and rest and rest[0].text == "-c"):
            return self._eval(name, rest[name == "flock" :])
        return self.run(rest)

    def _wrapper_option(self, name: str, option: str, value: Arg | None) -> None:
        """An option that names a folder, a file or a command."""
        if value is None:
            return
        if name == "env" and option in {"-C", "--chdir"}:
            self._words.enter(value)
        elif name == "xargs" and option in {"-a", "--arg-file"}:
            self._record(value, Role.ARGUMENT)

    def _split_string(self, value: Arg | None, rest: list[Arg]) -> _Input:
        """``env -S``: the words of its text come before the others."""

        def read(text: str) -> None:
            if "\\" in text:
                self._cannot(text, f"env reads backslashes in its own way: {_ASK}")
            self.read(" ".join(["env", text, *(shlex.quote(arg.text) for arg in rest)]))

        self._record_some(rest, Role.CODE)
        if value is not None:
            self._read_code(value, read)
        return _Input.ARGUMENT

    def _set(self, name: str, value: Arg) -> None:
        self._exported(name, value)
        for text in value.texts:
            known = Word((Piece(reveal(text), quoted=True),))
            self._words.assign(name, None if UNKNOWN in text else known)

    def _runner(self, name: str, rest: list[Arg]) -> _Input:
        """``uv run``, ``npx``, ``npm run``, ``make`` and their like."""
        words = [arg.text for arg in rest]
        positional = [text for text in words if text and text[0] != "-"]
        subcommands = programs.RUNNERS.get(name)
        if subcommands is None:
            is_runner = False
        else:
            is_runner = not subcommands or bool(subcommands & set(positional[:1]))
        names_file = is_runner and any(re.search("[./]", one) for one in positional)
        if name in programs.OBEYED_FILES and not names_file:
            return self._obeying(name, rest)
        if not is_runner:
            return self._unknown(name, rest)
        at = words.index(positional[0]) + 1 if subcommands else 0
        return self._run_rest(name, rest[at:])

    def _obeying(self, name: str, rest: list[Arg]) -> _Input:
        options = {arg.text.partition("=")[0] for arg in rest}
        if not options & {"-f", "--file", "--makefile"}:
            file = programs.OBEYED_FILES[name]
            shown = " ".join([name, *(arg.shown for arg in rest)])
            self._cannot(shown, f"it runs what {file} says: list that in trustFiles")
        return self._unknown(name, rest)

    def _run_rest(self, name: str, rest: list[Arg]) -> _Input:
        at = 0
        while at < len(rest) and rest[at].text[:1] == "-":
            option, value, _ = _option(rest, at)
            if option in {"-m", "--module"} and value:
                self._add_everywhere("", Role.CODE, Form.IMPORTS)
                self._read_code(value, self._module)
            elif option in programs.FOLDER_OPTIONS and value:
                self._words.enter(value)
            elif option in programs.LOADING_OPTIONS | {"-s"} and value:
                self._record(value, Role.CODE)
            self._record(rest[at], Role.ARGUMENT, quiet=True)
            at += 1
        if at == len(rest):
            return _Input.SCRIPT
        if rest[at].text not in programs.OBEYED_OPTIONS:
            self._record_some(rest[at + 1 :])
        if re.search(r"[./]", rest[at].text) or not rest[at].text:
            self._record(rest[at], Role.CODE, Form.NODE)
            return _Input.SCRIPT
        return self.run(rest[at:])

    def _reader(self, name: str, rest: list[Arg]) -> _Input:
        if name in programs.PRINTERS:
            texts = [_known(text) for arg in rest for text in arg.texts]
            self._printed += [text.replace("\\n", "\n") for text in texts]
        short, long = programs.OBEYED_OPTIONS.get(name, ("", ()))
        obeyed: list[Arg] = []
        for at, arg in enumerate(rest):
            _, value, _ = _short_option(rest, at, short)
            option, given, _ = _option(rest, at)
            if option[:2] == "--" and option[2:] in long:
                value = given
            if value is not None:
                obeyed.append(value)
            elif name not in programs.QUIET and arg.text[:1] != "-":
                self._record(arg, Role.READ)
        if obeyed and name == "jq":
            # -f makes its first argument the file, wherever that stands.
            obeyed += [arg for arg in rest if arg.text[:1] != "-"][:1]
        self._record_some(obeyed, Role.CODE)
        return _Input.READ

    def _stream_editor(self, name: str, rest: list[Arg]) -> _Input:
        """Read awk or sed: a program as text or in a file, then data."""
        runs = programs.RUNNING_SCRIPTS["sed" if name.endswith("sed") else "awk"]
        if any(re.search(runs, _known(text)) for arg in rest for text in arg.texts):
            return self._unknown(name, rest)  # what it reads may be run
        loads, gives, other = programs.STREAM_EDITORS[name]
        role, at, is_given = Role.READ, 0, False
        while at < len(rest) and rest[at].text[:1] == "-":
            if name.endswith("sed") and re.match(
                "--in-place|-[a-zA-Z]*i", rest[at].text
            ):
                role = Role.WRITTEN
            letter, value, at = _short_option(rest, at, loads + gives + other)
            if value and letter in loads:
                self._record(value, Role.CODE)
            elif value and letter in gives:
                self._read_code(value, self._code)
            is_given = is_given or (value is not None and letter in loads + gives)
        if not is_given and at < len(rest):
            self._read_code(rest[at], self._code)
            at += 1
        self._record_some(rest[at:], role)
        return _Input.READ

    def _writer(self, name: str, rest: list[Arg]) -> _Input:
        files = (arg for arg in rest if arg.text[:1] != "-")
        self._record_some(files, Role.WRITTEN)
        return _Input.READ

    def _copier(self, name: str, rest: list[Arg]) -> _Input:
        files = [arg for arg in rest if arg.text[:1] != "-"]
        self._record_some(files[:-1])
        self._record_some(files[-1:], Role.WRITTEN)
        return _Input.READ

    def _find(self, name: str, rest: list[Arg]) -> _Input:
        texts, at = [arg.text for arg in rest], 0
        while at < len(rest):
            at += 1
            if texts[at - 1] in {"-exec", "-execdir", "-ok", "-okdir"}:
                end = at
                while end < len(rest) and texts[end] not in {";", "+"}:
                    end += 1
                if texts[at - 1].endswith("dir"):
                    self._cannot("what find runs", f"in folders it finds: {_ASK}")
                found = Arg([UNKNOWN], "what find finds")
                self.run([found if "{}" in one.text else one for one in rest[at:end]])
                at = end
            elif texts[at - 1][:1] != "-":
                self._record(rest[at - 1], Role.READ)
        return _Input.READ

    def _sqlite(self, name: str, rest: list[Arg]) -> _Input:
        """A database, which is data, and statements, which may read files."""
        at = 0
        while at < len(rest) and rest[at].text[:1] == "-":
            if rest[at].text in {"-init", "-cmd", "--init", "--cmd"}:
                self._record_some(rest[at + 1 : at + 2], Role.CODE)
                at += 1
            at += 1
        self._record_some(rest[at : at + 1], Role.WRITTEN)
        for arg in rest[at + 1 :]:
            self._read_code(arg, self._fragments, quiet=True)
        return _Input.ARGUMENT

    def _git(self, name: str, rest: list[Arg]) -> _Input:
        while len(rest) > 1 and rest[0].text == "-C":
            self._words.enter(rest[1])
            rest = rest[2:]
        if rest and rest[0].text in programs.GIT_READS:
            self._record_some(rest[1:], Role.READ)
            return _Input.READ
        return self._unknown(name, rest)

    def _cd(self, name: str, rest: list[Arg]) -> _Input:
        folders = [arg for arg in rest if arg.text[:1] != "-"]
        home = Arg(self._words.variable("HOME"), "~")
        self._words.enter(folders[0] if folders else home)
        return _Input.READ

    def _export(self, name: str, rest: list[Arg]) -> _Input:
        for arg in rest:
            found = re.match(rf"({NAME})=", arg.texts[0])
            if found is not None:
                value = arg.after(found.end())
                self._exported(found[1], value, quiet=name != "export")
        return _Input.READ

    def _unknown(self, name: str, rest: list[Arg]) -> _Input:
        at = 0
        while at < len(rest):
            option, value, after = _option(rest, at)
            is_output = option in programs.OUTPUT_OPTIONS
            if is_output and value and not re.search(r"[\s=]", value.text):
                self._record(value, Role.WRITTEN)
            elif option in programs.LOADING_OPTIONS and value:
                self._record(value, Role.CODE)
                self._record(value, Role.ARGUMENT)
            elif option in programs.FOLDER_OPTIONS and value:
                self._words.enter(value)
            else:
                self._record(rest[at], Role.ARGUMENT)
                after = at + 1
            at = after
        return _Input.ARGUMENT

    def _record_some(self, args: Iterable[Arg], role: Role = Role.ARGUMENT) -> None:
        for arg in args:
            self._record(arg, role)

    def _record(
        self, arg: Arg, role: Role, form: Form = Form.FILE, *, quiet: bool = False
    ) -> None:
        """Record the files that a word may name; ``quiet``: not those unknown."""
        counts = role in {Role.CODE, Role.ARGUMENT}
        for text in arg.texts:
            if role is Role.ARGUMENT:
                self._record_parts(text)
            if UNKNOWN in text:
                if role is not Role.WRITTEN and not quiet:
                    self._cannot(arg.shown, _ASK, role)
                continue
            if not text or "://" in text:
                continue
            if is_pattern(text):
                self._add_everywhere(as_glob(text), role, Form.PATTERN)
            else:
                self._add_everywhere(reveal(text), role, form)
            is_path = role is Role.CODE or "/" in text
            if self._words.lost and counts and is_path and text[0] != "/":
                self._cannot(arg.shown, f"{self._words.lost}: {_ASK}", role)

    def _record_parts(self, text: str) -> None:
        """What may be a path within a word, and shell text that is one word."""
        known = _known(text)
        if re.search(r"[\s;|&<>()`]", known.strip()):
            self._fragments(known)
            self._guess(known)
            return
        parts = re.split(r"[=:,@]", known)
        attached = [known[2:]] if re.match(r"-[A-Za-z][^-]", known) else []
        for part in (*(parts if len(parts) > 1 else ()), *attached):
            if part and UNKNOWN not in text:
                self._add_everywhere(part, Role.ARGUMENT, Form.FILE)

    def _read_code(
        self, arg: Arg, read: Callable[[str], None], *, quiet: bool = False
    ) -> None:
        """Read a word that is code, in the shell's language or another."""
        for text in arg.texts:
            if UNKNOWN in text and not quiet:
                self._cannot(arg.shown, _ASK)
            read(_known(text))

    def _code(self, code: str) -> None:
        """Code in a language that is not read here, but for the files in it."""
        self._fragments(code, data=programs.DATA_NAME)

    def _node_code(self, code: str) -> None:
        self._code(code)
        for name in re.findall(programs.NODE_IMPORT, code):
            self._add_everywhere(name, Role.CODE, Form.NODE)

    def _fragments(self, text: str, data: str = "(?!)") -> None:
        """Anything in a text that may be a path; names like ``data`` are read only."""
        for part in filter(None, re.split(_BREAKS, text)):
            role = Role.READ if re.search(data, part) else Role.ARGUMENT
            self._add_everywhere(self._words.expand_home(part), role, Form.FILE)

    def _add_everywhere(self, path: str, role: Role, form: Form) -> None:
        is_bare = form is Form.FILE and "/" not in path and "." not in path[1:]
        if is_bare and role is not Role.CODE:
            form = Form.BARE
        for folder in self._words.folders if UNKNOWN not in path else ():
            self._uses.setdefault(FileUse(join(folder, path), role, form))

    def _cannot(self, shown: str, why: str, role: Role = Role.CODE) -> None:
        if role is Role.CODE:
            self._runs_output = True
        elif self._guessing:
            return
        self._uses.setdefault(FileUse(shown[:80], role, why=why))


def _promoted(use: FileUse) -> FileUse:
    """What is read may be run."""
    return replace(use, role=Role.ARGUMENT) if use.role is Role.READ else use


def _option(args: list[Arg], at: int) -> tuple[str, Arg | None, int]:
    """An option, its value after ``=`` or in the next word, and where to go on then."""
    option, has_value, _ = args[at].text.partition("=")
    if has_value:
        return option, args[at].after(len(option) + 1), at + 1
    return option, next(islice(args, at + 1, None), None), at + 2


_LONG = {
    "--file": "f",
    "--include": "i",
    "--load": "l",
    "--exec": "E",
    "--expression": "e",
    "--source": "e",
    "--from-file": "f",
    "--library-path": "L",
}


def _short_option(
    args: list[Arg], at: int, letters: str
) -> tuple[str, Arg | None, int]:
    """The first of these letters in a cluster of options, and its value."""
    option, value, after = _option(args, at)
    if option[:2] == "--":
        letter = _LONG.get(option, "")
        used = bool(letter) and letter in letters
        return (letter, value, after) if used else ("", None, at + 1)
    found = (
        re.match(rf"-[^{letters}]*([{letters}])(.*)", args[at].text, re.DOTALL)
        if letters
        else None
    )
    if found is None:
        return "", None, at + 1
    if found[2]:
        return found[1], args[at].after(found.start(2)), at + 1
    return found[1], next(islice(args, at + 1, None), None), at + 2


def _known(text: str) -> str:
    """The known part of an encoded text."""
    return reveal(text).replace(UNKNOWN, " ").replace(SPLIT, " ")

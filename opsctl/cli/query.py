"""opsctl query list, show, run."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from opsctl import errors
from opsctl.cli import state
from opsctl.cli.options import (
    Place,
    common_options,
    database_options,
    find_output,
    find_place,
    find_settings,
    output_option,
    prepare_completion,
)
from opsctl.cli.output import clear_screen, show, show_rows, show_text
from opsctl.cli.progress import Progress
from opsctl.db import Session, open_session
from opsctl.errors import OpsctlError, Unreachable, UsageError
from opsctl.ops.queries import Prepared, explain_query, prepare_query, run_query
from opsctl.queryfiles import MOST_ROWS, SEARCH, Query, find_query, load_catalogue
from opsctl.rows import Rows
from opsctl.sqlfiles import family_of

_DIALECTS = tuple(SEARCH)


def _complete_query(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(q.name, help=q.problem or q.title)
        for q in _catalogue_for_completion(context).values()
        if q.name.startswith(incomplete)
    ]


def _complete_param(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    # While -p waits for its value click has not told NAME from other words.
    name = context.params.get("name") or next(iter(context.args), "")
    try:
        query = find_query(_catalogue_for_completion(context), str(name))
    except UsageError:
        return []
    return [CompletionItem(f"{p.name}=", help=p.purpose) for p in query.params if f"{p.name}=".startswith(incomplete)]


def _catalogue_for_completion(context: click.Context) -> dict[str, Query]:
    """Return the queries of all dialects: nobody has been asked which it is."""
    prepare_completion(context)
    found: dict[str, Query] = {}
    with contextlib.suppress(UsageError):
        directories = _directories(tuple(context.params.get("query_dir") or ()))
        for dialect in _DIALECTS:
            found |= load_catalogue(dialect, directories)
    return dict(sorted(found.items()))


_query_dir = click.option(
    "--query-dir",
    metavar="DIR",
    multiple=True,
    type=click.Path(file_okay=False),
    help="A directory with queries of your own, before opsctl's. May be repeated.",
)
_dialect = click.option(
    "--dialect",
    metavar="DIALECT",
    type=click.Choice(_DIALECTS),
    help="Whose version: mysql, mariadb or postgresql.  [default: that of the database which is named, else postgresql]",
)


@click.group("query")
def query() -> None:
    """Look into a live pair of tables by queries that are ready, and by your own."""


@query.command("list", short_help="List the queries.")
@output_option
@_query_dir
@_dialect
@common_options
def list_queries(output: str | None, query_dir: tuple[str, ...], dialect: str | None) -> int:
    """List the queries: what each is for, which index serves it, where it comes from."""
    form = find_output(output)
    catalogue = load_catalogue(dialect or _named_dialect(), _directories(query_dir))
    columns = ("name", "purpose", "parameters", "index", "source")
    rows = tuple(
        (
            one.name,
            f"broken: {one.problem}" if one.problem else one.title,
            " ".join(param.name + ("!" if param.required else "") for param in one.params),
            one.index or None,
            str(one.path) if one.own else "opsctl",
        )
        for one in catalogue.values()
    )
    show_rows(Rows(columns, rows), form, {})
    return errors.EXIT_YES


@query.command("show", short_help="Print a query's file.")
@click.argument("name", shell_complete=_complete_query)
@_query_dir
@_dialect
@common_options
def show_query(name: str, query_dir: tuple[str, ...], dialect: str | None) -> int:
    """Print a query as it stands in its file: purpose, parameters, index, cost and SQL."""
    found = find_query(load_catalogue(dialect or _named_dialect(), _directories(query_dir)), name)
    state.explain(str(found.path))
    show(found.body.rstrip())
    return errors.EXIT_YES


@query.command("run", short_help="Run a query, once or again and again, or show its plan.")
@click.argument("name", shell_complete=_complete_query)
@click.option(
    "-p",
    "--param",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=_complete_param,
    help="A parameter of the query; opsctl query show NAME lists them. May be repeated.",
)
@click.option("--limit", metavar="N", type=int, help="At most so many rows.  [default: the query's own, mostly 100]")
@click.option("--watch", metavar="S", type=float, help="Run it again every S seconds, until Ctrl-C.")
@click.option("--explain", is_flag=True, help="Show the server's plan instead; the query does not run.")
@click.option("--allow-scan", is_flag=True, help="Run it even if it reads a large table from end to end.")
@output_option
@_query_dir
@database_options()
def run(
    name: str,
    params: tuple[str, ...],
    limit: int | None,
    watch: float | None,
    explain: bool,
    allow_scan: bool,
    output: str | None,
    query_dir: tuple[str, ...],
    **options: Any,
) -> int:
    """Run a query in a read-only transaction, within the statement timeout.

    A query that would read a large table from end to end says so and wants --allow-scan.
    """
    form = find_output(output)
    if limit is not None and not 1 <= limit <= MOST_ROWS:
        raise UsageError(f"--limit {limit}: this is no number of rows", f"give a limit from 1 to {MOST_ROWS}")
    if watch is not None and not 0.1 <= watch <= 86_400:
        raise UsageError(f"--watch {watch:g}: this is no interval", "give seconds, between 0.1 and 86400")
    given = _given(params)
    directories = _directories(query_dir)
    place = find_place(options, for_schema_change=False)
    _check_before_connecting(name, given, place, directories)
    with open_session(place.target, place.timeouts, read_only=True) as session:
        found = find_query(load_catalogue(session.dialect.name, directories), name)
        prepared = prepare_query(
            session, found, _with_namespace(found, given, place), pair=place.pair, schema=place.schema, limit=limit
        )
        if explain:
            _show_plan(explain_query(session, prepared), form, {"query": found.name, "target": str(place.target)})
            return errors.EXIT_YES
        if watch is None:
            _show(session, prepared, form, allow_scan=allow_scan)
            return errors.EXIT_YES
    return _watch(prepared, place, watch, form, allow_scan=allow_scan)


def _check_before_connecting(name: str, given: dict[str, str], place: Place, directories: list[str]) -> None:
    """Raise what is wrong with the query or its parameters, unless it is right for one of the servers that it may be."""
    wrong: list[UsageError] = []
    for dialect in (dialect for dialect in _DIALECTS if family_of(dialect) == place.target.family):
        try:
            find_query(load_catalogue(dialect, directories), name).bind(given)
        except UsageError as error:
            wrong.append(error)
        else:
            return
    raise wrong[0]


def _show_plan(plan: Rows, form: str, facts: Mapping[str, Any]) -> None:
    """PostgreSQL's plan is text that has its own layout."""
    if form == "table" and len(plan.columns) == 1:
        show_text("\n".join(str(row[0]) for row in plan.rows))
    else:
        show_rows(plan, form, facts)


def _show(session: Session, prepared: Prepared, form: str, *, allow_scan: bool, watching: bool = False) -> None:
    started = time.monotonic()
    with Progress(prepared.query.name):
        rows = run_query(session, prepared, allow_scan=allow_scan)
    facts = {
        "query": prepared.query.name,
        "target": str(session.target),
        "server": {"product": session.server.product, "version": session.server.version},
    }
    if watching and sys.stdout.isatty():
        clear_screen()
        state.say(f"{prepared.query.name} on {session.target}, {time.strftime('%H:%M:%S UTC', time.gmtime())}")
    show_rows(rows, form, facts, watching=watching)
    if not rows.rows and form in ("table", "vertical"):
        state.say("no rows")
    if rows.more:
        state.say(f"there are more than these {len(rows):,} rows: raise --limit, or narrow it with -p")
    state.explain(f"{len(rows):,} rows in {time.monotonic() - started:.3f} s")


def _watch(prepared: Prepared, place: Place, interval_s: float, form: str, *, allow_scan: bool) -> int:
    """Run it again and again on one connection; a server that goes away is waited for, and said."""
    while True:
        try:
            with open_session(place.target, place.timeouts, read_only=True) as session:
                while True:
                    due = time.monotonic() + interval_s
                    _show(session, prepared, form, allow_scan=allow_scan, watching=True)
                    sys.stdout.flush()
                    time.sleep(max(0.0, due - time.monotonic()))
        except Unreachable as error:
            state.say(f"opsctl: {error.message}\n  {error.hint}; trying again in {interval_s:g} s")
            time.sleep(interval_s)


def _given(params: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in params:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"-p {text}: this names no value", "write -p NAME=VALUE")
        if name in given:
            raise UsageError(f"-p {name} is given twice", "keep one of them")
        given[name] = value
    return given


def _with_namespace(found: Query, given: Mapping[str, str], place: Place) -> dict[str, str]:
    """Add the namespace that is set, where the query has a parameter for it and none was given."""
    if place.namespace is None or "namespace" in given or "namespace" not in {param.name for param in found.params}:
        return dict(given)
    if place.namespace.origin != "--namespace":
        state.say(f"only namespace {place.namespace.value} ({place.namespace.origin})")
    return {**given, "namespace": place.namespace.value}


def _directories(given: tuple[str, ...]) -> list[str]:
    setting = find_settings({}).find("query_path")
    return [*given, *(path for path in (setting.value.split(":") if setting else ()) if path)]


def _named_dialect() -> str:
    """Return the dialect of the database that is named, as far as its DSN tells; nothing is contacted."""
    try:
        dsn = find_settings({}).find_dsn(for_schema_change=False).value
    except OpsctlError:
        return "postgresql"
    scheme = dsn.partition(":")[0]
    return next((name for name in ("mariadb", "mysql") if scheme.startswith(name)), "postgresql")

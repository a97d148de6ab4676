"""Read tables from pg_catalog, which every role may read: a role with SELECT only sees no constraint in information_schema.

Definitions are deparsed under search_path = pg_catalog, so their text does not depend on the session's own path.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from opsctl.db import Row, Session
from opsctl.schema.model import Check, Column, ForeignKey, Index, IndexPart, Table, Trigger, Unread

_KINDS = {
    "r": "table",
    "p": "partitioned table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
    "S": "sequence",
}
_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_PERSISTENCE = {"p": "logged", "u": "unlogged", "t": "temporary"}

_FIND = """
SELECT c.oid, c.relname AS name, n.nspname AS schema, c.relkind AS kind, c.relpersistence AS persistence,
       c.relrowsecurity AS row_security, c.relforcerowsecurity AS forced,
       coalesce(c.reloptions, '{}') AS options,
       pg_catalog.obj_description(c.oid, 'pg_class') AS comment,
       pg_catalog.pg_table_is_visible(c.oid) AS visible,
       has_schema_privilege(n.oid, 'USAGE') AS usable,
       c.relreplident = 'n' AND EXISTS (
         SELECT FROM pg_catalog.pg_publication_tables pt JOIN pg_catalog.pg_publication pb ON pb.pubname = pt.pubname
          WHERE pt.schemaname = n.nspname AND pt.tablename = c.relname AND (pb.pubupdate OR pb.pubdelete)) AS unidentified,
       EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid) AS has_children,
       EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid) AS has_parents,
       coalesce((SELECT option_value FROM pg_catalog.pg_options_to_table(t.reloptions)
                  WHERE option_name = 'autovacuum_enabled'), '') AS toast_autovacuum
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_class t ON t.oid = c.reltoastrelid
 WHERE c.relname = ANY (:names) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
"""

_COLUMNS = """
SELECT a.attrelid AS oid, a.attname AS name, CASE WHEN t.typtype = 'd' THEN 'domain ' ELSE '' END || pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
       NOT a.attnotnull AND NOT t.typnotnull AND NOT EXISTS (
         SELECT FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid)
       OR EXISTS (SELECT FROM pg_catalog.pg_constraint k
                   WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND NOT k.convalidated
                     AND k.conkey = ARRAY[a.attnum]) AS nullable, a.attgenerated AS generated, a.attidentity AS identity,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS expression,
       CASE WHEN a.attcollation <> t.typcollation
            THEN (SELECT l.collname FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation) END AS collation,
       pg_catalog.col_description(a.attrelid, a.attnum) AS comment
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attrelid = ANY (:oids) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attrelid, a.attnum
"""

_INDEXES = """
SELECT i.indrelid AS oid, c.relname AS name, i.indisunique AS unique, i.indisprimary AS primary, m.amname AS method,
       i.indisvalid AND i.indisready AND i.indislive AS valid, i.indnkeyatts AS keys,
       coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) AS nulls_not_distinct,
       pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS predicate,
       con.contype IS NOT NULL AS constraint, coalesce(con.condeferrable, false) AS deferrable,
       pg_catalog.obj_description(c.oid, 'pg_class') AS comment,
       (SELECT json_agg(json_build_object(
                 'text', pg_catalog.pg_get_indexdef(i.indexrelid, k.n, true),
                 'column', a.attname,
                 'option', i.indoption[k.n - 1],
                 'opclass', CASE WHEN o.opcdefault OR o.opcname = 'varchar_ops' THEN NULL ELSE o.opcname END,
                 'collation', CASE WHEN i.indcollation[k.n - 1] NOT IN (0, coalesce(a.attcollation, 100))
                                   THEN l.collname END) ORDER BY k.n)
          FROM generate_series(1, i.indnatts) AS k (n)
          LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.n - 1] AND a.attnum > 0
          LEFT JOIN pg_catalog.pg_opclass o ON o.oid = i.indclass[k.n - 1] AND k.n <= i.indnkeyatts
          LEFT JOIN pg_catalog.pg_collation l ON l.oid = i.indcollation[k.n - 1] AND k.n <= i.indnkeyatts) AS parts
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_am m ON m.oid = c.relam
  LEFT JOIN pg_catalog.pg_constraint con ON con.conindid = i.indexrelid AND con.contype IN ('p', 'u', 'x')
 WHERE i.indrelid = ANY (:oids)
 ORDER BY c.relname
"""

_CONSTRAINTS = """
SELECT k.conrelid AS oid, k.conname AS name, k.contype AS type, k.convalidated AS validated,
       k.condeferrable AS deferrable, k.confdeltype AS on_delete, k.confupdtype AS on_update, k.confmatchtype AS match,
       coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) AS enforced,
       pg_catalog.pg_get_expr(k.conbin, k.conrelid) AS expression,
       pg_catalog.pg_get_constraintdef(k.oid) AS definition,
       fn.nspname AS ref_schema, f.relname AS ref_table, n.nspname AS schema,
       ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u (num, n)
               JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.num ORDER BY u.n) AS columns,
       ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u (num, n)
               JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.num ORDER BY u.n) AS ref_columns,
       NOT EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgconstraint = k.oid AND g.tgisinternal
                      AND g.tgenabled IN ('D', 'R')) AS triggers_enabled
  FROM pg_catalog.pg_constraint k
  JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_class f ON f.oid = k.confrelid
  LEFT JOIN pg_catalog.pg_namespace fn ON fn.oid = f.relnamespace
 WHERE k.conrelid = ANY (:oids) AND k.contype IN ('c', 'f', 'x')
 ORDER BY k.conname
"""

_TRIGGERS = """
SELECT g.tgrelid AS oid, g.tgname AS name, pg_catalog.pg_get_triggerdef(g.oid) AS definition, 'trigger' AS kind,
       g.tgenabled NOT IN ('D', 'R') AS enabled
  FROM pg_catalog.pg_trigger g WHERE g.tgrelid = ANY (:oids) AND NOT g.tgisinternal
UNION ALL
SELECT r.ev_class, r.rulename, pg_catalog.pg_get_ruledef(r.oid), 'rule', r.ev_enabled NOT IN ('D', 'R')
  FROM pg_catalog.pg_rewrite r WHERE r.ev_class = ANY (:oids) AND r.rulename <> '_RETURN'
UNION ALL
SELECT p.polrelid, p.polname, 'POLICY ' || p.polname, 'policy', true
  FROM pg_catalog.pg_policy p WHERE p.polrelid = ANY (:oids)
 ORDER BY 2
"""


def read_tables(session: Session, names: Iterable[str], *, schema: str | None) -> dict[str, Table | None]:
    """Read the tables `names` from `schema`, or from where the search_path finds them, as onestep does.

    Deparsing opens the table, so this waits behind ACCESS EXCLUSIVE, up to the session's lock timeout. A table that does
    not exist is None; one that this role may not see into is a Table with an unread fact.
    """
    wanted = list(names)
    found = session.rows(_FIND, names=[*wanted, *(f"{p}{n}{s}" for n in wanted for p, s in _BESIDE)])
    result: dict[str, Table | None] = {}
    chosen: dict[str, Row] = {}
    for name in wanted:
        candidates = [row for row in found if row["name"] == name]
        here = [row for row in candidates if (row["visible"] if schema is None else row["schema"] == schema)]
        hidden = [row for row in candidates if not row["usable"] and row not in here]
        if here:
            chosen[name] = here[0]
        elif hidden and schema is None:
            reason = f"the role has no USAGE on schema {hidden[0]['schema']}, which has a table of this name"
            result[name] = Table(name, unread=(Unread(name, "table", reason),))
        else:
            result[name] = None
    oids = {row["oid"]: name for name, row in chosen.items()}
    facts = _read_facts(session, list(oids)) if oids else _Facts()
    for oid, name in oids.items():
        row = chosen[name]
        beside = {
            other["name"]
            for other in found
            if other["schema"] == row["schema"] and other["name"] in {f"{p}{name}{s}" for p, s in _BESIDE}
        }
        result[name] = _table(row, facts, oid, beside)
    return result


def schemas_with(session: Session, name: str) -> list[str]:
    """Return the schemas, in alphabetical order, that have a table `name`."""
    return sorted(row["schema"] for row in session.rows(_FIND, names=[name]))


#: What pg-osc, pgroll and hand-made copies of the MySQL tools leave beside a table.
_BESIDE = (("_", "_new"), ("_", "_old"), ("_", "_gho"), ("_", "_ghc"), ("_", "_del"))


class _Facts:
    def __init__(self) -> None:
        self.columns: dict[int, list[Column]] = defaultdict(list)
        self.indexes: dict[int, list[Index]] = defaultdict(list)
        self.checks: dict[int, list[Check]] = defaultdict(list)
        self.keys: dict[int, list[ForeignKey]] = defaultdict(list)
        self.triggers: dict[int, list[Trigger]] = defaultdict(list)


def _read_facts(session: Session, oids: list[int]) -> _Facts:
    facts = _Facts()
    path = session.scalar("SELECT current_setting('search_path')")
    session.run("SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)")
    try:
        for row in session.rows(_COLUMNS, oids=oids):
            facts.columns[row["oid"]].append(_column(row))
        for row in session.rows(_INDEXES, oids=oids):
            facts.indexes[row["oid"]].append(_index(row))
        for row in session.rows(_CONSTRAINTS, oids=oids):
            if row["type"] == "f":
                facts.keys[row["oid"]].append(_foreign_key(row))
            elif row["type"] == "c":
                facts.checks[row["oid"]].append(
                    Check(row["name"], row["expression"], row["enforced"], row["validated"])
                )
            else:
                facts.checks[row["oid"]].append(Check(row["name"], row["definition"]))
        for row in session.rows(_TRIGGERS, oids=oids):
            facts.triggers[row["oid"]].append(Trigger(row["name"], row["definition"], row["kind"], row["enabled"]))
    finally:
        session.rows("SELECT pg_catalog.set_config('search_path', :path, false)", path=path)
    return facts


def _table(row: Row, facts: _Facts, oid: int, beside: set[str]) -> Table:
    options = {"schema": row["schema"], "persistence": _PERSISTENCE[row["persistence"]]}
    if row["row_security"]:
        options["row level security"] = "forced" if row["forced"] else "enabled"
    if row["unidentified"]:
        options["replica identity"] = "nothing"
    if row["has_children"]:
        options["inheritance"] = "has children"
    if row["has_parents"]:
        options["inheritance"] = "is a child"
    for option in row["options"]:
        key, _, value = option.partition("=")
        options[key] = value
    if row["toast_autovacuum"]:
        options["toast.autovacuum_enabled"] = row["toast_autovacuum"]
    if row["comment"]:
        options["comment"] = row["comment"]
    return Table(
        name=row["name"],
        kind=_KINDS[row["kind"]],
        columns=tuple(facts.columns[oid]),
        indexes=tuple(facts.indexes[oid]),
        checks=tuple(facts.checks[oid]),
        foreign_keys=tuple(facts.keys[oid]),
        triggers=tuple(facts.triggers[oid]),
        options=options,
        beside=tuple(sorted(beside)),
    )


def _column(row: Row) -> Column:
    generated = row["generated"]
    kind = {"s": "STORED", "v": "VIRTUAL"}.get(generated, "")
    return Column(
        name=row["name"],
        type=row["type"],
        nullable=row["nullable"],
        default=None if generated else canonical_default(row["expression"]),
        collation=row["collation"],
        generated=f"({row['expression']}) {kind}" if kind else None,
        identity={"a": "ALWAYS", "d": "BY DEFAULT"}.get(row["identity"]),
        comment=row["comment"],
    )


def canonical_default(expression: str | None) -> str | None:
    """Return a default without the cast that the server adds: '{}'::jsonb is '{}', '0'::bigint is 0."""
    if expression is None:
        return None
    text = expression
    while match := _CAST.fullmatch(text):
        text = match["plain"] or match["wrapped"]
    inner = text[1:-1]
    return inner if text.startswith("'") and re.fullmatch(r"-?\d+", inner) else text


#: A literal with a cast behind it, in parentheses or not: '{}'::jsonb, ('{}'::text)::jsonb, (0)::bigint.
_CAST = re.compile(
    r"(?:(?P<plain>'(?:[^']|'')*'|-?\d+)|\((?P<wrapped>(?:'(?:[^']|'')*'|-?\d+)(?:::[a-z ]+)*)\))(?:::[a-z ]+(?:\(\d+\))?)+"
)


def _index(row: Row) -> Index:
    parts = row["parts"] or []
    return Index(
        name=row["name"],
        parts=tuple(_part(part) for part in parts[: row["keys"]]),
        unique=row["unique"],
        primary=row["primary"],
        constraint=row["constraint"],
        method=row["method"],
        include=tuple(part["column"] or part["text"] for part in parts[row["keys"] :]),
        predicate=row["predicate"],
        nulls_not_distinct=row["nulls_not_distinct"],
        valid=row["valid"],
        deferrable=row["deferrable"],
        comment=row["comment"],
    )


def _part(part: dict[str, Any]) -> IndexPart:
    option = part["option"] or 0
    return IndexPart(
        name=part["column"] or part["text"],
        expression=part["column"] is None,
        descending=bool(option & 1),
        nulls_first=bool(option & 2),
        opclass=part["opclass"],
        collation=part["collation"],
    )


def _foreign_key(row: Row) -> ForeignKey:
    table = row["ref_table"] if row["ref_schema"] == row["schema"] else f"{row['ref_schema']}.{row['ref_table']}"
    return ForeignKey(
        name=row["name"],
        columns=tuple(row["columns"]),
        ref_table=table,
        ref_columns=tuple(row["ref_columns"]),
        on_delete=_ACTIONS[row["on_delete"]],
        on_update=_ACTIONS[row["on_update"]],
        match={"s": "SIMPLE", "f": "FULL", "p": "PARTIAL"}[row["match"]],
        validated=row["validated"],
        enforced=row["enforced"],
        deferrable=row["deferrable"],
        triggers_enabled=row["triggers_enabled"],
    )

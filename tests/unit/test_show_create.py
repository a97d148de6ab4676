"""What SHOW CREATE TABLE prints on MySQL 8.0 to 9 and MariaDB 10.6 to 11, read into a table."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsctl.schema.model import Check, Column, ForeignKey, Index, IndexPart, Table
from opsctl.schema.show_create import parse_show_create

DEFAULTS = {"utf8mb4": "utf8mb4_0900_ai_ci", "latin1": "latin1_swedish_ci", "utf8mb3": "utf8mb3_general_ci"}

MYSQL = """CREATE TABLE `onestep_executions` (
  `id` char(32) NOT NULL,
  `namespace` varchar(255) NOT NULL,
  `payload` json NOT NULL,
  `metadata` json NOT NULL DEFAULT (json_object()),
  `result` json DEFAULT NULL,
  `idempotency_key` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  `attempts` int NOT NULL DEFAULT '0',
  `created_at` datetime(6) NOT NULL,
  `version` bigint NOT NULL DEFAULT '0',
  PRIMARY KEY (`id`),
  UNIQUE KEY `uq_onestep_executions_idempotency` (`namespace`,`idempotency_key`),
  KEY `ix_onestep_executions_list` (`namespace`,`created_at` DESC,`id` DESC),
  CONSTRAINT `fk_x` FOREIGN KEY (`id`) REFERENCES `other` (`id`) ON DELETE CASCADE,
  CONSTRAINT `ck_onestep_executions_status` CHECK ((`namespace` in (_utf8mb4'queued',_utf8mb4'it''s'))),
  CONSTRAINT `ck_off` CHECK ((`attempts` > 0)) /*!80016 NOT ENFORCED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"""

MARIADB = """CREATE TABLE `onestep_executions` (
  `id` uuid NOT NULL,
  `namespace` varchar(255) NOT NULL,
  `payload` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`payload`)),
  `metadata` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT json_object() CHECK (json_valid(`metadata`)),
  `result` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`result`)),
  `attempts` int(11) NOT NULL DEFAULT 0,
  `version` bigint(20) NOT NULL DEFAULT 0,
  `created_at` datetime(6) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `ix_onestep_executions_list` (`namespace`,`created_at` DESC,`id` DESC),
  CONSTRAINT `ck_onestep_executions_status` CHECK (`namespace` in ('queued','running'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_uca1400_ai_ci"""


def read(text: str) -> Table:
    return parse_show_create(text, default_collation=lambda charset: DEFAULTS.get(charset, ""))


def read_part(part: str, options: str = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4") -> Table:
    return read(f"CREATE TABLE `t` (\n  {part}\n) {options}")


def column(definition: str) -> Column:
    table = read_part(f"`c` {definition}")
    assert not table.unread
    assert not table.checks
    (only,) = table.columns
    assert only.name == "c"
    return only


def test_a_table_of_mysql() -> None:
    table = read(MYSQL)
    text = {"charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}
    assert table.unread == ()
    assert table.columns == (
        Column("id", "char(32)", False, **text),
        Column("namespace", "varchar(255)", False, **text),
        Column("payload", "json", False),
        Column("metadata", "json", False, default="json_object()"),
        Column("result", "json", True),
        Column("idempotency_key", "varchar(255)", True, charset="utf8mb4", collation="utf8mb4_bin"),
        Column("attempts", "int", False, default="0"),
        Column("created_at", "datetime(6)", False),
        Column("version", "bigint", False, default="0"),
    )
    assert table.indexes == (
        Index("PRIMARY", (IndexPart("id"),), unique=True, primary=True),
        Index("uq_onestep_executions_idempotency", (IndexPart("namespace"), IndexPart("idempotency_key")), unique=True),
        Index(
            "ix_onestep_executions_list",
            (IndexPart("namespace"), IndexPart("created_at", descending=True), IndexPart("id", descending=True)),
        ),
    )
    assert table.checks == (
        Check("ck_onestep_executions_status", "(`namespace` in (_utf8mb4'queued',_utf8mb4'it''s'))"),
        Check("ck_off", "(`attempts` > 0)", enforced=False),
    )
    assert table.foreign_keys == (ForeignKey("fk_x", ("id",), "other", ("id",), on_delete="CASCADE"),)
    assert table.options == {"engine": "InnoDB", **text}


def test_a_table_of_mariadb() -> None:
    table = read(MARIADB)
    assert table.unread == ()
    assert [(c.name, c.type, c.nullable, c.default) for c in table.columns] == [
        ("id", "uuid", False, None),
        ("namespace", "varchar(255)", False, None),
        ("payload", "json", False, None),
        ("metadata", "json", False, "json_object()"),
        ("result", "json", True, None),
        ("attempts", "int", False, "0"),
        ("version", "bigint", False, "0"),
        ("created_at", "datetime(6)", False, None),
    ]
    assert table.columns[1].collation == "utf8mb4_uca1400_ai_ci"
    assert table.columns[2].collation is None  # a json's is its own business
    assert table.checks == (Check("ck_onestep_executions_status", "`namespace` in ('queued','running')"),)


@pytest.mark.parametrize(
    ("definition", "properties"),
    [
        ("int DEFAULT NULL", {"type": "int", "nullable": True, "default": None}),
        ("int(11) NOT NULL", {"type": "int", "nullable": False}),
        ("int(10) unsigned NOT NULL AUTO_INCREMENT", {"type": "int unsigned", "auto_increment": True}),
        ("int(5) unsigned zerofill DEFAULT NULL", {"type": "int unsigned zerofill"}),
        ("tinyint(1) DEFAULT NULL", {"type": "tinyint(1)"}),
        ("tinyint(4) DEFAULT NULL", {"type": "tinyint"}),
        ("decimal(10,2) NOT NULL DEFAULT '-1.50'", {"type": "decimal(10,2)", "default": "'-1.50'"}),
        ("int(11) DEFAULT -1", {"default": "-1"}),
        ("int DEFAULT '-1'", {"default": "-1"}),
        ("enum('a b','a,b','it''s)','ü') NOT NULL", {"type": "enum('a b','a,b','it''s)','ü')"}),
        ("varchar(10) DEFAULT ''", {"default": "''"}),
        ("varchar(10) DEFAULT 'NULL'", {"default": "'NULL'"}),
        ("varchar(10) DEFAULT 'it''s, (a) `b`'", {"default": "'it''s, (a) `b`'"}),
        ("varchar(10) DEFAULT (_utf8mb4'x')", {"default": "'x'"}),
        ("bit(1) DEFAULT b'0'", {"default": "b'0'"}),
        ("datetime(6) DEFAULT CURRENT_TIMESTAMP(6)", {"default": "current_timestamp(6)"}),
        (
            "timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp()",
            {"default": "current_timestamp()", "on_update": "current_timestamp()"},
        ),
        ("timestamp NULL DEFAULT NULL", {"nullable": True}),
        ("char(36) DEFAULT uuid()", {"default": "uuid()"}),
        ("char(36) DEFAULT (uuid())", {"default": "uuid()"}),
        ("datetime DEFAULT ((now() + interval 1 day))", {"default": "now() + interval 1 day"}),
        ("int GENERATED ALWAYS AS ((`a` + 1)) STORED NOT NULL", {"generated": "((`a` + 1)) STORED", "nullable": False}),
        ("varchar(9) GENERATED ALWAYS AS (concat(`a`,')')) VIRTUAL", {"generated": "(concat(`a`,')')) VIRTUAL"}),
        (
            "int(11) GENERATED ALWAYS AS (`a` + 1) STORED INVISIBLE",
            {"generated": "(`a` + 1) STORED", "invisible": True},
        ),
        ("timestamp(6) GENERATED ALWAYS AS ROW START", {"generated": "ROW START"}),
        ("int DEFAULT NULL /*!80023 INVISIBLE */", {"invisible": True}),
        ("int(11) INVISIBLE DEFAULT 3", {"invisible": True, "default": "3"}),
        ("int(11) DEFAULT NULL WITHOUT SYSTEM VERSIONING", {"nullable": True}),
        ("varchar(9) COLLATE utf8mb4_bin NOT NULL", {"charset": "utf8mb4", "collation": "utf8mb4_bin"}),
        ("varchar(9) CHARACTER SET latin1 NOT NULL", {"charset": "latin1", "collation": "latin1_swedish_ci"}),
        ("varchar(9) CHARACTER SET latin1 COLLATE latin1_bin", {"charset": "latin1", "collation": "latin1_bin"}),
        ("int COMMENT 'it''s `a`, (b)\\nnew 😀 \\\\ NOT NULL'", {"comment": "it's `a`, (b)\nnew 😀 \\ NOT NULL"}),
        ("double DEFAULT NULL COMMENT 'CHECK (x)'", {"comment": "CHECK (x)", "type": "double"}),
    ],
)
def test_columns(definition: str, properties: dict[str, object]) -> None:
    found = column(definition)
    assert {name: getattr(found, name) for name in properties} == properties


def test_a_collation_is_the_tables_or_its_charsets_default() -> None:
    assert column("text").collation == "utf8mb4_0900_ai_ci"
    other = read_part("`c` text", "ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin").columns[0]
    assert (other.charset, other.collation) == ("latin1", "latin1_bin")
    assert read_part("`c` int").columns[0].collation is None


def test_json_is_longtext_with_its_own_check_in_the_column() -> None:
    longtext = "`c` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL"
    assert read_part(longtext).columns[0].type == "longtext"
    assert read_part(f"{longtext} CHECK (json_valid(`c`))").columns[0].type == "json"
    # a CHECK over another column, one on another type, and MySQL's, which is no part of the column: rules like others
    for part in (
        f"{longtext} CHECK (json_valid(`d`))",
        "`c` varchar(9) CHECK (json_valid(`c`))",
        f"{longtext},\n CONSTRAINT `x` CHECK (json_valid(`c`))",
        f"{longtext} CHECK (json_valid(`c`) or `c` = '')",
    ):
        table = read_part(part)
        assert table.columns[0].type != "json"
        assert len(table.checks) == 1


@pytest.mark.parametrize(
    ("part", "index"),
    [
        ("KEY `k` (`a`(10),`b`)", Index("k", (IndexPart("a", prefix=10), IndexPart("b")))),
        ("KEY `k` ((lower(`a`)),`b` DESC)", Index("k", (IndexPart("lower(`a`)", True), IndexPart("b", descending=True)))),
        ("KEY `k` ((cast(`a` as char(3) array)))", Index("k", (IndexPart("cast(`a` as char(3) array)", True),))),
        ("KEY `k` (`a`) /*!80000 INVISIBLE */", Index("k", (IndexPart("a"),), visible=False)),
        ("KEY `k` (`a`) IGNORED", Index("k", (IndexPart("a"),), visible=False)),
        ("UNIQUE KEY `k` (`a`) USING BTREE", Index("k", (IndexPart("a"),), unique=True)),
        ("KEY `k` (`a`) USING HASH", Index("k", (IndexPart("a"),), method="hash")),
        ("KEY `k` (`a`) KEY_BLOCK_SIZE=4 COMMENT 'a, (b) IGNORED'", Index("k", (IndexPart("a"),), comment="a, (b) IGNORED")),
        ("FULLTEXT KEY `k` (`a`) /*!50100 WITH PARSER `ngram` */ ", Index("k", (IndexPart("a"),), method="fulltext")),
        ("SPATIAL KEY `k` (`a`)", Index("k", (IndexPart("a"),), method="spatial")),
        ("UNIQUE KEY `a ``b``, (c)` (`x,y`,`p(q)`)", Index("a `b`, (c)", (IndexPart("x,y"), IndexPart("p(q)")), unique=True)),
    ],
)  # fmt: skip
def test_indexes(part: str, index: Index) -> None:
    table = read_part(part)
    assert table.indexes == (index,)
    assert not table.unread


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("REFERENCES `p` (`id`)", ForeignKey("f", ("a",), "p", ("id",))),
        ("REFERENCES `p` (`id`) ON DELETE RESTRICT", ForeignKey("f", ("a",), "p", ("id",))),
        ("REFERENCES `p` (`id`) ON DELETE NO ACTION", ForeignKey("f", ("a",), "p", ("id",))),
        (
            "REFERENCES `other db`.`p` (`id`) ON DELETE SET NULL ON UPDATE CASCADE",
            ForeignKey("f", ("a",), "other db.p", ("id",), on_delete="SET NULL", on_update="CASCADE"),
        ),
    ],
)
def test_foreign_keys(part: str, key: ForeignKey) -> None:
    table = read_part(f"CONSTRAINT `f` FOREIGN KEY (`a`) {part}")
    assert table.foreign_keys == (key,)
    assert not table.unread


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("ENGINE=MyISAM", {"engine": "MyISAM", "collation": ""}),
        ("ENGINE=InnoDB AUTO_INCREMENT=12 DEFAULT CHARSET=utf8mb3", {
            "engine": "InnoDB", "auto_increment": "12", "charset": "utf8mb3", "collation": "utf8mb3_general_ci"}),
        ("ENGINE=InnoDB COMMENT='it''s, a=b; (c)' ROW_FORMAT=DYNAMIC", {
            "engine": "InnoDB", "comment": "it's, a=b; (c)", "row_format": "DYNAMIC", "collation": ""}),
        ("/*!50100 TABLESPACE `ts 1` */ ENGINE=InnoDB /*!80016 ENCRYPTION='Y' */", {
            "tablespace": "ts 1", "engine": "InnoDB", "encryption": "Y", "collation": ""}),
        ("ENGINE=InnoDB DATA DIRECTORY='/a b/' PAGE_COMPRESSED=1 `compression`='x'", {
            "engine": "InnoDB", "data directory": "/a b/", "page_compressed": "1", "compression": "x", "collation": ""}),
        ("ENGINE=InnoDB WITH SYSTEM VERSIONING", {"engine": "InnoDB", "system versioning": "on", "collation": ""}),
        ("ENGINE=InnoDB\n/*!50100 PARTITION BY HASH (`a`)\nPARTITIONS 4 */", {
            "engine": "InnoDB", "partitions": "HASH (`a`)\nPARTITIONS 4", "collation": ""}),
        ("ENGINE=InnoDB\n PARTITION BY RANGE (`a`)\n(PARTITION `p` VALUES LESS THAN (3) ENGINE = InnoDB)", {
            "engine": "InnoDB", "collation": "",
            "partitions": "RANGE (`a`)\n(PARTITION `p` VALUES LESS THAN (3) ENGINE = InnoDB)"}),
    ],
)  # fmt: skip
def test_options(options: str, expected: dict[str, str]) -> None:
    table = read_part("`a` int", options)
    assert table.options == expected
    assert not table.unread


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("`c` datetime /* mariadb-5.3 */ DEFAULT NULL", "c"),
        ("`c` int FROBNICATED", "c"),
        ("KEY `k` (`a`) FROBNICATED", "k"),
        ("KEY `k` (`a` FROBNICATED)", "k"),
        ("UNIQUE KEY `k` (`a`,`p` WITHOUT OVERLAPS)", "k"),
        ("VECTOR KEY `k` (`v`) `M`=8", "k"),
        ("PRIMARY KEY (`c`) FROBNICATED", "PRIMARY"),
        ("FROBNICATED KEY `k` (`a`)", "k"),
        ("CONSTRAINT `x` CHECK (`a` > 1) FROBNICATED", "x"),
        ("CONSTRAINT `x` FOREIGN KEY (`a`) REFERENCES `p` (`id`) MATCH FULL", "x"),
        ("CONSTRAINT `x` FOREIGN KEY (`a`) REFERENCES `p` (`id`) ON FROB CASCADE", "x"),
        ("PERIOD FOR SYSTEM_TIME (`a`, `b`)", "PERIOD FOR SYSTEM_TIME"),
        ("PERIOD FOR `p` (`a`, `b`)", "p"),
    ],
)
def test_what_is_unknown_is_unread_and_names_its_object(part: str, name: str) -> None:
    table = read_part(f"`other` int NOT NULL,\n  {part},\n  KEY `last` (`other`)")
    (fact,) = table.unread
    assert (fact.object, fact.property) == (name, "definition")
    assert fact.reason
    assert table.columns[0] == Column("other", "int", False)  # and the rest is read
    assert table.indexes[-1] == Index("last", (IndexPart("other"),))


def test_a_column_half_read_keeps_what_is_known() -> None:
    table = read_part("`c` varchar(9) NOT NULL FROBNICATED DEFAULT 'x'")
    assert table.columns == (Column("c", "varchar(9)", False, charset="utf8mb4", collation="utf8mb4_0900_ai_ci"),)


def test_options_that_cannot_be_read_are_unread() -> None:
    table = read_part("`a` int", "ENGINE=InnoDB ??? DEFAULT CHARSET=utf8mb4")
    assert table.options["engine"] == "InnoDB"
    assert [(fact.object, fact.property) for fact in table.unread] == [("t", "options")]


@pytest.mark.parametrize(
    "text",
    ["", "CREATE", "CREATE TABLE", "CREATE TABLE `t`", "CREATE TABLE `t` (", "CREATE VIEW `t` AS SELECT 1",
     "CREATE ALGORITHM=UNDEFINED VIEW `t` AS select 1", "CREATE TABLE 't' (`a` int)", "DROP TABLE `t`", "\0", "`"],
)  # fmt: skip
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|early"):
        read(text)


# -- damaged input: ValueError or Unread, nothing else, and nothing silently lost --------------------------------

TEXTS = [MYSQL, MARIADB]
#: Tokens that say nothing: the marks of version comments; = and DEFAULT before an option of the
#: table; the collation of a json column.
NOISE = re.compile(r"/\*M?!\d*|\*/|=|DEFAULT|utf8mb4_bin")
tokens = re.compile(r"/\*!\d*|\*/|`[^`]*`|'(?:[^']|'')*'|\w+|[^\w\s]")


@given(st.sampled_from(TEXTS), st.data())
def test_a_truncated_text_is_never_read_as_whole(text: str, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, text.rindex("\n)") + 1))
    with pytest.raises(ValueError, match=r"expected|early"):
        read(text[:end])


@given(st.sampled_from(TEXTS), st.data())
def test_a_missing_token_shows(text: str, data: st.DataObject) -> None:
    found = list(tokens.finditer(text))
    match = found[data.draw(st.integers(0, len(found) - 1))]
    try:
        table = read(text[: match.start()] + text[match.end() :])
    except ValueError:
        return
    assert table != read(text) or NOISE.fullmatch(match[0])


@given(st.sampled_from(TEXTS), st.integers(0, 2000), st.text(alphabet="`'(),\\ \n/*!5a0😀", min_size=1, max_size=5))
def test_inserted_garbage_raises_nothing_but_value_error(text: str, place: int, garbage: str) -> None:
    with contextlib.suppress(ValueError):
        read(text[:place] + garbage + text[place:])


@given(st.text())
def test_any_text_raises_nothing_but_value_error(text: str) -> None:
    try:
        table = read(f"CREATE TABLE `t` ({text}) ENGINE=InnoDB")
    except ValueError:
        return
    empty = not re.sub(r"/\*M?!\d*|\*/|[\s,]", "", text)
    assert empty or table.unread or table.columns or table.indexes or table.checks


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_comment_and_any_name_come_back(text: str) -> None:
    # as append_unescaped and append_identifier of the servers print them
    escapes = {"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    comment = "".join(escapes.get(character, character) for character in text)
    name = text.replace("`", "``") or "x"
    table = read_part(f"`{name}` int NOT NULL COMMENT '{comment}',\n  KEY `{name}` (`{name}`)")
    assert table.unread == ()
    assert table.columns == (Column(text or "x", "int", False, comment=text),)
    assert table.indexes == (Index(text or "x", (IndexPart(text or "x"),)),)

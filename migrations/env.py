"""Alembic's environment for opsctl's revisions. opsctl runs it with a connection, a pair and a version table of its own.

Source of the arguments: opsctl/schema/versions.py. Every pair has its own version table, so two pairs in one schema can
stand at different versions.
"""

from __future__ import annotations

from alembic import context

attributes = context.config.attributes
if "pair" not in attributes:
    raise SystemExit("these revisions need to know the pair of tables: run them through opsctl (opsctl init-tables)")

context.configure(
    connection=attributes.get("connection"),
    dialect_name=attributes["dialect_name"],
    as_sql=attributes.get("connection") is None,
    output_buffer=attributes.get("output_buffer"),
    version_table=attributes["version_table"],
    version_table_schema=attributes["version_schema"],
    target_metadata=None,
    transactional_ddl=False,  # opsctl holds the transaction and the lock around all of it
)
context.run_migrations()

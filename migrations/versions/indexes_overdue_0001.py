"""The operational index `overdue`, from sql/<dialect>/indexes/overdue.sql; what makes it online is `opsctl tune apply`."""

from __future__ import annotations

from alembic import context, op

revision = "indexes_overdue_0001"
down_revision = "indexes_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run what opsctl found to be missing."""
    for statement in context.config.attributes["statements"]:
        op.execute(statement)


def downgrade() -> None:
    """Run what takes it back, as opsctl wrote it."""
    for statement in context.config.attributes["statements"]:
        op.execute(statement)

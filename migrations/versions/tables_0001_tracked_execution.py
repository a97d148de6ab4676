"""V1: the pair of tables of onestep's tracked execution, from sql/<dialect>/schema/V1__tracked_execution.sql."""

from __future__ import annotations

from alembic import context, op

from opsctl.errors import Guarded

revision = "tables_0001"
down_revision = None
branch_labels = ("tables",)
depends_on = None


def upgrade() -> None:
    """Create the tables of the pair that are not there; opsctl has checked the ones that are."""
    for statement in context.config.attributes["statements"]:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: there is nothing below V1 but the loss of every execution."""
    raise Guarded(
        "the branch 'tables' has no version below V1: going down would drop the tables with every execution in them",
        "drop the tables by hand if that is what you mean",
    )

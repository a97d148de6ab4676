"""V1: the pair of tables of onestep's tracked execution, from sql/<dialect>/schema/V1__tracked_execution.sql."""

from __future__ import annotations

from opsctl.errors import Guarded
from opsctl.schema.versions import run_given_statements

revision = "tables_0001"
down_revision = None
branch_labels = ("tables",)
depends_on = None
#: Creates the tables of the pair that are not there; opsctl has checked the ones that are.
upgrade = run_given_statements


def downgrade() -> None:
    """Refuse: there is nothing below V1 but the loss of every execution."""
    raise Guarded(
        "the branch 'tables' has no version below V1: going down would drop the tables with every execution in them",
        "drop the tables by hand if that is what you mean",
    )

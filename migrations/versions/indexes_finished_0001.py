"""The operational index `finished`, from sql/<dialect>/indexes/finished.sql; what makes it online is `opsctl tune apply`."""

from __future__ import annotations

from opsctl.schema.versions import run_given_statements

revision = "indexes_finished_0001"
down_revision = "indexes_0001"
branch_labels = None
depends_on = None
upgrade = downgrade = run_given_statements

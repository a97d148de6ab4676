"""The beginning of the branch `indexes`, behind which each operational index stands as a head of its own."""

from __future__ import annotations

revision = "indexes_0001"
down_revision = None
branch_labels = ("indexes",)
depends_on = None


def upgrade() -> None:
    """Change nothing."""


def downgrade() -> None:
    """Change nothing."""

"""opsctl grants sql."""

from __future__ import annotations

import click


@click.group("grants")
def grants() -> None:
    """Least rights for each role, as SQL."""

"""opsctl: the operational CLI and migration toolkit for long jobs tracked in a database."""

__version__ = "0.1.0"

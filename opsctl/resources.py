"""Where sql/ and migrations/ are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

from opsctl.errors import OpsctlError

_PACKAGE = Path(__file__).resolve().parent


def find_resource(name: str) -> Path:
    """Return the directory `name` ("sql" or "migrations"). Raises OpsctlError when the installation is damaged."""
    for parent in (_PACKAGE, _PACKAGE.parent):
        path = parent / name
        if path.is_dir():
            return path
    raise OpsctlError(f"the directory {name}/ of opsctl is missing", "reinstall opsctl: its installation is damaged")

"""What the application and the worker have agreed on."""

from __future__ import annotations

NAMESPACE = "demo"
TASK = "write_report"
#: The deployment's own variable for the DSN, by database; opsctl reads it too.
VARIABLES = {"postgresql": "POSTGRES_EXECUTION_DSN", "mysql": "MYSQL_EXECUTION_DSN"}

"""Real database servers for the tests: started here, or given by an environment variable."""

from .database import Database
from .server import (
    NAMES,
    PRODUCTS,
    Server,
    ServerError,
    given_server,
    local_server,
    start_server,
    variable_of,
)

__all__ = ["NAMES", "PRODUCTS", "Database", "Server", "ServerError"]
__all__ += ["given_server", "local_server", "start_server", "variable_of"]

"""Options of commands that connect to a server."""

from __future__ import annotations

from dataclasses import dataclass

from . import options
from .live import Access
from .servers import headers_of


@dataclass(frozen=True)
class Connection:
    """Connection to a server."""

    revision: options.Revision = None
    timeout: options.Timeout = 30
    env: options.Env = None
    verbose: options.Verbose = False
    strict: options.Strict = False
    header: options.Header = None
    bearer_env: options.BearerEnv = None

    def access(self, declare: str | None = None) -> Access:
        """Return the settings of the connection, with client capabilities to declare: `NAME,NAME`."""
        headers = headers_of(self.header or (), self.bearer_env)
        return Access(self.revision, self.timeout, tuple(self.env or ()), self.verbose, self.strict, declare, headers)

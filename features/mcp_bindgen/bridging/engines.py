"""Engines of extensions that answer requests of revisions that do not have the extension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mcp_bindgen.runtime.protocol.request_scope import Handle
from mcp_bindgen.runtime.protocol.revision import Revision


class RevisionBridge(Protocol):
    """The path from requests of a wire revision to the handlers of a server of another revision."""

    @property
    def revision(self) -> Revision:
        """The wire revision."""
        ...

    def plain(self, name: str) -> Handle:
        """Return the server's handler of a request, for params and results of the wire revision."""
        ...

    def to_server(self, name: str, params: object, ctx: Any) -> Any:
        """Return params of the wire revision in the types of the server's revision."""
        ...

    def to_wire(self, name: str, work: Handle) -> Handle:
        """Convert the results of a handler to the wire revision."""
        ...


class BridgedEngine(Protocol):
    """Engine of an extension for clients of a revision that does not have the extension."""

    @property
    def handlers(self) -> Mapping[str, Handle]:
        """Method name -> handler, for params and results of that revision."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities to declare in addition to those of these handlers."""
        ...

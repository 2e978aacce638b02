"""The resources of a contract, and those that its templates describe."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from ..core.errors import INVALID_PARAMS, ProtocolError
from ._feature import Feature, lists
from .errors import InvalidArguments, ResourceNotFound
from .handlers import BoundHandler


class Resources(Feature):
    """Answers `resources/list`, `resources/templates/list` and `resources/read`."""

    members = ("resources", "resourceTemplates")
    list_resources = lists("resources/list", "resources")
    list_resource_templates = lists("resources/templates/list", "resourceTemplates")

    async def read_resource(self, params: Any, ctx: Any) -> Any:
        """Read a resource of the contract, else one of the most specific template that matches.

        Raises:
            ProtocolError: There is no such resource.
            InvalidResult: The handler returned something that is no content.
        """
        found = next(self._candidates(params.uri), None)
        if found is not None:
            with suppress(ResourceNotFound):
                return await self.answer("resources/read", *found, ctx, partial(_build, params.uri))
        code = getattr(self.package.errors, "RESOURCE_NOT_FOUND", INVALID_PARAMS)
        raise ProtocolError(code, "Resource not found", {"uri": params.uri})

    def _candidates(self, uri: str) -> Iterator[tuple[BoundHandler, Any]]:
        """Yield the handlers that may know a URI, with the variables in it."""
        exact = self.contract.handlers["resource"].get(uri)
        if exact is not None:
            yield exact, None
        for template, handler in self.contract.templates:
            found = template.match(uri)
            if found is not None:
                with suppress(InvalidArguments):
                    yield handler, handler.read(found, "params.uri")


def _build(uri: str, handler: BoundHandler, returned: Any) -> dict[str, Any]:
    if isinstance(returned, str):
        content = {"text": returned}
    elif isinstance(returned, bytes):
        content = {"blob": b64encode(returned).decode()}
    else:
        raise handler.invalid(f"returned {type(returned).__name__}")
    return {"contents": [{"uri": uri, **handler.described("mimeType"), **content}]}

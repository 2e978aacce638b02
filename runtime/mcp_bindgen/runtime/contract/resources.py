"""The resources of a contract, and those that its templates describe."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..core.errors import INVALID_PARAMS, ProtocolError
from .errors import BrokenPromise, InvalidArguments, ResourceNotFound
from .feature import Feature
from .promises import Promise

LIST_RESOURCES = "resources/list"
LIST_RESOURCE_TEMPLATES = "resources/templates/list"
READ_RESOURCE = "resources/read"


class Resources(Feature):
    """Answers `resources/list`, `resources/templates/list` and `resources/read`."""

    members = ("resources", "resourceTemplates")

    async def list_resources(self, params: Any, ctx: Any) -> Any:
        """Answers `resources/list`."""
        return self.listing(LIST_RESOURCES, "resources", params)

    async def list_resource_templates(self, params: Any, ctx: Any) -> Any:
        """Answers `resources/templates/list`."""
        return self.listing(LIST_RESOURCE_TEMPLATES, "resourceTemplates", params)

    async def read_resource(self, params: Any, ctx: Any) -> Any:
        """Answers `resources/read`: a resource of the contract, else one of the most specific template that fits.

        Raises:
            ProtocolError: There is no such resource.
            BrokenPromise: The method gave something that is no content.
        """
        found = next(self._candidates(params.uri), None)
        if found is not None:
            with suppress(ResourceNotFound):
                return await self._read(params.uri, *found, ctx)
        code = self.dispatcher.revision.errors.get("RESOURCE_NOT_FOUND", INVALID_PARAMS)
        raise ProtocolError(code, "Resource not found", {"uri": params.uri})

    async def _read(self, uri: str, promise: Promise, variables: Any, ctx: Any) -> Any:
        answer = await promise.keep(variables, ctx)
        result = self.given(READ_RESOURCE, answer)
        return self.typed(READ_RESOURCE, {"contents": [_contents(uri, promise, answer)]}) if result is None else result

    def _candidates(self, uri: str) -> Iterator[tuple[Promise, Any]]:
        """What may be behind a URI, with the variables in it."""
        exact = self.promises.of("resource").get(uri)
        if exact is not None:
            yield exact, None
        for template, promise in self.promises.templates:
            found = template.match(uri)
            if found is not None:
                with suppress(InvalidArguments):
                    yield promise, promise.typed(found, "params.uri")


def _contents(uri: str, promise: Promise, answer: Any) -> dict[str, Any]:
    mime_type = promise.entry.get("mimeType")
    described = {"uri": uri} if mime_type is None else {"uri": uri, "mimeType": mime_type}
    if isinstance(answer, str):
        return {**described, "text": answer}
    if isinstance(answer, bytes):
        return {**described, "blob": b64encode(answer).decode()}
    raise BrokenPromise(f"the resource {promise.offer.name!r} gave {type(answer).__name__}, which is no content")

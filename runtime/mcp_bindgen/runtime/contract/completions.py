"""Completion for the arguments of a contract's prompts and the variables of its templates (MCP, "Completion")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from ..core.errors import INVALID_PARAMS, ProtocolError
from ..core.json_types import is_array, is_object
from .base import Completion, Contract
from .catalog import Catalog
from .feature import Feature
from .promises import Promises

COMPLETE = "completion/complete"

_MOST = 100
_ARGUMENTS = ("arguments", "variables")


class Completions(Feature):
    """Answers `completion/complete`."""

    @classmethod
    def is_in(cls, promises: Promises) -> bool:
        """Whether the contract has something to choose from, or its server knows more."""
        if type(promises.contract).complete is not Contract.complete:
            return bool(promises.of("prompt") or promises.of("template"))
        entries = [*promises.catalog.prompts.values(), *promises.catalog.templates.values()]
        return any("enum" in argument for entry in entries for argument in _arguments(entry))

    async def complete(self, params: Any, ctx: Any) -> Any:
        """Answers `completion/complete`.

        Raises:
            ProtocolError: It is about something that the contract does not have.
        """
        of: Literal["prompt", "template"] = "prompt" if params.ref.type == "ref/prompt" else "template"
        name = params.ref.name if of == "prompt" else params.ref.uri
        argument = params.argument
        entry = self.find(of, name).entry
        names: set[Any] = {one.get("name") for one in _arguments(entry)}
        if names and argument.name not in names:
            raise ProtocolError(INVALID_PARAMS, f"The {of} {name} has no such argument")
        context = getattr(params, "context", None)
        others = context.arguments if context is not None else None
        asked = Completion(of, name, argument.name, argument.value, others or {})
        values = list(await self.promises.complete(asked, ctx))
        shown = {"values": values[:_MOST], "total": len(values), "hasMore": len(values) > _MOST}
        return self.typed(COMPLETE, {"completion": shown})


def from_enum(catalog: Catalog, asked: Completion) -> list[str]:
    """The values of an `enum` in the contract that begin with what is typed, in whatever case; in their order there."""
    entries = catalog.prompts if asked.of == "prompt" else catalog.templates
    typed = asked.value.casefold()
    return [
        value
        for argument in _arguments(entries.get(asked.name, {}))
        if argument.get("name") == asked.argument
        for value in argument.get("enum", [])
        if value.casefold().startswith(typed)
    ]


def _arguments(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of a prompt, or the variables of a template, as far as the contract describes them."""
    for member in _ARGUMENTS:
        described = entry.get(member)
        yield from (one for one in (described if is_array(described) else []) if is_object(one))

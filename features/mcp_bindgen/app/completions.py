"""Completion for the arguments of a contract's prompts and the variables of its templates (MCP, "Completion")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS, ProtocolError

from .catalog import Catalog, Entry
from .features import Feature
from .handlers import BoundContract


@dataclass(frozen=True)
class Completion:
    """A value to complete.

    Attributes:
        of: Whether it is an argument of a prompt or a variable of a resource template.
        name: The prompt's name, or the URI template.
        argument: The name of the argument or variable.
        value: What is typed so far.
        known: The other arguments or variables, as far as they are known: name -> value.
    """

    of: Literal["prompt", "template"]
    name: str
    argument: str
    value: str
    known: Mapping[str, str]


class Completions(Feature):
    """Answers `completion/complete`."""

    @classmethod
    def is_in(cls, contract: BoundContract) -> bool:
        """Return whether a contract has values to choose from, or a method of its own that completes."""
        if contract.complete is not None:
            return bool(contract.handlers["prompt"] or contract.handlers["template"])
        entries = [*contract.catalog.prompts.values(), *contract.catalog.templates.values()]
        return any("enum" in argument for entry in entries for argument in _arguments(entry))

    async def complete(self, params: Any, ctx: Any) -> Any:
        """Complete a value; raise `ProtocolError` if the contract has no such prompt, template or argument."""
        of: Literal["prompt", "template"] = "prompt" if params.ref.type == "ref/prompt" else "template"
        name = params.ref.name if of == "prompt" else params.ref.uri
        names: list[Any] = [argument.get("name") for argument in _arguments(self.find(of, name, ctx).entry)]
        if names and params.argument.name not in names:
            raise ProtocolError(INVALID_PARAMS, f"The {of} {name} has no such argument")
        known: Any = getattr(getattr(params, "context", None), "arguments", None) or {}
        asked = Completion(of, name, params.argument.name, params.argument.value, known)
        own = self.contract.complete
        values = from_enum(self.contract.catalog, asked) if own is None else list(await own(asked, ctx))
        most = self.package.methods.METHODS["completion/complete"].truncation.max_items
        shown = {"values": values[:most], "total": len(values), "hasMore": len(values) > most}
        return self.result("completion/complete", {"completion": shown})


def from_enum(catalog: Catalog, asked: Completion) -> list[str]:
    """Return the values of an `enum` in the contract that begin with what is typed, whatever its case."""
    entries = catalog.prompts if asked.of == "prompt" else catalog.templates
    typed = asked.value.casefold()
    return [
        value
        for argument in _arguments(entries.get(asked.name, {}))
        if argument.get("name") == asked.argument
        for value in argument.get("enum", [])
        if value.casefold().startswith(typed)
    ]


def _arguments(entry: Entry) -> Iterator[Entry]:
    """Yield the arguments of a prompt, or the variables of a template, as far as the contract describes them."""
    for member in ("arguments", "variables"):
        described = entry.get(member)
        yield from filter(is_object, described if is_array(described) else ())

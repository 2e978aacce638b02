"""What a contract promises, beside the methods of the object that keeps it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import to_json

from ..core.validation import problems
from ..tasks import in_thread
from .errors import InvalidArguments
from .offers import Kind, Offer, offers
from .uri_template import UriTemplate
from .validation import MOST, Check, require_validator

if TYPE_CHECKING:
    from .base import Contract
    from .catalog import Entry


def awaited(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A method as one that does not block: one that does gets a thread."""
    return method if inspect.iscoroutinefunction(method) else in_thread(method)


class Promise:
    """A tool, prompt, resource or template, and the method that keeps it.

    Args:
        offer: What the method is marked with.
        entry: What the contract says.
        method: The method.
    """

    def __init__(self, offer: Offer, entry: Entry, method: Callable[..., Any]) -> None:
        self.offer = offer
        self.entry = entry
        self._method = awaited(method)
        self.input = Check(entry.get("inputSchema", True), f"the inputSchema of {offer.name!r}")
        self.output = (
            Check(entry["outputSchema"], f"the outputSchema of {offer.name!r}") if "outputSchema" in entry else None
        )

    def typed(self, arguments: Any, root: str) -> Any:
        """Arguments of the method from their wire form; raises `InvalidArguments`."""
        if self.offer.input is None:
            return None
        data = to_json(arguments)
        try:
            return self.offer.reader.validate_json(data)
        except ValidationError as error:
            raise InvalidArguments(self.offer.name, problems(error, root, data)[:MOST]) from None

    async def keep(self, arguments: Any, ctx: Any) -> Any:
        """What the method gives, for typed arguments."""
        return await (self._method(ctx) if self.offer.input is None else self._method(arguments, ctx))


class Promises:
    """All that a contract promises.

    Args:
        contract: The object that keeps it.

    Attributes:
        contract: The object that keeps it.
        catalog: What it says.
        templates: Its URI templates, the most specific first.
        complete: Completes what is typed.

    Raises:
        ValueError: A method and the contract's document do not belong together.
        ImportError: There are tools, and no validator for their arguments.
    """

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.catalog = contract.catalog
        self._entries: dict[Kind, dict[str, Entry]] = {
            "tool": self.catalog.tools,
            "prompt": self.catalog.prompts,
            "resource": self.catalog.resources,
            "template": self.catalog.templates,
        }
        self._kept: dict[Kind, dict[str, Promise]] = {kind: {} for kind in self._entries}
        for name, offer in offers(type(contract)).items():
            entry = self._entries[offer.kind].get(offer.name)
            if entry is None:
                raise ValueError(f"{type(contract).__name__}.{name}: the contract has no {offer.kind} {offer.name!r}")
            self._kept[offer.kind][offer.name] = Promise(offer, entry, getattr(contract, name))
        for kind, entries in self._entries.items():
            for name in entries.keys() - self._kept[kind].keys():
                raise ValueError(f"{type(contract).__name__} has no method for the {kind} {name!r} of its contract")
        pairs = [(UriTemplate(text), promise) for text, promise in self._kept["template"].items()]
        self.templates = sorted(pairs, key=lambda pair: pair[0].specificity, reverse=True)
        self.complete = awaited(contract.complete)
        if self._kept["tool"]:
            require_validator()

    def of(self, kind: Kind) -> dict[str, Promise]:
        """Wire name -> promise, for one kind."""
        return self._kept[kind]

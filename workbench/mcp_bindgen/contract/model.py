"""Model of a contract: tools, prompts and resources with their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.app.catalog import KINDS, Entries, Kind
from mcp_bindgen.ir import Protocol
from mcp_bindgen.spec.json import is_object

LISTINGS: Mapping[str, Entries] = {place.member: place for place in KINDS.values()}
"""Member of a contract -> the list."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Tool, prompt, resource or resource template of a server.

    Attributes:
        kind: Kind of the entry.
        name: Name on the wire.
        key: Value that identifies the entry: its name, URI or URI template (RFC 6570).
        pointer: JSON Pointer of the entry in the contract.
        description: Description; empty if the contract has none.
        raw: The original entry of the contract.
        arguments: Definition of its arguments or variables; empty if it takes none.
        output: Definition of its structured result; empty if it has none.
    """

    kind: Kind
    name: str
    key: str
    pointer: str
    description: str
    raw: Mapping[str, Any]
    arguments: str = ""
    output: str = ""

    @property
    def summary(self) -> str:
        """The description, or else the kind of entry, or the URI template."""
        other = f"The resources `{self.key}`." if self.kind == "template" else f"The {self.kind} `{self.name}`."
        return self.description or other

    @property
    def is_task_only(self) -> bool:
        """True if the server runs the tool as a task only."""
        execution = self.raw.get("execution")
        return is_object(execution) and execution.get("taskSupport") == "required"


@dataclass(frozen=True)
class Contract:
    """Contract: tools, prompts and resources of a server.

    Attributes:
        tools: Its tools; all lists are in the order of the contract.
        prompts: Its prompts.
        resources: Its resources.
        templates: Its resource templates.
        info: Name and version of the server, if stated.
        instructions: Instructions of the server, if stated.
        revision: Revision of the entries, if stated.
        document: The original document.
        types: Definitions of the entries, as a protocol without methods.
        left_out: Invalid entries of a running server: pointer and problem of each.
    """

    tools: tuple[Entry, ...]
    prompts: tuple[Entry, ...]
    resources: tuple[Entry, ...]
    templates: tuple[Entry, ...]
    info: Mapping[str, Any] | None
    instructions: str | None
    revision: str | None
    document: Mapping[str, Any]
    types: Protocol
    left_out: tuple[str, ...] = ()

    @property
    def all_entries(self) -> tuple[Entry, ...]:
        """The entries of all lists."""
        return (*self.tools, *self.prompts, *self.resources, *self.templates)

    @property
    def entries(self) -> Mapping[str, tuple[Entry, ...]]:
        """Member of the contract -> its entries."""
        lists = self.tools, self.prompts, self.resources, self.templates
        return dict(zip(LISTINGS, lists, strict=True))

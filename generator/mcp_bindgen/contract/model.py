"""The model of a contract, as frozen dataclasses: tools, prompts and resources, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.protocol import Protocol


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Something that a server offers.

    Attributes:
        name: Its name on the wire.
        stub: Its name in Python.
        description: What it is for; empty where the contract has no words.
        raw: The entry as it stands in the contract.
    """

    name: str
    stub: str
    description: str
    raw: Mapping[str, Any]

    @property
    def words(self) -> str:
        """The description, or else what kind of thing it is."""
        return self.description or f"The {type(self).__name__.lower()} `{self.name}`."


@dataclass(frozen=True, kw_only=True)
class Tool(Entry):
    """A tool.

    Attributes:
        input: The definition of its arguments.
        output: The definition of its structured result, if it promises one.
    """

    input: str
    output: str | None


@dataclass(frozen=True, kw_only=True)
class Prompt(Entry):
    """A prompt.

    Attributes:
        arguments: The definition of its arguments, if it has any.
    """

    arguments: str | None


@dataclass(frozen=True, kw_only=True)
class Resource(Entry):
    """A resource.

    Attributes:
        uri: Its address.
    """

    uri: str


@dataclass(frozen=True, kw_only=True)
class Template(Entry):
    """A resource template.

    Attributes:
        uri_template: The addresses that it stands for (RFC 6570).
        variables: The definition of its variables.
    """

    uri_template: str
    variables: str

    @property
    def words(self) -> str:
        """The description, or else which resources it stands for."""
        return self.description or f"The resources `{self.uri_template}`."


@dataclass(frozen=True)
class Contract:
    """The tools, prompts and resources of one server.

    Attributes:
        tools: Its tools, in the order of the contract, as all that follows.
        prompts: Its prompts.
        resources: Its resources.
        templates: Its resource templates.
        info: Who it says that it is, if the contract tells.
        instructions: How it says that it wants to be used, if the contract tells.
        revision: The revision whose forms the entries have, if the contract tells.
        document: The whole, as it was read.
        types: The definitions that the entries name, as a protocol without methods.
        left_out: The entries of a live server that are not valid: where each is, and what is wrong with it.
    """

    tools: tuple[Tool, ...]
    prompts: tuple[Prompt, ...]
    resources: tuple[Resource, ...]
    templates: tuple[Template, ...]
    info: Mapping[str, Any] | None
    instructions: str | None
    revision: str | None
    document: Mapping[str, Any]
    types: Protocol
    left_out: tuple[str, ...] = ()

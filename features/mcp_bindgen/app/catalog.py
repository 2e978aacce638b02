"""The document of a contract: entries in the JSON forms of the protocol's lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from mcp_bindgen.runtime.model.json_types import is_object

Entry = dict[str, Any]

FILE = "contract.json"

SCOPES = "x-mcp-scopes"
"""The member of an entry with the scopes that the token of a request needs; clients see it, too."""

Kind: TypeAlias = Literal["tool", "prompt", "resource", "template"]


class Entries(NamedTuple):
    """The place of the entries of one kind.

    Attributes:
        kind: The kind.
        definition: Definition of an entry in the protocol.
        member: The member of the document that lists them.
        key: The member of an entry that names it.
        listed: The method that lists the entries.
        used: The method that uses an entry, given its name.
    """

    kind: Kind
    definition: str
    member: str
    key: str
    listed: str
    used: str

    @property
    def capability(self) -> str:
        """The capability of servers that list entries."""
        return self.listed.partition("/")[0]

    @property
    def changed(self) -> str:
        """The notification that the list changed."""
        return f"notifications/{self.capability}/list_changed"


_TEMPLATES = "resources/templates/list"
_PLACES = (
    Entries("tool", "Tool", "tools", "name", "tools/list", "tools/call"),
    Entries("prompt", "Prompt", "prompts", "name", "prompts/list", "prompts/get"),
    Entries("resource", "Resource", "resources", "uri", "resources/list", "resources/read"),
    Entries("template", "ResourceTemplate", "resourceTemplates", "uriTemplate", _TEMPLATES, "resources/read"),
)
KINDS: Mapping[Kind, Entries] = {place.kind: place for place in _PLACES}


class Catalog:
    """The entries of a contract, verbatim. The document is read on first use.

    Args:
        read: Returns the JSON text of the document.
        place: The source of the document, for messages.
    """

    def __init__(self, read: Callable[[], str], place: str = "the contract") -> None:
        self._read, self._place = read, place

    @classmethod
    def beside(cls, module_file: str, name: str = FILE) -> Catalog:
        """Return the catalog of the document in the folder of a module, given the module's `__file__`."""
        path = Path(module_file).with_name(name)
        return cls(lambda: _text(path), str(path))

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Catalog:
        """Return the catalog of a copy of a document."""
        return cls(lambda: json.dumps(document))

    @cached_property
    def document(self) -> Entry:
        """The whole document.

        Raises:
            ValueError: It is not a JSON object.
        """
        try:
            document = json.loads(self._read())
        except ValueError as error:
            raise ValueError(f"{self._place} is not JSON: {error}") from None
        if not is_object(document):
            raise ValueError(f"{self._place} is not a JSON object")
        return document

    def entries(self, kind: Kind) -> dict[str, Entry]:
        """Return name -> entry, or URI -> entry, of one kind."""
        place = KINDS[kind]
        return {entry[place.key]: entry for entry in self.document.get(place.member, ())}


def _text(path: Path) -> str:
    """Return the text of a file, which may be inside of a zip archive that modules are imported from."""
    from zipfile import ZipFile, is_zipfile  # an `App` has no file

    for archive in path.parents:
        if archive.is_file() and is_zipfile(archive):
            return ZipFile(archive).read(path.relative_to(archive).as_posix()).decode("utf-8")
    return path.read_text("utf-8")

"""Places of findings in contracts: file, JSON Pointer and line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ruamel.yaml import YAML

from mcp_bindgen.contract.checks import contents
from mcp_bindgen.contract.comparison.verdicts import ContractFinding
from mcp_bindgen.contract.model import LISTINGS
from mcp_bindgen.contract.text import read
from mcp_bindgen.diff.selectors import parse_steps
from mcp_bindgen.spec.jsonc import Located
from mcp_bindgen.spec.pointer import join, split, value_at

from .document import Place
from .places import descend

_SCHEMAS = {"argument": "inputSchema", "result": "outputSchema"}


class HasLines(Protocol):
    """Text that knows the lines of its values."""

    def line(self, pointer: str) -> int:
        """Return the line, from 1, of the value at a JSON Pointer."""
        ...


class ContractPlaces:
    """Places of the findings of `contract diff` in the new contract.

    Args:
        path: The file of the new contract, JSON or YAML.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._document = contents(read(path))
        text = path.read_text("utf-8-sig")
        self._located: HasLines = Located(text) if path.suffix == ".json" else _LocatedYaml(text)

    def __call__(self, finding: ContractFinding) -> Place:
        """Return the place of a finding, as deep as its words lead; the document itself for an entry that is gone."""
        pointer = self._pointer(finding)
        return Place(str(self._path), pointer, self._located.line(pointer))

    def of_tool(self, name: str, pointer: str) -> Place:
        """Return the place of a JSON Pointer in a tool."""
        entry = self._entry("tool", name)
        whole = entry + pointer if entry else ""
        return Place(str(self._path), whole, self._located.line(whole))

    def _entry(self, kind: str, name: str) -> str:
        """Return the pointer to an entry; empty if there is none."""
        for member, listing in LISTINGS.items():
            entries: Sequence[Mapping[str, Any]] = self._document.get(member, ()) if listing.kind == kind else ()
            for index, entry in enumerate(entries):
                if entry.get(listing.key) == name:
                    return join("", member, index)
        return ""

    def _pointer(self, finding: ContractFinding) -> str:
        entry = self._entry(finding.kind, finding.name)
        if not entry:
            return ""
        kind, _, path = finding.place.partition(" ")
        schema = join(entry, _SCHEMAS.get(kind, kind))
        if value_at(self._document, schema) is None:
            return entry
        return descend(self._document, schema, parse_steps(f".{path}") or ()) if kind in _SCHEMAS else schema


class _LocatedYaml:
    def __init__(self, text: str) -> None:
        yaml: Any = YAML(typ="safe", pure=True)
        self._root: Any = yaml.compose(text)

    def line(self, pointer: str) -> int:
        node = mark = self._root
        for token in split(pointer):
            pairs = node.value if node.id == "mapping" else [(None, item) for item in node.value]
            names = [name.value if name is not None else str(index) for index, (name, _) in enumerate(pairs)]
            if token not in names:
                break
            name, node = pairs[names.index(token)]
            mark = name or node
        return int(mark.start_mark.line) + 1

"""Read contracts from documents: the schemas of entries become types with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from mcp_bindgen.app import UriTemplate, Variable
from mcp_bindgen.app.catalog import Kind
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Array, Const, Definition, Field, Map, Object, Scalar, Type, Union
from mcp_bindgen.ir.naming import class_name
from mcp_bindgen.spec.errors import BadInput, locating, printable, shortened
from mcp_bindgen.spec.json import is_array, is_object, join

from . import checks, names, text
from .model import LISTINGS, Contract, Entry
from .references import Root
from .shared import Shared
from .types import Reader, is_visible

write = text.write

ContractSource: TypeAlias = Contract | Mapping[str, Any] | str | PathLike[str]
"""A contract, its document, or the path of its file."""

_SUFFIXES: Mapping[Kind, str] = {"tool": "Input", "prompt": "Arguments", "template": "Variables"}
"""Kind of entry -> end of the name of the definition with its arguments."""

_MAX_REASON_LENGTH = 400  # characters of the reason for an omitted entry


def read_contract(path: Path) -> Contract:
    """Return the contract in a JSON or YAML file.

    Raises:
        BadInput: The file cannot be read, or is not a contract; with the pointer to the problem.
    """
    document = text.read(path)
    with locating(path):
        checks.check_spelling(document)
    return contract_of(document, path)


def contract_of(document: Mapping[str, Any], place: Path | None = None) -> Contract:
    """Return the contract in a document, which may also be the result of `tools/list`.

    Args:
        document: The document.
        place: Path of the document, for errors.

    Raises:
        BadInput: The document is not a contract; with the pointer to the problem.
    """
    with locating(place):
        text.check(document)
        members = checks.contents(document)
        checks.check_members(members)
        return _Builder(members).contract()


def contract_from(source: ContractSource) -> Contract:
    """Return the contract of a source.

    Raises:
        BadInput: The file cannot be read, or the document is not a contract.
    """
    if isinstance(source, Contract):
        return source
    return contract_of(source) if isinstance(source, Mapping) else read_contract(Path(source))


def contract_of_valid(document: Mapping[str, Any]) -> Contract:
    """Return the contract of the valid entries in a document; `left_out` lists the other entries with reasons.

    Use it for lists of running servers. The first entry of a name is kept. An optional member with the value `null` is
    treated as absent, as clients do.

    Raises:
        BadInput: The document is not valid outside of its entries.
    """
    try:
        return contract_of(document)
    except BadInput:
        document = checks.without_nulls(document)
        kept, left_out = dict(document), list[str]()
    for member, listing in LISTINGS.items():
        entries: Any = document.get(member)
        if not is_array(entries):
            continue
        kept[member], taken = list[Any](), set[str]()
        for index, entry in enumerate(entries):
            alone = f"/{member}/0"
            try:
                contract_of({name: document[name] for name in ("revision",) if name in document} | {member: [entry]})
                if entry[listing.key] in taken:
                    raise BadInput(f"{entry[listing.key]!r} is there twice", pointer=f"{alone}/{listing.key}")
            except BadInput as error:
                if error.pointer is None or not error.pointer.startswith(alone):
                    raise
                place = f"/{member}/{index}{error.pointer.removeprefix(alone)}"
                name: Any = entry.get("name") if is_object(entry) else None
                owner = f" of {name!r}" if isinstance(name, str) else ""
                left_out.append(shortened(printable(f"{place}{owner}: {error.message}"), _MAX_REASON_LENGTH))
            else:
                taken.add(entry[listing.key])
                kept[member].append(entry)
    return replace(contract_of(kept), left_out=tuple(left_out))


class _Builder:
    """Builder of a contract: names first, then types."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = members
        self.scope = names.Scope()
        self.definitions: dict[str, Definition] = {}
        tools = members.get("tools", ())
        schemas = [raw[member] for raw in tools for member in ("inputSchema", "outputSchema") if member in raw]
        self.shared = Shared(schemas, self.scope)

    def contract(self) -> Contract:
        """Return the contract with the types of all entries. All roots get their names before their parts."""
        tools, prompts, resources, templates = (tuple(self._entries(member)) for member in LISTINGS)
        for tool in tools:
            self._read(tool, "inputSchema", tool.arguments, f"The arguments of `{tool.name}`.")
            self._read(tool, "outputSchema", tool.output, f"The structured result of `{tool.name}`.")
        for prompt in prompts:
            if prompt.arguments:
                fields = _arguments(prompt.raw["arguments"], f"{prompt.pointer}/arguments")
                self._add(prompt.arguments, fields, f"The arguments of `{prompt.name}`.")
        for template in templates:
            fields = _variables(template.raw, template.pointer)
            self._add(template.arguments, fields, f"The variables of `{template.key}`.")
        return Contract(
            tools=tools,
            prompts=prompts,
            resources=resources,
            templates=templates,
            info=self.members.get("serverInfo"),
            instructions=self.members.get("instructions"),
            revision=self.members.get("revision"),
            document=self.members,
            types=Protocol(
                revision=self.members.get("revision", ""),
                era="stateless",
                digest=sha256(text.write(self.members).encode()).hexdigest(),
                definitions=self.definitions,
                methods=(),
            ),
        )

    def _entries(self, member: str) -> Iterator[Entry]:
        """Yield the entries of a list, with names for their types."""
        listing = LISTINGS[member]
        for index, raw in enumerate(self.members.get(member, ())):
            suffix = "" if listing.kind == "prompt" and not raw.get("arguments") else _SUFFIXES.get(listing.kind, "")
            yield Entry(
                kind=listing.kind,
                name=raw["name"],
                key=raw[listing.key],
                pointer=join("", member, index),
                description=_described(raw),
                raw=raw,
                arguments=self._claim(raw, suffix) if suffix else "",
                output=self._output(raw) if listing.kind == "tool" and "outputSchema" in raw else "",
            )

    def _output(self, raw: Mapping[str, Any]) -> str:
        return self.shared.whole(raw["outputSchema"]) or self._claim(raw, "Output")

    def _claim(self, raw: Mapping[str, Any], suffix: str) -> str:
        return self.scope.claim(class_name(raw["name"], suffix))

    def _read(self, tool: Entry, member: str, name: str, words: str) -> None:
        if not name:
            return
        schema, pointer = tool.raw[member], join(tool.pointer, member)
        checks.check_schema(schema, pointer)
        root = Root(schema, pointer)
        checks.check_compiles(schema, pointer)
        if name not in self.shared.read:
            self.definitions.update(Reader(root, name, self.scope, self.shared).read(words))

    def _add(self, name: str, fields: Iterator[Field], words: str) -> None:
        self.definitions[name] = Definition(name, Object(tuple(fields)), words)


def _described(raw: Mapping[str, Any]) -> str:
    """Return the documentation of an entry: its description, else its title, if visible."""
    texts = (raw.get("description"), raw.get("title"))
    return next((text for text in texts if isinstance(text, str) and is_visible(text)), "")


def _arguments(entries: list[dict[str, Any]], pointer: str) -> Iterator[Field]:
    """Return the fields for the arguments of a prompt, which are strings."""
    for index, (wire, entry) in enumerate(zip(_distinct(entries, pointer), entries, strict=True)):
        type = _enumerated(entry, join(pointer, index)) or Scalar("string")
        yield Field(wire, type, entry.get("required", False), doc=_described(entry))


def _variables(raw: Mapping[str, Any], pointer: str) -> Iterator[Field]:
    """Return the fields for the variables of a resource template."""
    try:
        found = {variable.name: variable for variable in reversed(UriTemplate(raw["uriTemplate"]).variables)}
    except ValueError as error:
        raise BadInput(f"is no URI template: {error}", pointer=f"{pointer}/uriTemplate", fix="see RFC 6570") from None
    known = dict(reversed(found.items()))
    described: Any = raw.get("variables", [])
    at = f"{pointer}/variables"
    if not is_array(described) or not all(
        is_object(entry) and isinstance(entry.get("name"), str) for entry in described
    ):
        raise BadInput("variables are a list of objects with a name", pointer=at, fix='write [{"name": "id"}]')
    entries: dict[str, tuple[int, dict[str, Any]]] = {}
    for index, name in enumerate(_distinct(described, at)):
        if name not in known:
            fix = f"it has {', '.join(known)}" if known else "it has none"
            raise BadInput(f"the template has no variable {name!r}", pointer=f"{at}/{index}/name", fix=fix)
        entries[name] = index, described[index]
    for wire, variable in known.items():
        index, entry = entries.get(wire, (0, {}))
        type = _enumerated(entry, join(at, index)) or Scalar("string")
        yield Field(wire, _several(type, variable), not variable.optional, doc=_described(entry))


def _several(type: Type, variable: Variable) -> Type:
    """Return the type of a variable with values of `type`."""
    if not variable.explode:
        return type
    return Union((Array(type), Map(type))) if variable.named else Array(type)


def _enumerated(entry: Mapping[str, Any], pointer: str) -> Const | None:
    values: Any = entry.get("enum")
    if values is None:
        return None
    if not is_array(values) or not values or not all(isinstance(value, str) for value in values):
        raise BadInput("an enum is a list of texts", pointer=f"{pointer}/enum", fix="put each in quotes")
    return Const(tuple(dict.fromkeys(values)))


def _distinct(entries: list[dict[str, Any]], pointer: str) -> list[str]:
    """Return the names of `entries`; raise `BadInput` for a duplicate."""
    found: list[str] = []
    for index, entry in enumerate(entries):
        if entry["name"] in found:
            raise BadInput(f"{entry['name']!r} is there twice", pointer=f"{pointer}/{index}/name", fix="remove one")
        found.append(entry["name"])
    return found

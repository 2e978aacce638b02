"""Read a contract from a document: entries get names in Python, and their schemas become types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from mcp_bindgen.app import UriTemplate, Variable
from mcp_bindgen.protocol import Protocol
from mcp_bindgen.protocol.model import Array, Const, Definition, Field, Map, Object, Scalar, Type, Union
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.errors import locating, printable
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.pointer import join

from . import checks, names, text
from .model import Contract, Prompt, Resource, Template, Tool
from .references import Root
from .shared import Shared
from .types import Reader, is_visible

write = text.write

_LONGEST = 400  # characters of what is said of an entry that is left out


def read_contract(path: Path) -> Contract:
    """Return the contract in a file, JSON or YAML.

    Raises:
        BadInput: The file cannot be read, or what it says is no contract; with the pointer to the place.
    """
    document = text.read(path)
    with locating(path):
        checks.check_spelling(document)
    return contract_of(document, path)


def contract_of(document: Mapping[str, Any], place: Path | None = None) -> Contract:
    """Return the contract that a document describes; a bare result of `tools/list` is one too.

    Args:
        document: The document.
        place: The file that it was read from, for errors.

    Raises:
        BadInput: It is no contract; with the pointer to the place.
    """
    with locating(place):
        text.check(document)
        members = checks.contents(document)
        checks.check_members(members)
        return _Builder(members).contract(members)


def contract_of_valid(document: Mapping[str, Any]) -> Contract:
    """Return the contract of those entries of a document that are valid; it says which ones were left out, and why.

    This is for the lists of live servers. Of entries with the same name, the first is kept. An optional member that is
    `null` is read as an absent one, as clients read it.

    Raises:
        BadInput: Something else than an entry is wrong.
    """
    try:
        return contract_of(document)
    except BadInput:
        document = checks.without_nulls(document)
        kept, left_out = dict(document), list[str]()
    for member, unique in checks.UNIQUE.items():
        entries: Any = document.get(member)
        if not is_array(entries):
            continue
        kept[member], taken = list[Any](), set[str]()
        for index, entry in enumerate(entries):
            alone = f"/{member}/0"
            try:
                contract_of({name: document[name] for name in ("revision",) if name in document} | {member: [entry]})
                if entry[unique] in taken:
                    raise BadInput(f"{entry[unique]!r} is there twice", pointer=f"{alone}/{unique}")
            except BadInput as error:
                if error.pointer is None or not error.pointer.startswith(alone):
                    raise
                place = f"/{member}/{index}{error.pointer.removeprefix(alone)}"
                name: Any = entry.get("name") if is_object(entry) else None
                said = f" of {name!r}" if isinstance(name, str) else ""
                left_out.append(_cut(printable(f"{place}{said}: {error.message}")))
            else:
                taken.add(entry[unique])
                kept[member].append(entry)
    return replace(contract_of(kept), left_out=tuple(left_out))


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


class _Builder:
    """Gives names to everything in a contract, then types."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.scope = names.definitions()
        self.definitions: dict[str, Definition] = {}
        self.schemas: list[tuple[str, str, str]] = []  # name, pointer, words
        stubs = names.stubs()

        def common(raw: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
            stub = stubs.claim(names.stub(raw["name"], prefix))
            return {"name": raw["name"], "stub": stub, "description": _described(raw), "raw": raw}

        def claim(raw: Mapping[str, Any], suffix: str) -> str:
            return self.scope.claim(names.definition(raw["name"], suffix))

        tools = members.get("tools", ())
        schemas = [raw[member] for raw in tools for member in ("inputSchema", "outputSchema") if member in raw]
        self.shared = Shared(schemas, self.scope)

        # All roots are named before anything inside of them.
        self.tools = [
            Tool(
                **common(raw),
                input=claim(raw, "Input"),
                output=self.shared.whole(raw["outputSchema"]) or claim(raw, "Output")
                if "outputSchema" in raw
                else None,
            )
            for raw in tools
        ]
        self.prompts = [
            Prompt(**common(raw, "prompt"), arguments=claim(raw, "Arguments") if raw.get("arguments") else None)
            for raw in members.get("prompts", ())
        ]
        self.resources = [Resource(**common(raw, "read"), uri=raw["uri"]) for raw in members.get("resources", ())]
        self.templates = [
            Template(**common(raw, "read"), uri_template=raw["uriTemplate"], variables=claim(raw, "Variables"))
            for raw in members.get("resourceTemplates", ())
        ]

    def contract(self, members: Mapping[str, Any]) -> Contract:
        """Return the contract with the types of all entries."""
        for index, tool in enumerate(self.tools):
            here = f"/tools/{index}"
            self._read(
                tool.raw["inputSchema"], join(here, "inputSchema"), tool.input, f"The arguments of `{tool.name}`."
            )
            if tool.output is not None:
                words = f"The structured result of `{tool.name}`."
                self._read(tool.raw["outputSchema"], join(here, "outputSchema"), tool.output, words)
        for index, prompt in enumerate(self.prompts):
            if prompt.arguments is not None:
                fields = _arguments(prompt.raw["arguments"], f"/prompts/{index}/arguments")
                self._add(prompt.arguments, fields, f"The arguments of `{prompt.name}`.")
        for index, template in enumerate(self.templates):
            fields = _variables(template.raw, f"/resourceTemplates/{index}")
            self._add(template.variables, fields, f"The variables of `{template.uri_template}`.")
        return Contract(
            tools=tuple(self.tools),
            prompts=tuple(self.prompts),
            resources=tuple(self.resources),
            templates=tuple(self.templates),
            info=members.get("serverInfo"),
            instructions=members.get("instructions"),
            revision=members.get("revision"),
            document=members,
            types=Protocol(
                revision=members.get("revision", ""),
                era="",
                digest=sha256(text.write(members).encode()).hexdigest(),
                definitions=self.definitions,
                methods=(),
            ),
        )

    def _read(self, schema: Any, pointer: str, name: str, words: str) -> None:
        checks.check_schema(schema, pointer)
        root = Root(schema, pointer)
        checks.check_compiles(schema, pointer)
        if name not in self.shared.read:
            self.definitions.update(Reader(root, name, self.scope, self.shared).read(words))

    def _add(self, name: str, fields: Iterator[Field], words: str) -> None:
        self.definitions[name] = Definition(name, Object(tuple(fields)), words)


def _described(raw: Mapping[str, Any]) -> str:
    """Return the words for an entry: its description, else its title; one that nobody can see is none."""
    texts = (raw.get("description"), raw.get("title"))
    return next((text for text in texts if isinstance(text, str) and is_visible(text)), "")


def _arguments(entries: list[dict[str, Any]], pointer: str) -> Iterator[Field]:
    """Return the fields for the arguments of a prompt, which are texts."""
    python = names.fields(_distinct(entries, pointer))
    for index, entry in enumerate(entries):
        type = _enumerated(entry, join(pointer, index)) or Scalar("string")
        wire = entry["name"]
        yield Field(wire, python[wire], type, entry.get("required", False), doc=_described(entry))


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
    python = names.fields(known)
    for wire, variable in known.items():
        index, entry = entries.get(wire, (0, {}))
        type = _enumerated(entry, join(at, index)) or Scalar("string")
        yield Field(wire, python[wire], _several(type, variable), not variable.optional, doc=_described(entry))


def _several(type: Type, variable: Variable) -> Type:
    """Return the type of a variable whose values have `type`."""
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
    """Return the names of `entries`, each of which may be there once."""
    found: list[str] = []
    for index, entry in enumerate(entries):
        if entry["name"] in found:
            raise BadInput(f"{entry['name']!r} is there twice", pointer=f"{pointer}/{index}/name", fix="remove one")
        found.append(entry["name"])
    return found

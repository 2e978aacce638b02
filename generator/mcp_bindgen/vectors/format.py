"""Format of vector files: dataclasses, their JSON and its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from mcp_bindgen.conversion.document import described
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.keywords import DIALECT

FORMAT = 1
"""Version of the format; it rises when an old reader would misread a file."""

SUITE = "1.0.0"
"""Version of the suite; it rises when vectors are added or change."""

_START = b'{\n "format": '

Verdict = Literal["valid", "invalid", "tolerated"]
Basis = Literal["prose", "json-rpc", "json"]
Tag = Literal["format", "limit", "extra"]


@dataclass(frozen=True)
class Vector:
    """One document with its verdict.

    Attributes:
        id: Rule and JSON Pointer, unique in the file; its meaning never changes.
        verdict: `valid`, `invalid`, or `tolerated` if an implementation may accept or reject the document.
        schema: True if the effective schema accepts the document.
        pointer: JSON Pointer (RFC 6901) to the place that the vector is about.
        rule: What was done at this place, e.g. `required` for a dropped member.
        reason: The rule in a sentence.
        document: The document, unless `text` is given.
        text: The document as JSON text, where its spelling matters.
        published: True if the schema file of upstream accepts it; given where corrections of the file change this.
        basis: Source of a verdict that differs from the schema: the specification's text, JSON-RPC or JSON.
        spec: Page and section of that source.
        reads_as: The member of a union that reads the document, where only one may.
        wrote: Other documents that an implementation may write for it.
        tags: `format` for `format` of strings, `limit` for limits of JSON readers, `extra` for undeclared members.
    """

    id: str
    verdict: Verdict
    schema: bool
    pointer: str
    rule: str
    reason: str
    document: Any = None
    text: str = ""
    published: bool | None = None
    basis: Basis | None = None
    spec: tuple[str, ...] = ()
    reads_as: str = ""
    wrote: tuple[Any, ...] = ()
    tags: tuple[Tag, ...] = ()

    @property
    def sent(self) -> str:
        """The document as JSON text."""
        return self.text or json.dumps(self.document, separators=(",", ":"))


@dataclass(frozen=True)
class VectorFile:
    """Vectors of one definition.

    Attributes:
        format: Version of the format.
        suite: Version of the suite.
        revision: Revision of the protocol.
        definition: Name of the definition.
        structure: sha256 of the effective structure that the vectors were made from.
        extension: Id and version of the extension that has the definition, as `ID@VERSION`.
        method: Method, for the definition of a message.
        kind: `request` or `notification`, for the definition of a message and for a union of messages of this kind.
        envelope: True if the documents of this message have the members of JSON-RPC, such as `jsonrpc`.
        senders: Senders of the message.
        vectors: The vectors.
    """

    format: int
    suite: str
    revision: str
    definition: str
    structure: str
    extension: str = ""
    method: str = ""
    kind: str = ""
    envelope: bool = False
    senders: tuple[str, ...] = ()
    vectors: tuple[Vector, ...] = field(default=())

    @property
    def name(self) -> str:
        """Path of the file without `.json`: `REVISION/Definition` or `ID/VERSION/Definition`; quoted as in a URL."""
        return f"{self.extension.replace('@', '/') or self.revision}/{quote(self.definition, safe='')}"


_FILE = TypeAdapter(VectorFile)


def as_text(file: VectorFile) -> str:
    """Return a file as JSON: one line for each vector, without members that have their default."""
    head = json.dumps(_given(replace(file, vectors=())), indent=1)
    lines = ",\n".join(json.dumps(_given(vector), separators=(",", ":")) for vector in file.vectors)
    return head.removesuffix("\n}") + f',\n "vectors": [\n{lines}\n]}}\n'


def _given(value: Vector | VectorFile) -> dict[str, Any]:
    members = {one.name: getattr(value, one.name) for one in fields(value) if getattr(value, one.name) != one.default}
    if isinstance(value, Vector) and not value.text:
        members["document"] = value.document
    return members


def json_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of a vector file."""
    found = described(_FILE.json_schema(), str)
    found["$defs"]["Vector"]["oneOf"] = [{"required": ["document"]}, {"required": ["text"]}]
    for schema in (found, found["$defs"]["Vector"]):
        schema["additionalProperties"] = False
    return {"$schema": DIALECT, "title": "Conformance vectors of an MCP definition", **found}


def vector_paths(folder: Path) -> list[Path]:
    """Return the paths of the vector files below a folder, in order; other JSON files are left out."""
    paths = [*sorted(folder.glob("*/*.json")), *sorted(folder.glob("*/*/*/*.json"))]
    return [path for path in paths if path.read_bytes()[:40].startswith(_START)]


def read_files(folder: Path) -> list[VectorFile]:
    """Return the vector files below a folder, in the order of their names.

    Raises:
        BadInput: There are none, or one is damaged or of another format.
    """
    paths = vector_paths(folder)
    if not paths:
        raise BadInput("holds no vectors", file=folder, fix=f"make them: mcp-bindgen vectors --out {folder}")
    return [_read(path) for path in paths]


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return the message and the pointer of the first problem of a file."""
    first = error.errors()[0]
    return first["msg"], "".join(f"/{part}" for part in first["loc"])


def _read(path: Path) -> VectorFile:
    try:
        found = _FILE.validate_json(path.read_bytes())
    except ValidationError as error:
        message, pointer = first_problem(error)
        raise BadInput(f"is no vector file: {message}", file=path, pointer=pointer, fix="make it again") from None
    if found.format != FORMAT:
        raise BadInput(f"has format {found.format}; this version reads {FORMAT}", file=path, fix="make it again")
    return found

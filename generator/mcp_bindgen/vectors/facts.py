"""Facts of vectors in `schema/vectors.toml`: verdicts of the specification's text, and documents of their own."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.toml import read_toml

from .format import Basis, Tag, Verdict, first_problem

FACTS = "vectors.toml"

_CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_CLOSED)
class Override:
    """Verdict that differs from the schema, for derived documents.

    Attributes:
        rules: Rules of the documents.
        pointer: Place of the documents.
        verdict: The verdict.
        basis: Its source.
        spec: Page and section of the source.
        reason: The reason in a sentence.
        revisions: The revisions; all if empty.
        value: The value that readers take an absent member for; definitions in which it has another value are left out.
    """

    rules: tuple[str, ...]
    pointer: str
    verdict: Verdict
    basis: Basis
    spec: tuple[str, ...]
    reason: str
    revisions: tuple[str, ...] = ()
    value: Any = None


@dataclass(frozen=True, config=_CLOSED)
class Document:
    """Document with a circumstance of its own.

    Attributes:
        id: Rule and pointer, as in a vector.
        definition: Definition that it is a document of.
        text: The document as JSON text.
        reason: The reason of its verdict in a sentence.
        verdict: The verdict; by default the verdict of the schema.
        basis: Source of a verdict that differs from the schema.
        spec: Page and section of the source.
        revisions: The revisions; all with the definition if empty.
        reads_as: Member of a union that reads the document, where the schema of another member accepts it too.
        wrote: JSON texts of other documents that an implementation may write for it.
        tags: Tags of the vector.
    """

    id: str
    definition: str
    text: str
    reason: str
    verdict: Verdict | None = None
    basis: Basis | None = None
    spec: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    reads_as: str = ""
    wrote: tuple[str, ...] = ()
    tags: tuple[Tag, ...] = ()


@dataclass(frozen=True, config=_CLOSED)
class Facts:
    """Content of `vectors.toml`.

    Attributes:
        values: `Definition.member` -> example value of a member whose meaning the schema does not state.
        always: The same for optional members that a text requires in all documents of the definition.
        tolerated: Rule -> reason why an implementation may accept or reject its documents.
        pages: Revision -> page of the specification -> its name in that revision.
        override: Verdicts that differ from the schema.
        document: Documents with a circumstance of their own.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    always: dict[str, Any] = field(default_factory=dict[str, Any])
    tolerated: dict[str, str] = field(default_factory=dict[str, str])
    pages: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    override: tuple[Override, ...] = ()
    document: tuple[Document, ...] = ()


def read_facts(root: Path) -> Facts:
    """Return the facts of a `schema/` folder; none if it has no file of them.

    Raises:
        BadInput: The file is not TOML, or an entry is incomplete or of the wrong kind.
    """
    path = root / FACTS
    if not path.exists():
        return Facts()
    table = read_toml(path)
    try:
        return TypeAdapter(Facts).validate_python(table)
    except ValidationError as error:
        message, pointer = first_problem(error)
        raise BadInput(message, file=path, pointer=pointer, fix="see docs/how-to/vectors.md") from None

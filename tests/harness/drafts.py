"""Malformed and unfinished schemas; each breaks one rule but is still readable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.harness.small_schemas import Schema, message, record, ref, small, union

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
CLOSED = {"additionalProperties": False}


@dataclass(frozen=True)
class Draft:
    """A schema that breaks one rule.

    Attributes:
        kind: The kind of the diagnostic.
        schema: The whole document.
        pointer: JSON pointer to the problem.
        says: Part of the reason in the diagnostic.
        interpretation: Part of the interpretation in the diagnostic.
        accepts: Values of `X` that the schema accepts; the generated code must accept them too.
    """

    kind: str
    schema: Schema
    pointer: str
    says: str
    interpretation: str
    accepts: tuple[Any, ...] = ()


def change(more: Schema | None = None, /, accepts: tuple[Any, ...] = (), **changes: Any) -> tuple[Schema, Any]:
    """Return the small schema with changed definitions, and values of `X` that it accepts."""
    return small(more, **changes), accepts


def x(schema: Any, *accepts: Any) -> tuple[Schema, Any]:
    """Return the small schema with a new definition `X`, and two definitions that it may refer to."""
    return change({"X": schema, "Text": TEXT, "Part": record(a=TEXT)}, accepts=accepts)


def find(**changes: Any) -> Schema:
    """Return the request of the small schema with changes."""
    return {**message("books/find", ref("FindBookRequestParams")), **changes}


SHELVES = {"ListShelvesRequest": message("shelves/list"), "ListShelvesResult": record()}

ROWS: dict[str, tuple[Schema, tuple[Any, ...]]] = {
    "keyword-unknown | property-names | /X/propertyNames | 'propertyNames' | not checked": x(
        {"type": "object", "propertyNames": {"maxLength": 3}}, {"abc": 1}
    ),
    "keyword-unknown | patterns-of-a-closed-object | /X/patternProperties | 'patternProperties' | not checked": x(
        {**record(a=TEXT), "patternProperties": {"^x-": WHOLE}, **CLOSED}, {"a": "", "x-1": 1}
    ),
    "keyword-unknown | items-one-by-one | /X/prefixItems | 'prefixItems' | not checked": x(
        {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False}, ["a", 1]
    ),
    "keyword-unknown | not | /X/not | 'not' | not checked": x({"type": "string", "not": {"const": "a"}}, "b"),
    "keyword-unknown | if | /X/if | 'if' | not checked": x({"type": "string", "if": TEXT}, "ab"),
    "keyword-unknown | misspelled | /X/requried | 'requried' | not": x({"type": "object", "requried": ["a"]}, {}),
    "keyword-kind | required | /X/required | wrong kind | not read": x({"type": "object", "required": "a"}),
    "keyword-kind | minimum | /X/minimum | wrong kind | not read": x({"type": "integer", "minimum": "3"}),
    "keyword-kind | tuple | /X/items | wrong kind | not read": x({"type": "array", "items": [TEXT]}),
    "keyword-kind | pattern | /X/pattern | wrong kind | not read": x({"type": "string", "pattern": "["}),
    "keyword-kind | empty-choice | /X/enum | wrong kind | not read": x({"enum": []}),
    "keyword-kind | empty-union | /X/anyOf | wrong kind | not read": x({"anyOf": []}),
    "keyword-kind | members | /X/properties | wrong kind | not": x({"type": "object", "properties": [], **CLOSED}),
    "keyword-kind | prose | /X/description | wrong kind | not read": x({**TEXT, "description": 5}),
    "type-unknown | one | /X/type | 'int' | any type": x({"type": "int"}),
    "type-unknown | among-others | /X/type | 'any' | any type": x({"type": ["null", "any"]}),
    "schema-kind | member | /X/properties/a | wrong kind | any JSON": x(record(a=5)),
    "schema-kind | option | /X/anyOf/1 | wrong kind | any JSON": x({"anyOf": [TEXT, 5]}),
    "definition-kind | boolean | /X | must be an object | any JSON": x(True, 1),
    "reference-dangling | member | /X/properties/a | leads nowhere | any JSON": x(record(a=ref("Prat"))),
    "reference-dangling | definition | /X | leads nowhere | any JSON": x(ref("Gone")),
    "reference-dangling | elsewhere | /X | leads nowhere | any JSON": x({"$ref": "other.json#/$defs/X"}),
    "reference-dangling | no-member | /X | leads nowhere | any JSON": x({"$ref": "#/$defs/Part/properties/b"}, "text"),
    "reference-dangling | whole-document | /X | leads nowhere | any JSON": x({"$ref": "#"}, 1),
    "reference-dialect | older | /X | leads nowhere | '#/$defs/Part'": x({"$ref": "#/definitions/Part"}, {"a": ""}),
    "reference-circle | itself | /X | X -> X | X there is any JSON": x(ref("X")),
    "reference-circle | union | /X | X -> X | X there is any JSON": x({"anyOf": [TEXT, ref("X")]}, ""),
    "reference-circle | two | /X | X -> Y -> X | Y there": change(X={"allOf": [ref("Y")]}, Y=ref("X")),
    "beside-reference | limit | /X | 'minLength' beside | both hold": x({**ref("Text"), "minLength": 2}, "ab"),
    "beside-reference | members | /X | 'type' beside | both": x({**ref("Part"), **record(b=WHOLE)}, {"a": "", "b": 1}),
    "beside-reference | same | /X/properties/a | 'type' | both": x(record(a={**ref("Part"), "type": "object"})),
    "definition-name | words | /Foo Bar | cannot be a name | 'FooBar'": change({"Foo Bar": TEXT}),
    "definition-name | path | /a~1b | cannot be a name | 'AB'": change({"a/b": record(a=TEXT), "X": ref("a~1b")}),
    "definition-name | private | /_X | cannot be a name | importable as '_X'": change({"_X": record(a=TEXT)}),
    "definition-name | small | /aPart | cannot | importable as 'aPart'": change(aPart=record(a=ref("aPart"))),
    "definition-name | generic | /Record<string,unknown> |  | 'RecordS": change({"Record<string,unknown>": {}}),
    "definition-name | keyword | /None | cannot be a name | 'NoneType'": change({"None": record(a=TEXT)}),
    "definition-name | builtin | /list | cannot be a name | 'List'": change(list=record(a=TEXT)),
    "definition-name | typing | /Literal | cannot be a name | 'LiteralType'": change(Literal=record(a=TEXT)),
    "definition-name | base | /Model | cannot | importable as 'Model'": change(Model=record(a=WHOLE)),
    "definition-name | no-letters | /é | cannot be a name | 'Type'": change({"é": TEXT}),
    "definition-name | two | /a part | cannot be a name | 'APart2'": change({"a part": TEXT, "APart": WHOLE}),
    "member-taken | style | /X | 'foo_bar' and 'fooBar' | 'foo_bar_2'": x(
        record(fooBar=TEXT, foo_bar=WHOLE), {"fooBar": ""}
    ),
    "inline-name-taken | object | /X/properties/part | taken | 'XPart2'": change(
        X=record(part=record(a=TEXT)), XPart=TEXT
    ),
    "inline-name-taken | limit | /X | taken | 'XTags2'": change(
        X=record(tags={"type": "array", "items": {**TEXT, "minLength": 1}}), XTags=TEXT
    ),
    "inline-name-taken | params | /FindBookRequest/properties/params | taken | 'FindBookRequestParams2'": change(
        FindBookRequest=message("books/find", {"type": "object"})
    ),
    "stub-taken | call | /FindBOOKRequest | 'FIND_BOOK' in | 'find_book_2'": change(
        ClientRequest=union("FindBookRequest", "FindBOOKRequest"),
        FindBOOKRequest=message("books/seek"),
        FindBOOKResult=record(),
    ),
    "all-of-types | types | /X/properties/a | 'type' | either part": x(record(a={"allOf": [WHOLE, record(b=TEXT)]})),
    "all-of-types | constants | /X | 'const' | either part": x({"allOf": [{"const": "a"}, {"const": "b"}]}),
    "all-of-reference | members | /X | adds to a reference | both": x(
        {"allOf": [record(a=ref("Part")), record(a=record(b=WHOLE))]}, {"a": {"a": "", "b": 1}}
    ),
    "all-of-reference | two | /X | '$ref' | both hold": change(
        X={"allOf": [record(a=ref("Y")), record(a=ref("Z"))]},
        Y=record("b", b=TEXT),
        Z=record("b", b=TEXT, c=WHOLE),
        accepts=({"a": {"b": "", "c": 1}},),
    ),
    "all-of-keyword | limits | /X | 'minimum' | first one": x(
        {"allOf": [{"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 2}]}, 3
    ),
    "all-of-unions | product | /X | more than 256 members | not checked": x(
        {"allOf": [{"anyOf": [record(**{f"{side}{n}": TEXT}) for n in range(17)]} for side in "ab"]}, {}
    ),
    "all-of-closed | members | /X | closed | all parts": x(
        {"allOf": [{**record(a=TEXT), **CLOSED}, record(b=TEXT)]}, {"a": ""}
    ),
    "all-of-circle | member | /X | never end | not checked": x(
        record(a={"allOf": [ref("X"), record(b=TEXT)]}), {"a": {"b": ""}}
    ),
    "accepts-nothing | member | /X/properties/a | 'false' | any JSON": x(record(a=False), {}),
    "accepts-nothing | part | /X/allOf/0 | 'false' | not checked": x({"allOf": [False, TEXT]}),
    'members-without-type | object | /X | "type": "object" | an object': x({"properties": {"a": TEXT}}, {"a": ""}),
    'members-of-several | null | /X/properties/a | "type": "object" | among': x(
        record(a={"type": ["object", "null"], "required": ["b"]}), {"a": None}, {"a": {"b": 1}}
    ),
    'members-of-others | text | /X | "type": "object" | not checked': x({"type": "string", "required": ["a"]}, "text"),
    "beside-union | members | /X | 'anyOf' beside | union is not": x(
        {**record(a=TEXT, b=TEXT), "anyOf": [record("a"), record("b")]}, {"a": ""}
    ),
    "beside-union | limit | /X | 'anyOf' beside | only the union": x({"anyOf": [TEXT, WHOLE], "minimum": 3}, "", 3),
    "beside-union | other-union | /X | beside | only the union": x(
        {"anyOf": [TEXT, WHOLE], "oneOf": [TEXT, {"type": "null"}]}, ""
    ),
    "one-of-overlaps | numbers | /X | overlap | several of them": x({"oneOf": [WHOLE, {"type": "number"}]}, 1.5),
    "keyword-unfit | limit-of-text | /X | 'minimum' | not checked": x({"type": "string", "minimum": 3}, ""),
    "keyword-unfit | items-without-type | /X | 'items' | not checked": x({"items": TEXT}, [""], 1),
    "constraint-unfit | look-ahead | /X/pattern | cannot be compiled | not checked": x(
        {"type": "string", "pattern": "^(?!x)"}, "a"
    ),
    "constraint-unfit | length | /X/maxItems | any length | not checked": x({"type": "array", "maxItems": 10**20}, [1]),
    "constraint-unfit | fraction | /X/multipleOf | fraction 0.1 | not checked": x(
        {"type": "number", "multipleOf": 0.1}, 0.3, 1
    ),
    "constant-kind | integer | /X | 64 bits | any integer": x({"enum": [1, 2**64, -(2**63)]}, 1, 2**64, -(2**63)),
    "constant-kind | number | /X | constants | any number": x({"const": 1.5}, 1.5),
    "constant-kind | object | /X | constants | any object": x({"enum": ["a", {}]}, "a", {}),
    "constant-type | text | /X | constant 1 | type is not checked": x({"type": "string", "const": 1}),
    "role-union | none |  | no role union | inferred": change(
        ClientRequest=None, ServerCapabilities=record(books=record())
    ),
    "role-union | no-messages |  | no role union | no methods": change(ClientRequest=None, FindBookRequest=None),
    "union-member | no-method | /FindBookResult | no 'method' constant | no message": change(
        ClientRequest=union("FindBookRequest", "FindBookResult")
    ),
    "union-member | no-reference | /ClientRequest | not a reference | no message": change(
        ClientRequest={"anyOf": [ref("FindBookRequest"), TEXT]}
    ),
    "union-member | two-methods | /BurnRequest | 'method' | no message": change(
        ClientRequest=union("FindBookRequest", "BurnRequest"),
        BurnRequest=record("method", method={"enum": ["burn", "scorch"]}),
    ),
    "message-name | suffix | /Burn | 'Request' | read as a request": change(
        ClientRequest=union("FindBookRequest", "Burn"), Burn=message("burn"), BurnResult=record()
    ),
    "message-name | no-words | /Request | no words before | read as a request": change(
        ClientRequest=union("FindBookRequest", "Request"), Request=message("burn"), Result=record()
    ),
    "message-twice | two-unions | /SeekBookRequest | 'books/find' | only a type": change(
        ServerRequest=union("SeekBookRequest"), SeekBookRequest=message("books/find"), SeekBookResult=record()
    ),
    "sender-inferred | sibling | /ListBooksRequest | no role union | the client sends it, like 'books/find'": change(
        ListBooksRequest=message("books/list"), ListBooksResult=record()
    ),
    "sender-inferred | other-way | /BookLostNotification | no role union | "
    "the server sends it, the other way round than 'books/find'": change(
        BookLostNotification=message("notifications/books/lost")
    ),
    "sender-inferred | capability | /ListShelvesRequest | no role union | "
    "the server sends it, as 'shelves' is a capability of the client": change(
        SHELVES, ClientCapabilities=record(shelves=record())
    ),
    "sender-inferred | result | /ListShelvesRequest | no role union | "
    "the client sends it, as its result is one of ServerResult": change(
        SHELVES, ServerResult=union("ListShelvesResult")
    ),
    "sender-inferred | meta | /ListShelvesRequest | no role union | "
    "the client sends it, as only the client sends Meta": change(
        {**SHELVES, "ListShelvesRequest": message("shelves/list", record(_meta=ref("Meta")))},
        ClientCapabilities=record(shelves=record()),
        FindBookRequestParams=record("title", title=TEXT, _meta=ref("Meta")),
        Meta=record(version=TEXT),
    ),
    "sender-inferred | nothing | /ListShelvesRequest | no role union | either side": change(SHELVES),
    "result-assumed | empty | /FindBookRequest | nothing says what answers 'books/find' | "
    "answered by EmptyResult": change(FindBookResult=None),
    "result-assumed | base | /FindBookRequest | nothing says | answered by Result, an empty result": change(
        FindBookResult=None, Result=record()
    ),
    "result-assumed | params | /SeekRequest | nothing says | answered by FindBookResult": change(
        ClientRequest=union("SeekRequest"),
        FindBookRequest=None,
        SeekRequest=message("books/find", ref("FindBookRequestParams")),
    ),
    "result-assumed | twin | /SeekRequest | nothing says | answered by FindBookResult": change(
        ClientRequest=union("SeekRequest"), SeekRequest=message("books/find")
    ),
    "result-assumed | one-word | /GetResultRequest | nothing says | answered by GetResult": change(
        ClientRequest=union("GetResultRequest"),
        FindBookRequest=None,
        GetResultRequest=message("books/result"),
        GetResult=record(),
    ),
}
"""Kind, name, pointer below the definitions, part of the reason and of the interpretation -> schema and values."""


def _drafts() -> Iterator[Any]:
    for words, (schema, accepts) in ROWS.items():
        kind, name, pointer, says, interpretation = words.split(" | ")
        yield pytest.param(Draft(kind, schema, f"/$defs{pointer}", says, interpretation, accepts), id=f"{kind}-{name}")


DRAFTS = list(_drafts())

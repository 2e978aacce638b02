"""Malformed and half-finished schemas: each breaks one rule, and can be read all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.small_schemas import Schema, message, record, ref, small, union

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
CLOSED = {"additionalProperties": False}


@dataclass(frozen=True)
class Draft:
    """A schema that breaks one rule.

    Attributes:
        kind: The kind of decision that it needs.
        schema: The whole document.
        pointer: Where.
        says: A part of the reason.
        reading: A part of the decision.
        accepts: Values of `X` that the schema accepts; what reads it must accept them too.
        more: How many more decisions of the kind there are.
    """

    kind: str
    schema: Schema
    pointer: str
    says: str
    reading: str
    accepts: tuple[Any, ...] = ()
    more: int = 0


def broken(
    kind: str,
    what: str,
    pointer: str,
    says: str,
    reading: str,
    definitions: Schema | None = None,
    /,
    accepts: tuple[Any, ...] = (),
    more: int = 0,
    **changes: Any,
) -> Any:
    """The small schema with some definitions changed."""
    schema = small(definitions, **changes)
    return pytest.param(Draft(kind, schema, pointer, says, reading, accepts, more), id=f"{kind}-{what}")


def about_x(kind: str, what: str, schema: Any, says: str, reading: str, *accepts: Any, at: str = "") -> Any:
    """The small schema with one more definition, `X`, beside two to refer to."""
    more = {"X": schema, "Text": TEXT, "Part": record(a=TEXT)}
    return broken(kind, what, f"/$defs/X{at}", says, reading, more, accepts=accepts)


def find(**changes: Any) -> Schema:
    """The message of the small schema, changed."""
    return {**message("books/find", ref("FindBookRequestParams")), **changes}


SHELVES = {"ListShelvesRequest": message("shelves/list"), "ListShelvesResult": record()}

DRAFTS = [
    # --- keywords -------------------------------------------------------------------------------------------------
    about_x(
        "keyword-unknown",
        "property-names",
        {"type": "object", "propertyNames": {"maxLength": 3}},
        "'propertyNames'",
        "not checked",
        {"abc": 1},
        at="/propertyNames",
    ),
    about_x(
        "keyword-unknown",
        "patterns-of-a-closed-object",
        {**record(a=TEXT), "patternProperties": {"^x-": WHOLE}, **CLOSED},
        "'patternProperties'",
        "not checked",
        {"a": "", "x-1": 1},
        at="/patternProperties",
    ),
    about_x(
        "keyword-unknown",
        "items-one-by-one",
        {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False},
        "'prefixItems'",
        "not checked",
        ["a", 1],
        at="/prefixItems",
    ),
    about_x(
        "keyword-unknown", "not", {"type": "string", "not": {"const": "a"}}, "'not'", "not checked", "b", at="/not"
    ),
    about_x("keyword-unknown", "if", {"type": "string", "if": TEXT}, "'if'", "not checked", "ab", at="/if"),
    about_x(
        "keyword-unknown", "misspelled", {"type": "object", "requried": ["a"]}, "'requried'", "not", {}, at="/requried"
    ),
    about_x("keyword-kind", "required", {"type": "object", "required": "a"}, "wrong kind", "not read", at="/required"),
    about_x("keyword-kind", "minimum", {"type": "integer", "minimum": "3"}, "wrong kind", "not read", at="/minimum"),
    about_x("keyword-kind", "tuple", {"type": "array", "items": [TEXT]}, "wrong kind", "not read", at="/items"),
    about_x("keyword-kind", "empty-choice", {"enum": []}, "wrong kind", "not read", at="/enum"),
    about_x("keyword-kind", "empty-union", {"anyOf": []}, "wrong kind", "not read", at="/anyOf"),
    about_x(
        "keyword-kind", "members", {"type": "object", "properties": [], **CLOSED}, "wrong kind", "not", at="/properties"
    ),
    about_x("keyword-kind", "prose", {**TEXT, "description": 5}, "wrong kind", "not read", at="/description"),
    about_x("type-unknown", "one", {"type": "int"}, "'int'", "any type", at="/type"),
    about_x("type-unknown", "among-others", {"type": ["null", "any"]}, "'any'", "any type", at="/type"),
    about_x("schema-kind", "member", record(a=5), "wrong kind", "any JSON", at="/properties/a"),
    about_x("schema-kind", "option", {"anyOf": [TEXT, 5]}, "wrong kind", "any JSON", at="/anyOf/1"),
    about_x("definition-kind", "boolean", True, "must be an object", "any JSON", 1),
    # --- references -----------------------------------------------------------------------------------------------
    about_x("reference-dangling", "member", record(a=ref("Prat")), "leads nowhere", "any JSON", at="/properties/a"),
    about_x("reference-dangling", "definition", ref("Gone"), "leads nowhere", "any JSON"),
    about_x("reference-dangling", "elsewhere", {"$ref": "other.json#/$defs/X"}, "leads nowhere", "any JSON"),
    about_x(
        "reference-dangling", "no-definition", {"$ref": "#/$defs/Part/properties/a"}, "leads nowhere", "any", "text"
    ),
    about_x("reference-dangling", "whole-document", {"$ref": "#"}, "leads nowhere", "any JSON", 1),
    about_x("reference-dialect", "older", {"$ref": "#/definitions/Part"}, "leads nowhere", "'#/$defs/Part'", {"a": ""}),
    about_x("reference-circle", "itself", ref("X"), "X -> X", "X there is any JSON"),
    about_x("reference-circle", "union", {"anyOf": [TEXT, ref("X")]}, "X -> X", "X there is any JSON", ""),
    broken("reference-circle", "two", "/$defs/X", "X -> Y -> X", "Y there", X={"allOf": [ref("Y")]}, Y=ref("X")),
    about_x("beside-reference", "limit", {**ref("Text"), "minLength": 2}, "'minLength' beside", "both hold", "ab"),
    about_x(
        "beside-reference", "members", {**ref("Part"), **record(b=WHOLE)}, "'type' beside", "both", {"a": "", "b": 1}
    ),
    about_x(
        "beside-reference", "same", record(a={**ref("Part"), "type": "object"}), "'type'", "both", at="/properties/a"
    ),
    # --- names ----------------------------------------------------------------------------------------------------
    broken("definition-name", "words", "/$defs/Foo Bar", "cannot be a name", "'FooBar'", {"Foo Bar": TEXT}),
    broken(
        "definition-name", "path", "/$defs/a~1b", "cannot be a name", "'AB'", {"a/b": record(a=TEXT), "X": ref("a~1b")}
    ),
    broken("definition-name", "private", "/$defs/_X", "cannot be a name", "importable as '_X'", {"_X": record(a=TEXT)}),
    broken("definition-name", "small", "/$defs/aPart", "cannot", "importable as 'aPart'", aPart=record(a=ref("aPart"))),
    broken(
        "definition-name", "generic", "/$defs/Record<string,unknown>", "", "'RecordS", {"Record<string,unknown>": {}}
    ),
    broken("definition-name", "keyword", "/$defs/None", "cannot be a name", "'NoneType'", {"None": record(a=TEXT)}),
    broken("definition-name", "builtin", "/$defs/list", "cannot be a name", "'List'", list=record(a=TEXT)),
    broken("definition-name", "typing", "/$defs/Literal", "cannot be a name", "'LiteralType'", Literal=record(a=TEXT)),
    broken("definition-name", "base", "/$defs/Model", "cannot", "importable as 'Model'", Model=record(a=WHOLE)),
    broken("definition-name", "no-letters", "/$defs/é", "cannot be a name", "'Type'", {"é": TEXT}),
    broken("definition-name", "two", "/$defs/a part", "cannot be a name", "'APart2'", {"a part": TEXT, "APart": WHOLE}),
    about_x(
        "member-taken",
        "style",
        record(fooBar=TEXT, foo_bar=WHOLE),
        "'foo_bar' and 'fooBar'",
        "'foo_bar_2'",
        {"fooBar": ""},
    ),
    broken(
        "inline-name-taken",
        "object",
        "/$defs/X/properties/part",
        "taken",
        "'XPart2'",
        X=record(part=record(a=TEXT)),
        XPart=TEXT,
    ),
    broken(
        "inline-name-taken",
        "limit",
        "/$defs/X",
        "taken",
        "'XTags2'",
        X=record(tags={"type": "array", "items": {**TEXT, "minLength": 1}}),
        XTags=TEXT,
    ),
    broken(
        "inline-name-taken",
        "params",
        "/$defs/FindBookRequest/properties/params",
        "taken",
        "'FindBookRequestParams2'",
        FindBookRequest=message("books/find", {"type": "object"}),
    ),
    broken(
        "stub-taken",
        "call",
        "/$defs/FindBOOKRequest",
        "'FIND_BOOK' in",
        "'find_book_2'",
        ClientRequest=union("FindBookRequest", "FindBOOKRequest"),
        FindBOOKRequest=message("books/seek"),
        FindBOOKResult=record(),
    ),
    # --- types ----------------------------------------------------------------------------------------------------
    about_x(
        "all-of-types",
        "types",
        record(a={"allOf": [WHOLE, record(b=TEXT)]}),
        "'type'",
        "either part",
        at="/properties/a",
    ),
    about_x("all-of-types", "constants", {"allOf": [{"const": "a"}, {"const": "b"}]}, "'const'", "either part"),
    about_x(
        "all-of-reference",
        "members",
        {"allOf": [record(a=ref("Part")), record(a=record(b=WHOLE))]},
        "adds to a reference",
        "both",
        {"a": {"a": "", "b": 1}},
    ),
    broken(
        "all-of-reference",
        "two",
        "/$defs/X",
        "'$ref'",
        "both hold",
        X={"allOf": [record(a=ref("Y")), record(a=ref("Z"))]},
        Y=record("b", b=TEXT),
        Z=record("b", b=TEXT, c=WHOLE),
        accepts=({"a": {"b": "", "c": 1}},),
    ),
    about_x(
        "all-of-keyword",
        "limits",
        {"allOf": [{"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 2}]},
        "'minimum'",
        "first one",
        3,
    ),
    about_x(
        "all-of-unions",
        "product",
        {"allOf": [{"anyOf": [record(**{f"{side}{n}": TEXT}) for n in range(17)]} for side in "ab"]},
        "more than 256 members",
        "not checked",
        {},
    ),
    about_x(
        "all-of-closed",
        "members",
        {"allOf": [{**record(a=TEXT), **CLOSED}, record(b=TEXT)]},
        "closed",
        "all parts",
        {"a": ""},
    ),
    about_x(
        "all-of-circle",
        "member",
        record(a={"allOf": [ref("X"), record(b=TEXT)]}),
        "never end",
        "not checked",
        {"a": {"b": ""}},
    ),
    about_x("accepts-nothing", "member", record(a=False), "'false'", "any JSON", {}, at="/properties/a"),
    about_x("accepts-nothing", "part", {"allOf": [False, TEXT]}, "'false'", "not checked", at="/allOf/0"),
    about_x("members-without-type", "object", {"properties": {"a": TEXT}}, '"type": "object"', "an object", {"a": ""}),
    about_x(
        "members-of-several",
        "null",
        record(a={"type": ["object", "null"], "required": ["b"]}),
        '"type": "object"',
        "among",
        {"a": None},
        {"a": {"b": 1}},
        at="/properties/a",
    ),
    about_x(
        "members-of-others", "text", {"type": "string", "required": ["a"]}, '"type": "object"', "not checked", "text"
    ),
    about_x(
        "beside-union",
        "members",
        {**record(a=TEXT, b=TEXT), "anyOf": [record("a"), record("b")]},
        "'anyOf' beside",
        "union is not",
        {"a": ""},
    ),
    about_x("beside-union", "limit", {"anyOf": [TEXT, WHOLE], "minimum": 3}, "'anyOf' beside", "only the union", "", 3),
    about_x(
        "beside-union",
        "other-union",
        {"anyOf": [TEXT, WHOLE], "oneOf": [TEXT, {"type": "null"}]},
        "beside",
        "only the union",
        "",
    ),
    about_x("one-of-overlaps", "numbers", {"oneOf": [WHOLE, {"type": "number"}]}, "overlap", "several of them", 1.5),
    about_x("keyword-unfit", "limit-of-text", {"type": "string", "minimum": 3}, "'minimum'", "not checked", ""),
    about_x("keyword-unfit", "items-without-type", {"items": TEXT}, "'items'", "not checked", [""], 1),
    about_x(
        "constraint-unfit",
        "look-ahead",
        {"type": "string", "pattern": "^(?!x)"},
        "cannot be compiled",
        "not checked",
        "a",
        at="/pattern",
    ),
    about_x(
        "constraint-unfit",
        "length",
        {"type": "array", "maxItems": 10**20},
        "any length",
        "not checked",
        [1],
        at="/maxItems",
    ),
    about_x("constant-kind", "number", {"const": 1.5}, "constants", "any number", 1.5),
    about_x("constant-kind", "object", {"enum": ["a", {}]}, "constants", "any object", "a", {}),
    about_x("constant-type", "text", {"type": "string", "const": 1}, "constant 1", "type is not checked"),
    # --- messages -------------------------------------------------------------------------------------------------
    broken(
        "role-union",
        "none",
        "/$defs",
        "no role union",
        "inferred",
        ClientRequest=None,
        ServerCapabilities=record(books=record()),
    ),
    broken(
        "role-union", "no-messages", "/$defs", "no role union", "no methods", ClientRequest=None, FindBookRequest=None
    ),
    broken(
        "union-member",
        "no-method",
        "/$defs/FindBookResult",
        "no 'method' constant",
        "no message",
        ClientRequest=union("FindBookRequest", "FindBookResult"),
    ),
    broken(
        "union-member",
        "no-reference",
        "/$defs/ClientRequest",
        "not a reference",
        "no message",
        ClientRequest={"anyOf": [ref("FindBookRequest"), TEXT]},
    ),
    broken(
        "union-member",
        "two-methods",
        "/$defs/BurnRequest",
        "'method'",
        "no message",
        ClientRequest=union("FindBookRequest", "BurnRequest"),
        BurnRequest=record("method", method={"enum": ["burn", "scorch"]}),
    ),
    broken(
        "message-name",
        "suffix",
        "/$defs/Burn",
        "'Request'",
        "read as a request",
        ClientRequest=union("FindBookRequest", "Burn"),
        Burn=message("burn"),
        BurnResult=record(),
    ),
    broken(
        "message-name",
        "no-words",
        "/$defs/Request",
        "no words before",
        "read as a request",
        ClientRequest=union("FindBookRequest", "Request"),
        Request=message("burn"),
        Result=record(),
    ),
    broken(
        "message-twice",
        "two-unions",
        "/$defs/SeekBookRequest",
        "'books/find'",
        "only a type",
        ServerRequest=union("SeekBookRequest"),
        SeekBookRequest=message("books/find"),
        SeekBookResult=record(),
    ),
    broken(
        "sender-inferred",
        "sibling",
        "/$defs/ListBooksRequest",
        "no role union",
        "the client sends it, like 'books/find'",
        ListBooksRequest=message("books/list"),
        ListBooksResult=record(),
    ),
    broken(
        "sender-inferred",
        "other-way",
        "/$defs/BookLostNotification",
        "no role union",
        "the server sends it, the other way round than 'books/find'",
        BookLostNotification=message("notifications/books/lost"),
    ),
    broken(
        "sender-inferred",
        "capability",
        "/$defs/ListShelvesRequest",
        "no role union",
        "the server sends it, as 'shelves' is a capability of the client",
        SHELVES,
        ClientCapabilities=record(shelves=record()),
    ),
    broken(
        "sender-inferred",
        "result",
        "/$defs/ListShelvesRequest",
        "no role union",
        "the client sends it, as its result is one of ServerResult",
        SHELVES,
        ServerResult=union("ListShelvesResult"),
    ),
    broken("sender-inferred", "nothing", "/$defs/ListShelvesRequest", "no role union", "either side", SHELVES),
    broken(
        "result-assumed",
        "empty",
        "/$defs/FindBookRequest",
        "nothing says what answers 'books/find'",
        "answered by EmptyResult",
        FindBookResult=None,
    ),
    broken(
        "result-assumed",
        "base",
        "/$defs/FindBookRequest",
        "nothing says",
        "answered by Result, an empty result",
        FindBookResult=None,
        Result=record(),
    ),
    broken(
        "result-assumed",
        "params",
        "/$defs/SeekRequest",
        "nothing says",
        "answered by FindBookResult",
        ClientRequest=union("SeekRequest"),
        FindBookRequest=None,
        SeekRequest=message("books/find", ref("FindBookRequestParams")),
    ),
    broken(
        "result-assumed",
        "twin",
        "/$defs/SeekRequest",
        "nothing says",
        "answered by FindBookResult",
        ClientRequest=union("SeekRequest"),
        SeekRequest=message("books/find"),
    ),
    broken(
        "result-assumed",
        "one-word",
        "/$defs/GetResultRequest",
        "nothing says",
        "answered by GetResult",
        ClientRequest=union("GetResultRequest"),
        FindBookRequest=None,
        GetResultRequest=message("books/result"),
        GetResult=record(),
    ),
]

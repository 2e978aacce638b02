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
    label: str,
    told: str,
    definitions: Schema | None = None,
    /,
    accepts: tuple[Any, ...] = (),
    more: int = 0,
    **changes: Any,
) -> Any:
    """The small schema with some definitions changed.

    Args:
        label: The kind of decision, a name for the case, and where.
        told: A part of the reason and a part of the decision, with an arrow between them.
        definitions: Definitions whose names are no names in Python.
        accepts: Values of `X` that the schema accepts.
        more: How many more decisions of the kind there are.
        changes: More definitions.
    """
    kind, what, pointer = label.split(" ", 2)
    says, reading = told.split("=> ")
    draft = Draft(kind, small(definitions, **changes), pointer, says.strip(), reading, accepts, more)
    return pytest.param(draft, id=f"{kind}-{what}")


def about_x(label: str, told: str, schema: Any, *accepts: Any) -> Any:
    """The small schema with one more definition, `X`, beside two to refer to; the place in `label` is one in it."""
    kind, what, place = [*label.split(" "), ""][:3]
    more = {"X": schema, "Text": TEXT, "Part": record(a=TEXT)}
    return broken(f"{kind} {what} /$defs/X{place}", told, more, accepts=accepts)


def find(**changes: Any) -> Schema:
    """The message of the small schema, changed."""
    return {**message("books/find", ref("FindBookRequestParams")), **changes}


SHELVES = {"ListShelvesRequest": message("shelves/list"), "ListShelvesResult": record()}
DRAFTS = [
    # --- keywords -------------------------------------------------------------------------------------------------
    about_x(
        "keyword-unknown property-names /propertyNames",
        "'propertyNames' => not checked",
        {"type": "object", "propertyNames": {"maxLength": 3}},
        {"abc": 1},
    ),
    about_x(
        "keyword-unknown patterns-of-a-closed-object /patternProperties",
        "'patternProperties' => not checked",
        {**record(a=TEXT), "patternProperties": {"^x-": WHOLE}, **CLOSED},
        {"a": "", "x-1": 1},
    ),
    about_x(
        "keyword-unknown items-one-by-one /prefixItems",
        "'prefixItems' => not checked",
        {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False},
        ["a", 1],
    ),
    about_x("keyword-unknown not /not", "'not' => not checked", {"type": "string", "not": {"const": "a"}}, "b"),
    about_x("keyword-unknown if /if", "'if' => not checked", {"type": "string", "if": TEXT}, "ab"),
    about_x("keyword-unknown misspelled /requried", "'requried' => not", {"type": "object", "requried": ["a"]}, {}),
    about_x("keyword-kind required /required", "wrong kind => not read", {"type": "object", "required": "a"}),
    about_x("keyword-kind minimum /minimum", "wrong kind => not read", {"type": "integer", "minimum": "3"}),
    about_x("keyword-kind tuple /items", "wrong kind => not read", {"type": "array", "items": [TEXT]}),
    about_x("keyword-kind empty-choice /enum", "wrong kind => not read", {"enum": []}),
    about_x("keyword-kind empty-union /anyOf", "wrong kind => not read", {"anyOf": []}),
    about_x("keyword-kind members /properties", "wrong kind => not", {"type": "object", "properties": [], **CLOSED}),
    about_x("keyword-kind prose /description", "wrong kind => not read", {**TEXT, "description": 5}),
    about_x("type-unknown one /type", "'int' => any type", {"type": "int"}),
    about_x("type-unknown among-others /type", "'any' => any type", {"type": ["null", "any"]}),
    about_x("schema-kind member /properties/a", "wrong kind => any JSON", record(a=5)),
    about_x("schema-kind option /anyOf/1", "wrong kind => any JSON", {"anyOf": [TEXT, 5]}),
    about_x("definition-kind boolean", "must be an object => any JSON", True, 1),
    # --- references -----------------------------------------------------------------------------------------------
    about_x("reference-dangling member /properties/a", "leads nowhere => any JSON", record(a=ref("Prat"))),
    about_x("reference-dangling definition", "leads nowhere => any JSON", ref("Gone")),
    about_x("reference-dangling elsewhere", "leads nowhere => any JSON", {"$ref": "other.json#/$defs/X"}),
    about_x("reference-dangling no-definition", "leads nowhere => any", {"$ref": "#/$defs/Part/properties/a"}, "text"),
    about_x("reference-dangling whole-document", "leads nowhere => any JSON", {"$ref": "#"}, 1),
    about_x("reference-dialect older", "leads nowhere => '#/$defs/Part'", {"$ref": "#/definitions/Part"}, {"a": ""}),
    about_x("reference-circle itself", "X -> X => X there is any JSON", ref("X")),
    about_x("reference-circle union", "X -> X => X there is any JSON", {"anyOf": [TEXT, ref("X")]}, ""),
    broken("reference-circle two /$defs/X", "X -> Y -> X => Y there", X={"allOf": [ref("Y")]}, Y=ref("X")),
    about_x("beside-reference limit", "'minLength' beside => both hold", {**ref("Text"), "minLength": 2}, "ab"),
    about_x("beside-reference members", "'type' beside => both", {**ref("Part"), **record(b=WHOLE)}, {"a": "", "b": 1}),
    about_x("beside-reference same /properties/a", "'type' => both", record(a={**ref("Part"), "type": "object"})),
    # --- names ----------------------------------------------------------------------------------------------------
    broken("definition-name words /$defs/Foo Bar", "cannot be a name => 'FooBar'", {"Foo Bar": TEXT}),
    broken("definition-name path /$defs/a~1b", "cannot be a name => 'AB'", {"a/b": record(a=TEXT), "X": ref("a~1b")}),
    broken("definition-name private /$defs/_X", "cannot be a name => importable as '_X'", {"_X": record(a=TEXT)}),
    broken("definition-name small /$defs/aPart", "cannot => importable as 'aPart'", aPart=record(a=ref("aPart"))),
    broken("definition-name generic /$defs/Record<string,unknown>", " => 'RecordS", {"Record<string,unknown>": {}}),
    broken("definition-name keyword /$defs/None", "cannot be a name => 'NoneType'", {"None": record(a=TEXT)}),
    broken("definition-name builtin /$defs/list", "cannot be a name => 'List'", list=record(a=TEXT)),
    broken("definition-name typing /$defs/Literal", "cannot be a name => 'LiteralType'", Literal=record(a=TEXT)),
    broken("definition-name base /$defs/Model", "cannot => importable as 'Model'", Model=record(a=WHOLE)),
    broken("definition-name no-letters /$defs/é", "cannot be a name => 'Type'", {"é": TEXT}),
    broken("definition-name two /$defs/a part", "cannot be a name => 'APart2'", {"a part": TEXT, "APart": WHOLE}),
    about_x(
        "member-taken style",
        "'foo_bar' and 'fooBar' => 'foo_bar_2'",
        record(fooBar=TEXT, foo_bar=WHOLE),
        {"fooBar": ""},
    ),
    broken(
        "inline-name-taken object /$defs/X/properties/part",
        "taken => 'XPart2'",
        X=record(part=record(a=TEXT)),
        XPart=TEXT,
    ),
    broken(
        "inline-name-taken limit /$defs/X",
        "taken => 'XTags2'",
        X=record(tags={"type": "array", "items": {**TEXT, "minLength": 1}}),
        XTags=TEXT,
    ),
    broken(
        "inline-name-taken params /$defs/FindBookRequest/properties/params",
        "taken => 'FindBookRequestParams2'",
        FindBookRequest=message("books/find", {"type": "object"}),
    ),
    broken(
        "stub-taken call /$defs/FindBOOKRequest",
        "'FIND_BOOK' in => 'find_book_2'",
        ClientRequest=union("FindBookRequest", "FindBOOKRequest"),
        FindBOOKRequest=message("books/seek"),
        FindBOOKResult=record(),
    ),
    # --- types ----------------------------------------------------------------------------------------------------
    about_x("all-of-types types /properties/a", "'type' => either part", record(a={"allOf": [WHOLE, record(b=TEXT)]})),
    about_x("all-of-types constants", "'const' => either part", {"allOf": [{"const": "a"}, {"const": "b"}]}),
    about_x(
        "all-of-reference members",
        "adds to a reference => both",
        {"allOf": [record(a=ref("Part")), record(a=record(b=WHOLE))]},
        {"a": {"a": "", "b": 1}},
    ),
    broken(
        "all-of-reference two /$defs/X",
        "'$ref' => both hold",
        X={"allOf": [record(a=ref("Y")), record(a=ref("Z"))]},
        Y=record("b", b=TEXT),
        Z=record("b", b=TEXT, c=WHOLE),
        accepts=({"a": {"b": "", "c": 1}},),
    ),
    about_x(
        "all-of-keyword limits",
        "'minimum' => first one",
        {"allOf": [{"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 2}]},
        3,
    ),
    about_x(
        "all-of-unions product",
        "more than 256 members => not checked",
        {"allOf": [{"anyOf": [record(**{f"{side}{n}": TEXT}) for n in range(17)]} for side in "ab"]},
        {},
    ),
    about_x(
        "all-of-closed members",
        "closed => all parts",
        {"allOf": [{**record(a=TEXT), **CLOSED}, record(b=TEXT)]},
        {"a": ""},
    ),
    about_x(
        "all-of-circle member",
        "never end => not checked",
        record(a={"allOf": [ref("X"), record(b=TEXT)]}),
        {"a": {"b": ""}},
    ),
    about_x("accepts-nothing member /properties/a", "'false' => any JSON", record(a=False), {}),
    about_x("accepts-nothing part /allOf/0", "'false' => not checked", {"allOf": [False, TEXT]}),
    about_x("members-without-type object", '"type": "object" => an object', {"properties": {"a": TEXT}}, {"a": ""}),
    about_x(
        "members-of-several null /properties/a",
        '"type": "object" => among',
        record(a={"type": ["object", "null"], "required": ["b"]}),
        {"a": None},
        {"a": {"b": 1}},
    ),
    about_x("members-of-others text", '"type": "object" => not checked', {"type": "string", "required": ["a"]}, "text"),
    about_x(
        "beside-union members",
        "'anyOf' beside => union is not",
        {**record(a=TEXT, b=TEXT), "anyOf": [record("a"), record("b")]},
        {"a": ""},
    ),
    about_x("beside-union limit", "'anyOf' beside => only the union", {"anyOf": [TEXT, WHOLE], "minimum": 3}, "", 3),
    about_x(
        "beside-union other-union",
        "beside => only the union",
        {"anyOf": [TEXT, WHOLE], "oneOf": [TEXT, {"type": "null"}]},
        "",
    ),
    about_x("one-of-overlaps numbers", "overlap => several of them", {"oneOf": [WHOLE, {"type": "number"}]}, 1.5),
    about_x("keyword-unfit limit-of-text", "'minimum' => not checked", {"type": "string", "minimum": 3}, ""),
    about_x("keyword-unfit items-without-type", "'items' => not checked", {"items": TEXT}, [""], 1),
    about_x(
        "constraint-unfit look-ahead /pattern",
        "cannot be compiled => not checked",
        {"type": "string", "pattern": "^(?!x)"},
        "a",
    ),
    about_x(
        "constraint-unfit length /maxItems", "any length => not checked", {"type": "array", "maxItems": 10**20}, [1]
    ),
    about_x("constant-kind number", "constants => any number", {"const": 1.5}, 1.5),
    about_x("constant-kind object", "constants => any object", {"enum": ["a", {}]}, "a", {}),
    about_x("constant-type text", "constant 1 => type is not checked", {"type": "string", "const": 1}),
    # --- messages -------------------------------------------------------------------------------------------------
    broken(
        "role-union none /$defs",
        "no role union => inferred",
        ClientRequest=None,
        ServerCapabilities=record(books=record()),
    ),
    broken("role-union no-messages /$defs", "no role union => no methods", ClientRequest=None, FindBookRequest=None),
    broken(
        "union-member no-method /$defs/FindBookResult",
        "no 'method' constant => no message",
        ClientRequest=union("FindBookRequest", "FindBookResult"),
    ),
    broken(
        "union-member no-reference /$defs/ClientRequest",
        "not a reference => no message",
        ClientRequest={"anyOf": [ref("FindBookRequest"), TEXT]},
    ),
    broken(
        "union-member two-methods /$defs/BurnRequest",
        "'method' => no message",
        ClientRequest=union("FindBookRequest", "BurnRequest"),
        BurnRequest=record("method", method={"enum": ["burn", "scorch"]}),
    ),
    broken(
        "message-name suffix /$defs/Burn",
        "'Request' => read as a request",
        ClientRequest=union("FindBookRequest", "Burn"),
        Burn=message("burn"),
        BurnResult=record(),
    ),
    broken(
        "message-name no-words /$defs/Request",
        "no words before => read as a request",
        ClientRequest=union("FindBookRequest", "Request"),
        Request=message("burn"),
        Result=record(),
    ),
    broken(
        "message-twice two-unions /$defs/SeekBookRequest",
        "'books/find' => only a type",
        ServerRequest=union("SeekBookRequest"),
        SeekBookRequest=message("books/find"),
        SeekBookResult=record(),
    ),
    broken(
        "sender-inferred sibling /$defs/ListBooksRequest",
        "no role union => the client sends it, like 'books/find'",
        ListBooksRequest=message("books/list"),
        ListBooksResult=record(),
    ),
    broken(
        "sender-inferred other-way /$defs/BookLostNotification",
        "no role union => the server sends it, the other way round than 'books/find'",
        BookLostNotification=message("notifications/books/lost"),
    ),
    broken(
        "sender-inferred capability /$defs/ListShelvesRequest",
        "no role union => the server sends it, as 'shelves' is a capability of the client",
        SHELVES,
        ClientCapabilities=record(shelves=record()),
    ),
    broken(
        "sender-inferred result /$defs/ListShelvesRequest",
        "no role union => the client sends it, as its result is one of ServerResult",
        SHELVES,
        ServerResult=union("ListShelvesResult"),
    ),
    broken("sender-inferred nothing /$defs/ListShelvesRequest", "no role union => either side", SHELVES),
    broken(
        "result-assumed empty /$defs/FindBookRequest",
        "nothing says what answers 'books/find' => answered by EmptyResult",
        FindBookResult=None,
    ),
    broken(
        "result-assumed base /$defs/FindBookRequest",
        "nothing says => answered by Result, an empty result",
        FindBookResult=None,
        Result=record(),
    ),
    broken(
        "result-assumed params /$defs/SeekRequest",
        "nothing says => answered by FindBookResult",
        ClientRequest=union("SeekRequest"),
        FindBookRequest=None,
        SeekRequest=message("books/find", ref("FindBookRequestParams")),
    ),
    broken(
        "result-assumed twin /$defs/SeekRequest",
        "nothing says => answered by FindBookResult",
        ClientRequest=union("SeekRequest"),
        SeekRequest=message("books/find"),
    ),
    broken(
        "result-assumed one-word /$defs/GetResultRequest",
        "nothing says => answered by GetResult",
        ClientRequest=union("GetResultRequest"),
        FindBookRequest=None,
        GetResultRequest=message("books/result"),
        GetResult=record(),
    ),
]

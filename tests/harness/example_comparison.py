"""Two revisions of the protocol of a library, and the expected comparison of them, written by hand."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.diff.finding import Comparison, Finding, Impact, Message, Outcome, Plane, Verdict, Witness
from mcp_bindgen.ir.model import (
    Array,
    Const,
    Definition,
    ErrorCode,
    Field,
    Method,
    Object,
    Protocol,
    Ref,
    Scalar,
    Type,
    Union,
)

TEXT = Scalar("string")
COUNT = Scalar("integer", (("minimum", 0),))

FIND = Message("books/find", "request", "client")
LEND = Message("books/lend", "request", "client")
ASK = Message("reader/ask", "request", "server")
MOVED = Message("notifications/moved", "notification", "server")
EVERYTHING = (FIND, LEND, MOVED, ASK)


def record(required: str, /, **fields: Type) -> Object:
    """Return an object type; `required` lists its required fields."""
    return Object(tuple(Field(name, type, name in required.split()) for name, type in fields.items()))


def library(revision: str, *methods: Method, **definitions: Type) -> Protocol:
    """Return a revision with these definitions, each with a short description."""
    named = {name: Definition(name, type, f"About `{name}`.") for name, type in sorted(definitions.items())}
    return Protocol(revision, "stateful", revision, named, methods, (ErrorCode("Closed", -32001),))


OLD = library(
    "2030-01-01",
    Method("books/find", "FindRequest", "request", ("client",), params=Ref("Query"), result=Ref("Book")),
    Method("reader/ask", "AskRequest", "request", ("server",)),
    FindRequest=record("params", params=Ref("Query")),
    AskRequest=record(""),
    Query=record("title", title=TEXT, limit=COUNT),
    Book=record("title", title=TEXT, genre=Ref("Genre"), shelf=Ref("Shelf")),
    Genre=Const(("crime", "poetry")),
    Reader=record("name", name=TEXT),
    Shelf=record("books", books=Array(Ref("Book"))),
    Stamp=TEXT,
)
NEW = library(
    "2031-01-01",
    Method("books/find", "FindRequest", "request", ("client",), params=Ref("Query"), result=Ref("Book")),
    Method("books/lend", "LendRequest", "request", ("client",)),
    FindRequest=record("params", params=Ref("Query")),
    LendRequest=record(""),
    Query=record("title language", title=TEXT, language=TEXT, limit=COUNT),
    Book=record("title", title=Union((TEXT, Ref("Member"))), genre=Ref("Genre"), shelf=Ref("Shelf")),
    Genre=Const(("crime", "poetry", "science")),
    Member=record("name", name=TEXT),
    Shelf=record("books", books=Array(Ref("Book"))),
)

REQUIRED = Finding(
    "field-added-required",
    "FindRequest.params.language",
    "books/find",
    Plane.WIRE,
    Impact.BREAKS,
    Impact.IGNORED,
    new="string",
    reaches=(FIND,),
    hint="Always send `language`.",
    definition_old="Query",
    definition_new="Query",
    witness=Witness({"title": "Emma", "limit": 3}, "Query", "Query", old_accepts=True, new_accepts=False),
)
ADDED = Finding(
    "request-method-added",
    "client->server request books/lend",
    "books/lend",
    Plane.WIRE,
    Impact.SAFE,
    Impact.BREAKS,
    new="books/lend",
    reaches=(LEND,),
    hint="Offer it.",
    definition_new="LendRequest",
    unwitnessed="a method has no value of its own",
    gate="server.lending",
)
WIDENED = Finding(
    "type-widened",
    "Book.title",
    "Book",
    Plane.WIRE,
    Impact.BREAKS,
    Impact.SAFE,
    old="string",
    new="string | Member",
    reaches=EVERYTHING,
    definition_old="Book",
    definition_new="Book",
)
GENRE = Finding(
    "enum-value-added",
    "Genre",
    "Genre",
    Plane.WIRE,
    Impact.RISKY,
    Impact.SAFE,
    new='"science"',
    reaches=(ASK, FIND),
    definition_old="Genre",
    definition_new="Genre",
)
RENAMED = Finding(
    "definition-renamed",
    "Member",
    "Member",
    Plane.SOURCE,
    Impact.NONE,
    Impact.NONE,
    old="Reader",
    new="Member",
    definition_old="Reader",
    definition_new="Member",
)
GONE = Finding(
    "definition-removed", "Stamp", "Stamp", Plane.SOURCE, Impact.NONE, Impact.NONE, "Stamp", definition_old="Stamp"
)
WORDS = Finding(
    "description-changed",
    "Shelf",
    "Shelf",
    Plane.DOC,
    Impact.NONE,
    Impact.NONE,
    "Wood.",
    "Steel.",
    definition_new="Shelf",
)
FINDINGS = (REQUIRED, ADDED, WIDENED, GENRE, RENAMED, GONE, WORDS)

LIBRARIES = Comparison(
    OLD,
    NEW,
    Verdict(Outcome.CANNOT_TALK, ("Queries need a `language`.",)),
    Verdict(Outcome.LIMITED, ("An old server does not know `books/lend`.",)),
    FINDINGS,
)
SAME = Comparison(NEW, NEW, Verdict(Outcome.WORKS), Verdict(Outcome.WORKS), ())

EVIL = """</script></style></pre><script>boo()</script><img src=x onerror=boo()>"'`{{7*7}}{% x %}<!--\0&lt;\u202e"""


def hostile() -> Comparison:
    """Return a comparison in which every name and text contains markup or code."""
    definition = Definition(EVIL, Object((Field(EVIL, Ref(EVIL), True, EVIL, EVIL),)), EVIL + "\ud800")
    other = replace(definition, type=Union((Ref(EVIL), Const((EVIL,)), TEXT)))
    old, new = library(EVIL), library(f"{EVIL} 2")
    old, new = (
        replace(old, definitions={EVIL: definition}),
        replace(new, definitions={EVIL: other, "Ok": replace(definition, name="Ok")}),
    )
    reaches = tuple(Message(f"{EVIL}{number}", "request", "client") for number in range(5))
    witness = Witness({EVIL: [EVIL]}, EVIL, EVIL, old_accepts=True, new_accepts=False)
    evil = replace(REQUIRED, subject=EVIL, group=EVIL, old=EVIL, new=EVIL, hint=EVIL, reaches=reaches, witness=witness)
    evil = replace(evil, definition_old=EVIL, definition_new=EVIL)
    verdict = Verdict(Outcome.LIMITED, (EVIL,))
    unseen = replace(evil, rule=EVIL, group=f"{EVIL} 2", witness=None, unwitnessed=EVIL, reaches=reaches[:2])
    return Comparison(old, new, verdict, verdict, (evil, unseen))

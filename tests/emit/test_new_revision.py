"""A new revision needs no code: conventional schemas become bindings, errors name the place of a broken rule."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.emit import Request, targets
from mcp_bindgen.emit.header import command_of
from mcp_bindgen.spec.canonical import digest
from tests.harness.commands import ROOT, Done, bindgen, execute, inside, python, save, shuffled, snapshot
from tests.harness.small_schemas import Schema, draft, message, record, ref, small, union
from tests.harness.type_checkers import strict_cache

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
DEFINITIONS = draft()["$defs"]


def options(folder: Path) -> list[object]:
    """Return the options that turn the schema file in `folder` into the package `acme.draft` there."""
    names = ["--revision", "draft", "--package", "acme.draft"]
    return ["--schema", folder / "draft.json", "--out", folder / "out", *names]


def generate(folder: Path, schema: Schema, *more: object) -> Done:
    save(folder / "draft.json", schema)
    return inside("generate", *options(folder), *more)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the bindings of the draft, made by the real command."""
    folder = tmp_path_factory.mktemp("draft")
    save(folder / "draft.json", draft())
    bindgen("generate", *options(folder), code=0)
    return folder


# --- bindings of a draft --------------------------------------------------------------------------------------

ASK_NAMES = """
import inspect, json
from acme.draft import REVISION, Client, Context, Server, dispatcher, methods

def signature(function):
    found = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))

def functions(cls):
    return {name: signature(value) for name, value in vars(cls).items() if inspect.isfunction(value)}

print(json.dumps({
    "revision": REVISION.name,
    "Client": functions(Client),
    "Context": functions(Context),
    "Server": functions(Server),
    "methods": {m.name: [m.kind, m.sender, m.params_required, m.capabilities] for m in methods.METHODS.values()},
    "routes": [sorted(dispatcher.SERVER.routes), sorted(dispatcher.CLIENT.routes)],
}))
"""


def test_a_draft_becomes_methods_handlers_and_routes(folder: Path) -> None:
    names = json.loads(python(ASK_NAMES, folder / "out"))
    assert names["revision"] == "draft"
    assert names["Client"] == {
        "borrow_book": "(self, title, *, schema=None, class_=None, some_key=None, list_=None, meta=None)",
        "count_books": "(self)",
        "echo": "(self, text)",
        "notify_reader_left": "(self)",
        **dict.fromkeys(("on_ask_reader", "on_echo", "on_shelf_moved"), "(self, params, ctx)"),
    }
    assert names["Server"] == {
        **dict.fromkeys(("borrow_book", "echo"), "(self, params, ctx)"),
        **dict.fromkeys(("count_books", "on_reader_left"), "(self, ctx)"),
    }
    assert names["Context"] == {
        "ask_params": "(self, key, params)",
        "ask_reader": "(self, question)",
        "echo": "(self, text)",
        "notify_shelf_moved": "(self, shelf)",
    }
    assert names["methods"] == {
        "books/borrow": ["request", "client", True, {"client": ["server", "books"]}],
        "books/count": ["request", "client", False, {"client": ["server", "books"]}],
        "echo": ["request", "both", True, {}],
        "notifications/reader/left": ["notification", "client", False, {}],
        "notifications/shelf/moved": ["notification", "server", True, {}],
        "reader/ask": ["request", "server", True, {}],
    }
    assert names["routes"][0] == ["books/borrow", "books/count", "echo", "notifications/reader/left"]
    assert names["routes"][1] == ["echo", "notifications/shelf/moved", "reader/ask"]


BORROW = "BorrowBookRequestParams"
GOOD: list[tuple[str, Any]] = [
    *(("Loan", {"returned": None}), ("Loan", {"due": None, "returned": "today"}), ("Sealed", {"code": "x"})),
    ("Loan", {"due": "today", "returned": None, "by": {"x": None, "y": 1.0}}),
    *(("Item", {"form": "book", "pages": 2**70}), ("Item", {"form": "film", "minutes": 90})),
    ("Item", {"form": "film", "minutes": 90.0, "class_": "kept"}),
    ("Shelf", {"items": [{"form": "film"}], "shelves": [{"items": [], "shelves": [{"items": []}]}]}),
    *(("Shelf", {"items": [], "size": {"width": 1}}), ("Prices", {"currency": "EUR", "tea": 1, "milk": 1.5})),
    *(("Anything", None), ("Anything", [1, 1.0, True, "1", {"": None}]), ("AskReaderResult", {})),
    *(("AskReaderResult", {"answer": True}), ("AskReaderResult", {"answer": 1.0})),
    (BORROW, {"title": "t", "class": "c", "$schema": "s", "list": ["l"], "io.vendor/someKey": 1}),
    (BORROW, {"title": "t", "class_": 1, "schema_": 1, "list_": 1, "some_key": 1, "someKey": 1}),
    (BORROW, {"title": "t", "_meta": {"io.vendor/x": None}, "meta": 1}),
    ("EchoRequest", {"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {"text": "é\U0001f600"}}),
    ("ClientRequest", {"method": "books/count", "params": {}}),
]
BAD: list[tuple[str, Any]] = [
    *(("Loan", {}), ("Loan", {"returned": 1}), ("Item", {"form": "disc"}), ("Item", {"pages": 1})),
    *(("Book", {"form": "film", "pages": 1}), ("Book", {"form": "book", "pages": "1"})),
    *(("Book", {"form": "book", "pages": True}), ("Shelf", {"items": [], "shelves": [{}]})),
    *(("Sealed", {"code": "x", "more": 1}), ("Prices", {"tea": "1"}), (BORROW, {"title": "t", "class": 1})),
    (BORROW, {"title": "t", "io.vendor/someKey": 0}),
    ("EchoRequest", {"method": "ohce", "params": {"text": ""}}),
    ("ClientRequest", {"method": "reader/ask", "params": {"question": ""}}),
]

THERE_AND_BACK = """
import json, sys
from acme.draft import types
from pydantic import TypeAdapter, ValidationError

def back(name, document):
    adapter = TypeAdapter(getattr(types, name))
    try:
        return adapter.dump_json(adapter.validate_json(json.dumps(document))).decode()
    except ValidationError:
        return None

print(json.dumps([back(name, document) for name, document in json.load(sys.stdin)]))
"""


def test_models_accept_valid_documents_and_return_them_unchanged(folder: Path) -> None:
    texts = json.loads(python(THERE_AND_BACK, folder / "out", stdin=json.dumps(GOOD + BAD)))
    for (name, document), text in zip(GOOD + BAD, texts, strict=True):
        judge = jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS})
        is_good = (name, document) in GOOD
        assert judge.is_valid(document) == is_good, "the test itself is wrong"
        expected = json.dumps(document, sort_keys=True) if is_good else None
        assert (text and json.dumps(json.loads(text), sort_keys=True)) == expected, (name, document)


DISPATCH = """
import asyncio, inspect, json
from acme.draft import Client, Server, dispatcher, types
from mcp_bindgen.runtime import ProtocolError

seen = []

class Library(Server):
    async def borrow_book(self, params, ctx):
        return types.BorrowBookResult(loan=types.Loan(due=params.class_, returned=ctx))

    def count_books(self, ctx):
        return types.CountBooksResult(count=7)

    def on_reader_left(self, ctx):
        seen.append(ctx)

class Reader(Client):
    async def request(self, method, params):
        seen.append([method.name, params and json.loads(params.model_dump_json())])

async def ask(method, params=None):
    route = dispatcher.SERVER.routes[method]
    try:
        handler = dispatcher.SERVER.handler(route, Library())
        given = [] if route.method.params is None else [route.read(params)]
    except ProtocolError as error:
        return [error.code, error.message]
    answer = handler(*given, "ctx")
    answer = await answer if inspect.isawaitable(answer) else answer
    return answer and json.loads(answer.model_dump_json())

async def main():
    await Reader().borrow_book("Emma", class_="novel", some_key=3, meta={"x": None})
    await Reader().count_books()
    print(json.dumps({
        "offered": sorted(dispatcher.SERVER.offered(Library())),
        "async": await ask("books/borrow", b'{"title": "Emma", "class": "novel"}'),
        "sync": await ask("books/count"),
        "notification": await ask("notifications/reader/left"),
        "not overridden": await ask("echo", b'{"text": ""}'),
        "routes": sorted(dispatcher.SERVER.routes),
        "bad params": await ask("books/borrow", b'{"title": 1}'),
        "no params": await ask("books/borrow"),
        "seen": seen,
    }))

asyncio.run(main())
"""


@pytest.mark.full
def test_the_dispatcher_routes_to_handlers(folder: Path) -> None:
    assert json.loads(python(DISPATCH, folder / "out")) == {
        "offered": ["books/borrow", "books/count", "notifications/reader/left"],
        "async": {"loan": {"due": "novel", "returned": "ctx"}},
        "sync": {"count": 7},
        "notification": None,
        "not overridden": [-32601, "Method not found: echo"],
        "routes": ["books/borrow", "books/count", "echo", "notifications/reader/left"],
        "bad params": [-32602, "Invalid params of books/borrow: params.title: Input should be a valid string"],
        "no params": [-32602, "Invalid params of books/borrow: params: Field required"],
        "seen": [
            ["books/borrow", {"title": "Emma", "class": "novel", "io.vendor/someKey": 3, "_meta": {"x": None}}],
            ["books/count", None],
            "ctx",
        ],
    }


RIGHT = '''
"""What a user writes."""

from acme.draft import Client, Context, Server, types


class Library(Server):
    async def borrow_book(self, params: types.BorrowBookRequestParams, ctx: Context) -> types.BorrowBookResult:
        await ctx.ask_reader("For how long?")
        await ctx.notify_shelf_moved(types.Shelf(items=[types.Book(pages=3), types.Film(minutes=1.5)]))
        return types.BorrowBookResult(loan=types.Loan(due=params.class_, returned=None))

    def count_books(self, ctx: Context) -> types.CountBooksResult:
        return types.CountBooksResult(count=7)

    def on_reader_left(self, ctx: Context) -> None: ...


def pages(item: types.Item) -> int:
    return item.pages if item.form == "book" else 0


async def use(client: Client) -> tuple[str | None, int, str]:
    answer = await client.borrow_book("Emma", class_="novel", list_=["a"], some_key=1, meta={"x": 1})
    await client.notify_reader_left()
    return answer.loan.due, (await client.count_books()).count, (await client.echo("hello")).text
'''
WRONG = '''
"""What a type checker tells a user."""

from acme.draft import Client, Context, Server, types


class Library(Server):
    def count_books(self, ctx: Context) -> int:  # wrong
        return 7


async def use(client: Client) -> None:
    await client.borrow_book()  # wrong
    await client.borrow_book("Emma", some_key="1")  # wrong
    await client.burn_book("Emma")  # wrong
    types.Loan(due=1, returned=None)  # wrong
    types.Book(pages=1).minutes  # wrong
'''


@pytest.fixture(scope="session")
def project(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with the package, correct code and code with mistakes."""
    project = tmp_path_factory.mktemp("project")
    (project / "src").symlink_to(folder / "out")
    (folder / "out" / "right.py").write_text(RIGHT, "utf-8")
    (folder / "out" / "wrong.py").write_text(WRONG, "utf-8")
    paths = f"files = src\nmypy_path = src:{ROOT / 'runtime'}\nexplicit_package_bases = True\n"
    (project / "mypy.ini").write_text(f"[mypy]\nstrict = True\n{paths}", "utf-8")
    strict = {"include": ["src"], "extraPaths": ["src", str(ROOT / "runtime")], "typeCheckingMode": "strict"}
    save(project / "pyrightconfig.json", strict)
    return project


MARKED = {("wrong.py", number) for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}


def modules(project: Path) -> int:
    return len(list((project / "src").glob("**/*.py")))


@pytest.mark.full
def test_mypy_strict_finds_the_mistakes_and_nothing_else(project: Path, tmp_path: Path) -> None:
    done = execute(sys.executable, "-m", "mypy", strict_cache(tmp_path / "cache"), cwd=project)
    found = re.findall(r"^src/([^:]+):(\d+): error", done.stdout, re.MULTILINE)
    assert {(file, int(line)) for file, line in found} == MARKED, done.stdout + done.stderr
    assert f"checked {modules(project)} source files" in done.stdout


@pytest.mark.full
def test_pyright_strict_finds_the_mistakes_and_nothing_else(project: Path) -> None:
    done = execute(sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, cwd=project)
    report = json.loads(done.stdout)
    found = {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in report["generalDiagnostics"]}
    assert found == MARKED, done.stdout
    assert report["summary"]["filesAnalyzed"] == modules(project)


def test_check_reports_the_generated_package_as_in_sync(folder: Path) -> None:
    done = inside("check", *options(folder))
    assert (done.returncode, done.stdout) == (0, "draft  in sync\n")


@pytest.mark.full
def test_equal_schemas_generate_equal_packages(tmp_path: Path) -> None:
    """Two files with equal digests (every file header states the digest) give the same package."""

    def files(schema: Schema) -> dict[str, str]:
        file = save(tmp_path / "draft.json", schema)
        (target,) = targets(Request(schema=file, name="draft", out=tmp_path, package="acme.draft"))
        return target.render()

    other = shuffled(draft(), 1)
    assert digest(other) == digest(draft())
    assert files(other) == files(draft())


# --- schemas that break a rule --------------------------------------------------------------------------------


HALF_FINISHED = small(FindBookResult=None, Shelf=record(book=ref("Book")), **{"a part": TEXT})


@pytest.mark.full
def test_a_draft_is_read_with_a_warning_for_each_diagnostic(tmp_path: Path) -> None:
    done = generate(tmp_path, HALF_FINISHED)
    check_usable(done, tmp_path / "out", HALF_FINISHED)
    place = re.escape(str(tmp_path / "draft.json"))
    *lines, incomplete = done.stderr.splitlines()
    assert incomplete.startswith("draft: types and stubs only")
    assert len(lines) == 3
    for line, pointer in zip(lines, ["/Shelf/properties/book", "/FindBookRequest", "/a part"], strict=True):
        assert re.fullmatch(rf"warning: {place}#/\$defs{pointer}: [^;]+; [^;]+; .+", line)
    assert inside("check", *options(tmp_path)).stderr.splitlines() == [*lines, incomplete]


def test_strict_refuses_a_draft_that_breaks_a_rule(tmp_path: Path) -> None:
    check_refused(generate(tmp_path, HALF_FINISHED, "--strict"), "/$defs/Shelf/properties/book", "leads nowhere")
    assert not (tmp_path / "out").exists()


def check_refused(done: Done, *parts: str) -> None:
    """Check for exit code 2 and one line, which contains all `parts` and a fix."""
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+; [^\n]+\n", done.stderr), done.stderr
    assert all(part in done.stderr for part in parts), done.stderr


# --- schemas that break no rule -------------------------------------------------------------------------------

USE_ALL = """
import asyncio, inspect, sys
from acme.draft import client, dispatcher, errors, methods, server, types
from pydantic import TypeAdapter, ValidationError

class Reader(client.Client):
    async def request(self, method, params):
        return method.name

async def call(route):
    stub = getattr(Reader(), route.handler)
    needed = [p.name for p in inspect.signature(stub).parameters.values() if p.default is p.empty]
    assert await stub(**dict.fromkeys(needed, "x")) == route.method.name

for cls in (client.Client, server.Server, server.Context):
    inherited = {name for base in cls.__mro__ for name in getattr(base, "__annotations__", ())} | set(dir(cls.__base__))
    hidden = inherited.intersection(name for name, value in vars(cls).items() if inspect.isfunction(value))
    assert not hidden, hidden
for name in types.__all__:
    try:
        TypeAdapter(getattr(types, name)).validate_json("{}")
    except ValidationError:
        pass
for route in dispatcher.SERVER.routes.values():
    if route.method.kind == "request":
        asyncio.run(call(route))
assert not [name for name in types.__all__ if isinstance(getattr(types, name), str)]
print(*sorted(methods.METHODS))
"""


def request_named(stem: str) -> Schema:
    """Return a schema with a request of this name, which either side may send."""
    own = {f"{stem}Request": message("odd", record("a", a=TEXT)), f"{stem}Result": record(b=TEXT)}
    roles = {"ClientRequest": union(f"{stem}Request", "FindBookRequest"), "ServerRequest": union(f"{stem}Request")}
    return small({**own, **roles}, Implementation=record("name", name=TEXT))


def check_usable(done: Done, out: Path, schema: Schema) -> None:
    """Check that all modules import, types validate, calls of a client work, and no name hides another name."""
    assert done.returncode == 0, done.stderr
    methods = [node.get("properties", {}).get("method", {}) for node in schema["$defs"].values()]
    assert set(python(USE_ALL, out).split()) == {method["const"] for method in methods if "const" in method}


USES_ALL_HELPERS = record(
    a={**WHOLE, "minimum": 1}, b={"type": ["string", "null"]}, c={"const": "c"}, d={}, e=union("X")
)
RECURSIVE = {"type": "array", "items": {"description": "D", "allOf": [ref("Shelf")]}}
PARTS = [{**record(a=TEXT), "$comment": "1"}, {**record(b=TEXT), "$comment": "2"}]
FOUND = message("notifications/found", record(shelf=ref("Shelf")))
MOVES = {"MoveRequest": message("move"), "MoveResult": record(), "MoveNotification": message("notifications/move")}
NAMES = "Field Json Model Number TYPE_CHECKING Union class list lowerCase snake_case"
CONVENTIONAL = {
    "arguments-named-like-what-stubs-use": small(
        FindBookRequestParams=record("types methods", types=TEXT, methods=TEXT, self=TEXT, ctx=TEXT, request=TEXT)
    ),
    "recursion-below-all-of": small(Shelf=record(shelves=RECURSIVE)),
    "all-of-with-other-prose": small(X={"allOf": PARTS}),
    "recursive-capabilities": small(ServerCapabilities=record(more=ref("ServerCapabilities"), books={})),
    "prose-that-looks-like-python": small(
        X={**TEXT, "description": 'Quotes """ and " \\', "title": "\\"}, Y={**record(), "description": "\\N{x}\r\n\f\t"}
    ),
    "an-error-without-ascii-letters": small(ÉError=record("code", code={"const": -32099})),
    "prose-that-python-cannot-hold": small(X={**TEXT, "description": "a\0b \ud800"}),
    "a-definition-named-annotated": small(Annotated=record(a={"type": "string", "minLength": 1})),
    "another-name-of-a-class-that-contains-itself": small(
        ServerNotification=union("ShelfNotification"),
        ShelfNotification=FOUND,
        Shelf=record(shelves={"type": "array", "items": ref("ShelfNotification")}),
    ),
    # no real message has such params, but the module must import
    "params-that-are-one-text": small(FindBookRequest=message("books/find", {"const": "here"})),
    "request-and-notification-of-one-name": small(
        MOVES, ServerRequest=union("MoveRequest"), ServerNotification=union("MoveNotification")
    ),
    **{f"{stem}Request": request_named(stem) for stem in ("Import", "Call", "Types", "Methods", "Info", "Connect")},
    **{name: small({name: record(a=TEXT), "X": USES_ALL_HELPERS}) for name in NAMES.split()},
}


@pytest.mark.full
@pytest.mark.parametrize("name", CONVENTIONAL)
def test_unusual_schemas_that_follow_the_conventions_work(tmp_path: Path, name: str) -> None:
    check_usable(generate(tmp_path, CONVENTIONAL[name]), tmp_path / "out", CONVENTIONAL[name])


USE_OPEN = """
import asyncio, json
from acme.draft import Client, dispatcher, methods, types

class Reader(Client):
    async def request(self, method, params):
        return json.loads(params.model_dump_json())

async def main():
    made = await Reader().find_book(types.FindBookRequestParams(title="Emma", _meta={"x": None}))
    read = dispatcher.SERVER.routes["books/find"].read(b'{"title": "Emma", "year": 1.0}')
    print(json.dumps([made, read.title, json.loads(read.model_dump_json())]))

asyncio.run(main())
"""


@pytest.mark.full
@pytest.mark.parametrize(
    "params", [True, {}, {"type": "object"}, {"type": "object", "additionalProperties": {}}, ref("Anything")], ids=repr
)
def test_params_without_declared_members_become_an_open_object(tmp_path: Path, params: Any) -> None:
    messages = {"FindBookRequest": message("books/find", params), "FindBookRequestParams": None}
    lost = {"ClientNotification": union("LostNotification"), "LostNotification": message("notifications/lost", params)}
    schema = small({**messages, **lost}, Anything={"type": "object"})
    check_usable(generate(tmp_path, schema), tmp_path / "out", schema)
    made, title, kept = json.loads(python(USE_OPEN, tmp_path / "out"))
    assert made == {"title": "Emma", "_meta": {"x": None}}
    assert (title, kept) == ("Emma", {"title": "Emma", "year": 1.0})


def test_an_optional_nullable_field_is_passed_in_the_params(tmp_path: Path) -> None:
    shelf = {"type": ["string", "null"]}
    for required, taken in (("title", "(self, params)"), ("title shelf", "(self, *, shelf, title)")):
        schema = small(FindBookRequestParams=record(required, title=TEXT, shelf=shelf))
        assert generate(tmp_path, schema).returncode == 0
        assert json.loads(python(ASK_NAMES, tmp_path / "out"))["Client"]["find_book"] == taken


def test_bindings_that_cannot_be_imported_replace_no_existing_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert generate(tmp_path, small()).returncode == 0
    before = snapshot(tmp_path / "out")
    monkeypatch.setattr("mcp_bindgen.emit.python.package_scope.PackageScope.name", lambda part, definition: "Lost")
    done = generate(tmp_path, small(More=record(a=TEXT)))
    check_refused(done, str(tmp_path / "draft.json"), "NameError: name 'Lost' is not defined", "nothing was written")
    assert snapshot(tmp_path / "out") == before
    assert not [name for name in sys.modules if "trial" in name and "mcp_bindgen_" in name]


@pytest.mark.parametrize("revision", ["", 'a"""b', "a\nb", "a\\", "2030-01-31 (draft)"], ids=repr)
def test_any_name_of_a_revision_works_or_is_refused(tmp_path: Path, revision: str) -> None:
    schema = small()
    done = generate(tmp_path, schema, "--revision", revision)
    if done.returncode == 0:
        check_usable(done, tmp_path / "out", schema)
    else:
        check_refused(done, "revision")


# --- facts that a schema cannot state -------------------------------------------------------------------------


ROLE = '[unions]\nReaderRequest = { sender = "client", kind = "request" }'


@pytest.mark.full
@pytest.mark.parametrize(
    ("schema", "facts"),
    [
        (small(FindBookResult=None, Found=record()), '[results]\n"books/find" = "Found"'),
        (small(ClientRequest=None, ReaderRequest=union("FindBookRequest")), ROLE),
    ],
    ids=["result", "role-union"],
)
def test_a_semantics_file_resolves_strict_errors(tmp_path: Path, schema: Schema, facts: str) -> None:
    assert generate(tmp_path, schema, "--strict").returncode == 2
    file = tmp_path / "facts.toml"
    file.write_text(facts, "utf-8")
    check_usable(generate(tmp_path, schema, "--strict", "--semantics", file), tmp_path / "out", schema)
    assert f"--semantics {file}" in command_of((tmp_path / "out" / "acme" / "draft" / "types.py").read_text("utf-8"))


@pytest.mark.full
def test_invalid_semantics_are_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "facts.toml"
    for facts in (
        *("[results", "[reslts]\nx = 1", "results = 3", "[unions]\nClientRequest = 3"),
        '[unions]\nClientRequest = { sender = "client" }',
        '[unions]\nClientRequest = { sender = "clinet", kind = "request" }',
        '[unions]\nClientRequest = { sender = "client", kind = "reqest" }',
        '[errors]\nBurnt = { doc = "D" }',
        '[[deprecations]]\ndefinitions = ["FindBookResult"]',
    ):
        file.write_text(facts, "utf-8")
        done = generate(tmp_path, small(), "--semantics", file)
        assert (done.returncode, done.stdout) == (2, ""), facts
        assert re.fullmatch(rf"error: {re.escape(str(file))}\b[^\n]+\n", done.stderr)


def test_a_missing_semantics_file_is_reported(tmp_path: Path) -> None:
    done = generate(tmp_path, small(), "--semantics", tmp_path / "facts.toml")
    assert done.returncode == 2
    assert f"{tmp_path / 'facts.toml'}: cannot be read" in done.stderr


# --- a new member ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "changed", "shown"),
    [
        ("python", {"types.py"}, 'Field(deprecated="`zone` is deprecated by its schema: Use title")'),
        ("typescript", {"types.ts", "validators.ts"}, "   * Words.\n   * @deprecated by its schema: Use title\n"),
    ],
)
def test_a_new_member_changes_the_types_with_the_digest_of_the_schema_alone(
    tmp_path: Path, language: str, changed: set[str], shown: str
) -> None:
    request = Request(
        schema=tmp_path / "draft.json", name="draft", out=tmp_path / "out", package="acme", language=language
    )
    added = {"type": "integer", "description": "Words.\n\n@deprecated Use title."}
    made: list[dict[str, str]] = []
    for members in ({}, {"zone": added}):
        save(tmp_path / "draft.json", small(FindBookResult=record("pages", pages=WHOLE, **members)))
        (target,) = targets(request)
        made.append(target.render())
        (digested,) = (name for name, text in made[-1].items() if target.sources[0].digest[:16] in text)
        assert digested in changed
    before, after = made
    assert {name for name in after if after[name] != before[name]} == changed
    assert any(shown in after[name] for name in changed)

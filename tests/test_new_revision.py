"""A new revision needs no code: whatever keeps to the conventions becomes bindings, whatever breaks one is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.emit import targets
from mcp_bindgen.spec.canonical import digest

from .helpers import (
    ROOT,
    Done,
    Schema,
    bindgen,
    draft,
    execute,
    inside,
    message,
    python,
    record,
    ref,
    save,
    shuffled,
    small,
    union,
)

TEXT = {"type": "string"}
NUMBER = {"type": "number"}

USER_CODE = '''
"""What the author of a server and a client writes."""

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


async def use(client: Client) -> None:
    answer = await client.borrow_book("Emma", class_="novel", list_=["a"], some_key=1, meta={"x": 1})
    counted: int = (await client.count_books()).count
    echoed: str = (await client.echo("hello")).text
    await client.notify_reader_left()
    print(answer.loan.due, counted, echoed, Library)
'''


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds `acme.draft`, made from a schema file by the command line."""
    folder = tmp_path_factory.mktemp("draft")
    done = bindgen(
        *("generate", "--schema", save(folder / "draft.json", draft()), "--revision", "draft"),
        *("--out", folder / "out", "--package", "acme.draft"),
    )
    assert done.returncode == 0, done.stderr
    (folder / "out" / "user.py").write_text(USER_CODE, "utf-8")
    return folder / "out"


# --- what becomes of a draft ----------------------------------------------------------------------------------

ASK_NAMES = """
import inspect, json
from acme.draft import REVISION, Client, Context, Server, dispatcher, methods
def signatures(cls):
    return {name: str(inspect.signature(value)) for name, value in vars(cls).items() if inspect.isfunction(value)}
print(json.dumps({
    "revision": REVISION,
    "Client": signatures(Client),
    "Context": signatures(Context),
    "Server": signatures(Server),
    "methods": {m.name: [m.kind, m.sender, m.params_required, m.capabilities] for m in methods.METHODS.values()},
    "routes": [sorted(dispatcher.SERVER.routes), sorted(dispatcher.CLIENT.routes)],
}))
"""


@pytest.fixture(scope="session")
def names(out: Path) -> Any:
    """What a fresh interpreter sees in the package."""
    return json.loads(python(ASK_NAMES, out))


def arguments(signatures: dict[str, str]) -> dict[str, list[str]]:
    """Function -> its arguments without their types: `name`, `name=` where it may be left out, `*` before keywords."""
    found: dict[str, list[str]] = {}
    for name, signature in signatures.items():
        function: Any = {}
        exec(f"def f{signature.partition(' ->')[0]}: ...".replace("acme.draft.", ""), AnyName(), function)
        found[name] = spell(function["f"])
    return found


class AnyName(dict[str, Any]):
    """A namespace in which every name has a value, so that annotations need no imports."""

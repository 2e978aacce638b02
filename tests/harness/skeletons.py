"""All projects that `scaffold` can generate: their list, their generation once per test run, and serving over HTTP.

The list follows from the protocol model: each revision, each feature of a side alone and all together, with and
without a contract, and all revisions at once. Projects with all features exist for each transport. A project with one
feature has one transport, which alternates from revision to revision.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
from ruamel.yaml import YAML

from mcp_bindgen.emit.python.calls import receives
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import build
from mcp_bindgen.ir.model import Sender
from mcp_bindgen.scaffold.project import Project
from mcp_bindgen.spec import Store
from tests.harness.commands import inside, save
from tests.harness.forks import PYTHON
from tests.harness.shared import alone

STORE = Store()
REVISIONS = tuple(STORE.pins)
LIFECYCLE = {"initialize", "ping", "server/discover", "subscriptions/listen"}
"""Methods that the runtime handles for every server."""

KINDS: tuple[Sender, ...] = ("server", "client")
TRANSPORTS = ("stdio", "http")
ALONE = (REVISIONS[0], *REVISIONS[-2:])
"""Revisions with a project for each single feature: the oldest, and the newest with and without sessions.

`make test-all` tests those of the newest two.
"""
ALL = "all"

Document = dict[str, Any]

# --- features -------------------------------------------------------------------------------------------------


effective = cache(partial(Store.effective, STORE))
"""Revision -> its schema, cached because parsing would dominate the duration of the tests."""


@cache
def protocol(revision: str) -> PythonProtocol:
    """Return the model of a revision."""
    return lower(build(effective(revision)))


@cache
def features(revision: str, side: Sender) -> tuple[str, ...]:
    """Return the features of a side: capabilities that messages need, and families of requests without a capability."""
    found = set()
    for method in protocol(revision).methods:
        for _, capability in method.capabilities:
            owner, *path = capability.split(".")
            found |= {path[0]} if owner == side else set()
        if method.kind == "request" and receives(method, side) and not method.capabilities:
            found |= {method.name.partition("/")[0]} - LIFECYCLE
    return tuple(sorted(found - {name.partition("/")[0] for name in LIFECYCLE}))


def declared(revision: str, side: Sender, chosen: Sequence[str]) -> set[str]:
    """Return the capabilities that an implementation of some features declares; every server declares logging."""
    known = {each.path for each in protocol(revision).capabilities if each.owner == side}
    return known & {*chosen, *["logging"] * (side == "server")}


# --- a contract -----------------------------------------------------------------------------------------------

SAMPLE: Document = {
    "serverInfo": {"name": "library", "title": "The library", "version": "2.0.0"},
    "instructions": "Look for a book before you borrow it.",
    "tools": [
        {
            "name": "find-book",
            "description": 'Finds books; "quotes", back\\slashes and Grüße 🌍 stay what they are.',
            "inputSchema": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 1, "description": "A part of the title."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                    "form": {"enum": ["book", "film"], "description": "What it is."},
                    "class": {"type": ["string", "null"]},
                    "price": {"$ref": "#/$defs/price"},
                },
                "required": ["title"],
                "additionalProperties": False,
                "$defs": {
                    "price": {"type": "object", "properties": {"from": {"type": "number"}, "to": {"type": "number"}}}
                },
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "books": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"title": {"type": "string"}, "pages": {"type": "integer", "minimum": 1}},
                            "required": ["title", "pages"],
                        },
                    },
                    "more": {"type": "boolean"},
                },
                "required": ["books", "more"],
            },
            "annotations": {"readOnlyHint": True},
        },
        {
            "name": "borrow",
            "description": "Lends a book.",
            "inputSchema": {
                "type": "object",
                "properties": {"id": {"type": "integer"}, "days": {"type": "integer", "default": 14}},
                "required": ["id"],
            },
        },
        {"name": "close", "inputSchema": {"type": "object"}},
    ],
    "prompts": [
        {
            "name": "recommend",
            "description": "Asks for something to read.",
            "arguments": [
                {"name": "genre", "description": "Which kind.", "required": True, "enum": ["crime", "poetry", "prose"]},
                {"name": "mood"},
            ],
        },
        {"name": "hours"},
    ],
    "resources": [
        {"uri": "library://rules", "name": "rules", "description": "What one may do.", "mimeType": "text/plain"},
        {"uri": "library://map", "name": "map", "mimeType": "text/plain"},
    ],
    "resourceTemplates": [
        {
            "uriTemplate": "library://books/{id}{?form}",
            "name": "book",
            "mimeType": "application/json",
            "variables": [{"name": "id", "description": "Its number."}, {"name": "form", "enum": ["short", "long"]}],
        },
        {"uriTemplate": "library://shelves/{+path}", "name": "shelf"},
    ],
}
"""Contract of a library: with and without arguments, results, defaults, enums and Python keywords."""

FIRST: Document = {
    "tools": [
        {
            "name": "greet",
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        }
    ],
    "prompts": [{"name": "greeting", "arguments": [{"name": "name"}]}],
    "resources": [{"uri": "memo://welcome"}],
    "resourceTemplates": [{"uriTemplate": "memo://{name}"}],
}
"""The features of a project without a contract, as far as a client needs them for requests."""

SECTIONS = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}
"""Section of a contract -> the server feature that it needs."""

BASIS = ("serverInfo", "instructions")


def contract(part: str) -> Document:
    """Return the sample contract, or only its section `part`."""
    members = [*BASIS, *SECTIONS] if part == ALL else [*BASIS, part]
    return deepcopy({name: SAMPLE[name] for name in members})


def offered(document: Document, revision: str) -> set[str]:
    """Return the features of a server with a contract: its sections, and completion if there are enums."""
    found = {SECTIONS[name] for name in document if name in SECTIONS}
    enums = "prompts" in document or "resourceTemplates" in document
    completion = {name for name in features(revision, "server") if name.startswith("completion")}
    return found | (completion if enums else set())


# --- the list -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A project that `scaffold` can generate.

    Attributes:
        kind: Server or client.
        revisions: Supported revisions.
        part: The only feature, or the only section of the contract, or `all`.
        transports: Supported transports.
        contracted: True if the project has a contract.
    """

    kind: Sender
    revisions: tuple[str, ...]
    part: str
    transports: tuple[str, ...]
    contracted: bool = False

    @property
    def name(self) -> str:
        """Unique name of the project."""
        revision = self.revisions[0] if len(self.revisions) == 1 else "several"
        words = [self.kind, revision, self.part, *self.transports, *["contract"] * self.contracted]
        return "-".join(words).lower()

    @property
    def document(self) -> Document:
        """Contract of the project, or its initial features."""
        return contract(self.part) if self.contracted else FIRST

    @property
    def title(self) -> str:
        """Name in the `serverInfo` of the server."""
        return str(SAMPLE["serverInfo"]["name"]) if self.contracted else self.name

    def features(self, revision: str) -> tuple[str, ...]:
        """Return the features in a revision."""
        if self.contracted:
            return tuple(sorted(offered(self.document, revision))) if self.kind == "server" else ()
        written = features(self.revisions[-1], self.kind)  # the oldest revision has `completion`, not `completions`
        known = [name for name in features(revision, self.kind) if any(name.startswith(one[:-1]) for one in written)]
        return tuple(name for name in known if self.part == ALL or name.startswith(self.part[:-1]))

    @property
    def modules(self) -> dict[str, str]:
        """Revision -> module of its class; only the newest revision has one."""
        return {self.revisions[-1]: self.kind}

    def enums(self) -> Iterator[tuple[Document, str, list[str]]]:
        """Yield completable values: the prompt or template, the argument or variable, and its values."""
        for entry in (*self.document.get("prompts", ()), *self.document.get("resourceTemplates", ())):
            for argument in (*entry.get("arguments", ()), *entry.get("variables", ())):
                if "enum" in argument:
                    yield entry, argument["name"], argument["enum"]

    def values(self, prompt: str) -> dict[str, str]:
        """Return a value for each argument of a prompt."""
        (entry,) = (each for each in self.document["prompts"] if each["name"] == prompt)
        return {each["name"]: each.get("enum", ["Ada"])[0] for each in entry.get("arguments", ())}

    def options(self, folder: Path) -> list[str]:
        """Return the arguments of `mcp-bindgen scaffold` for this variant.

        Args:
            folder: Folder for the contract that the command reads.
        """
        chosen = self.features(self.revisions[-1])
        words = [self.kind, self.name]
        words += [word for revision in self.revisions for word in ("--revision", revision)]
        words += ["--transport", ",".join(self.transports)]
        if self.contracted:
            words += ["--contract", str(self._written(folder))]
        if chosen and not (self.contracted and self.kind == "server"):
            words += ["--with", ",".join(chosen)]
        return words

    def _written(self, folder: Path) -> Path:
        """Write the contract as YAML or JSON, depending on the transport; return the file."""
        folder.mkdir(exist_ok=True)
        if "stdio" not in self.transports:
            return save(folder / f"{self.name}.json", self.document)
        file = folder / f"{self.name}.yaml"
        with file.open("w", encoding="utf-8") as out:
            YAML(typ="safe", pure=True).dump(self.document, out)
        return file


def _all_variants() -> Iterator[Variant]:
    for kind in KINDS:
        for at, revision in enumerate(REVISIONS):
            for contracted, parts in enumerate((features(revision, kind), SECTIONS if kind == "server" else ())):
                for nth, part in enumerate(parts if revision in ALONE else ()):
                    way = TRANSPORTS[(at + nth + contracted) % len(TRANSPORTS)]
                    yield Variant(kind, (revision,), part, (way,), contracted=bool(contracted))
                for way in TRANSPORTS:
                    yield Variant(kind, (revision,), ALL, (way,), contracted=bool(contracted))
    for part in (*features(REVISIONS[-1], "server"), ALL):
        yield Variant("server", REVISIONS, part, TRANSPORTS)
    for part in (*SECTIONS, ALL):
        yield Variant("server", REVISIONS, part, TRANSPORTS, contracted=True)
    yield Variant("client", REVISIONS, ALL, TRANSPORTS)


def _is_rest(variant: Variant) -> bool:
    return variant.part != ALL and variant.revisions[0] == REVISIONS[0]


EVERY_VARIANT = tuple(_all_variants())
REST = tuple(filter(_is_rest, EVERY_VARIANT))
"""Variants for `pytest -m slow`: single features of the oldest revision, and of several revisions."""
VARIANTS = tuple(each for each in EVERY_VARIANT if each not in REST)
HANDFUL = tuple(
    each
    for each in VARIANTS
    if each.name
    in {
        "server-2024-11-05-all-stdio",
        "server-2025-11-25-all-http",
        "server-2026-07-28-all-http",
        "server-several-all-stdio-http-contract",
        "client-2025-11-25-all-http",
        "client-several-all-stdio-http",
    }
)
"""Variants for `make test`: both kinds, eras and transports, with and without a contract."""

GROUPS = (*REVISIONS, "several")
REST_GROUP = "rest"


def group(name: str, kind: Sender = "server", over: str | None = None) -> list[Variant]:
    """Return the variants of one revision, of several revisions, or the selection for `make test` or `slow`."""
    revisions = REVISIONS if name == "several" else (name,)
    selected = {"handful": HANDFUL, REST_GROUP: REST}.get(
        name, tuple(each for each in VARIANTS if each.revisions == revisions)
    )
    return [each for each in selected if each.kind == kind and (over is None or over in each.transports)]


# --- generation -----------------------------------------------------------------------------------------------


class Workshop:
    """A folder with projects that all processes of a test run share; each variant is generated once.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.root = root

    def project(self, variant: Variant) -> Project:
        """Return the project of a variant; generate it if necessary."""
        folder = self.root / variant.name
        with alone(folder) as is_new:
            if is_new:
                options = variant.options(self.root / "contracts")
                with mock.patch.object(Store, "effective", lambda _, revision: effective(revision)):
                    done = inside("scaffold", *options, "--out", self.root)
                assert done.returncode == 0, f"{variant.name}: {done.stderr}"
        return Project.read(folder)


# --- serving over HTTP ----------------------------------------------------------------------------------------

_SERVE = """
import asyncio, importlib, json, socket, sys
import uvicorn

async def main():
    ports, running = {}, []
    for name in sys.argv[1:]:
        app = importlib.import_module(name + ".app").app
        listener = socket.create_server(("127.0.0.1", 0))
        ports[name] = listener.getsockname()[1]
        config = uvicorn.Config(app, log_level="warning", lifespan="on", ws="none")
        config.timeout_keep_alive = 60  # longer than clients reuse connections
        server = uvicorn.Server(config)
        running.append(asyncio.create_task(server.serve(sockets=[listener])))
    print(json.dumps(ports), flush=True)
    await asyncio.gather(*running)

asyncio.run(main())
"""


def search_path(projects: Sequence[Project]) -> dict[str, str]:
    """Return environment variables that make the packages of some projects importable."""
    return {"PYTHONPATH": os.pathsep.join(str(project.folder / "src") for project in projects)}


@asynccontextmanager
async def serving(projects: Sequence[Project]) -> AsyncGenerator[Mapping[str, str]]:
    """Serve the applications of some projects in one process; yield package -> URL."""
    names = [project.package for project in projects]
    command = [PYTHON, "-W", "error", "-c", _SERVE, *names]
    process = await anyio.open_process(command, stderr=None, env={**os.environ, **search_path(projects)})
    try:
        assert process.stdout is not None
        ports: dict[str, int] = json.loads(await process.stdout.receive())
        yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    finally:
        process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()

"""`mcp-bindgen call`: drives any server from the shell."""

from __future__ import annotations

import difflib
import json
import logging
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Annotated, Any, TypeAlias

import anyio
import typer

from mcp_bindgen.runtime import Options, connect
from mcp_bindgen.runtime.capabilities import is_declared
from mcp_bindgen.runtime.dispatcher import Route
from mcp_bindgen.runtime.errors import (
    METHOD_NOT_FOUND,
    CapabilityMissing,
    ConnectionClosed,
    InvalidParams,
    ProtocolError,
    RequestTimeout,
    UnsupportedRevision,
)
from mcp_bindgen.runtime.host_config import Entry
from mcp_bindgen.runtime.metadata import CLIENT_CAPABILITIES, CLIENT_INFO, VERSION
from mcp_bindgen.runtime.targets import Target, command_words
from mcp_bindgen.runtime.vocabulary import INITIALIZE
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.json import is_object

from .output import print_json
from .results import KINDS, print_offers, readable, show

Answer = dict[str, Any]
Work: TypeAlias = Callable[[Any], Awaitable[Answer]]

_LISTS = {
    "tools": ("tools", "each_tool"),
    "prompts": ("prompts", "each_prompt"),
    "resources": ("resources", "each_resource"),
    "resourceTemplates": ("resources", "each_resource_template"),
}
"""What can be listed -> the capability that it needs, and the client's method."""


def call(
    server: Annotated[str, typer.Argument(help="A command in quotes that starts a server, or the URL of one.")],
    method: Annotated[str | None, typer.Argument(help="A request such as tools/call; by default --list.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="A name or URI and a JSON object, or all params.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print what the server offers.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, as the server said it.")] = False,
    revision: Annotated[str | None, typer.Option(metavar="R", help="The revision to speak; by default the best.")] = (
        None
    ),
    timeout: Annotated[float, typer.Option(metavar="S", min=0, help="Seconds to wait for each answer.")] = 30,
    env: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An environment variable for the server; repeatable.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show what the server writes to stderr.")] = False,
) -> None:
    """Call a server: start it or connect to it, send one request and print the answer.

    Examples:

    `mcp-bindgen call 'npx -y @modelcontextprotocol/server-everything'` lists what it offers.

    `mcp-bindgen call 'python server.py' tools/call echo '{"message": "hi"}'`

    `mcp-bindgen call 'python server.py' prompts/get greeting '{"name": "Ada"}'`

    `mcp-bindgen call http://127.0.0.1:8000/mcp resources/read file:///notes.txt --json`

    `mcp-bindgen call 'python server.py' completion/complete '{"ref": ..., "argument": ...}'` takes all params as JSON.
    """
    if list_ and method is not None:
        raise BadInput(f"--list and {method} are two things", fix="leave one of them out")
    ours = [pin.name for pin in Store().pins.values()][::-1]
    works = _works([Store().pin(revision).name] if revision else ours, method, arguments or [])
    if not verbose:
        logging.getLogger("mcp_bindgen").addHandler(logging.NullHandler())
    with tempfile.TemporaryFile() as log:
        wanted = _Call(server, _target(server, env or []), log, verbose, timeout, method, arguments or [])
        answer = _ask(wanted, works, ours)
    failed = answer.get("isError") is True
    if as_json:
        print_json(answer)
    elif answer.keys() & KINDS.keys() or method is None:
        print_offers(answer)
        if "nextCursor" in answer:
            typer.echo(f"there is more; go on with {json.dumps({'cursor': answer['nextCursor']})}", err=True)
    else:
        show(readable(answer), stderr=failed)
    if failed:
        raise typer.Exit(1)


@dataclass
class _Call:
    """One call: to whom, and what."""

    server: str
    target: Target
    log: IO[bytes]
    verbose: bool
    timeout: float
    method: str | None
    arguments: list[str]
    connected: bool = False

    def last_words(self) -> str:
        """The last line that the server wrote to stderr, if it wrote any that we kept."""
        self.log.seek(0)
        lines = self.log.read().decode("utf-8", "replace").split("\n")
        return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")


def _ask(wanted: _Call, works: Mapping[str, Work], ours: Sequence[str]) -> Answer:
    """The answer; the revision is the server's choice as long as we have it.

    Args:
        wanted: The call.
        works: Revision -> what to do in it.
        ours: The revisions that may be spoken, the best first.
    """
    try:
        return anyio.run(_connect, wanted, works)
    except UnsupportedRevision as error:
        others = [revision for revision in ours if revision not in works]
        spoken = [revision for revision in others if revision in error.revisions]
        if not spoken:
            raise BadInput(f"{error}", fix=f"we have {', '.join(ours)}") from None
        return _ask(wanted, _works(spoken, wanted.method, wanted.arguments), others)
    except (ProtocolError, CapabilityMissing) as error:
        data = getattr(error, "data", None)
        show(f"error: {error}" + (f"\n{json.dumps(data, ensure_ascii=False)}" if data else ""), stderr=True)
    except (ConnectionClosed, RequestTimeout) as error:
        slow = isinstance(error, RequestTimeout)
        reason = f"no answer within {wanted.timeout:g} s" if slow else f"{error}{wanted.last_words()}"
        if not wanted.connected:
            raise BadInput(f"cannot connect to {wanted.server!r}: {reason}") from None
        show(f"error: {reason}", stderr=True)
    raise typer.Exit(1)


async def _connect(wanted: _Call, works: Mapping[str, Work]) -> Answer:
    clients: list[Any] = [_module(revision, "client").Client() for revision in works]
    for client in clients:
        client.options = Options(timeout=wanted.timeout)
    async with connect(wanted.target, *clients, stderr=None if wanted.verbose else wanted.log) as client:
        wanted.connected = True
        return await works[client.revision](client)


async def _list(client: Any) -> Answer:
    """All that the server offers, as far as it declares it."""
    found: Answer = {}
    for member, (capability, each) in _LISTS.items():
        if is_declared(client.server_capabilities, capability):
            try:
                found[member] = [item.model_dump() async for item in getattr(client, each)()]
            except ProtocolError as error:
                if error.code != METHOD_NOT_FOUND:  # servers that have resources need not have templates
                    raise
    return found


def _works(revisions: Sequence[str], name: str | None, arguments: list[str]) -> dict[str, Work]:
    """Revision -> what to do in it, for those that can do it.

    Args:
        revisions: The revisions, the best first.
        name: The request, or `None` to list what there is.
        arguments: What it takes.

    Raises:
        BadInput: It is no request of any of them, or its params do not fit.
    """
    if name is None:
        return dict.fromkeys(revisions, _list)
    found: dict[str, Work] = {}
    problems: list[BadInput] = []
    for revision in [one for one in revisions if name in _requests(one)] or revisions[:1]:
        try:
            found[revision] = _request(revision, name, arguments)
        except BadInput as problem:
            problems.append(problem)
    if not found:
        raise problems[0]
    return found


def _request(revision: str, name: str, arguments: list[str]) -> Work:
    """What sends a request, once there is a client.

    Raises:
        BadInput: It is no request of the revision, or its params do not fit.
    """
    route = _route(revision, name)
    params = _params(route, arguments)

    def read(meta: Mapping[str, Any]) -> Any:
        stated = {**meta, **params.get("_meta", {})} if meta else None
        return route.read(json.dumps(params if stated is None else {**params, "_meta": stated}))

    try:
        read(_no_client(revision))
    except InvalidParams as error:
        raise BadInput(error.message, fix=f"see: mcp-bindgen show {revision} {name}") from None

    async def send(client: Any) -> Answer:
        answer: Answer = (await client.request(route.method, read(client.link.metadata()))).model_dump()
        return answer

    return send


def _no_client(revision: str) -> dict[str, Any]:
    """What requests say of a client, before there is one."""
    if INITIALIZE in _module(revision, "methods").METHODS:
        return {}
    return {VERSION: revision, CLIENT_INFO: {"name": "", "version": ""}, CLIENT_CAPABILITIES: {}}


def _requests(revision: str) -> dict[str, Route[Any]]:
    """The requests that a client can make."""
    routes: Mapping[str, Route[Any]] = _module(revision, "dispatcher").SERVER.routes
    return {name: route for name, route in routes.items() if route.method.kind == "request" and name != INITIALIZE}


def _route(revision: str, name: str) -> Route[Any]:
    known = _requests(revision)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        raise BadInput(
            f"{name!r} is no request that a client of MCP {revision} can make",
            fix=f"did you mean {' or '.join(near)}?" if near else f"see: mcp-bindgen methods {revision}",
        )
    return known[name]


def _params(route: Route[Any], arguments: list[str]) -> Answer:
    """Params from words: `{...}` is all of them; else a word is the one that is required, and JSON goes with it."""
    if not arguments:
        return {}
    word, *rest = arguments
    fields: Mapping[str, Any] = getattr(route.method.params, "model_fields", {})
    required = [field.alias or name for name, field in fields.items() if field.is_required() and name != "meta"]
    if len(rest) > 1 or (rest and word.lstrip().startswith("{")):
        raise BadInput(f"{rest[-1]!r} is too much", fix="put the JSON in quotes")
    if word.lstrip().startswith("{"):
        return _object(word)
    if len(required) != 1:
        raise BadInput(f"{route.method.name} takes its params as a JSON object, not as {word!r}")
    more = _object(rest[0]) if rest else {}
    return {required[0]: word} | ({"arguments": more} if rest and "arguments" in fields else more)


def _object(text: str) -> Answer:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise BadInput(f"not JSON: {text}: {error}") from None
    if not is_object(value):
        raise BadInput(f"not a JSON object: {text}")
    return value


def _target(server: str, env: list[str]) -> Target:
    """How to reach the server."""
    if server.startswith(("http://", "https://")):
        if env:
            raise BadInput("--env is for servers that are started here")
        if find_spec("httpx2") is None:
            raise BadInput("HTTP is not installed", fix="run: pip install 'mcp-bindgen[http]'")
        return server
    try:
        words = command_words(server)
    except ValueError as error:
        raise BadInput(str(error)) from None
    pairs = [setting.partition("=") for setting in env]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise BadInput(f"--env {key}{equals} is not KEY=VALUE")
    return Entry(words[0], tuple(words[1:]), {key: value for key, _, value in pairs})


def _module(revision: str, name: str) -> Any:
    return import_module(f"mcp_bindgen.v{revision.replace('-', '_')}.{name}")

"""`mcp-bindgen call`: drives any server from the shell."""

from __future__ import annotations

import difflib
import json
import logging
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Annotated, Any

import anyio
import typer

from mcp_bindgen.runtime import Client, Options, Transport
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
from mcp_bindgen.runtime.stdio import stdio
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.json import is_object

from .output import print_json
from .results import KINDS, print_offers, readable, show

Answer = dict[str, Any]

_LISTS = {
    "tools": ("tools", "each_tool"),
    "prompts": ("prompts", "each_prompt"),
    "resources": ("resources", "each_resource"),
    "resourceTemplates": ("resources", "each_resource_template"),
}
"""What can be listed -> the capability that it needs, and the client's method."""


def call(
    server: Annotated[str, typer.Argument(help="A command in quotes that starts a server, or the URL of one (SSE).")],
    method: Annotated[str | None, typer.Argument(help="A request such as tools/call; by default --list.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="A name or URI and a JSON object, or all params.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print what the server offers.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, as the server said it.")] = False,
    revision: Annotated[str | None, typer.Option(metavar="R", help="The revision to speak; the newest by default.")] = (
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

    `mcp-bindgen call http://127.0.0.1:8000/sse resources/read file:///notes.txt --json`

    `mcp-bindgen call 'python server.py' completion/complete '{"ref": ..., "argument": ...}'` takes all params as JSON.
    """
    if list_ and method is not None:
        raise BadInput(f"--list and {method} are two things", fix="leave one of them out")
    ours = [pin.name for pin in Store().pins.values() if pin.era == "stateful"]
    if revision is not None and Store().pin(revision).name not in ours:
        raise BadInput(f"MCP {revision} has no connections to call over", fix=f"take one of {', '.join(ours)}")
    if not verbose:
        logging.getLogger("mcp_bindgen").addHandler(logging.NullHandler())
    with tempfile.TemporaryFile() as log:
        target = _target(server, env or [], None if verbose else log)
        answer = _ask(_Call(server, target, log, timeout, method, arguments or []), revision or ours[-1], ours)
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
    transport: Callable[[], AbstractAsyncContextManager[Transport]]
    log: IO[bytes]
    timeout: float
    method: str | None
    arguments: list[str]
    connected: bool = False

    def last_words(self) -> str:
        """The last line that the server wrote to stderr, if it wrote any that we kept."""
        self.log.seek(0)
        lines = self.log.read().decode("utf-8", "replace").split("\n")
        return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")


def _ask(wanted: _Call, revision: str, ours: list[str]) -> Answer:
    """The answer; the revision is the server's choice as long as we have it."""
    work = _list if wanted.method is None else _request(revision, wanted.method, wanted.arguments)
    try:
        return anyio.run(_connect, wanted, revision, work)
    except UnsupportedRevision as error:
        if error.revision not in ours or error.revision == revision:
            raise BadInput(f"{error}", fix=f"we have {', '.join(ours)}") from None
        return _ask(wanted, error.revision, [error.revision])
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


async def _connect(wanted: _Call, revision: str, work: Callable[[Any], Awaitable[Answer]]) -> Answer:
    client: Client = _module(revision, "client").Client()
    client.options = Options(timeout=wanted.timeout)
    async with client.connected(wanted.transport()):
        wanted.connected = True
        return await work(client)


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


def _request(revision: str, name: str, arguments: list[str]) -> Callable[[Any], Awaitable[Answer]]:
    """What sends a request, once there is a client.

    Raises:
        BadInput: It is no request of the revision, or its params do not fit.
    """
    route = _route(revision, name)
    try:
        params = route.read(json.dumps(_params(route, arguments)))
    except InvalidParams as error:
        raise BadInput(error.message, fix=f"see: mcp-bindgen show {revision} {name}") from None

    async def send(client: Any) -> Answer:
        answer: Answer = (await client.request(route.method, params)).model_dump()
        return answer

    return send


def _route(revision: str, name: str) -> Route[Any]:
    routes: Mapping[str, Route[Any]] = _module(revision, "dispatcher").SERVER.routes
    known = {
        known: route for known, route in routes.items() if route.method.kind == "request" and known != "initialize"
    }
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
    required = [field.alias or name for name, field in fields.items() if field.is_required()]
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


def _target(
    server: str, env: list[str], stderr: IO[bytes] | None
) -> Callable[[], AbstractAsyncContextManager[Transport]]:
    """How to reach the server, each time anew."""
    if server.startswith(("http://", "https://")):
        if env:
            raise BadInput("--env is for servers that are started here")
        try:
            from mcp_bindgen.runtime.sse_client import sse
        except ImportError:
            raise BadInput("HTTP is not installed", fix="run: pip install 'mcp-bindgen[http]'") from None
        return lambda: sse(server)
    try:
        words = shlex.split(server)
    except ValueError as error:
        raise BadInput(f"not a command: {server}: {error}") from None
    if not words:
        raise BadInput("the command is empty")
    pairs = [setting.partition("=") for setting in env]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise BadInput(f"--env {key}{equals} is not KEY=VALUE")
    return lambda: stdio(*words, env={key: value for key, _, value in pairs}, stderr=stderr)


def _module(revision: str, name: str) -> Any:
    return import_module(f"mcp_bindgen.v{revision.replace('-', '_')}.{name}")

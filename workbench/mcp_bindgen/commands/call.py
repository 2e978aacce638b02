"""`mcp-bindgen call`: drive any server from the shell."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, replace
from typing import Annotated, Any, TypeAlias

import typer

from mcp_bindgen.app.catalog import KINDS
from mcp_bindgen.cli.options import Json, Server, SeveralPackages
from mcp_bindgen.cli.output import print_json, print_table
from mcp_bindgen.cli.terminal import say, write
from mcp_bindgen.runtime import InvalidItem
from mcp_bindgen.runtime.protocol import errors
from mcp_bindgen.runtime.protocol.methods import INITIALIZE
from mcp_bindgen.runtime.protocol.revision import Revision as Facts
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.spec.errors import BadInput, printable, suggestion
from mcp_bindgen.spec.json import is_array, is_object

from .client_classes import routes
from .dialogue import Dialogue
from .live import Connection, Document, Failed, Live, Work, bindings, lists, revisions_of, say_message, shown
from .servers import public

_Answer: TypeAlias = tuple[Document, tuple[InvalidItem, ...]]


_PATIENCE = 5.0
"""Seconds that completion waits for the lists of a server."""

_NAMED = {"tools/call": ("tools", "name"), "prompts/get": ("prompts", "name"), "resources/read": ("resources", "uri")}
"""Request -> the list of its possible targets, and the member that identifies a target."""

_PAIR = re.compile(r"([\w.-]+)=(.*)")
_MAX_EXAMPLE_CHARS = 200

_PLAIN = re.compile(r"[^\s\x00-\x1f'\"$`\\]+")


def _complete_request(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the requests that begin with the typed text."""
    known = dict.fromkeys(name for one in revisions_of(ctx.params.get("revision")) for name in requests_of(one))
    return [name for name in known if name.startswith(incomplete)]


def _complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tools, prompts or resources of the server; none if it does not answer in time."""
    member, key = _NAMED.get(str(ctx.params.get("method")), ("", ""))
    server = ctx.params.get("server")
    if not member or not isinstance(server, str) or ctx.params.get("arguments"):
        return []
    hidden = io.StringIO()
    try:
        with redirect_stdout(hidden), redirect_stderr(hidden):
            given: dict[str, Any] = {one.name: ctx.params.get(one.name) for one in fields(Connection)}
            given["timeout"] = _PATIENCE
            found = Live.named(server, Connection(**given)).ask(lambda names: dict.fromkeys(names, lists))
    except Exception:  # completion shows no errors
        return []
    names = [name for item in found.get(member, ()) if (name := str(item.get(key, ""))) == printable(name)]
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


def call(
    server: Server,
    method: Annotated[
        str | None,
        typer.Argument(help="A request such as tools/call; by default --list.", autocompletion=_complete_request),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="A name or URI and a JSON object, or all params.", autocompletion=_complete_name),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Print the tools, prompts and resources of the server.")
    ] = False,
    as_json: Json = False,
    answer_: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            metavar="[NAME=]VALUE",
            help="Answer to a question of the server, or decline, or cancel; repeatable.",
        ),
    ] = None,
    package: SeveralPackages = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show each message on stderr, with its violations of the schema.")
    ] = False,
    *,
    connection: Connection,
) -> None:
    """Call a server: start it or connect to it, send one request and print the result.

    A terminal shows progress and log messages, and asks you the questions of the server; `--answer` answers in scripts.

    Examples:

    `mcp-bindgen call 'npx -y @modelcontextprotocol/server-everything'` lists its tools, prompts and resources.

    `mcp-bindgen call 'python server.py' tools/call echo '{"message": "hi"}'`

    `mcp-bindgen call 'python server.py' prompts/get greeting '{"name": "Ada"}'`

    `mcp-bindgen call http://127.0.0.1:8000/mcp resources/read file:///notes.txt --json`

    `mcp-bindgen call https://example.com/mcp --bearer-env API_KEY` sends the token in a variable.

    `mcp-bindgen call library.py tools/call find '{"words": "tea"}'` starts the `App` in a file.

    `mcp-bindgen call mcp.json#weather tools/list` calls a server of the `mcpServers` in a file.

    `mcp-bindgen call 'python server.py' tools/call book --answer seats=2 --answer window=yes`

    `mcp-bindgen call --package acme_jobs 'python server.py' jobs/get job-1` speaks an extension of your own.

    `mcp-bindgen call 'python server.py' completion/complete '{"ref": ..., "argument": ...}'` takes all params as JSON.
    """
    if list_ and method is not None:
        raise BadInput(f"--list and {method} exclude each other", fix="leave one of them out")
    dialogue = Dialogue(answer_ or [])
    own = tuple(package or ())
    doing = " ".join([method or "listing", *(arguments or [])[:1]])
    live = replace(Live.named(server, connection), dialogue=dialogue, extensions=own, doing=shown(doing))
    live = replace(live, on_trace=say_message if trace else None)
    try:
        with dialogue.waiting(f"Asking {public(server)} ..."):
            answer, left_out = live.ask(lambda revisions: _works(revisions, method, arguments or [], own))
    except Failed as error:
        asks = "elicitation" in str(error) and not dialogue.answers
        hint = "\nIt asks its user something: --answer VALUE answers, --answer cancel does not." if asks else ""
        write(f"error: {dialogue.unanswered or error}{hint}\n", err=True)
        raise typer.Exit(1) from None
    if dialogue.unanswered is not None:
        say(f"error: {dialogue.unanswered}", err=True)
        raise typer.Exit(1)
    for one in left_out:
        say(f"{'error' if connection.strict else 'warning'}: left out, because it is not valid: {one}", err=True)
    failed = answer.get("isError") is True
    if as_json:
        print_json(answer)
    elif method is None or any(place.member in answer for place in KINDS.values()):
        print_offers(answer)
        if "nextCursor" in answer:
            say(f"there is more; go on with {json.dumps({'cursor': answer['nextCursor']})}", err=True)
    else:
        write(f"{readable(answer)}\n", err=failed)
    if failed or (connection.strict and left_out):
        raise typer.Exit(1)


def _works(
    revisions: Sequence[str], name: str | None, arguments: list[str], extensions: Sequence[str]
) -> dict[str, Work[_Answer]]:
    """Return the work to do in each revision that can do it.

    Args:
        revisions: The revisions, the best first.
        name: The request, or `None` to list everything.
        arguments: The arguments of the request.
        extensions: Import names of bindings beside the installed ones.

    Raises:
        BadInput: It is no request of any of them, or its params do not fit.
    """
    if name is None:
        return dict.fromkeys(revisions, _reporting(lists))
    found: dict[str, Work[_Answer]] = {}
    problems: list[BadInput] = []
    for revision in [one for one in revisions if name in requests_of(one, extensions)] or revisions[:1]:
        try:
            found[revision] = _reporting(request_work(revision, name, arguments, extensions))
        except BadInput as problem:
            problems.append(problem)
    if not found:
        raise problems[0]
    return found


def _reporting(work: Work[Document]) -> Work[_Answer]:
    """Return the same work, which also reports the invalid items of the answers."""

    async def report(client: Any) -> _Answer:
        return await work(client), client.invalid_items

    return report


def request_work(revision: str, name: str, arguments: list[str], extensions: Sequence[str] = ()) -> Work[Document]:
    """Return a function that sends a request with a connected client; `extensions` as for `client_class`.

    Raises:
        BadInput: It is no request of the revision, or its params do not fit.
    """
    route = _route(revision, name, extensions)
    params = _params(route, arguments)

    def read(meta: Mapping[str, Any]) -> Any:
        stated = {**meta, **params.get("_meta", {})} if meta else None
        return route.read(json.dumps(params if stated is None else {**params, "_meta": stated}))

    try:
        read(_no_client(revision))
    except errors.InvalidParams as error:
        raise BadInput(error.message, fix=f"see: mcp-bindgen show {revision} {name}") from None

    async def send(client: Any) -> Document:
        try:
            result: Any = await client.call(route.method, read(_metadata(client)))
        except errors.UnexpectedAnswer as other:
            result = other.answer
        except errors.ProtocolError as error:
            if error.code == errors.INVALID_PARAMS and "did you mean" not in error.message:
                error.args = (f"{error}{await _near(client, route.method.name, params)}",)
            raise
        answer: Document = result.model_dump()
        return answer

    return send


async def _near(client: Any, method: str, params: Mapping[str, Any]) -> str:
    """Return advice for a tool, prompt or resource that the server does not list; empty if it lists it."""
    member, key = _NAMED.get(method, ("", ""))
    if not member:
        return ""
    try:
        names = [str(item.get(key)) for item in (await lists(client, checked=False)).get(member, ())]
    except (errors.ProtocolError, errors.ConnectionClosed, errors.RequestTimeout):
        return ""
    wanted = str(params.get(key))
    return "" if wanted in names else f"; {suggestion(wanted, names, 'see: --list')}"


def _metadata(client: Any) -> dict[str, Any]:
    """Return the metadata of a request; where a request asks for log messages, it does."""
    meta: dict[str, Any] = client.link.meta
    key = client.dispatcher.revision.meta_keys.get("log_level")
    return {**meta, key: "info"} if meta and key is not None and sys.stderr.isatty() else meta


def _no_client(revision: str) -> dict[str, Any]:
    """Return the metadata of requests before there is a client."""
    facts: Facts = bindings(revision, "revision").REVISION
    if not facts.era.is_stateless:
        return {}
    values = {"protocol_version": revision, "client_info": {"name": "", "version": ""}, "client_capabilities": {}}
    return {facts.meta_keys[name]: value for name, value in values.items()}


def requests_of(revision: str, extensions: Sequence[str] = ()) -> dict[str, Route]:
    """Return the requests that a client can make; `extensions` as for `client_class`."""
    found: dict[str, Route] = bindings(revision, "dispatcher").SERVER.routes | routes(revision, extensions)
    return {name: route for name, route in found.items() if route.method.kind == "request" and name != INITIALIZE}


def _route(revision: str, name: str, extensions: Sequence[str]) -> Route:
    known = requests_of(revision, extensions)
    if name not in known:
        fix = suggestion(name, known, f"see: mcp-bindgen methods {revision}", most=3)
        if "/" not in name and not any(name in bindings(one, "methods").METHODS for one in revisions_of(None)):
            fix = f"did you mean: tools/call {shlex.quote(name)}"
        raise BadInput(f"{name!r} is no request that a client of MCP {revision} can make", fix=fix)
    return known[name]


def _params(route: Route, arguments: list[str]) -> Document:
    """Read params from words: `{...}` is all of them; else a word is the required one, and JSON goes with it."""
    if not arguments:
        return {}
    word, *rest = arguments
    fields: Mapping[str, Any] = getattr(route.method.params, "model_fields", {})
    required = [field.alias or name for name, field in fields.items() if field.is_required() and name != "meta"]
    if len(rest) > 1 or (rest and word.lstrip().startswith("{")):
        raise BadInput(f"{rest[-1]!r} is too much", fix=f"put the JSON in quotes, {_example(rest)}")
    if word.lstrip().startswith("{"):
        return _object(word)
    if len(required) != 1:
        raise BadInput(f"{route.method.name} takes its params as a JSON object, not as {word!r}")
    more = _object(rest[0]) if rest else {}
    return {required[0]: word} | ({"arguments": more} if rest and "arguments" in fields else more)


def _object(text: str) -> Document:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {text[:200]}: {error}", fix=_example([text])) from None
    if not is_object(value):
        raise BadInput(f"not a JSON object: {text}", fix=_example([text]))
    return value


def _example(words: Sequence[str]) -> str:
    """Return an example of a JSON object for the shell, made of the words if all are NAME=VALUE."""
    pairs = [match for word in words if (match := _PAIR.fullmatch(word[:_MAX_EXAMPLE_CHARS]))]
    found = {pair[1]: _value(pair[2]) for pair in pairs} if len(pairs) == len(words) else {"name": "value"}
    return f"as in: {shlex.quote(json.dumps(found, ensure_ascii=False))}"


def _value(text: str) -> Any:
    """Return the number or constant that a text is in JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def print_offers(offers: Mapping[str, Any]) -> None:
    """Print lists of a server as a table; `offers` has some of the lists of `KINDS`."""
    rows = [
        [kind, item[place.key], _takes(item), _meaning(item)]
        for kind, place in KINDS.items()
        for item in offers.get(place.member, ())
    ]
    print_table(["KIND", "NAME", "TAKES", "MEANING"], rows)


def _takes(item: Mapping[str, Any]) -> str:
    """Return the arguments of a tool or prompt, optional ones with `?`, or the type of a resource."""
    schema, arguments = item.get("inputSchema"), item.get("arguments")
    if is_object(schema):
        required = schema.get("required", ())
        names = [name if name in required else f"{name}?" for name in schema.get("properties", ())]
    else:
        names = [argument["name"] + ("" if argument.get("required") else "?") for argument in arguments or ()]
    return ", ".join(names) or item.get("mimeType") or "-"


def _meaning(item: Mapping[str, Any]) -> str:
    name = item["name"] if "uri" in item or "uriTemplate" in item else "-"
    return item.get("description") or item.get("title") or name


def readable(result: Mapping[str, Any]) -> str:
    """Return a result as text: text content unchanged, other content as a summary, and the rest as JSON."""
    content, messages, contents = (result.get(member) for member in ("content", "messages", "contents"))
    if is_array(content):
        return "\n".join(_said(content, result.get("structuredContent")))
    if is_array(messages):
        return "\n".join(f"{printable(message['role'])}: {_block(message['content'])}" for message in messages)
    if is_array(contents):
        return "\n".join(_resource(part) for part in contents)
    return _json(result)


def _said(content: Sequence[Any], structured: Any) -> Iterator[str]:
    """Return the content of a tool's result; structured content that is repeated as text is left out."""
    for block in content:
        if structured is None or not _repeats(block, structured):
            yield _block(block)
    if structured is not None:
        yield _json(structured)


def _repeats(block: Mapping[str, Any], structured: Any) -> bool:
    try:
        return bool(json.loads(block.get("text", "")) == structured)
    except (ValueError, RecursionError):
        return False


def _block(block: Any) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "mimeType": mime, "data": str(data)}:
            return printable(f"[{kind} {mime}, {_size(data)} bytes]")
        case {"type": "resource", "resource": resource}:
            return _resource(resource)
        case {"type": "resource_link", "uri": uri}:
            return printable(f"[link {uri}]")
        case _:
            return _json(block)


def _resource(part: Mapping[str, Any]) -> str:
    if "text" in part:
        return str(part["text"])
    return printable(f"[{part['uri']} {part.get('mimeType', 'of unknown type')}, {_size(part['blob'])} bytes]")


def _size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)

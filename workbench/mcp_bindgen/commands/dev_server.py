"""Server of the page of `mcp-bindgen dev`, which runs a server and records all messages.

The page is on the loopback interface. Every request needs the token, and headers `Host` and `Origin` of this machine,
so that no other user, page or name that resolves to this machine can reach it.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import anyio
import uvicorn
import watchfiles
from anyio.streams.memory import MemoryObjectSendStream
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Lifespan

from mcp_bindgen.host.watch import StderrTail, Watch
from mcp_bindgen.http.server.app import leaving_on_stop
from mcp_bindgen.http.server.uvicorn_protocol import local_config
from mcp_bindgen.runtime import Options, connect
from mcp_bindgen.runtime.model.base import wire_fields
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import merge, missing, tree_of
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.methods import ELICIT, LIST_ROOTS, SAMPLE, RequestMethod
from mcp_bindgen.runtime.protocol.routing import Route as MethodRoute
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.tap import Trace, TracedMessage

from .call import request_work, requests_of
from .live import bindings, lists, revisions_of
from .servers import Named

_KINDS = "pyi js mjs cjs jsx ts mts cts tsx go rs html css jinja md toml yaml yml env"
SOURCES = watchfiles.PythonFilter(extra_extensions=[f".{kind}" for kind in _KINDS.split()])
"""The files whose changes restart the server: Python and these kinds. Servers write the other kinds, such as JSON."""
_PAGE = Path(__file__).with_name("dev.html")
_KEPT = 500
"""The messages that a page is shown when it comes late."""
_MOST = 4 * 1024 * 1024
"""The bytes of a request of the page."""
_POLICY = (
    "default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; connect-src 'self'; img-src data:; "
    "media-src data:; base-uri 'none'; form-action 'none'"
)
_REFUSED = -1
"""The error code by which a user refuses a question (MCP, "Sampling")."""


@dataclass
class _Question:
    """Question of the server to the user of a page; the answer is typed, and `None` if the user refuses."""

    method: RequestMethod[Any, Any, Any]
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Any = None


@dataclass
class Bench:
    """Server under development, and the pages that show it.

    Attributes:
        name: How it was named.
        server: The program to start, or its URL.
        watched: Folders whose changes restart the server.
        revision: The revision to speak; by default the best.
        timeout: Seconds to wait for it.
        token: Secret in the address of the page.
    """

    name: str
    server: Named
    watched: Sequence[Path]
    revision: str | None
    timeout: float
    token: str
    client: Any = None
    offers: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self._events: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._readers: set[MemoryObjectSendStream[dict[str, Any]]] = set()
        self._questions: dict[int, _Question] = {}
        self._asked = 0

    def tell(self, kind: str, **more: Any) -> None:
        """Tell the pages that something happened."""
        event = {"kind": kind, "at": time.monotonic() * 1000, **more}
        self._events.append(event)
        for reader in self._readers:
            with suppress(anyio.WouldBlock):
                reader.send_nowait(event)

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield recent events, then new ones as they happen."""
        sender, receiver = anyio.create_memory_object_stream[dict[str, Any]](math.inf)
        for event in self._events:
            sender.send_nowait(event)
        self._readers.add(sender)
        try:
            async with receiver:
                async for event in receiver:
                    yield event
        finally:
            self._readers.discard(sender)
            sender.close()

    def close(self) -> None:
        """End the event streams of all pages."""
        for reader in list(self._readers):
            reader.close()

    # --- the server -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the server running; start it again whenever a source file changes."""
        while True:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve)
                watch: Any = watchfiles.awatch(  # pyright: ignore[reportUnknownMemberType]
                    *self.watched, debounce=200, watch_filter=SOURCES
                )
                async for changed in watch:
                    names = sorted({Path(path).name for _, path in changed})
                    self.tell("reload", files=names[:5])
                    break
                tasks.cancel_scope.cancel()

    async def _serve(self) -> None:
        """Connect to the server once, and stay until it ends or is to start again."""
        self.tell("state", state="starting")
        entry = self.server.entry
        watch = Watch(self.name, Trace(self._record).record, lambda line: self.tell("junk", line=line))
        with StderrTail(self.name) as stderr:
            kinds = [bindings(revision, "client").Client for revision in revisions_of(self.revision)]
            clients = [self._client(kind) for kind in kinds]
            try:
                output = None if entry.command is None else stderr.writer
                auth = entry.login_auth(self.server.login_command(self.name))
                place = watch.address(entry.address({}, output, auth))
                async with connect(place, *clients, timeout=self.timeout) as client:
                    client.options = Options(timeout=self.timeout)
                    about = {"instructions": client.instructions, "requests": _possible(client)}
                    self.offers = {"revision": client.revision, **about, **await lists(client, checked=False)}
                    self.client = client
                    self.tell("state", state="ready", revision=client.revision)
                    await client.link.closed.wait()
                self.tell("state", state="ended", reason=watch.explained("the server ended", stderr.text()))
            except Exception as error:  # the page shows it, and the next change restarts the server
                self.tell("state", state="failed", reason=watch.explained(error, stderr.text()))
            finally:
                self.client = None
                for question in self._questions.values():
                    question.answered.set()

    def _client(self, kind: type[Any]) -> Any:
        """Return a client that passes all questions of the server to the user, and declares so."""
        routes: Mapping[str, MethodRoute] = {**kind.dispatcher.routes, **kind.dispatcher.embedded}
        asked = [routes[name] for name in (ELICIT, SAMPLE, LIST_ROOTS) if name in routes]
        declared = [tree_of(need.capability[1:], {}) for route in asked for need in route.method.needs]
        more: Mapping[str, Any] = reduce(merge, declared, {})

        def extra_capabilities(client: Any) -> Mapping[str, Any]:
            return more

        members: dict[str, Any] = {route.handler: self._asker(route.method) for route in asked}
        members |= {"announces": (), "extra_capabilities": extra_capabilities}
        return type(kind.__name__, (kind,), members)()

    def _asker(self, method: Any) -> Callable[[Any, Any, Any], Awaitable[Any]]:
        async def ask(client: Any, params: Any, ctx: Any) -> Any:
            self._asked += 1
            number, question = self._asked, _Question(method)
            self._questions[number] = question
            self.tell("question", id=number, method=method.name, params=jsonrpc.plain(params))
            try:
                await question.answered.wait()
            finally:
                del self._questions[number]
                self.tell("answered", id=number)
            if question.answer is None:
                raise ProtocolError(_REFUSED, "the user refused to answer")
            return question.answer

        return ask

    def answer(self, number: object, answer: object) -> str | None:
        """Answer a question in wire form, or refuse with `None`; return the problem of an answer that does not fit."""
        question = self._questions.get(number) if isinstance(number, int) else None
        if question is None:
            return "the server does not wait for this answer any more"
        try:
            question.answer = None if answer is None else jsonrpc.typed_result(question.method, answer)
        except ProtocolError as error:
            return error.message
        question.answered.set()
        return None

    def _record(self, seen: TracedMessage) -> None:
        violations = [str(violation) for violation in seen.violations]
        facts = {"method": seen.method, "elapsed": seen.elapsed_ms, "violations": violations}
        self.tell("message", by=seen.sender, message=seen.message, **facts)


def _possible(client: Any) -> dict[str, list[str]]:
    """Return the requests that the server declares to answer, each with the members of its params."""
    declared, revision = client.link.negotiated.declared, client.dispatcher.revision
    return {
        name: list(wire_fields(route.method.params))
        for name, route in sorted(requests_of(client.revision).items())
        if missing(route.method, revision, "client", declared) is None
    }


# --- the page -------------------------------------------------------------------------------------------------


def page_app(bench: Bench, port: int, lifespan: Lifespan[Starlette]) -> Starlette:
    """Return the application of the page; every request needs the token."""
    hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
    page = _PAGE.read_text("utf-8")

    def guarded(work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            origin = request.headers.get("origin")
            if request.headers.get("host") not in hosts:
                return PlainTextResponse("this host is not served here", 421)
            if origin is not None and origin.removeprefix("http://") not in hosts:
                return PlainTextResponse("this origin is not allowed", 403)
            shown = request.headers.get("x-dev-token") or request.query_params.get("token") or ""
            if not compare_digest(shown.encode(), bench.token.encode()):
                return PlainTextResponse("the address that the command printed has a token; it is missing here", 403)
            response = await work(request)
            response.headers.update({"cache-control": "no-store", "referrer-policy": "no-referrer"})
            return response

        return answer

    async def show(request: Request) -> Response:
        nonce = token_urlsafe(16)
        headers = {"content-security-policy": _POLICY.format(nonce), "x-frame-options": "DENY"}
        return HTMLResponse(page.replace("NONCE", nonce), headers=headers)

    async def offers(request: Request) -> Response:
        return JSONResponse({"name": bench.name, "ready": bench.client is not None, **bench.offers})

    async def events(request: Request) -> Response:
        async def lines() -> AsyncIterator[str]:
            async for event in bench.events():
                yield f"{json.dumps(event)}\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def call(request: Request) -> Response:
        asked = await _body(request)
        if bench.client is None:
            return JSONResponse({"error": "the server is not ready; send the request again when it is"})

        def advance(params: Any) -> None:
            bench.tell("progress", call=asked.get("call"), params=params.model_dump())

        try:
            client = bench.client.with_options(on_progress=advance)
            work = request_work(client.revision, str(asked.get("method")), [json.dumps(asked.get("params") or {})])
            return JSONResponse({"result": await work(client)})
        except Exception as error:  # shown on the page
            data = error.data if isinstance(error, ProtocolError) else None
            return JSONResponse({"error": str(error), "data": data})

    async def answer(request: Request) -> Response:
        asked = await _body(request)
        return JSONResponse({"problem": bench.answer(asked.get("id"), asked.get("answer"))})

    routes = [
        Route("/", guarded(show)),
        Route("/offers", guarded(offers)),
        Route("/events", guarded(events)),
        Route("/call", guarded(call), methods=["POST"]),
        Route("/answer", guarded(answer), methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


async def _body(request: Request) -> dict[str, Any]:
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > _MOST:
            return {}
    with suppress(ValueError, RecursionError):
        found: Any = json.loads(bytes(data))
        if is_object(found):
            return found
    return {}


async def serve_page(bench: Bench, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until the process is stopped.

    Args:
        bench: The server to show.
        port: The port on the loopback interface; 0 for any.
        ready: Called with the address of the page.

    Raises:
        BadInput: The port is taken.
    """
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise BadInput(f"port {port} cannot be used: {reason}", fix="give another --port") from None
    port = listener.getsockname()[1]
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await bench.run()

    def close() -> None:
        scope.cancel()
        bench.close()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        with leaving_on_stop(close):  # uvicorn waits for open pages and calls
            yield

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        ready(f"http://127.0.0.1:{port}/?token={bench.token}")
        await uvicorn.Server(local_config(page_app(bench, port, lifespan))).serve([listener])
        close()

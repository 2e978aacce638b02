"""HTTP routes of apps beside the endpoint: prefixes, tokens, limits, checks of headers, and paths that are taken."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.app import App
from mcp_bindgen.auth import JwtVerifier, ResourceServer, StaticTokens
from mcp_bindgen.http import HttpApp, HttpLimits, SseApp
from mcp_bindgen.runtime import Identity
from mcp_bindgen.testing import connected
from tests.harness.checked_connections import until
from tests.harness.effort import each
from tests.harness.http_wires import who, wires

TOKEN, WEAK = "a-token-that-may-see-reports", "a-token-that-may-do-little"
PAGE = "https://app.example.com"
PROGRAM = """
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from mcp_bindgen.app import App, run

app = App("shop")

@app.route("/hello/{name}")
def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"hello {request.path_params['name']}")

run(app)
"""


def shop(*, verifies: bool = False) -> App:
    """Return an app with routes, one with scopes if tokens are verified, and a mounted app with a route."""

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[list[str]]:
        yield ["Emma"]

    app, books = App("shop"), App("books", lifespan=lifespan)

    @app.route("/orders/{id:int}", methods=["GET", "PUT"])
    async def order(request: Request) -> Response:
        if request.path_params["id"] == 0:
            raise HTTPException(404, "there is no order 0")
        body = (await request.body()).decode()
        return JSONResponse({"id": request.path_params["id"], "query": dict(request.query_params), "body": body})

    @app.route("/health", public=True)
    def health(request: Request) -> Response:
        return PlainTextResponse("well")

    @app.route("/report", scopes=["reports"] if verifies else [])
    async def report(request: Request) -> Response:
        return PlainTextResponse(f"report for {request.user.subject}")

    @books.route("/titles")
    def titles(request: Request) -> Response:
        return JSONResponse(request.state.lifespan)

    @books.tool
    def find() -> str:
        return "found"

    app.mount(books, "books")
    return app


def auth(**scopes: Any) -> ResourceServer:
    known = {TOKEN: Identity(subject="ada", scopes=frozenset({"reports", "use"})), WEAK: Identity(subject="bob")}
    verifiers = StaticTokens(known), JwtVerifier("https://issuer.example.com")
    return ResourceServer("http://localhost/mcp", *verifiers, scopes=scopes)


@asynccontextmanager
async def asked(app: Any, path: str = "", **options: Any) -> AsyncGenerator[AsyncClient]:
    served = HttpApp(app, **options) if isinstance(app, App) else app
    outer = Starlette(routes=[Mount(path, served)], lifespan=served.lifespan) if path else served
    async with served.lifespan():
        transport = ASGITransport(outer, raise_app_exceptions=False)
        async with AsyncClient(transport=transport, base_url=f"http://localhost{path}") as client:
            yield client


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


@each("path", ["", "/below"])
async def test_routes_answer_beside_the_endpoint(path: str) -> None:
    async with asked(shop(), path) as http:
        found = await http.put("/orders/7", params={"q": "x"}, content=b"new")
        assert found.json() == {"id": 7, "query": {"q": "x"}, "body": "new"}
        assert (await http.get("/orders/x")).status_code == 404
        missing = await http.get("/orders/0")
        assert (missing.status_code, missing.text) == (404, "there is no order 0")
        assert (await http.post("/orders/7")).status_code == 405
        assert (await http.get("/books/titles")).json() == ["Emma"]
        assert (await http.get("/titles")).status_code == 404
        assert (await http.get("/healthz")).text == "ok\n"
        assert (await http.get("/mcp")).status_code == 400
        assert "this server answers at" in (await http.get("/nothing")).text


@each("kind", [HttpApp, SseApp])
async def test_a_route_needs_a_token_unless_it_is_public(kind: Any) -> None:
    async with asked(kind(shop(verifies=True), auth=auth())) as http:
        for path, token, status in [
            ("/orders/1", None, 401),
            ("/orders/1", WEAK, 200),
            ("/books/titles", None, 401),
            ("/books/titles", TOKEN, 200),
            ("/report", None, 401),
            ("/report", WEAK, 403),
            ("/report", TOKEN, 200),
            ("/health", None, 200),
            ("/health", "an-unknown-token", 200),
        ]:
            found = await http.get(path, headers=bearer(token))
            assert found.status_code == status, (path, token, found.text)
            assert ("www-authenticate" in found.headers) == (status in (401, 403))
        assert (await http.get("/report", headers=bearer(TOKEN))).text == "report for ada"
        refused = await http.get("/report", headers=bearer(WEAK))
        assert 'scope="reports"' in refused.headers["www-authenticate"]


async def test_the_scopes_of_every_request_are_needed_for_routes_too() -> None:
    async with asked(shop(verifies=True), auth=auth(**{"*": ["use"]})) as http:
        assert (await http.get("/orders/1", headers=bearer(WEAK))).status_code == 403
        assert (await http.get("/orders/1", headers=bearer(TOKEN))).status_code == 200
        assert (await http.get("/health")).text == "well"


async def test_host_and_origin_are_checked_and_allowed_pages_may_read() -> None:
    async with asked(shop(), allowed_origins=[PAGE]) as http:
        assert (await http.get("/health", headers={"host": "evil.example.com"})).status_code == 421
        assert (await http.get("/health", headers={"origin": "https://evil.example.com"})).status_code == 403
        allowed = await http.get("/health", headers={"origin": PAGE})
        assert (allowed.text, allowed.headers["access-control-allow-origin"]) == ("well", PAGE)
        preflight = {"origin": PAGE, "access-control-request-method": "PUT"}
        assert (await http.options("/orders/1", headers=preflight)).status_code == 200


async def test_limits_of_bodies_and_requests_apply() -> None:
    app, entered, leave = App("shop"), asyncio.Event(), asyncio.Event()

    @app.route("/size", methods=["POST"])
    async def size(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    @app.route("/wait")
    async def wait(request: Request) -> Response:
        entered.set()
        await leave.wait()
        return PlainTextResponse("waited")

    limits = HttpLimits(message=200_000, values=10, requests=1)
    async with asked(app, limits=limits) as http:
        assert (await http.post("/size", content=b"," * 200_000)).text == "200000"  # no JSON, so no values
        assert (await http.post("/size", content=b"x" * 200_001)).status_code == 413
        waiting = asyncio.create_task(http.get("/wait"))
        await entered.wait()
        assert (await http.post("/size", content=b"x")).status_code == 429
        leave.set()
        assert (await waiting).text == "waited"
        assert (await http.post("/size", content=b"x")).text == "1"


@pytest.mark.full
async def test_the_request_of_a_client_that_does_not_read_its_response_ends() -> None:
    app, begun = App("shop"), asyncio.Event()

    @app.route("/flood")
    async def flood(request: Request) -> Response:
        async def parts() -> AsyncGenerator[bytes]:
            begun.set()
            while True:
                yield b"x" * 1_000_000

        return StreamingResponse(parts())

    served = HttpApp(app, limits=HttpLimits(write_timeout=0.2), principal=who)
    async with wires(served) as http:
        await http.ask("GET", path="/flood")
        await begun.wait()
        assert served.requests.all.used == 1
        await until(lambda: served.requests.all.used == 0)


def conflicting(*paths: str, prefix: str = "", **options: Any) -> App:
    app, part = App("shop"), App("part")
    for path in paths:
        app.route(path, **options)(Response)
    part.route("/hook")(Response)
    app.mount(part, prefix or "part")
    return app


@pytest.mark.parametrize(
    ("paths", "kind", "problem"),
    [
        (["/mcp"], HttpApp, "the route /mcp would take the requests of /mcp; choose another path"),
        (["/{rest:path}"], HttpApp, "would take the requests of /mcp"),
        (["/{one}"], SseApp, "would take the requests of /sse"),
        (["/messages"], SseApp, "would take the requests of /messages"),
        (["/readyz"], HttpApp, "would take the requests of /readyz"),
        (["/.well-known/{name}/mcp"], HttpApp, "would take the requests of /.well-known/oauth-protected-resource/mcp"),
        (["/a/{x}", "/a/b"], HttpApp, "the route /a/b gets no requests: /a/{x} takes them; define it before"),
        (["/part/{x}"], HttpApp, "the route /part/hook gets no requests: /part/{x} takes them"),
        (["/a", "/a"], HttpApp, "the route /a gets no requests: /a takes them"),
        (["a"], HttpApp, "the route a: Routed paths must start with '/'"),
        (["/{x:text}"], HttpApp, "the route /{x:text}: Unknown path convertor 'text'"),
    ],
)
def test_a_route_that_takes_other_requests_or_gets_none_is_an_error(paths: list[str], kind: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        kind(conflicting(*paths), auth=auth())


def test_routes_of_one_path_with_different_methods_are_served() -> None:
    app = conflicting("/a", "/a/b", "/a/{x}", "/.well-known/security.txt")
    app.route("/a", methods=["POST"])(Response)
    HttpApp(app, auth=auth())


def test_scopes_without_tokens_and_late_routes_are_errors() -> None:
    app = conflicting("/report", scopes=["reports"])
    with pytest.raises(ValueError, match="the route /report needs scopes, and tokens are not verified"):
        HttpApp(app)
    with pytest.raises(ValueError, match="too late"):
        app.route("/late")
    with pytest.raises(ValueError, match="is public"):
        App("x").route("/report", scopes=["reports"], public=True)


@each("package", [v2025_11_25, v2026_07_28])
async def test_clients_without_http_see_no_difference(package: Any) -> None:
    async with connected(package.Client(), shop()) as client:
        assert (await client.call_tool("books_find")).content[0].text == "found"


@pytest.mark.full
@pytest.mark.parametrize("way", ["--http", "--sse"])
def test_run_serves_routes(way: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, way, "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        url = server.stderr.readline().removeprefix("listening on ").strip()
        try:
            assert httpx2.get(httpx2.URL(url).join("/hello/ada"), timeout=20).text == "hello ada"
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(10) == 0

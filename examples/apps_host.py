"""Show the apps of an MCP server in a browser: `python examples/apps_host.py [URL | COMMAND...]`.

It serves two origins. The first has the page of the host and the requests to the MCP server. The second has
only the sandbox, a document whose policy follows from the declarations of an app; the app is in a frame inside
the sandbox that has no origin at all. So an app reaches nothing but that frame, its declared origins, and the messages
that the host's page answers.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mcp_bindgen.extensions.apps import (
    MIME_TYPE,
    content_security_policy,
    permissions_policy,
    resource_uri,
    visibility,
)
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import apps

FILES = Path(__file__).parent / "apps"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
PAGE = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src {}; base-uri 'none'"
DICE = [sys.executable, str(Path(__file__).with_name("apps_server.py"))]


class Host(apps.Client):
    """A client that shows apps, so servers tell it of them."""

    info = mcp.Implementation(name="mcp-bindgen-example-host", version="1.0.0")
    extension_settings: Mapping[str, Any] = {apps.EXTENSION.id: {"mimeTypes": [MIME_TYPE]}}


class Endpoint:
    """Responses of both origins.

    Args:
        client: The client of the MCP server.
        host: The origin of the page.
        sandbox: The origin of the sandbox.
    """

    def __init__(self, client: Host, host: str, sandbox: str) -> None:
        self.client = client
        self.host = host
        self.sandbox = sandbox

    def app(self) -> Starlette:
        """Return the ASGI application."""
        files = [Route(f"/{name}", self.guarded(self.host, self.file(name))) for name in ("host.css", "host.js")]
        return Starlette(
            routes=[
                *files,
                Route("/tools", self.guarded(self.host, self.tools)),
                Route("/app", self.guarded(self.host, self.resource)),
                Route("/call", self.guarded(self.host, self.call), methods=["POST"]),
                Route("/", self.page),
            ]
        )

    def guarded(
        self, origin: str, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Answer on one origin only, and only requests of that origin."""

        async def checked(request: Request) -> Response:
            here = f"http://{request.headers.get('host')}"
            if here != origin or request.headers.get("origin", here) != here:
                return Response("another origin", 403)
            if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return Response("another site", 403)
            return await answer(request)

        return checked

    def file(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        """Answer with a file."""

        async def read(request: Request) -> Response:
            return Response((FILES / name).read_text("utf-8"), media_type=TYPES[Path(name).suffix])

        return read

    async def page(self, request: Request) -> Response:
        """Answer with the page of the host, or with the sandbox of an app."""
        here = f"http://{request.headers.get('host')}"
        if here == self.host:
            name, policy = "host.html", PAGE.format(self.sandbox)
        elif here == self.sandbox and (found := await self.read(request.query_params.get("app", ""))):
            name, policy = "sandbox.html", f"{content_security_policy(found[1])}; frame-ancestors {self.host}"
        else:
            return Response("nothing is here", 404)
        html = (FILES / name).read_text("utf-8").replace("HOST", self.host)
        headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
        return Response(html, media_type="text/html", headers=headers)

    async def entries(self) -> list[dict[str, Any]]:
        """Return the tools of the server in wire form."""
        return [tool.model_dump() async for tool in self.client.iter_tools()]

    async def read(self, uri: str) -> tuple[str, dict[str, Any]] | None:
        """Return the HTML of a tool's app and the permissions that it requests; `None` without an app."""
        if not uri or uri not in map(resource_uri, await self.entries()):
            return None
        contents = (await self.client.read_resource(uri)).contents
        html = next((one for one in contents if one.uri == uri and one.mime_type == MIME_TYPE), None)
        if not isinstance(html, mcp.TextResourceContents):
            return None
        meta: dict[str, Any] = html.model_dump().get("_meta", {}).get("ui", {})
        return html.text, meta

    async def tools(self, request: Request) -> Response:
        """Answer with the tools that a model may call, and the origin of the sandbox."""
        shown = [one for one in await self.entries() if "model" in visibility(one)]
        listed = [{"name": one["name"], "app": resource_uri(one)} for one in shown]
        return JSONResponse({"tools": listed, "sandbox": self.sandbox})

    async def resource(self, request: Request) -> Response:
        """Answer with the HTML of an app and the permissions of its frame."""
        found = await self.read(request.query_params.get("uri", ""))
        if found is None:
            return Response("no such app", 404)
        return JSONResponse({"html": found[0], "allow": permissions_policy(found[1])})

    async def call(self, request: Request) -> Response:
        """Call a tool for a model or for an app, if the caller may use it, and answer with its result or error."""
        asked: dict[str, Any] = await request.json()
        tool = next((one for one in await self.entries() if one["name"] == asked["name"]), None)
        if tool is None or asked["by"] not in visibility(tool):
            return JSONResponse({"error": {"code": -32602, "message": f"{asked['by']} may not call that tool"}})
        try:
            result = await self.client.call_tool(tool["name"], asked.get("arguments") or {})
        except ProtocolError as error:
            return JSONResponse({"error": {"code": error.code, "message": error.message}})
        return JSONResponse({"result": result.model_dump()})


async def main(server: list[str], port: int) -> None:
    """Serve until the process is stopped."""
    sockets = [socket.create_server(("127.0.0.1", one)) for one in (port, 0)]
    host, sandbox = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in sockets)
    target = server[0] if len(server) == 1 else server
    async with Host.connect(target) as client:
        print(host, flush=True)
        served = uvicorn.Config(Endpoint(client, host, sandbox).app(), log_level="warning")
        await uvicorn.Server(served).serve(sockets=sockets)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("server", nargs="*", default=DICE, help="the MCP server: its URL, or a command that starts it")
    parser.add_argument("--port", type=int, default=0, help="of the page")
    given = parser.parse_args()
    anyio.run(main, given.server, given.port)

"""Servers over HTTP for the duration of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Unpack

import uvicorn

from mcp_bindgen.http.server.app import AppOptions, HttpApp
from mcp_bindgen.runtime import Server
from mcp_bindgen.runtime.session.targets import Provider


@asynccontextmanager
async def listening(*served: Server | Provider, **options: Unpack[AppOptions]) -> AsyncGenerator[str]:
    """Serve Streamable HTTP on a free port of 127.0.0.1 until the block ends; yields the URL.

    Args:
        served: One server for each revision, or a provider of them such as an `App`.
        options: See `HttpApp`; `auth` lets a test call with the tokens of several users.

    Raises:
        RuntimeError: The server does not start, as its lifespan fails.
    """
    config = uvicorn.Config(HttpApp(*served, **options), port=0, log_config=None, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:
            if serving.done():
                raise RuntimeError("the server does not start; the records of the logger uvicorn.error name the reason")
            await asyncio.sleep(0.001)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await serving

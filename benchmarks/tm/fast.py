# mypy: ignore-errors
# pyright: basic, reportMissingImports=false
"""The shop on FastMCP; `SESSIONS=1` gives sessions, else it answers with JSON and without."""

import os

from fastmcp import FastMCP
from tools import TOOLS, with_shop

server = FastMCP("benchmark")
for tool in TOOLS:
    server.tool(tool, output_schema=None)
web = with_shop(server.http_app(json_response=True, stateless_http=os.environ.get("SESSIONS") != "1"))

"""The shop on `MCPServer` of the official SDK; `SESSIONS=1` gives sessions, else it answers with JSON and without."""

import os

from mcp.server.mcpserver import MCPServer
from tools import TOOLS, with_shop

server = MCPServer("benchmark")
for tool in TOOLS:
    server.tool(structured_output=False)(tool)
web = with_shop(server.streamable_http_app(json_response=True, stateless_http=os.environ.get("SESSIONS") != "1"))

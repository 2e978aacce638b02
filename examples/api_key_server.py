"""A server with API keys: `API_KEY=$(openssl rand -hex 16) python examples/api_key_server.py --http 127.0.0.1:8000`.

Call it with `mcp-bindgen call http://127.0.0.1:8000/mcp --bearer-env API_KEY`, or with `--header X-API-Key=...`.
"""

import os

from mcp_bindgen.app import App, Context, run
from mcp_bindgen.auth import Identity, ResourceServer, StaticTokens

app = App("keyed")


@app.tool
def whoami(ctx: Context) -> str:
    """Return the name of the caller."""
    return ctx.identity.subject or "" if ctx.identity is not None else "nobody"


def policy() -> ResourceServer:
    """Return the access policy: one key that allows its owner to read."""
    alice = Identity(subject="alice", scopes=frozenset({"notes:read"}))
    resource = os.environ.get("RESOURCE", "http://127.0.0.1:8000/mcp")
    return ResourceServer(resource, StaticTokens({os.environ["API_KEY"]: alice}), api_key_header="X-API-Key")


if __name__ == "__main__":
    run(app, auth=policy)

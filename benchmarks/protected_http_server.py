"""The server of `http_server.py` behind a gate: `python benchmarks/protected_http_server.py PORT JWKS`."""

import json
import sys
from pathlib import Path

from echo_server import server
from http_server import Bench

from mcp_bindgen.auth import JwtVerifier, ResourceServer
from mcp_bindgen.runtime import run

ISSUER = "https://auth.example.org"
RESOURCE = "https://mcp.example.org/mcp"


def gate(jwks: str) -> ResourceServer:
    """Return the gate for an issuer with these keys."""
    verifier = JwtVerifier(ISSUER, keys=json.loads(jwks))
    return ResourceServer(RESOURCE, verifier, scopes={"tools/call": ["mcp:call"]}, implies={"mcp:all": ["mcp:call"]})


if __name__ == "__main__":
    port, path = sys.argv[1:]
    sys.argv[1:] = ["--http", f"127.0.0.1:{port}"]
    run(server("2025-11-25"), Bench(), auth=gate(Path(path).read_text()))

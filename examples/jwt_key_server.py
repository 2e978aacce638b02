"""A server that verifies tokens with a key of its own: `python examples/jwt_key_server.py --http 127.0.0.1:8000`.

It prints a token: `TOKEN=... mcp-bindgen call http://127.0.0.1:8000/mcp --bearer-env TOKEN`. In production, the issuer
keeps the private key, and the server has the public key in a file.
"""

import os
import sys
import time

from joserfc import jwt
from joserfc.jwk import ECKey

from mcp_bindgen.app import App, Context, run
from mcp_bindgen.auth import JwtVerifier, ResourceServer

ISSUER = "https://issuer.example"
RESOURCE = os.environ.get("RESOURCE", "http://127.0.0.1:8000/mcp")
app = App("signed")


@app.tool
def whoami(ctx: Context) -> str:
    """Return the name of the caller."""
    return ctx.identity.subject or "" if ctx.identity is not None else "nobody"


def policy() -> ResourceServer:
    """Return the access policy, and print a token that it accepts."""
    key = ECKey.generate_key("P-256", {"kid": "1"})
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "alice", "client_id": "cli", "iat": now, "exp": now + 3600}
    print(jwt.encode({"alg": "ES256", "kid": "1", "typ": "at+jwt"}, claims, key), file=sys.stderr)
    public = {"keys": [{**key.as_dict(private=False), "alg": "ES256", "use": "sig"}]}
    return ResourceServer(RESOURCE, JwtVerifier(ISSUER, keys=public))


if __name__ == "__main__":
    run(app, auth=policy)

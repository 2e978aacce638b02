"""A client that logs in: `python examples/protected_client.py http://127.0.0.1:8000/mcp`.

It opens the browser where the server requires a login, and calls the tool `whoami`. The tokens are kept in the
keyring of this machine, or else in files that only you can read, so the next run needs no login. `--headless` needs no
browser on this machine, `--logout` revokes the tokens.
"""

import argparse
import sys

import anyio

from mcp_bindgen.auth import Browser, Headless, OAuth
from mcp_bindgen.runtime import AuthorizationError, ConnectionClosed, connect


async def main() -> None:
    """Log in if need be, and call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="the server")
    parser.add_argument("--headless", action="store_true", help="show the address to visit instead of opening it")
    parser.add_argument("--logout", action="store_true", help="revoke and forget the tokens")
    arguments = parser.parse_args()
    try:
        auth = OAuth(client_name="protected-client", login=Headless() if arguments.headless else Browser())
        if arguments.logout:
            await auth.logout(arguments.url)
            print("logged out")
            return
        async with connect(arguments.url, auth=auth) as client:
            result = await client.call_tool("whoami")
            print(*(block.text for block in result.content if block.type == "text"))
    except (AuthorizationError, ConnectionClosed) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    anyio.run(main)

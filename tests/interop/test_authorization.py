"""A real authorization server (oidc-provider) and third-party clients with our protected server.

`authorization_server.mjs` configures the authorization server; `.ci/run` installs it with the other npm packages.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from mcp_bindgen.auth import Introspection, JwtVerifier, Nonces, client_metadata
from tests.harness.forks import PYTHON
from tests.harness.issuer import Prover
from tests.harness.processes import free_port, process
from tests.harness.protected import Protected, running, said
from tests.interop.inspector import COMPILED, INSPECTOR, inspect
from tests.interop.person import Person, browsing
from tests.interop.processes import HERE, needed, node

pytestmark = pytest.mark.full
SECRET = "a secret of the machine that nobody guesses"
DOCUMENT = "https://client.example/metadata.json"
MEMORY = {"MCP_INSPECTOR_SECRET_STORE": "memory"}
EXAMPLE = HERE.parents[1] / "examples" / "protected_server.py"


@pytest.fixture(scope="module")
def people() -> Iterator[None]:
    with browsing():
        yield


@pytest.fixture(scope="module")
def callback_port() -> int:
    """Return the port of the redirect URI in the client's metadata document."""
    return free_port()


@pytest.fixture(scope="module")
def issuer(callback_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the authorization server; skip the tests if it is not installed (in CI: fail)."""
    needed("oidc-provider")
    port = free_port()
    log = tmp_path_factory.mktemp("issuer") / "log"
    document = client_metadata(DOCUMENT, "documented", [f"http://127.0.0.1:{callback_port}/callback"])
    documents = json.dumps({DOCUMENT: document})
    with process([node(), HERE / "authorization_server.mjs", port], port, log, DOCUMENTS=documents):
        yield f"http://127.0.0.1:{port}"


def token(issuer: str, resource: str, scope: str = "mcp:read", client: str = "machine", prover: Any = None) -> str:
    """Return an access token from a client credentials grant."""
    place = f"{issuer}/token"
    proof = {} if prover is None else {"dpop": prover.proof(place, "", ath=...)}
    form = {"grant_type": "client_credentials", "resource": resource, "scope": scope}
    with httpx2.Client(auth=(client, quote_plus(SECRET)), trust_env=False) as http:
        answer = http.post(place, data=form, headers=proof)
        if prover is not None and "dpop-nonce" in answer.headers and answer.is_error:
            proof = {"dpop": prover.proof(place, "", ath=..., nonce=answer.headers["dpop-nonce"])}
            answer = http.post(place, data=form, headers=proof)
    assert answer.status_code == 200, answer.text
    assert answer.json()["token_type"] == ("DPoP" if prover is not None else "Bearer")
    found: str = answer.json()["access_token"]
    return found


@pytest.fixture(scope="module")
def example(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    """Run `examples/protected_server.py`."""
    port = free_port()
    log = tmp_path_factory.mktemp("example") / "log"
    command = [PYTHON, EXAMPLE, "--port", port, "--issuer", issuer]
    with process(command, port, log):
        server = Protected(f"http://127.0.0.1:{port}/mcp")
        with server.client:
            yield server


def test_the_example_accepts_only_tokens_for_its_resource_and_scopes(issuer: str, example: Protected) -> None:
    reader, writer = (token(issuer, example.url, f"mcp:{scope}") for scope in ("read", "write"))
    assert said(example.call("whoami", token=reader)) == "machine"
    assert example.call("delete", token=reader).status_code == 403
    assert said(example.call("delete", token=writer)) == "deleted"
    assert example.call("whoami", token=token(issuer, "http://127.0.0.1:1/mcp")).status_code == 401
    assert example.call("whoami", token=token(issuer, f"{example.origin}/opaque")).status_code == 401
    for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
        session = example.session(reader, revision)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami"}}
        assert said(example.post(call, token=reader, headers=session)) == "machine"


@pytest.mark.parametrize("wrong", ["http://example.org", "https://10.1.2.3", "x"])
def test_the_example_refuses_an_issuer_that_cannot_be_trusted(wrong: str) -> None:
    command = [PYTHON, str(EXAMPLE), "--port", "1", "--issuer", wrong]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "the issuer cannot be used" in ran.stderr.splitlines()[-1]


def test_opaque_tokens_are_accepted_until_they_are_revoked(issuer: str) -> None:
    resource = "http://127.0.0.1:1/opaque"
    verifier = Introspection(issuer, "resource", SECRET, audience=resource, keep=0.3)
    with running(verifier) as server:
        opaque = token(issuer, resource)
        assert "." not in opaque
        for _ in range(2):
            assert said(server.call("whoami", token=opaque)) == "machine"
        other = token(issuer, "http://127.0.0.1:2/opaque")
        assert server.call("whoami", token=other).status_code == 401
        with httpx2.Client(auth=("machine", quote_plus(SECRET)), trust_env=False) as http:
            assert http.post(f"{issuer}/token/revocation", data={"token": opaque}).status_code == 200
        time.sleep(0.4)
        assert server.call("whoami", token=opaque).status_code == 401


def test_bound_tokens_need_proofs_and_nonces(issuer: str) -> None:
    with running(JwtVerifier(issuer), dpop="required", nonces=Nonces()) as server:
        prover = Prover()
        bound = token(issuer, server.url, client="prover", prover=prover)

        def tried(**changes: Any) -> Any:
            proof = prover.proof(server.url, bound, **changes)
            return server.call("whoami", headers={"authorization": f"DPoP {bound}", "dpop": proof})

        asked = tried()
        assert asked.status_code == 401
        assert said(tried(nonce=asked.headers["dpop-nonce"])) == "prover"
        assert server.call("whoami", token=bound).status_code == 401


class Memory:
    """Token storage in memory for the official SDK."""

    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_python_client_gets_a_token_and_steps_up(issuer: str, example: Protected, mode: Any) -> None:
    memory = Memory()
    auth = ClientCredentialsOAuthProvider(
        server_url=example.url, storage=memory, client_id="machine", client_secret=SECRET, issuer=issuer
    )
    async with (
        httpx2.AsyncClient(auth=auth, timeout=20, trust_env=False) as http,
        Client(streamable_http_client(example.url, http_client=http), mode=mode) as client,
    ):
        result: Any = await client.call_tool("whoami", {})
        assert result.content[0].text == "machine"
        assert memory.tokens is not None
        assert memory.tokens.scope == "mcp:read"  # the scope of the challenge
        with anyio.fail_after(20):
            result = await client.call_tool("delete", {})
        assert result.content[0].text == "deleted"  # the client stepped up
        assert memory.tokens is not None
        assert "mcp:write" in (memory.tokens.scope or "")


@pytest.mark.parametrize(
    ("package", "revision", "tools", "answers"),
    [
        ("sdk", "2025-11-25", "whoami,delete", ["ada", "deleted"]),
        ("client", "2025-11-25", "whoami", ["ada"]),
        ("client", "2026-07-28", "whoami,delete", ["ada", "deleted"]),
    ],
)
def test_the_clients_of_the_typescript_sdks_log_in(
    people: None, example: Protected, callback_port: int, package: str, revision: str, tools: str, answers: list[str]
) -> None:
    """Clients register with the scope of the first challenge, so only a metadata document lets them step up."""
    person, saw = Person("ada"), dict[str, Any]()
    steps_up = "delete" in tools
    known = [str(callback_port), DOCUMENT] if steps_up else []
    command = [node(), str(HERE / "node_login.mjs"), package, revision, example.url, tools, *known]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        for line in client.stdout:
            told = json.loads(line)
            if "visit" in told:
                person.visit(told["visit"])
            saw = told.get("saw", saw)
    assert client.returncode == 0
    assert (saw["version"], saw["answers"]) == (revision, answers)
    assert len(person.visited) == len(answers)  # `delete` needs a second login, a refresh none
    assert saw.get("renewed") == (answers[-1] if package == "client" else None)  # `sdk` requests no refresh token
    assert ("mcp:write" in saw["scope"]) == steps_up


def inspected(url: str, home: Path, *options: str) -> subprocess.Popen[str]:
    """Start the Inspector's command line with a PATH that contains no browser."""
    command = [node(), str(Path(INSPECTOR).resolve()), *options, "--server-url", url, "--method", "tools/call"]
    own = {"NODE_COMPILE_CACHE": str(COMPILED), "MCP_AUTO_OPEN_ENABLED": "true"}
    env = {"HOME": str(home), "PATH": str(Path(node()).parent), **own, **MEMORY}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command, text=True, env=env, **pipes)


async def test_the_inspector_sends_a_bearer_token(issuer: str, example: Protected, tmp_path: Path) -> None:
    needed("@modelcontextprotocol/inspector")
    good, reader = token(issuer, example.url, "mcp:write"), token(issuer, example.url)
    tried = {good: "deleted", reader: "Insufficient scope: required", f"{reader}x": "auth_required"}
    options = ["--stored-auth-only", "--server-url", example.url, "--method", "tools/call", "--tool-name", "delete"]
    runs = {
        (era, shown): [*options, "--protocol-era", era, "--header", f"Authorization: Bearer {shown}"]
        for era in ("legacy", "modern")
        for shown in tried
    }
    found = await inspect(tmp_path, {" ".join(key): words for key, words in runs.items()}, **MEMORY)
    for key in runs:
        printed = found[" ".join(key)]
        assert (printed.code == 0) == (tried[key[1]] == "deleted"), printed
        assert tried[key[1]] in f"{printed.output}{printed.error}"


def test_the_inspector_logs_in(people: None, example: Protected, tmp_path: Path) -> None:
    needed("@modelcontextprotocol/inspector")
    person = Person("lise")
    back = f"http://127.0.0.1:{free_port()}/oauth/callback"
    with inspected(example.url, tmp_path, "--callback-url", back, "--tool-name", "whoami") as inspector:
        assert inspector.stdout is not None
        printed = ""
        for line in inspector.stdout:
            printed += line
            found = re.search(r"http://127\.0\.0\.1:\d+/auth\?\S+", line)
            if found is not None:
                person.visit(found[0])
    assert inspector.returncode == 0, printed
    assert '"text": "lise"' in printed
    assert len(person.visited) == 1

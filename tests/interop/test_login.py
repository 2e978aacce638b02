"""Our client with a real authorization server (oidc-provider), a real browser, our servers and third-party servers.

Headless Chromium fills in the pages of the authorization server for name, password and consent.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import anyio
import httpx2
import pytest
from joserfc.jwk import ECKey

from mcp_bindgen.auth import (
    Browser,
    ClientCredentials,
    ClientSecret,
    DeviceCode,
    Headless,
    JwtVerifier,
    KnownClient,
    Nonces,
    OAuth,
    PrivateKeyJwt,
    client_metadata,
)
from mcp_bindgen.auth.client.tokens import Grant
from mcp_bindgen.auth.store import FileStore, MemoryStore, Store
from mcp_bindgen.runtime import AuthorizationError, connect
from tests.harness.forks import PYTHON
from tests.harness.processes import free_port, process
from tests.harness.protected import running
from tests.interop.person import Person, browsing
from tests.interop.processes import HERE, needed, node

pytestmark = pytest.mark.full
EXAMPLES = HERE.parents[1] / "examples"
SECRET = "a secret of the machine that nobody guesses"
DOCUMENT = "https://client.example/metadata.json"
CALLBACK_PORT = 47811


@pytest.fixture(scope="module", autouse=True)
def browser() -> Iterator[None]:
    with browsing():
        yield


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the authorization server; skip the tests if it is not installed (in CI: fail)."""
    needed("oidc-provider")
    port = free_port()
    log = tmp_path_factory.mktemp("issuer") / "log"
    document = client_metadata(DOCUMENT, "documented", [f"http://127.0.0.1:{CALLBACK_PORT}/callback"])
    settings = {"NONCES": "1", "DOCUMENTS": json.dumps({DOCUMENT: document})}
    with process([node(), HERE / "authorization_server.mjs", port], port, log, **settings):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def example(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run `examples/protected_server.py`; yield its URL."""
    port = free_port()
    log = tmp_path_factory.mktemp("example") / "log"
    with process([PYTHON, EXAMPLES / "protected_server.py", "--port", port, "--issuer", issuer], port, log):
        yield f"http://127.0.0.1:{port}/mcp"


def login(person: Person, store: Store | None = None, **options: Any) -> OAuth:
    """Return an OAuth login in the browser of a person."""
    options.setdefault("login", Browser(open=person.open, seconds=60))
    return OAuth(store=store or MemoryStore(), **options)


async def called(url: str, auth: Any, *tools: str) -> list[str]:
    """Call tools; return their texts."""
    async with connect(url, auth=auth) as client:
        return [(await client.call_tool(tool)).content[0].text for tool in tools]


async def test_a_person_logs_in_steps_up_and_logs_out(issuer: str, example: str) -> None:
    """Covers registration, PKCE, login, consent, step-up and revocation."""
    person, store = Person("ada"), MemoryStore()
    auth = login(person, store)
    assert await called(example, auth, "whoami", "whoami") == ["ada", "ada"]
    assert len(person.visited) == 1
    await anyio.to_thread.run_sync(person.close)  # the browser may still read the page
    assert "you can close this window" in person.text
    assert await called(example, auth, "delete", "whoami") == ["deleted", "ada"]
    assert len(person.visited) == 2
    assert "mcp%3Aread" in person.visited[1]
    assert "mcp%3Awrite" in person.visited[1]
    (grant,) = [found for key in await store.keys() if (found := Grant.load(await store.load(key))) is not None]
    assert await is_active(issuer, grant.refresh_token)
    await auth.logout(example)
    assert not await is_active(issuer, grant.refresh_token)
    person.close()
    with pytest.raises(AuthorizationError, match="no user may be asked"):
        await called(example, login(person, store, login=None), "whoami")


async def is_active(issuer: str, token: str | None) -> bool:
    """Return True if the issuer's introspection reports a token as active."""
    assert token is not None
    async with httpx2.AsyncClient(auth=("resource", quote_plus(SECRET)), trust_env=False) as http:
        answer = await http.post(f"{issuer}/token/introspection", data={"token": token})
    active: bool = answer.json()["active"]
    return active


async def test_a_client_is_identified_by_its_metadata_document(example: str) -> None:
    person = Person("grace")
    browser = Browser(port=CALLBACK_PORT, open=person.open)
    auth = login(person, client_metadata_url=DOCUMENT, login=browser)
    assert await called(example, auth, "whoami") == ["grace"]
    assert quote_plus(DOCUMENT) in person.visited[0]
    person.close()


async def test_a_person_uses_bound_tokens_with_nonces_of_both_servers(issuer: str) -> None:
    with running(JwtVerifier(issuer), dpop="required", nonces=Nonces()) as server:
        person, store = Person("hedy"), MemoryStore()
        assert await called(server.url, login(person, store, dpop=True), "whoami", "whoami") == ["hedy", "hedy"]
        await expire(store)
        assert await called(server.url, login(person, store, dpop=True, login=None), "whoami") == ["hedy"]
        person.close()


async def expire(store: Store) -> None:
    """Make the access tokens in a store look expired, so that the client refreshes them."""
    for key in await store.keys():
        record = await store.load(key)
        if record is not None and "access_token" in record:
            assert record["refresh_token"]
            assert await store.replace(key, record, {**record, "expires_at": record["issued_at"] + 0.1})


REFRESHING = """\
import sys
import anyio
from mcp_bindgen.runtime import connect
from mcp_bindgen.auth import OAuth
from mcp_bindgen.auth.store import FileStore

async def main(url, folder):
    print("ready", flush=True)
    sys.stdin.readline()
    async with connect(url, auth=OAuth(store=FileStore(folder), login=None)) as client:
        print((await client.call_tool("whoami")).content[0].text, flush=True)

anyio.run(main, *sys.argv[1:])
"""


async def test_two_processes_refresh_a_rotating_token_at_once(issuer: str, example: str, tmp_path: Path) -> None:
    person, store = Person("joan"), FileStore(tmp_path / "kept")
    await called(example, login(person, store), "whoami")
    before = await grants(store)
    await expire(store)
    command = [PYTHON, "-c", REFRESHING, example, str(store.folder)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    children = [await asyncio.create_subprocess_exec(*command, **pipes) for _ in range(2)]
    for child in children:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
    answers = [await child.communicate(b"go\n") for child in children]
    assert [out for out, _ in answers] == [b"joan\n", b"joan\n"]
    after = await grants(store)
    assert after[0].refresh_token != before[0].refresh_token
    assert await is_active(issuer, after[0].refresh_token)
    assert not await is_active(issuer, before[0].refresh_token)
    person.close()


async def grants(store: Store) -> list[Grant]:
    """Return the grants in a store."""
    return [found for key in await store.keys() if (found := Grant.load(await store.load(key))) is not None]


@pytest.mark.parametrize("way", ["basic", "post", "jwt", "dpop"])
async def test_programs_are_authorized_with_client_credentials(issuer: str, example: str, way: str) -> None:
    known: dict[str, KnownClient] = {
        "basic": ClientSecret("machine", issuer, secret=SECRET),
        "post": ClientSecret("poster", issuer, secret=SECRET, method="client_secret_post"),
        "dpop": ClientSecret("prover", issuer, secret=SECRET),
    }
    if way == "jwt":
        key = ECKey.generate_key("P-256", parameters={"kid": "one", "alg": "ES256", "use": "sig"})
        id_ = await registered(issuer, key)
        known["jwt"] = PrivateKeyJwt(id_, issuer, key=dict(key.as_dict(private=True)), key_id="one")
    if way == "dpop":
        with running(JwtVerifier(issuer), dpop="required", nonces=Nonces()) as server:
            auth = ClientCredentials(known[way], dpop=True)
            assert await called(server.url, auth, "whoami", "delete") == ["prover", "deleted"]
        return
    auth = ClientCredentials(known[way])
    assert await called(example, auth, "whoami", "delete") == [known[way].id, "deleted"]


async def registered(issuer: str, key: ECKey) -> str:
    """Register a client with the public half of a key; return its id."""
    wanted = {
        "grant_types": ["client_credentials"],
        "redirect_uris": [],
        "response_types": [],
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks": {"keys": [key.as_dict(private=False)]},
        "scope": "mcp:read mcp:write",
    }
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"{issuer}/reg", json=wanted)
    assert answer.status_code == 201, answer.text
    id_: str = answer.json()["client_id"]
    return id_


async def test_a_machine_without_a_browser_uses_another_device(example: str) -> None:
    told: list[str] = []
    people: list[Person] = []

    class Elsewhere(Headless):
        async def show_device(self, code: DeviceCode) -> None:
            await super().show_device(code)
            person = Person("mary", lambda page: page.get_by_role("button", name="Continue").click())
            person.open(code.complete_uri or "")
            people.append(person)

    auth = OAuth(store=MemoryStore(), login=Elsewhere(tell=told.append))
    assert await called(example, auth, "whoami") == ["mary"]
    (person,) = people
    person.close()
    assert "and enter" in told[0]


async def test_the_example_logs_in_once_and_reuses_its_stored_token(example: str, tmp_path: Path) -> None:
    opener = tmp_path / "browser"
    opener.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path[:0] = {sys.path!r}\n"
        "from tests.interop.person import Person, browsing\nwith browsing(): Person('lise').visit(sys.argv[-1])\n"
    )
    opener.chmod(0o700)
    environment = {
        **os.environ,
        "BROWSER": str(opener),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    command = [PYTHON, str(EXAMPLES / "protected_client.py"), example]
    for name in (str(opener), "no-browser-at-all"):
        run = await anyio.run_process(command, env={**environment, "BROWSER": name}, check=False)
        assert (run.stdout, run.returncode) == (b"lise\n", 0), run.stderr
    run = await anyio.run_process([*command, "--logout"], env=environment)
    assert run.stdout == b"logged out\n"
    kept = FileStore(next((tmp_path / "config").rglob("auth")))
    assert [key.resource for key in await kept.keys()] == [""]  # the registration stays


SDK_SERVER = """\
import sys
import httpx2
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from joserfc import jwk, jwt

port, issuer = sys.argv[1:]
url = f"http://127.0.0.1:{port}/mcp"
keys = jwk.KeySet.import_key_set(httpx2.get(f"{issuer}/jwks", trust_env=False).json())

class Verifier:
    async def verify_token(self, token):
        claims = jwt.decode(token, keys, algorithms=["RS256"]).claims
        scopes = claims.get("scope", "").split()
        return AccessToken(token=token, client_id=claims["client_id"], scopes=scopes, resource=claims["aud"])

settings = AuthSettings(
    issuer_url=issuer, resource_server_url=url, required_scopes=["mcp:read"], validate_token_resource=True
)
server = MCPServer("sdk", token_verifier=Verifier(), auth=settings)

@server.tool()
def whoami() -> str:
    return "known"

uvicorn.run(server.streamable_http_app(), port=int(port), log_level="warning")
"""


async def test_persons_and_programs_log_in_to_a_server_of_the_official_sdk(issuer: str, tmp_path: Path) -> None:
    port = free_port()
    with process([PYTHON, "-c", SDK_SERVER, port, issuer], port, tmp_path / "log"):
        url = f"http://127.0.0.1:{port}/mcp"
        person = Person("emmy")
        assert await called(url, login(person), "whoami") == ["known"]
        person.close()
        program = ClientCredentials(ClientSecret("machine", issuer, secret=SECRET))
        assert await called(url, program, "whoami") == ["known"]

"""The client that the official conformance suite talks to: `python examples/conformance_client.py URL`.

The suite selects a scenario by environment variables: `MCP_CONFORMANCE_SCENARIO` names one of the functions
below, `MCP_CONFORMANCE_PROTOCOL_VERSION` the revision to speak, and `MCP_CONFORMANCE_CONTEXT` may hold more, as JSON.
"""

# The suite tests deprecated methods, too.
# pyright: reportDeprecated=false

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import anyio
import httpx2

from mcp_bindgen import v2025_03_26, v2025_06_18, v2025_11_25
from mcp_bindgen.auth import (
    ClientCredentials,
    ClientSecret,
    EnterpriseManaged,
    KnownClient,
    Manual,
    OAuth,
    PrivateKeyJwt,
    WorkloadIdentity,
)
from mcp_bindgen.auth.store import MemoryStore
from mcp_bindgen.extensions.skills import SkillEntry, SkillRefused, load_skill
from mcp_bindgen.runtime import Auth, Context, connect
from mcp_bindgen.v2025_03_26 import types as mcp0326
from mcp_bindgen.v2025_06_18 import types as mcp0618
from mcp_bindgen.v2025_11_25 import types as mcp1125
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import skills

INFO = {"name": "mcp-bindgen-conformance", "version": "1.0.0"}
ENTRIES: Mapping[str, Any] = {"string": "something", "boolean": True, "integer": 1, "number": 1, "array": []}
"""Type of a field -> input of our user where there is no default."""


def entered(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's input into a form, given the schemas of its fields: the suggested values, if any."""
    return {name: field.get("default", ENTRIES[field["type"]]) for name, field in fields.items()}


# --- a client for each revision -----------------------------------------------------------------------------------


class For202503(v2025_03_26.Client):
    """2025-03-26."""

    info = mcp0326.Implementation.model_validate(INFO)


class For202506(v2025_06_18.Client):
    """2025-06-18."""

    info = mcp0618.Implementation.model_validate(INFO)


class For202511(v2025_11_25.Client):
    """2025-11-25, with a user that answers."""

    info = mcp1125.Implementation.model_validate(INFO)

    async def on_elicit(self, params: mcp1125.ElicitRequestParams, ctx: Context) -> mcp1125.ElicitResult:
        if not isinstance(params, mcp1125.ElicitRequestFormParams):
            return mcp1125.ElicitResult(action="decline")
        fields = params.requested_schema.model_dump()["properties"]
        return mcp1125.ElicitResult(action="accept", content=entered(fields))


class For202607(skills.Client):
    """2026-07-28 with skills, a user, a model and a directory; questions come in results, and calls go on by it."""

    info = mcp.Implementation.model_validate(INFO)

    async def on_elicit(self, params: mcp.ElicitRequestParams, ctx: Context) -> mcp.ElicitResult:
        if not isinstance(params, mcp.ElicitRequestFormParams):
            return mcp.ElicitResult(action="decline")
        fields = params.requested_schema.model_dump()["properties"]
        return mcp.ElicitResult(action="accept", content=entered(fields))

    async def on_create_message(self, params: mcp.CreateMessageRequestParams, ctx: Context) -> mcp.CreateMessageResult:
        return mcp.CreateMessageResult(role="assistant", content=mcp.TextContent(text="Hello."), model="none")

    async def on_list_roots(self, params: mcp.ListRootsRequestParams, ctx: Context) -> mcp.ListRootsResult:
        return mcp.ListRootsResult(roots=[mcp.Root(uri="file:///tmp")])


Client: TypeAlias = For202503 | For202506 | For202511 | For202607
CLIENTS: list[type[Client]] = [For202503, For202506, For202511, For202607]


# --- scenarios ----------------------------------------------------------------------------------------------------


async def look(client: Client) -> None:
    """List the tools, if the server has any."""
    if "tools" in client.server_capabilities:
        await client.list_tools()


async def add(client: Client) -> None:
    """Call the tool that adds."""
    await look(client)
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def call_every_tool(client: Client) -> None:
    """Call the tools that there are, all at the same time."""
    tools = [tool.name async for tool in client.iter_tools()]
    async with anyio.create_task_group() as tasks:
        for name in tools:
            tasks.start_soon(client.call_tool, name)


async def use_everything(client: Client) -> None:
    """Call, read and get every listed entry."""
    await call_every_tool(client)
    async for resource in client.iter_resources():
        await client.read_resource(resource.uri)
    async for prompt in client.iter_prompts():
        await client.get_prompt(prompt.name)


async def call_as_told(client: Client) -> None:
    """Call the tools that the context names, once it is known which arguments they want in headers."""
    await look(client)
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def call_what_is_valid(client: Client) -> None:
    """Call the tools that are left once those with invalid definitions are left out."""
    async for tool in client.iter_tools():
        await client.call_tool(tool.name, {"region": "here"})


async def echo_schema(client: Client) -> None:
    """Send a schema back as it came."""
    schemas = {tool.name: tool.input_schema async for tool in client.iter_tools()}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"].model_dump()})


async def use_what_is_protected(client: Client) -> None:
    """List and call the tools; some want more than the login did."""
    await call_every_tool(client)


async def look_at_skills(client: Client) -> None:
    """List the skills; their files are read when one is wanted, and none is."""
    assert isinstance(client, For202607)
    async for skill in client.iter_skills():
        SkillEntry(skill)


async def use_skills(client: Client) -> None:
    """Load the skills, and read their files, except files that differ from their entry."""
    assert isinstance(client, For202607)
    async for entry in client.iter_skills():
        try:
            skill = await load_skill(client, entry)
            for path in skill.entry.files or ():
                await skill.read(path)
        except SkillRefused as error:
            print(error, file=sys.stderr)


# --- authorization ------------------------------------------------------------------------------------------------

DOCUMENT = "https://conformance-test.local/client-metadata.json"


async def log_in(url: str) -> str:
    """Log in as a browser of a user that agrees at once; return the final address."""
    async with httpx2.AsyncClient() as browser:
        response = await browser.get(url)
    return str(response.headers["location"])


def login(client: KnownClient | None = None, *, dpop: bool | None = None) -> OAuth:
    """Return an authorization that logs the user in, and forgets the login when the program ends."""
    return OAuth(
        client or (),
        client_metadata_url=DOCUMENT,
        client_name=INFO["name"],
        login=Manual(log_in, "http://localhost:3000/callback"),
        store=MemoryStore(),
        dpop=dpop,
    )


def authorization(scenario: str, given: Mapping[str, Any]) -> Auth | None:
    """Return the authorization of a scenario's client, with the credentials of the suite."""
    match scenario:
        case "auth/client-credentials-jwt":
            return ClientCredentials(PrivateKeyJwt(given["client_id"], key=given["private_key_pem"]))
        case "auth/client-credentials-basic":
            return ClientCredentials(ClientSecret(given["client_id"], secret=given["client_secret"]))
        case "auth/wif-jwt-bearer":
            return WorkloadIdentity(given["valid_jwt"], KnownClient(given["client_id"]))
        case "auth/enterprise-managed-authorization":
            return EnterpriseManaged(
                given["idp_id_token"],
                given["idp_issuer"],
                KnownClient(given["idp_client_id"]),
                ClientSecret(given["client_id"], secret=given["client_secret"]),
            )
        case "auth/pre-registration":
            return login(ClientSecret(given["client_id"], given["issuer"], secret=given["client_secret"]))
        case "auth/dpop" | "auth/dpop-nonce":
            return login(dpop=True)
        case _:
            return login() if scenario.startswith("auth/") else None


SCENARIOS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "initialize": look,
    "tools_call": add,
    "elicitation-sep1034-client-defaults": call_every_tool,
    "sse-retry": call_every_tool,
    "request-metadata": look,
    "sep-2322-client-request-state": call_every_tool,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": call_what_is_valid,
    "json-schema-ref-no-deref": look,
    "json-schema-2020-12-preservation": echo_schema,
    "sep-2640-client-no-prefetch": look_at_skills,
    "sep-2640-client-verify-digest": use_skills,
    "sep-2640-client-verify-size": use_skills,
    "sep-2640-client-verify-frontmatter": use_skills,
}


async def main(url: str) -> None:
    """Play the scenario, in the revision that the suite wants, or an older one if its server speaks no other."""
    newest = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    auth = authorization(scenario, json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")))
    connection: AbstractAsyncContextManager[Client] = connect(
        url, *[kind for kind in CLIENTS if kind.revision <= newest], auth=auth
    )
    async with connection as client:
        await SCENARIOS.get(scenario, use_what_is_protected)(client)


if __name__ == "__main__":
    anyio.run(main, sys.argv[-1])

"""Tests of the desk: `python -m pytest` in this folder."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import desk
import pytest

from mcp_bindgen.auth import Bearer
from mcp_bindgen.runtime import Context, connect
from mcp_bindgen.testing import connected, listening
from mcp_bindgen.v2026_07_28 import Client
from mcp_bindgen.v2026_07_28 import types as mcp

pytestmark = pytest.mark.anyio
KEYS = {"ada": ["agent"], "bob": [], "eve": ["agent", "admin"]}


class Answering(Client):
    """A client whose user refunds 20 euros."""

    async def on_elicit(self, params: mcp.ElicitRequestParams, ctx: Context) -> mcp.ElicitResult:
        return mcp.ElicitResult(action="accept", content={"euros": 20})


@asynccontextmanager
async def as_user(name: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Client]:
    """Connect a user of the desk with the user's key."""
    monkeypatch.setenv("DESK_KEYS", json.dumps({f"the-key-of-{one}-1": [one, *scopes] for one, scopes in KEYS.items()}))
    key = Bearer(f"the-key-of-{name}-1")
    async with listening(desk.app, auth=desk.policy()) as url, connect(url, Client, auth=key) as client:
        yield client


async def test_a_refund_is_confirmed() -> None:
    async with connected(Answering(), desk.app) as client:
        opened = await client.call_tool("create", {"title": "late parcel"})
        assert opened.structured_content is not None
        result = await client.call_tool("refund", {"number": opened.structured_content["number"]})
        assert result.content == [mcp.TextContent(text="local gets 20.00 euros")]


@pytest.mark.parametrize(("name", "tools"), [("bob", 5), ("ada", 8), ("eve", 10)])
async def test_users_see_the_tools_of_their_role(name: str, tools: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async with as_user(name, monkeypatch) as client:
        assert len((await client.list_tools()).tools) == tools


async def test_customers_see_their_own_tickets(monkeypatch: pytest.MonkeyPatch) -> None:
    desk.tickets[7] = desk.Ticket(number=7, customer="carl", title="broken lamp")
    async with as_user("bob", monkeypatch) as client:
        assert (await client.call_tool("show", {"number": 7})).is_error

"""Features that are declared without their list: it is empty, and not unknown."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_bindgen.runtime import ProtocolError
from tests.support.checked_connections import STATEFUL, STATELESS, bindings, connected

ALL: dict[str, dict[str, str]] = {"tools": {}, "prompts": {}, "resources": {}}


async def declines(self: Any, params: Any, ctx: Any) -> Any:
    raise NotImplementedError


@pytest.mark.parametrize("revision", [*STATEFUL, STATELESS])
async def test_what_is_declared_and_not_listed_is_an_empty_list(revision: str) -> None:
    package: Any = bindings(revision)
    declares = type("Declares", (package.Server,), {"extra_capabilities": lambda self: ALL})()
    handles = type("Handles", (package.Server,), {"call_tool": declines, "read_resource": declines})()
    offers_nothing = package.Server()
    for server, prompts in ((declares, True), (handles, False)):
        async with connected(package.Client(), server) as connection:
            client: Any = connection.client
            assert (await client.list_tools()).tools == []
            assert (await client.list_resources()).resources == []
            assert (await client.list_resource_templates()).resource_templates == []
            if prompts:
                assert (await client.list_prompts()).prompts == []
    async with connected(package.Client(), offers_nothing) as connection:
        methods = package.methods
        params = methods.LIST_TOOLS.params.model_validate({"_meta": connection.client.link.metadata()})
        with pytest.raises(ProtocolError) as caught:
            await connection.client.link.request(methods.LIST_TOOLS, params)
        assert caught.value.code == -32601

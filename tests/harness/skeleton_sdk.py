"""Tests of the servers of `skeletons.py` with the official Python SDK; tests import it late, as that takes seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any, TextIO, cast

import mcp_types as types
import pytest
import uritemplate
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from mcp_bindgen.scaffold.project import Project
from tests.harness.skeleton_clients import example, old_or_new, start
from tests.harness.skeletons import SECTIONS, Variant, declared, search_path
from tests.interop.report import Report
from tests.interop.sdk_client import connected

LISTED: Mapping[str, tuple[str, type[BaseModel]]] = {
    "tools": ("tools", types.Tool),
    "prompts": ("prompts", types.Prompt),
    "resources": ("resources", types.Resource),
    "resourceTemplates": ("resource_templates", types.ResourceTemplate),
}
"""Section of a contract -> the SDK's name of the list, and the class of its entries."""

GREETING = types.PromptReference(type="ref/prompt", name="greeting")
Asking = ClientSession | Client


async def over_stdio(variant: Variant, project: Project, revision: str) -> None:
    """Test a server over stdio; it must print nothing to stderr."""
    program, *arguments = start(project)
    parameters = StdioServerParameters(command=program, args=arguments, env=search_path([project]))
    with TemporaryFile("w+") as errors:
        way = stdio_client(parameters, cast(TextIO, errors))
        async with connected(Report("", revision, "stdio"), way, ask=True) as (session, client, _):
            await converse(variant, revision, session, client)
        errors.seek(0)
        assert errors.read() == "", variant.name


async def over_http(variant: Variant, address: str, revision: str) -> None:
    """Test a server over Streamable HTTP, or over HTTP+SSE in the revision that only has that transport."""
    path = old_or_new(revision)
    way = sse_client(f"{address}/{path}", timeout=60) if path == "sse" else streamable_http_client(f"{address}/{path}")
    async with connected(Report("", revision, "http"), way, ask=True) as (session, client, _):
        await converse(variant, revision, session, client)


async def converse(variant: Variant, revision: str, session: ClientSession, client: Asking) -> None:
    """Test all features of a server, and check that it has no other features."""
    introduced(variant, revision, session)
    chosen = variant.features(revision)
    for tool in await listed(variant, "tools", chosen, client.list_tools):
        result = await client.call_tool(tool.name, example(tool.input_schema))  # also checks the output schema
        assert not result.is_error, result
        assert (result.structured_content is None) == (tool.output_schema is None)
    for prompt in await listed(variant, "prompts", chosen, client.list_prompts):
        values = variant.values(prompt.name)
        assert (await client.get_prompt(prompt.name, values)).messages
    uris = [each.uri for each in await listed(variant, "resources", chosen, client.list_resources)]
    templates = await listed(variant, "resourceTemplates", chosen, client.list_resource_templates)
    if variant.contracted:
        uris += [str(uritemplate.expand(each.uri_template, id="7", path="a/b")) for each in templates]
    for uri in uris:
        assert [each.uri for each in (await client.read_resource(uri)).contents] == [uri]
    await completed(variant, chosen, client)
    if isinstance(client, ClientSession):
        await adjusted(session, uris)


def introduced(variant: Variant, revision: str, session: ClientSession) -> None:
    """Check the server's name, its instructions and its exact capabilities."""
    assert session.protocol_version == revision
    assert session.server_info is not None
    assert session.server_capabilities is not None
    assert session.server_info.name == variant.title
    assert session.instructions == (variant.document["instructions"] if variant.contracted else None)
    capabilities = session.server_capabilities.model_dump(by_alias=True, exclude_none=True)
    assert capabilities.keys() == declared(revision, "server", variant.features(revision))


async def listed(variant: Variant, section: str, chosen: Sequence[str], ask: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Return the entries of a section after a comparison with the contract."""
    if SECTIONS[section] not in chosen:
        with refused():
            await ask()
        return []
    field, kind = LISTED[section]
    found: list[Any] = getattr(await ask(), field)
    if variant.contracted:
        assert found == [kind.model_validate(entry) for entry in variant.document.get(section, ())]
    else:
        assert found
    return found


async def completed(variant: Variant, chosen: Sequence[str], client: Asking) -> None:
    """Check completion; with a contract, values come from its enums."""
    if not {"completion", "completions"} & set(chosen):
        with refused():
            await client.complete(GREETING, {"name": "name", "value": ""})
    elif not variant.contracted:
        assert (await client.complete(GREETING, {"name": "name", "value": ""})).completion.values
    else:
        for entry, name, enum in variant.enums():
            for begun in ("", enum[1][:2]):
                found = (await client.complete(reference(entry), {"name": name, "value": begun})).completion.values
                assert found == [value for value in enum if value.startswith(begun)]


def reference(entry: Mapping[str, Any]) -> types.PromptReference | types.ResourceTemplateReference:
    """Return the reference to a prompt or a template of a contract."""
    if "uriTemplate" in entry:
        return types.ResourceTemplateReference(type="ref/resource", uri=entry["uriTemplate"])
    return types.PromptReference(type="ref/prompt", name=entry["name"])


async def adjusted(session: ClientSession, uris: Sequence[str]) -> None:
    """Test the features that only sessions have: log level and subscriptions."""
    assert session.server_capabilities is not None
    await session.set_logging_level("warning")
    resources = session.server_capabilities.resources
    if resources is not None and resources.subscribe:
        await session.subscribe_resource(uris[0])
        await session.unsubscribe_resource(uris[0])


@contextmanager
def refused() -> Iterator[None]:
    """Expect the error "method not found"."""
    with pytest.raises(MCPError) as caught:
        yield
    assert caught.value.code == types.METHOD_NOT_FOUND

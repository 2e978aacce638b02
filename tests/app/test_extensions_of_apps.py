"""Apps with MCP Apps and skills, called by clients of every revision, with and without these extensions."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen import v2026_07_28
from mcp_bindgen.app import App
from mcp_bindgen.extensions.skills import BadSkill, load_skill
from mcp_bindgen.runtime import CapabilityMissing
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import apps, skills
from tests.app.serving import served
from tests.harness.checked_connections import connected, refused

HTML = "<!doctype html><title>Board</title>"
UI = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}


class Host:
    """Client that displays apps."""

    def extra_capabilities(self) -> Mapping[str, Any]:
        return {"extensions": UI}


def dice() -> App:
    app = App("dice")

    @app.tool(ui="ui://dice/board")
    def roll() -> str:
        return "4"

    @app.tool(ui="ui://dice/board", visibility=["app"], meta={"com.example/own": 1})
    def history() -> str:
        return "4, 2"

    @app.ui("ui://dice/board", connect_domains=["https://api.example.com"], prefers_border=True)
    def board() -> str:
        return HTML

    return app


async def test_hosts_with_mcp_apps_list_ui_tools_and_read_their_html(revision: str) -> None:
    async with served(dice(), revision, Host) as client:
        tools = [tool.model_dump() for tool in (await client.list_tools()).tools]
        assert [(tool["name"], tool["_meta"]) for tool in tools] == [
            ("roll", {"ui": {"resourceUri": "ui://dice/board"}}),
            ("history", {"com.example/own": 1, "ui": {"resourceUri": "ui://dice/board", "visibility": ["app"]}}),
        ]
        assert (await client.call_tool("history")).content[0].text == "4, 2"
        (listed,) = [one.model_dump() for one in (await client.list_resources()).resources]
        (read,) = [one.model_dump() for one in (await client.read_resource(listed["uri"])).contents]
        said = {"csp": {"connectDomains": ["https://api.example.com"]}, "prefersBorder": True}
        for one in (listed, read):
            assert (one["mimeType"], one["_meta"]) == ("text/html;profile=mcp-app", {"ui": said})
        assert read["text"] == HTML


async def test_clients_without_mcp_apps_get_text_and_no_app_only_tools(revision: str) -> None:
    async with served(dice(), revision) as client:
        (tool,) = [tool.model_dump() for tool in (await client.list_tools()).tools]
        assert tool["name"] == "roll"
        assert "_meta" not in tool
        assert (await client.call_tool("roll")).content[0].text == "4"
        for name in ("history", "histroy", "nothing"):
            assert (await refused(client.call_tool(name))).message == f"Unknown tool: {name}"


def test_a_tool_with_a_missing_ui_resource_is_refused() -> None:
    app = App("dice")

    @app.tool(ui="ui://dice/board")
    def roll() -> str:
        return "4"

    with pytest.raises(ValueError, match="'roll' is shown by ui://dice/board, which is missing"):
        app.served()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "skills" / "tea" / "brewing"
    (home / "references").mkdir(parents=True)
    (home / "SKILL.md").write_text("---\nname: brewing\ndescription: Brew tea\n---\nSee references/times.csv\n")
    (home / "references" / "times.csv").write_text("green,2\n")
    (home / "scale.bin").write_bytes(b"\xff\x00")
    return tmp_path / "skills"


async def test_files_of_skills_are_resources_in_every_revision(revision: str, folder: Path) -> None:
    app = App("kettle")
    app.add_skills(folder)
    async with served(app, revision) as client:
        (listed,) = [one.model_dump() for one in (await client.list_resources()).resources]
        root = "skill://tea/brewing"
        assert (listed["uri"], listed["name"], listed["mimeType"]) == (f"{root}/SKILL.md", "brewing", "text/markdown")
        times, scale = [
            (await client.read_resource(f"{root}/{name}")).contents[0] for name in ("references/times.csv", "scale.bin")
        ]
        assert (times.text, times.mime_type, scale.blob) == ("green,2\n", "text/csv", "/wA=")
        for path in ("references/../SKILL.md", "%53KILL.md"):  # other spellings of the same URI
            assert (await client.read_resource(f"{root}/{path}")).contents[0].text.startswith("---")
        for path in ("../../../etc/passwd", "references", "references%2F..%2FSKILL.md", "", "%2553KILL.md"):
            await refused(client.read_resource(f"{root}/{path}"))


def test_two_folders_cannot_have_the_same_skill(folder: Path, tmp_path: Path) -> None:
    app = App("kettle")
    app.add_skills(folder)
    copy = shutil.copytree(folder, tmp_path / "copy")
    with pytest.raises(BadSkill, match="another folder has too"):
        app.add_skills(copy)


class Agent(skills.Client):
    """Client with the skills extension."""

    info = mcp.Implementation(name="agent", version="1")


@pytest.mark.parametrize("app", [App("kettle"), dice()], ids=["skills", "apps and skills"])
async def test_clients_with_the_skills_extension_list_and_load_skills(folder: Path, app: App) -> None:
    app.add_skills(folder)
    async with served(app, "2026-07-28", Agent) as client:
        assert client.extension(skills.EXTENSION) == skills.types.SkillsExtensionCapability(directory_read=True)
        (skill,) = [one async for one in client.iter_skills()]
        assert (await client.get_skill(skill.uri)).skill == skill
        loaded = await load_skill(client, skill)
        assert await loaded.read("references/times.csv") == b"green,2\n"
        assert await loaded.read("scale.bin") == b"\xff\x00"
        top = await client.read_resource_directory("skill://tea")
        assert [(one.name, one.mime_type) for one in top.resources] == [("brewing", "inode/directory")]
        inside = await client.read_resource_directory("skill://tea/brewing")
        assert {one.name for one in inside.resources} == {"SKILL.md", "references", "scale.bin"}
        for ask in (
            client.get_skill("skill://tea"),
            client.read_resource_directory(skill.uri),
            client.read_resource_directory("skill://tea/brewing/"),
            client.read_resource_directory("skill://tea/brewing/../.."),
            client.list_skills("elsewhere"),
        ):
            assert (await refused(ask)).code == -32602


class ByHand(skills.Server):
    """Server of generated skills, without directories."""

    info = mcp.Implementation(name="by-hand", version="1")

    def list_skills(self, params: mcp.PaginatedRequestParams, ctx: skills.Context) -> skills.types.ListSkillsResult:
        return skills.types.ListSkillsResult(skills=[])


async def test_directories_of_a_server_that_does_not_declare_them_cannot_be_read() -> None:
    async with connected(Agent(), ByHand()) as connection:
        client = connection.client
        assert client.extension(skills.EXTENSION) == skills.types.SkillsExtensionCapability()
        await refused(client.read_resource_directory("skill://tea"), CapabilityMissing, "directoryRead")


async def test_skills_are_listed_for_clients_without_the_extension() -> None:
    async with connected(v2026_07_28.Client(), ByHand()) as connection:
        client, request = connection.client, skills.methods.LIST_SKILLS
        params = mcp.PaginatedRequestParams(meta=client.metadata(mcp.RequestMetaObject, None))
        assert (await client.request(request, params)).skills == []


async def test_a_server_with_ui_tools_declares_the_mcp_apps_extension() -> None:
    async with served(dice(), "2026-07-28") as client:
        assert client.server_capabilities["extensions"] == {apps.EXTENSION.id: {}}

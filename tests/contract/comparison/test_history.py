"""`contract history`: the versions of a server in order, the verdict of each step, and pages about it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from mcp_bindgen.contract.comparison.history import order
from tests.harness.browser import DESKTOP, PHONE, check_accessibility, chromium, visiting
from tests.harness.commands import complaint, inside, save

TOWN = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
COUNTED = {**TOWN, "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
DEMANDING = {**COUNTED, "required": ["city", "days"]}


def tool(name: str, schema: Any, description: str = "") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": schema}


VERSIONS: dict[str, list[dict[str, Any]]] = {
    "0.9.0": [tool("forecast", TOWN), tool("alarm", TOWN)],
    "0.10.0": [tool("forecast", COUNTED, "<b>Sky</b> over a city."), tool("alarm", {**TOWN, "$defs": {}})],
    "1.0.0-rc.1": [tool("forecast", DEMANDING), tool("storm", TOWN)],
    "1.0.0": [tool("forecast", DEMANDING), tool("storm", TOWN)],
}
ZEROS = dict.fromkeys(("breaking", "unproven", "compatible", "notation", "texts", "added", "removed"), 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a list for each version of a server."""
    (tmp_path / "lists").mkdir()
    for version, tools in VERSIONS.items():
        save(tmp_path / "lists" / f"weather-{version}.json", {"tools": tools})
    return tmp_path / "lists"


def steps(*words: object) -> list[dict[str, Any]]:
    (server,) = json.loads(inside("contract", "history", *words, "--format", "json", code=0).stdout)["servers"]
    found: list[dict[str, Any]] = server["steps"]
    return found


def test_each_version_is_compared_with_the_one_before(folder: Path) -> None:
    found = steps(folder)
    assert [(one["old"], one["new"], one["verdict"]) for one in found] == [
        ("0.9.0", "0.10.0", "compatible"),
        ("0.10.0", "1.0.0-rc.1", "breaking"),
        ("1.0.0-rc.1", "1.0.0", "same"),
    ]
    assert [one["counts"] for one in found] == [
        {**ZEROS, "compatible": 1, "notation": 1, "texts": 1},
        {**ZEROS, "breaking": 2, "compatible": 1, "texts": 1, "added": 1, "removed": 1},
        ZEROS,
    ]
    (witness,) = [one["witness"]["value"] for one in found[1]["findings"] if one["witness"]]
    assert list(witness) == ["city"]


def test_text_has_a_table_and_the_breaking_changes(folder: Path) -> None:
    printed = inside("contract", "history", folder, code=0).stdout
    assert printed.startswith("weather: 4 versions, 1 breaking\n")
    rows = [line.split() for line in printed.splitlines() if line[:1].isdigit() and "->" not in line]
    assert rows == [
        ["0.9.0", *"--------"],
        ["0.10.0", "compatible", *"0011100"],
        ["1.0.0-rc.1", "breaking", *"2010111"],
        ["1.0.0", "same", *"0000000"],
    ]
    assert "0.10.0 -> 1.0.0-rc.1: 2 breaking" in printed
    assert '"days" is a required property: {"city": ' in printed
    assert "Perhaps it is storm now." in printed


@pytest.mark.parametrize(
    "versions",
    [
        ["0.9.0", "0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "1.0.1+build.7"],
        ["0.6.2", "2025.8.21", "2025.11.25", "2026.7.4"],
        ["2024-11-05", "2025-03-26", "2025-11-25"],
        ["1.0b2", "1.0rc1", "1.0", "2", "10"],
    ],
)
def test_versions_are_in_order(versions: list[str], tmp_path: Path) -> None:
    assert sorted([*versions[2:], *versions[:2]], key=order) == versions
    for version in versions:
        save(tmp_path / f"2-towns-v{version}.json", {"tools": []})
    assert [one["new"] for one in steps(tmp_path)] == versions[1:]


def test_a_folder_may_have_several_servers_and_other_files(folder: Path) -> None:
    save(folder / "notes.json", {"any": "thing"})
    (folder / "README.md").write_text("1.0.0")
    (folder / "2.0.0.yaml").write_text("tools: []\n")
    done = inside("contract", "history", folder, "--format", "json", code=0)
    assert [one["server"] for one in json.loads(done.stdout)["servers"]] == ["lists", "weather"]
    assert done.stderr == f"warning: {folder / 'notes.json'} is left out: its name has no version\n"


def test_invalid_sources_are_errors(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "name contracts VERSION.json or NAME-VERSION.json" in complaint("contract", "history", tmp_path / "empty")
    assert "as in: 'npx -y PACKAGE@1.0.0,1.1.0'" in complaint("contract", "history", "npx -y @acme/weather@1.0.0")
    assert "unknown profile 'rude'" in complaint("contract", "history", folder, "--callers", "rude")
    (folder / "weather-1.0.0.yaml").write_text("tools: []\n")
    assert "weather-1.0.0.json has the same version" in complaint("contract", "history", folder)


@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("breaking", 1), ("text", 1)])
def test_fail_on_counts_each_step(fail_on: str, code: int, folder: Path) -> None:
    inside("contract", "history", folder, "--fail-on", fail_on, code=code)


def test_the_profile_of_the_callers_decides(tmp_path: Path) -> None:
    whole = {"type": "integer"}
    for version, days in (("1.0.0", whole), ("1.1.0", {**whole, "maximum": 2**53 - 1})):
        schema = {"type": "object", "properties": {"days": days}}
        save(tmp_path / f"{version}.json", {"tools": [tool("forecast", schema)]})
    found = [steps(tmp_path, "--callers", name)[0]["verdict"] for name in ("sensible", "strict")]
    assert found == ["notation", "breaking"]


def test_the_versions_of_a_package_are_started_in_the_given_order(tmp_path: Path) -> None:
    server = tmp_path / "uvx.py"
    server.write_text("""
import sys
from mcp_bindgen.app import App, run

version = sys.argv.pop().partition("@")[2]
app = App("weather", version=version)

@app.tool
def forecast(city: str, days: int = 1) -> str:
    return city

if version == "1.10.0":
    @app.tool
    def storm(city: str) -> str:
        return city

run(app)
""")
    found = steps(f"{sys.executable} {server} weather@1.10.0,1.9.0")
    assert [(one["old"], one["new"], one["verdict"]) for one in found] == [("1.10.0", "1.9.0", "breaking")]
    assert {one["rule"] for one in found[0]["findings"]} == {"tool-removed", "version-changed"}


def test_invalid_entries_of_a_version_are_counted(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text("""
import json
import sys

tools = [{"name": "forecast", "inputSchema": {"type": "object"}}, {"name": "storm", "inputSchema": {"type": "object"}}]
if sys.argv[1].endswith("@1.0.0"):
    del tools[1]["inputSchema"]["type"]
info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}
for line in sys.stdin:
    request = json.loads(line)
    known = {"initialize": info, "tools/list": {"tools": tools}}
    if "id" in request:
        answer = known.get(request["method"])
        error = {"error": {"code": -32601, "message": "unknown"}}
        said = {"result": answer} if answer else error
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}), flush=True)
""")
    words = f"{sys.executable} {server} weather@1.0.0,1.1.0"
    assert steps(words)[0]["counts"]["added"] == 1
    printed = inside("contract", "history", words, code=0).stdout
    assert "1.0.0 has 1 invalid entry, left out: the counts of added and removed" in printed


def test_the_version_of_the_server_is_no_change(tmp_path: Path) -> None:
    for version in ("1.0.0", "1.1.0"):
        save(tmp_path / f"{version}.json", {"serverInfo": {"name": "weather", "version": version}, "tools": []})
    assert [one["verdict"] for one in steps(tmp_path, "--fail-on", "any")] == ["same"]
    save(tmp_path / "1.2.0.json", {"serverInfo": {"name": "storms", "version": "1.2.0"}, "tools": []})
    assert [one["verdict"] for one in steps(tmp_path)] == ["same", "breaking"]
    inside("contract", "history", tmp_path, "--fail-on", "breaking", code=1)


@pytest.fixture
def pages(folder: Path) -> tuple[str, str]:
    """Return the report as Markdown and as HTML, about a server with a hostile name."""
    for file in folder.iterdir():
        file.rename(folder / file.name.replace("weather", "<b>weather|"))
    done = [inside("contract", "history", folder, "--format", name, code=0).stdout for name in ("markdown", "html")]
    return done[0], done[1]


def test_names_are_no_markup(pages: tuple[str, str]) -> None:
    markdown, html = pages
    assert "| `1.0.0-rc.1` | **breaking** | 2 | 0 | 1 | 0 | 1 | 1 | 1 |" in markdown
    assert "<b>weather" not in markdown
    assert "<b>weather" not in html
    assert "&lt;b&gt;weather|" in html


@pytest.mark.full
def test_the_page_is_accessible_and_fits_a_phone(pages: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "history.html"
    file.write_text(pages[1], "utf-8")
    windows: list[tuple[tuple[int, int], Literal["light", "dark"]]] = [(DESKTOP, "light"), (PHONE, "dark")]
    with chromium() as browser:
        for size, scheme in windows:
            with visiting(browser, file, size=size, scheme=scheme) as visit:
                visit.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
                assert visit.page.evaluate("document.documentElement.scrollWidth") <= size[0]
                check_accessibility(visit.page)
                assert (visit.complaints, visit.requests) == ([], [])

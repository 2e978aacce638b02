"""A server and a client of 2025-11-25: the advice of `migrate`, and both files after a user followed it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest

from mcp_bindgen.testing import connected
from mcp_bindgen.v2026_07_28 import Context
from tests.harness.commands import inside
from tests.harness.effort import cases
from tests.migrate.migrated import reader_after, reader_before, shop_after, shop_before

FOLDER = Path(__file__).parent / "migrated"
TOOLS = [f"{name}(title) needs ['title']" for name in ("buy", "price", "review")]
SAID = [*TOOLS, "where() needs []", "bought Emma", "Fine.", "file:///books", "12", "missing"]


Advice = dict[tuple[int, str], dict[str, Any]]
"""Line and name -> advice."""


@cache
def migrated() -> dict[str, Advice]:
    """Return the advice for each file name, from one run over all code of this module.

    `migrate` reads the code of the new revision as code of the old revision.
    """
    head = "from mcp_bindgen.v2025_11_25 import Context, Server\nclass Own(Server):\n"
    helper = "\n    async def helper(self, ctx: Context):\n        await ctx.ask('c', bool)\n"
    found: dict[str, Advice] = {}
    with TemporaryDirectory() as folder:
        for path in FOLDER.glob("[rs]*.py"):
            Path(folder, path.name).write_text(path.read_text("utf-8").replace("v2026_07_28", "v2025_11_25"), "utf-8")
        for number, body in enumerate(REPEATED):
            handler = f"    async def call_tool(self, params, ctx):\n        {body}\n"
            code = f"{head}{handler}{helper}def charge(): ...\n"
            Path(folder, f"repeated{number}.py").write_text(code.replace("helper", f"helper{number}"), "utf-8")
        done = inside("migrate", "2025-11-25", "2026-07-28", folder, "--format", "json")
    for use in json.loads(done.stdout)["uses"]:
        found.setdefault(Path(use["file"]).stem, {})[use["line"], use["name"]] = use
    return found


def advice(path: Path) -> Advice:
    """Return the advice for a file."""
    return migrated().get(path.stem, {})


def line(path: Path, text: str) -> int:
    """Return the number of the first line with a text."""
    return next(number for number, one in enumerate(path.read_text("utf-8").splitlines(), 1) if text in one)


def test_the_code_works_before_and_after_its_migration() -> None:
    async def visits() -> None:
        before, after = shop_before.Shop(), shop_after.Shop()
        old, new = reader_before.Reader(), reader_after.Reader()
        async with connected(old, before):
            said = await reader_before.visit(old)
            assert [one for one in said if one != "forbidden"] == SAID
            assert old.wire_revision == "2025-11-25"
        async with connected(new, after):
            assert await reader_after.visit(new) == SAID
            assert new.wire_revision == "2026-07-28"
        assert old.asked == new.asked == ["Buy Emma for 9?", "100"]
        assert before.till.charged == after.till.charged == [9]

    anyio.run(visits)


@pytest.mark.full
def test_code_before_a_request_for_input_runs_again_and_gets_a_warning() -> None:
    """With only its imports and types updated, the server charges twice; the warning points at the charge."""
    found = advice(FOLDER / "shop_before.py")
    charge = line(FOLDER / "shop_before.py", "self.till.charge(price)")
    asked = line(FOLDER / "shop_before.py", "await ctx.elicit(form)")
    use = found[line(FOLDER / "shop_before.py", "async def buy"), "Shop.buy"]
    assert (use["kind"], use["rule"]) == ("repeated", "message-carrier-changed")
    assert use["new"] == f"runs again from its start after each question (line {asked})"
    assert use["hint"].startswith(f"Line {charge} runs again, too: ")

    class Naive(shop_after.Shop):
        async def buy(self, title: str, ctx: Context) -> Any:
            self.till.charge(shop_after.PRICES[title])
            return await super().buy(title, ctx)

    async def visit() -> None:
        shop, reader = Naive(), reader_after.Reader()
        async with connected(reader, shop):
            await reader.call_tool("buy", {"title": "Emma"})
        assert shop.till.charged == [9, 9, 9]  # before the question, again with its answer, and once after it

    anyio.run(visit)


@pytest.mark.full
def test_advice_for_the_server() -> None:
    path = FOLDER / "shop_before.py"
    found = advice(path)
    hints = {name: use["hint"] for (_, name), use in found.items()}
    again = {name for (_, name), use in found.items() if use["kind"] == "repeated"}
    assert again == {"Server.call_tool", "Shop.buy", "Shop.review", "Shop.where"}
    asking = [line(path, f"self.{name}(") for name in ("buy", "review", "where")]
    assert all(str(one) in found[line(path, "async def call_tool"), "Server.call_tool"]["new"] for one in asking)
    assert hints["Shop.review"] == "Nothing before a question does more than compute: keep it so."
    assert hints["Context.elicit"].startswith("Ask with `ctx.ask` or `ctx.ask_params(key, params)`")
    assert hints["Context.create_message"].startswith("Ask with `ctx.sample` or ")
    assert hints["Context.list_roots"].startswith("Ask with `ctx.roots` or ")
    assert "The runtime answers `subscriptions/listen`" in hints["Server.subscribe"]
    assert hints["Server.set_level"].endswith("Its `level` comes with each request: `params.meta.log_level`.")
    assert not [name for name in hints if "InputSchema" in name or "OutputSchema" in name]  # built as before


@pytest.mark.full
def test_advice_for_the_client() -> None:
    hints = {name: use["hint"] for (_, name), use in advice(FOLDER / "reader_before.py").items()}
    assert "`async with client.subscribed(types.SubscriptionFilter(...))` takes its place." in hints["Client.subscribe"]
    assert 'goes with each call: `meta={"io.modelcontextprotocol/logLevel": ...}`.' in hints["Client.set_level"]
    assert hints["types.ToolInputSchema.properties"].startswith('Read it by `(x.model_extra or {}).get("properties")`')
    assert hints["Client.on_list_roots"] == "Take ListRootsRequestParams."


@pytest.mark.full
@pytest.mark.parametrize("name", cases(["shop_before", "reader_before"], quick=["shop_before"]))
def test_no_advice_tells_code_to_send_fields_that_it_reads(name: str) -> None:
    """No advice tells code to send members that it reads, nor uses a wire name instead of the Python name."""
    for (_, used), use in advice(FOLDER / f"{name}.py").items():
        assert "Stop sending" not in use["hint"], use
        assert "old side" not in use["hint"], use
        if not used.endswith("=)"):
            assert not use["hint"].startswith(("Always", "Give", "Send")), use
        assert "RequestMetaObject[" not in use["hint"], use


@pytest.mark.parametrize("name", ["shop_after", "reader_after"])
def test_migrated_code_has_findings_only_about_new_names(name: str) -> None:
    """Read as code of the old revision, the migrated file only has findings about new names."""
    left = {name for (_, name), use in advice(FOLDER / f"{name}.py").items() if use["kind"] != "repeated"}
    assert left <= {"types.CallToolResult.structured_content", "Client.on_list_roots", "Client.call_tool(meta=)"}


REPEATED = {
    "charge(); await ctx.elicit('', {})": [3],
    "x = len(str(1)); await ctx.elicit('', {})": [],
    "await ctx.elicit('', {}); charge()": [],
    "self.paid = True\n        await ctx.list_roots()": [3],
    "await ctx.ask('a', bool)\n        charge()\n        await ctx.roots()": [4],
    "for one in (1, 2):\n            await ctx.sample('a')\n            charge()": [5],
    "with charge():\n            await ctx.ask_params('a', params)": [3],
    "if await ctx.ask('a', bool):\n            charge()": [],
    "await self.helper(ctx)\n        charge()\n        await ctx.ask('b', bool)": [4],
    "charge()\n        await self.helper(ctx)": [3],
    "charge()": None,
}


def test_the_warning_lists_the_lines_that_run_again() -> None:
    for number, lines in enumerate(REPEATED.values()):
        uses = migrated().get(f"repeated{number}", {}).values()
        repeated = (one for one in uses if one["kind"] == "repeated")
        hint = next((one["hint"] for one in repeated if one["name"] == "Server.call_tool"), None)
        if lines is None:
            assert hint is None
        else:
            assert hint is not None, list(REPEATED)[number]
            numbers = [int(word.strip(":,")) - 1 for word in hint.split() if word.strip(":,").isdigit()]
            assert numbers == lines, (list(REPEATED)[number], hint)

"""Mistakes of a server's author are told at once, with what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mcp_bindgen.app as app
from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import ProtocolError, connect, serve
from mcp_bindgen.runtime.protocol.routing import did_you_mean
from mcp_bindgen.runtime.transports.memory import pair
from tests.runtime.contract.weather.base import ForecastContract
from tests.support.checked_connections import STATEFUL, STATELESS, bindings, connected, running

every = pytest.mark.parametrize("revision", [*STATEFUL, STATELESS])


def handler(self: Any, params: Any, ctx: Any) -> None: ...


def other(self: Any, a: Any, b: Any) -> None: ...


def helper(self: Any) -> None: ...


# --- names of handlers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "name", "function", "meant"),
    [
        ("Server", "list_promts", handler, "list_prompts"),
        ("Server", "call_tools", handler, "call_tool"),
        ("Server", "list_promts", other, "list_prompts"),
        ("Client", "on_tools_list_changed", handler, "on_tool_list_changed"),
        ("Client", "on_logging_mesage", other, "on_logging_message"),
    ],
)
@every
def test_a_misspelt_handler_is_told_when_its_class_is_made(
    revision: str, side: str, name: str, function: Any, meant: str
) -> None:
    base = getattr(bindings(revision), side)
    with pytest.raises(TypeError) as caught:
        type("Mine", (base,), {name: function})
    place = f"{__file__}:{function.__code__.co_firstlineno}"
    assert str(caught.value).startswith(
        f"{place}: Mine.{name} handles nothing of MCP {revision}; did you mean {meant!r}?"
    )


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("_list_promts", handler),
        ("list_promts", helper),
        ("reload", handler),
        ("list_prompts", handler),
        ("lifespan", helper),
        ("list_promts", staticmethod(handler)),
        ("list_promts", property(helper)),
    ],
)
@every
def test_what_is_no_misspelt_handler_is_let_be(revision: str, name: str, function: Any) -> None:
    kind = type("Mine", (bindings(revision).Server,), {name: function})
    type("More", (kind,), {name: function})


# --- what handlers return -------------------------------------------------------------------------------------


@pytest.mark.parametrize("returned", [[], "tools", 3, True, "prompts"])
@every
async def test_a_wrong_return_type_is_told_with_the_line(
    revision: str, returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    package: Any = bindings(revision)
    if returned == "prompts":
        returned = package.types.ListPromptsResult(prompts=[])

    class Mistaken(package.Server):  # type: ignore[misc]
        info = package.types.Implementation(name="x", version="1")

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return returned

    async with connected(package.Client(), Mistaken()) as connection:
        with pytest.raises(ProtocolError) as caught:
            await connection.client.list_tools()
    line = Mistaken.list_tools.__code__.co_firstlineno
    said = f"the handler of tools/list returned {type(returned).__name__}, expected ListToolsResult"
    assert caught.value.message == f"Internal error: {said} ({Path(__file__).name}:{line})"
    assert f"WrongResult: {said} ({__file__}:{line})" in caplog.text


@every
async def test_results_of_other_revisions_and_in_wire_form_are_taken(revision: str) -> None:
    package: Any = bindings(revision)

    class Free(package.Server):  # type: ignore[misc]
        info = package.types.Implementation(name="x", version="1")

        def list_tools(self, params: Any, ctx: Any) -> Any:
            other = v2026_07_28 if package is v2025_11_25 else v2025_11_25
            return other.types.ListToolsResult(tools=[])

        def list_prompts(self, params: Any, ctx: Any) -> Any:
            return {"prompts": []}

    async with connected(package.Client(), Free()) as connection:
        assert (await connection.client.list_tools()).tools == []
        assert (await connection.client.list_prompts()).prompts == []


# --- contracts ------------------------------------------------------------------------------------------------


def test_a_method_that_a_contract_wants_is_missed_before_anything_starts() -> None:
    class Nearly(ForecastContract):
        async def get_forcast(self, arguments: Any, ctx: Any) -> Any: ...

    with pytest.raises(TypeError) as caught:
        Nearly()  # type: ignore[abstract]
    said = "Nearly misses get_forecast, for the tool 'get-forecast'; did you mean it by get_forcast?"
    assert str(caught.value) == said


# --- answers and targets --------------------------------------------------------------------------------------


@every
async def test_an_answer_that_is_invalid_is_called_an_answer(revision: str) -> None:
    package: Any = bindings(revision)

    class Wrong(package.Server):  # type: ignore[misc]
        info = package.types.Implementation(name="x", version="1")

        def list_tools(self, params: Any, ctx: Any) -> Any:
            return {"tools": 3}

    left, right = pair()
    async with running(serve(right, Wrong())), connect(left, package.Client) as client:
        with pytest.raises(
            ProtocolError, match=r"Invalid answer: the result of tools/list is not valid: result\.tools"
        ):
            await client.list_tools()


async def test_a_file_of_servers_is_no_server(tmp_path: Any) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    with pytest.raises(ValueError, match="is a file of servers") as caught:
        async with connect(str(config)):
            pass
    assert str(caught.value) == f"{config} is a file of servers; connect to one of its entries"


# --- suggestions ----------------------------------------------------------------------------------------------


def test_suggestions_stay_small_and_quick() -> None:
    assert did_you_mean("list_promts", ["list_prompts", "other"]) == "; did you mean 'list_prompts'?"
    assert did_you_mean("something", ["else"]) == ""
    many = [f"tool-{number}" for number in range(100_000)]
    assert did_you_mean("tool-1x" + "y" * 1_000_000, many) == ""
    assert app.missing_method(ForecastContract, "get_forecast").startswith("ForecastContract misses get_forecast")

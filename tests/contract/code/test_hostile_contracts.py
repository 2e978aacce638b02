"""Servers and clients generated from a contract that is hostile to code generation run and work together.

`hostile_contract.py` has the contract. A JSON Schema validator checks calls against the contract's own schemas, and an
echo server returns the arguments that it received.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import pytest
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter
from pydantic_core import to_json

from mcp_bindgen.contract.code.python_contract import PythonContract, lower_contract
from mcp_bindgen.contract.document import read_contract
from mcp_bindgen.contract.model import Contract
from mcp_bindgen.emit.python.environment import WIDTH
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir.model import Object, Ref
from mcp_bindgen.runtime.transports.stdio import stdio
from mcp_bindgen.scaffold.project import Project
from tests.harness.commands import execute, inside, python, save
from tests.harness.forks import PYTHON
from tests.harness.hostile_contract import NAMES, PROPERTIES, contract, many, payloads
from tests.harness.json_instances import Instances
from tests.harness.raw_client import LISTS, exact, raw
from tests.harness.shared import filled

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")]

INVALID_PARAMS = -32602
ECHO = """
from pathlib import Path

from hostile.server import Hostile
from mcp_bindgen.runtime import run
from mcp_bindgen.app.contract import specs
from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

ANSWERS = from_json(Path(__file__).with_name("answers.json").read_bytes())

class Echo(Hostile):
    pass

def echo(spec):
    def text(arguments):
        if spec.output is not None:
            return TypeAdapter(spec.output).validate_json(to_json(ANSWERS[spec.name]))
        return to_json(arguments).decode()

    async def answer(self, arguments, ctx):
        return text(arguments)

    async def nothing(self, ctx):
        return text({})

    return answer if spec.input else nothing

for stub, spec in specs(Echo).items():
    if spec.kind == "tool":
        setattr(Echo, stub, echo(spec))

run(Echo())
"""
"""Echo server: tools return their arguments, or results of `answers.json` if the contract has an output schema."""


USE = """
import sys

import anyio
from big_client import BigClient, Tool7InputPoints

async def main():
    async with BigClient.connect(sys.argv[1:]) as client:
        done = await client.tool_7(name="x", points=[Tool7InputPoints(x=1, y=2)])
        assert isinstance(done.done, bool)
        print(len([tool async for tool in client.client.iter_tools()]))

async def bounded():
    with anyio.fail_after(60):
        await main()

anyio.run(bounded)
"""
"""Program that uses the client of many tools."""


@dataclass(frozen=True)
class Made:
    """Project and client that were generated from a contract.

    Attributes:
        document: The contract as a JSON document.
        model: The contract as a typed model.
        project: The project.
        client: The module of the client.
        answers: Tool -> result, for tools with an output schema.
        marker: The file that code in the contract would create.
    """

    document: dict[str, Any]
    model: PythonContract
    project: Project
    client: Path
    answers: dict[str, Any]
    marker: Path

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that the server needs."""
        return {"PYTHONPATH": str(self.project.folder / "src")}

    @property
    def command(self) -> list[str]:
        """Return the command that starts the echo server."""
        return [PYTHON, str(self.client.with_name("echo_server.py"))]

    def module(self) -> ModuleType:
        """Import and return the client's module."""
        spec = importlib.util.spec_from_file_location(self.client.stem, self.client)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.client.stem] = module
        spec.loader.exec_module(module)
        return module


def one_more(schema: dict[str, Any], depth: int) -> tuple[str, ...]:
    """Return the name of a member that no schema declares."""
    return ("x1",)


def none_more(schema: dict[str, Any], depth: int) -> tuple[str, ...]:
    """Return a member name for objects that are maps; other objects get none."""
    rest = schema.get("additionalProperties", True)
    return ("k",) if not schema.get("properties") and (depth or isinstance(rest, dict)) else ()


def write_hostile(folder: Path) -> None:
    """Scaffold a server and generate a client from the contract, and write the echo server beside them."""
    document = contract(folder / "marker")
    path = save(folder / "contract.json", document)
    inside("scaffold", "server", "hostile", "--contract", path, "--out", folder, code=0)
    inside("client", "--from", path, "--out", folder / "hostile_client.py", "--name", "HostileClient", code=0)
    (folder / "echo_server.py").write_text(ECHO, "utf-8")
    outputs = {tool["name"]: tool["outputSchema"] for tool in document["tools"] if "outputSchema" in tool}
    answers = {name: Instances(schema, name, names=one_more).valid(1)[0] for name, schema in outputs.items()}
    save(folder / "answers.json", answers)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return the project and the client of the hostile contract."""
    folder = filled(tmp_path_factory, write_hostile)
    path = folder / "contract.json"
    document, answers = (json.loads(each.read_text("utf-8")) for each in (path, folder / "answers.json"))
    project = Project.read(folder / "hostile")
    model = lower_contract(read_contract(path))
    return Made(document, model, project, folder / "hostile_client.py", answers, folder / "marker")


@pytest.fixture(autouse=True)
def no_marker(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check after each test that no code in the contract was executed."""
    yield
    if "made" in request.fixturenames:
        assert not request.getfixturevalue("made").marker.exists()


def test_the_project_passes_its_tests_and_its_check(made: Made) -> None:
    folder = made.project.folder
    execute(PYTHON, "-W", "error", "-m", "pytest", "-q", cwd=folder, **made.variables, code=0)
    inside("contract", "check", folder, code=0)


def test_project_and_client_pass_ruff_and_black(made: Made) -> None:
    for tool in (
        ["ruff", "check"],
        ["ruff", "check", "--isolated", made.client],
        ["black", "--check", "--quiet", "--target-version=py311", "--line-length", WIDTH, "."],
    ):
        execute(PYTHON, "-m", *tool, cwd=made.project.folder, code=0)


def test_the_server_lists_exactly_the_entries_of_the_contract(made: Made) -> None:
    with raw([PYTHON, "-m", "hostile"], variables=made.variables) as server:
        listed = server.lists()
    assert exact(listed) == exact({member: made.document[member] for member in LISTS.values()})


def test_texts_of_a_contract_stay_string_literals(made: Made) -> None:
    """Generated modules have only the expected statements, and texts of the contract are string literals."""
    base = ast.parse((made.project.generated / "base.py").read_text("utf-8"))
    (class_,) = [node for node in base.body if isinstance(node, ast.ClassDef)]
    methods = [node for node in class_.body if isinstance(node, ast.AsyncFunctionDef)]
    assert len(methods) == sum(len(made.document[member]) for member in LISTS.values())
    for method in methods:
        assert [type(node) for node in method.body] in ([ast.Expr], [ast.Expr, ast.Expr]), ast.dump(method)
        assert isinstance(ast.get_docstring(method), str)
    for path in [*made.project.generated.glob("*.py"), made.client]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not isinstance(node, ast.Call) or "__import__" not in ast.dump(node.func)
    doors = [text.replace(str(made.marker), "") for text in payloads(made.marker)]
    assert any("touch" in text for text in doors)


async def test_valid_arguments_of_the_official_client_reach_the_method(made: Made) -> None:
    async with sdk(made) as client:
        for tool in made.document["tools"]:
            for arguments in Instances(tool["inputSchema"], tool["name"], names=one_more).valid(4):
                result = await client.call_tool(tool["name"], arguments)
                assert isinstance(result, types.CallToolResult)
                assert not result.is_error, (tool["name"], arguments, result)
                if "outputSchema" in tool:
                    assert canonical(result.structured_content) == canonical(made.answers[tool["name"]])
                else:
                    (block,) = result.content
                    assert isinstance(block, types.TextContent)
                    assert canonical(json.loads(block.text)) == canonical(arguments), tool["name"]


async def test_invalid_arguments_are_refused(made: Made) -> None:
    refused = 0
    async with sdk(made) as client:
        for tool in made.document["tools"]:
            for arguments in Instances(tool["inputSchema"], tool["name"], names=one_more).invalid(4):
                result = await client.call_tool(tool["name"], arguments)
                assert result.is_error, (tool["name"], arguments)
                assert isinstance(result.content[0], types.TextContent)
                assert result.content[0].text.count("\n") <= 20
                refused += 1
        with pytest.raises(MCPError) as caught:
            await client.call_tool("no such tool", {})
        assert caught.value.code == INVALID_PARAMS
    assert refused > 3 * len(made.document["tools"]) / 2


async def test_valid_arguments_of_the_typed_client_reach_the_method(made: Made) -> None:
    module = made.module()
    async with module.HostileClient.connect(words(made)) as client:
        for tool in made.model.tools:
            method = getattr(client, made.model.stub(tool))
            for arguments in Instances(tool.raw["inputSchema"], tool.name, names=none_more).valid(3):
                result = await method(**given(made.model, method, tool.arguments, arguments))
                if not tool.output:
                    assert canonical(json.loads(result[0].text)) == canonical(arguments), tool.name
                else:
                    assert canonical(json.loads(to_json(result))) == canonical(made.answers[tool.name]), tool.name


async def test_the_typed_client_gets_prompts_and_reads_resources(made: Made) -> None:
    async with made.module().HostileClient.connect(words(made)) as client:
        for prompt in made.model.prompts:
            named = {each["name"]: "abc" for each in prompt.raw.get("arguments", [])}
            method = getattr(client, made.model.stub(prompt))
            arguments = given(made.model, method, prompt.arguments, named) if prompt.arguments else {}
            assert (await method(**arguments)).messages, prompt.name
        for resource in made.model.resources:
            (contents,) = (await getattr(client, made.model.stub(resource))()).contents
            assert contents.uri == resource.key
        for template in made.model.templates:
            method = getattr(client, made.model.stub(template))
            known = {each["name"]: each["enum"] for each in template.raw.get("variables", [])}
            for value in known.get("lang", ["abc", "ü/ %\"'"]):
                names = inspect.signature(method).parameters
                arguments = {name: value if name in known or not known else "q" for name in names}
                (contents,) = (await method(**arguments)).contents
                assert contents.uri.startswith(template.key.partition("{")[0])


async def test_completion_returns_the_values_of_an_enum(made: Made) -> None:
    async with sdk(made) as client:
        asked = types.PromptReference(type="ref/prompt", name="choose")
        found = (await client.complete(asked, {"name": "word", "value": "ab"})).completion
        assert found.values == ["abc"]
        about = types.ResourceTemplateReference(type="ref/resource", uri="find://x{?q,lang}")
        found = (await client.complete(about, {"name": "lang", "value": "ends"})).completion
        assert "ends with a backslash\\" in found.values


@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_a_server_and_a_client_support_many_tools(tmp_path: Path, count: int) -> None:
    path = save(tmp_path / "contract.json", many(count))
    inside("scaffold", "server", "big", "--contract", path, "--out", tmp_path, code=0)
    inside("client", "--from", path, "--out", tmp_path / "big_client.py", "--name", "BigClient", code=0)
    with raw([PYTHON, "-m", "big"], variables={"PYTHONPATH": str(tmp_path / "big" / "src")}) as server:
        assert exact(server.lists()["tools"]) == exact(many(count)["tools"])
        for number in range(count):
            answer = server.call(f"tool-{number}", {"name": "x", "points": [{"x": 1, "y": 2.5}]})
            assert "done" in answer["result"]["structuredContent"]
        assert server.call("tool-7", {"points": []})["result"]["isError"]
    server_words = ["env", f"PYTHONPATH={tmp_path / 'big' / 'src'}", PYTHON, "-m", "big"]
    assert python(USE, tmp_path, *server_words).split() == [str(count)]


def test_the_hostile_contract_has_reserved_and_colliding_names() -> None:
    assert {"self", "class", "_meta", "a-b"} <= {*PROPERTIES}
    assert {"class", "get.forecast", "get-forecast", "天気"} <= {*NAMES}


# --- calling --------------------------------------------------------------------------------------------------


def sdk(made: Made) -> Client:
    """Return the official client, connected to the echo server."""
    command, *arguments = made.command
    return Client(stdio_client(StdioServerParameters(command=command, args=arguments, env=made.variables)))


def words(made: Made) -> Any:
    """Return the transport that connects our client to the echo server."""
    return stdio(*made.command, env=made.variables)


def given(model: Contract, method: Any, name: str, wire: dict[str, Any]) -> dict[str, Any]:
    """Convert wire arguments to the arguments of a typed method."""
    hints = get_type_hints(method)
    parameters = list(inspect.signature(method).parameters)
    while isinstance(kind := model.types.definitions[name].type, Ref):
        name = kind.name
    if not isinstance(kind, Object):
        return {parameters[0]: typed(hints[parameters[0]], wire)}
    found: dict[str, Any] = {}
    attributes = lower(model.types).attributes[name]
    for field in kind.fields:
        if field.wire in wire:
            parameter = parameter_of(attributes[field.wire], parameters)
            found[parameter] = typed(hints[parameter], wire[field.wire])
    more = {name: value for name, value in wire.items() if kind.field(name) is None}
    assert not more or inspect.signature(method).parameters[parameters[-1]].kind is inspect.Parameter.VAR_KEYWORD
    return {**found, **more}


def parameter_of(attribute: str, parameters: list[str]) -> str:
    """Return the parameter of an attribute; underscores distinguish it from other names."""
    plain = attribute.removesuffix("_")
    return next(name for name in (attribute, plain, f"{attribute}_", f"{attribute}__") if name in parameters)


def typed(annotation: Any, value: Any) -> Any:
    """Convert a JSON value to a value of a type; scalars stay unchanged."""
    return value if not isinstance(value, dict | list) else TypeAdapter(annotation).validate_json(json.dumps(value))


def canonical(value: Any) -> str:
    """Return a JSON document as text with sorted members; JSON Schema treats 1 and 1.0 as equal."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value

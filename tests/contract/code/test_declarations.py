"""Declarations for the context of a model: exact types in two languages, within a budget of tokens."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import jsonschema_rs
import pytest
from pydantic import AfterValidator, TypeAdapter, ValidationError

from mcp_bindgen.contract.code.declarations import Language, declarations, estimated_tokens
from mcp_bindgen.contract.document import contract_of_valid
from mcp_bindgen.contract.exact import ExactReader
from mcp_bindgen.contract.names import Scope
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.examples import fits
from mcp_bindgen.ir.model import Array, Definition, Object, Scalar, Type, is_implied, map_parts
from mcp_bindgen.spec.keywords import CONSTRAINTS
from tests.contract.test_exact import strict
from tests.harness import hostile_contract as hostile
from tests.harness.commands import ROOT, execute, inside, save
from tests.harness.effort import examples
from tests.harness.json_instances import Instances
from tests.harness.type_checkers import strict_cache
from tests.interop.processes import node

SERVERS: dict[str, list[dict[str, Any]]] = json.loads((ROOT / "tests" / "harness" / "real_tools.json").read_text())
"""Package -> tools of a real server, without their texts."""

TSC = ROOT / "tests" / "typescript" / "node_modules" / "typescript" / "bin" / "tsc"
FORMS: list[dict[str, Any]] = json.loads((ROOT / "tests" / "harness" / "tool_forms.json").read_text())["tools"]


def _schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name -> schema of objects: all constructs of the field, and the tools of real servers."""
    known: dict[str, Any] = json.loads(hostile.SCHEMAS.read_text())
    yield from {**known["inputs"], **known["outputs"]}.items()
    yield from ((tool["name"], tool["inputSchema"]) for tool in FORMS)
    for package, tools in SERVERS.items():
        for tool in tools:
            for member in ("inputSchema", "outputSchema"):
                if member in tool:
                    yield f"{package} {tool['name']} {member[:3]}", tool[member]


@cache
def contract() -> Any:
    """Return a contract with a tool for each schema, which is the schema of its result."""
    found = contract_of_valid(
        {"tools": [{"name": name, "inputSchema": {"type": "object"}, "outputSchema": one} for name, one in _schemas()]}
    )
    assert not found.left_out
    return found


# --- the declarations of all constructs and of real servers ----------------------------------------------------------


@pytest.mark.full
def test_type_checkers_accept_all_declarations(tmp_path: Path) -> None:
    sources = {package: {"tools": tools} for package, tools in SERVERS.items()}
    sources["hostile"] = hostile.contract(tmp_path / "marker")
    sources["forms"] = {"tools": FORMS}
    assert len(sources["hostile"]["tools"]) >= 48
    assert len(SERVERS) >= 12
    for package, document in sources.items():
        for budget in (None, 3000):
            name = f"{re.sub(r'[^a-z]', '_', package)}_{budget or 'all'}"
            for language, ending in ((Language.PYTHON, "pyi"), (Language.TYPESCRIPT, "ts")):
                text = declarations(contract_of_valid(document), language, budget).text
                (tmp_path / f"{name}.{ending}").write_text(text)
    strict = (
        "--noEmit",
        "--strict",
        "--exactOptionalPropertyTypes",
        "--target",
        "es2022",
        "--moduleDetection",
        "force",
    )
    execute(node(), TSC, *strict, *tmp_path.glob("*.ts"), code=0)
    stubs = sorted(tmp_path.glob("*.pyi"))
    execute(sys.executable, "-m", "mypy", "--strict", strict_cache(tmp_path / "cache"), *stubs, code=0)
    execute(sys.executable, "-m", "pyright", *stubs, code=0)
    assert not (tmp_path / "marker").exists()


# --- documents, judged by a validator --------------------------------------------------------------------------------

_LIMITS = frozenset(
    {
        *(*CONSTRAINTS, "format", "uniqueItems", "contains", "minContains", "maxContains", "minProperties"),
        *("maxProperties", "propertyNames", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
        *("dependencies", "unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Keywords that comments state, because the types of no language do; `if` with `else` becomes cases."""


def relaxed(schema: Any, *, python: bool = False) -> Any:
    """Return a schema without the limits that declarations may have; Python has more of them."""
    if isinstance(schema, list):
        return [relaxed(one, python=python) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: {name: relaxed(one, python=python) for name, one in value.items()}
        if key in ("properties", "$defs", "definitions")
        else relaxed(value, python=python)
        for key, value in schema.items()
        if key not in _LIMITS
    }
    is_named = isinstance(schema.get("properties"), dict)
    if "patternProperties" in schema or (python and is_named):
        for word in ("patternProperties", "additionalProperties"):
            found.pop(word, None)
    if isinstance(one_of := found.pop("oneOf", None), list):
        found["allOf"] = [*found.get("allOf", []), {"anyOf": one_of}]
    if python:
        values = found.get("enum", [found["const"]] if "const" in found else ())
        if any(isinstance(one, float) for one in values):
            found = {key: value for key, value in found.items() if key not in ("enum", "const")}
        if "prefixItems" in found and found.get("items") is not False:
            del found["prefixItems"]
            found.pop("items", None)
        if isinstance(found.get("items"), list) and found.get("additionalItems") is not False:
            del found["items"]
        if is_named and "" in found["properties"]:
            del found["properties"][""]
        if "" in found.get("required", ()):
            found["required"] = [one for one in found["required"] if one]
    return found


def _whole(value: Any) -> Any:
    """Return a document with whole numbers as integers, which are equal in JSON."""
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def documents(name: str, schema: Any, count: int) -> list[Any]:
    """Return objects for a schema, valid ones and mutants."""
    instances = Instances(schema, name)
    return [one for one in (_whole(instances.sample(index)) for index in range(count)) if isinstance(one, dict)]


def typed() -> tuple[Protocol, dict[str, str]]:
    """Return the exact types of all schemas, and schema -> the definition of its values."""
    reader = ExactReader(Scope())
    roots = {name: reader.define(schema, "Root").name for name, schema in _schemas()}
    return strict(Protocol("", "stateless", "", reader.definitions, ())), roots


COUNT = examples(4, 400)  # documents for each schema: more than 20,000 in the full profile


@pytest.mark.full
def test_types_accept_all_valid_documents_and_invalid_ones_only_within_the_limits() -> None:
    types, roots = typed()
    judged = accepted = 0
    for name, schema in _schemas():
        is_valid = jsonschema_rs.validator_for(schema, validate_formats=False).is_valid
        is_nearly = jsonschema_rs.validator_for(relaxed(schema), validate_formats=False).is_valid
        for document in documents(name, schema, COUNT):
            fitting = fits(types, types.definitions[roots[name]].type, document)
            assert fitting or not is_valid(document), (name, document)
            assert not fitting or is_nearly(document), (name, document)
            judged, accepted = judged + 1, accepted + is_valid(document)
    assert judged > 0.9 * COUNT * len(roots)
    assert 0.2 < accepted / judged < 0.95


class _Literal:
    """`Literal` of a type checker: to pydantic, true is also 1."""

    def __class_getitem__(cls, values: Any) -> Any:
        known = values if isinstance(values, tuple) else (values,)

        def check(value: Any) -> Any:
            if not any(type(one) is type(value) and one == value for one in known):
                raise ValueError("another constant")
            return value

        return Annotated[Any, AfterValidator(check)]


def _refuse(value: Any) -> Any:
    raise ValueError("no value")


def test_python_types_accept_the_same_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    text = declarations(contract(), Language.PYTHON).text
    spec = spec_from_loader("declared", loader=None)
    assert spec is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "declared", module)
    exec(text, module.__dict__)
    module.__dict__.update(Literal=_Literal, Never=Annotated[Any, AfterValidator(_refuse)])
    functions = [
        one
        for key, one in vars(module).items()
        if getattr(one, "__module__", "") == "declared" and key.islower() and callable(one)
    ]
    assert len(functions) == len(contract().tools)
    for (name, schema), function in zip(_schemas(), functions, strict=True):
        adapter = TypeAdapter[Any](get_type_hints(function, include_extras=True)["return"])
        is_valid = jsonschema_rs.validator_for(schema, validate_formats=False).is_valid
        is_nearly = jsonschema_rs.validator_for(relaxed(schema, python=True), validate_formats=False).is_valid
        for document in documents(name, schema, max(2, COUNT // 8)):
            try:
                adapter.validate_json(json.dumps(document), strict=True)
                is_accepted = True
            except ValidationError:
                is_accepted = False
            assert is_accepted or not is_valid(document), (name, document)
            assert not is_accepted or is_nearly(document), (name, document)


def _of_typescript(type: Type, *, is_open: bool) -> Type:
    """Return a type as TypeScript knows it: without limits, integers, and for new objects without unknown members."""
    match map_parts(type, lambda part: _of_typescript(part, is_open=is_open)):
        case Scalar(kind):
            return Scalar("number" if kind == "integer" else kind)
        case Array() as array if array.__class__ is Array:
            return Array(array.items)
        case Object(fields, extra) if extra is not None and is_implied(extra) and not is_open:
            return Object(fields, None)
        case Object(fields, extra) if extra is None and is_open:
            return Object(fields)
        case found:
            return found


@pytest.mark.full
def test_typescript_types_accept_the_same_documents(tmp_path: Path) -> None:
    types, roots = typed()
    views = [
        Protocol(
            "",
            "stateless",
            "",
            {
                name: Definition(name, _of_typescript(one.type, is_open=is_open))
                for name, one in types.definitions.items()
            },
            (),
        )
        for is_open in (True, False)
    ]
    text = declarations(contract(), Language.TYPESCRIPT).text.replace("declare const tools: {", "interface Tools {")
    text = text.replace("\n};", "\n}")
    lines, expected = [text, "type Of<Name extends keyof Tools> = Awaited<ReturnType<Tools[Name]>>;"], dict[int, bool]()
    first = "\n".join(lines).count("\n") + 2
    for name, schema in _schemas():
        for document in documents(name, schema, max(2, COUNT // 20)):
            verdicts = {fits(view, view.definitions[roots[name]].type, document) for view in views}
            if len(verdicts) == 1:  # unknown members are errors in new objects only
                expected[first + len(expected)] = verdicts.pop()
                lines.append(f"(): Of<{json.dumps(name)}> => ({json.dumps(document)});")
    (tmp_path / "documents.ts").write_text("\n".join(lines))
    done = execute(node(), TSC, "--noEmit", "--strict", "--target", "es2022", tmp_path / "documents.ts")
    refused = {int(line) for line in re.findall(r"documents\.ts\((\d+),", done.stdout)}
    assert min(refused) >= first
    wrong = [lines[line - first + 2][:300] for line, fitting in expected.items() if (line in refused) is fitting]
    assert not wrong, wrong[:5]


# --- within a budget ---------------------------------------------------------------------------------------------


def described(package: str) -> dict[str, Any]:
    """Return the tools of a server with descriptions of usual length."""
    return {
        "tools": [
            {
                **tool,
                "description": f"{tool['name'].replace('_', ' ').capitalize()}: this needs the access token of a user.",
            }
            for tool in SERVERS[package]
        ]
    }


def real_tokens(text: str) -> int:
    """Return the larger number of tokens of two tokenizers."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        tokenizers = import_module("bpe_openai")  # it reads its tables for a second
    return max(len(tokenizers.get_encoding(name).encode(text)) for name in ("o200k_base", "cl100k_base"))


@pytest.mark.full
@pytest.mark.parametrize("language", Language)
def test_77_tools_fit_into_4000_tokens_and_keep_their_types(language: Language) -> None:
    found = contract_of_valid(described("github-mcp-server"))
    whole = declarations(found, language)
    assert len(found.tools) == 77
    assert whole.by_name == []
    short = declarations(found, language, 4000)
    assert real_tokens(short.text) <= short.tokens <= 4000
    assert len(short.by_name) <= {Language.PYTHON: 30, Language.TYPESCRIPT: 17}[language]
    kept = [tool.name for tool in found.tools if tool.name not in short.by_name]
    assert short.by_name == [tool.name for tool in found.tools][len(kept) :]
    assert all(name in short.text for name in short.by_name)
    assert not declarations(found, language, 7000).by_name
    assert short == declarations(found, language, 4000)


def test_descriptions_become_shorter_before_arguments_get_a_shared_type() -> None:
    found = contract_of_valid(described("github-mcp-server"))
    sizes = [declarations(found, Language.TYPESCRIPT, budget) for budget in (9000, 6600, 5800)]
    assert ["access token of a user" in one.text for one in sizes] == [True, False, False]
    assert ["type OwnerRepo = " in one.text for one in sizes] == [False, False, True]


@pytest.mark.full
@pytest.mark.parametrize("language", Language)
def test_estimates_are_not_below_the_count_of_tokenizers_and_not_far_above(language: Language) -> None:
    for tools in SERVERS.values():
        found = declarations(contract_of_valid({"tools": tools}), language)
        assert real_tokens(found.text) <= found.tokens <= 1.35 * real_tokens(found.text)
    assert estimated_tokens("日本語 🌍") >= real_tokens("日本語 🌍")


def test_words_select_tools_the_best_first(tmp_path: Path) -> None:
    file = save(tmp_path / "github.json", described("github-mcp-server"))
    done = inside(
        "client", "--from", file, "--declarations", "typescript", "--select", "star repository", "--budget", 900, code=0
    )
    assert re.findall(r"^  (\w+)\(", done.stdout, re.MULTILINE)[:1] == ["star_repository"]
    assert re.fullmatch(r"\d+ tools by name only; about \d+ tokens", done.stderr.strip())
    inside("client", "--from", file, "--declarations", "python", "--out", tmp_path / "github.pyi", code=0)
    assert "async def list_tags(*, owner: str, " in (tmp_path / "github.pyi").read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--declarations", "python", "--select", "qqqq"], "no tool fits 'qqqq'"),
        (["--declarations", "python", "--budget", "5"], "the names of the tools exceed the budget"),
        (["--declarations", "python", "--check"], "--declarations has no --check, --language or --name"),
        (["--declarations", "python", "--out", "no/a.py"], "no/a.py: cannot be written (there is no such folder)"),
        (["--budget", "5", "--out", "a.py"], "--budget and --select are for declarations"),
        ([], "there is no module to write"),
    ],
)
def test_wrong_options_are_errors(options: list[str], problem: str, tmp_path: Path) -> None:
    file = save(tmp_path / "tools.json", {"tools": FORMS})
    assert problem in inside("client", "--from", file, *options, code=2).stderr


def test_declarations_replace_only_their_own_files(tmp_path: Path) -> None:
    file, out = save(tmp_path / "tools.json", {"tools": FORMS}), tmp_path / "tools.ts"
    out.write_text("const mine = 1;\n")
    command = ("client", "--from", file, "--declarations", "typescript", "--out", out)
    assert "choose another file, or add --force" in inside(*command, code=2).stderr
    assert out.read_text() == "const mine = 1;\n"
    inside(*command, "--force", code=0)
    written = out.read_text()
    inside(*command, code=0)
    assert out.read_text() == written


@pytest.mark.parametrize("language", Language)
def test_comments_are_without_sections_and_limits_that_say_nothing(language: Language) -> None:
    whole = {"type": "integer", "minimum": 1 - 2**53, "maximum": 2**53 - 1}
    small = {"type": "integer", "exclusiveMinimum": 0, "maximum": 2**53 - 1}
    schema = {"type": "object", "properties": {"a": whole, "b": small}}
    tools = [{"name": "add", "description": "Add\nnumbers.\n \nArgs:\n  a: A.", "inputSchema": schema}]
    text = declarations(contract_of_valid({"tools": tools}), language).text
    assert "Add numbers." in text
    assert "exclusiveMinimum 0" in text
    assert not re.search("Args|[0-9]{4}", text)


def test_names_are_exact_in_typescript_and_those_of_the_typed_client_in_python() -> None:
    odd = {
        "type": "object",
        "properties": {"a-b": {"type": "string"}, "class": {"type": "integer", "minimum": 1}},
        "required": ["a-b"],
    }
    tools = [{"name": name, "inputSchema": odd} for name in ("get-sum", "get_sum", "class")]
    tools.append(
        {
            "name": "none",
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object", "properties": {"next": {"$ref": "#"}}},
        }
    )
    found = contract_of_valid({"tools": tools})
    typescript, python = (declarations(found, language).text for language in (Language.TYPESCRIPT, Language.PYTHON))
    for line in (
        '  "get-sum"(args: { "a-b": string; class?: Integer /** minimum 1 */ }): Content;',
        '  get_sum(args: { "a-b": string; class?: Integer /** minimum 1 */ }): Content;',
        "type NoneOutput = { next?: NoneOutput };",
        "  none(): Promise<NoneOutput>;",
    ):
        assert line in typescript
    for line in (
        '    "class": "NotRequired[int]",  # minimum 1',
        "async def get_sum(args: GetSumInput) -> Content:",
        "async def get_sum_2(args: GetSumInput) -> Content:",
        "async def class_(args: GetSumInput) -> Content:",
        "async def none() -> NoneOutput:",
    ):
        assert line in python


def test_results_that_tools_share_are_one_type() -> None:
    ticket = {"title": "Ticket", "type": "object", "properties": {"id": {"type": "string"}}}
    many = {"type": "object", "properties": {"all": {"type": "array", "items": {"$ref": "#/$defs/Ticket"}}}}
    outputs = {"one": ticket, "two": ticket, "list": {**many, "$defs": {"Ticket": ticket}}}
    tools = [{"name": name, "inputSchema": {"type": "object"}, "outputSchema": one} for name, one in outputs.items()]
    text = declarations(contract_of_valid({"tools": tools}), Language.TYPESCRIPT).text
    assert [line for line in text.splitlines() if "Ticket" in line] == [
        "type Ticket = { id?: string };",
        "  one(): Promise<Ticket>;",
        "  two(): Promise<Ticket>;",
        "  list(): Promise<{ all?: Ticket[] }>;",
    ]


def test_python_has_classes_where_names_of_members_allow_it() -> None:
    text, whole = {"type": "string"}, {"type": "integer"}
    given = {"plain": {"a": text}, "shadow": {"str": whole, "a": text}, "odd": {"a-b": text}, "private": {"__a": text}}
    tools: list[dict[str, Any]] = [
        {
            "name": name,
            "inputSchema": {"type": "object", "properties": {"\ufb01": whole}},  # a ligature, which Python spells fi
            "outputSchema": {"type": "object", "properties": members},
        }
        for name, members in given.items()
    ]
    union = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    tools.append({"name": "union", "inputSchema": {"type": "object", "properties": {"a": text}, **union}})
    found = declarations(contract_of_valid({"tools": tools}), Language.PYTHON).text
    assert "class PlainOutput(TypedDict):\n    a: NotRequired[str]\n" in found
    assert [f"{name}Output = TypedDict(" in found for name in ("Shadow", "Odd", "Private")] == [True] * 3
    assert "async def plain(args: PlainInput) -> PlainOutput:\n    ...\n" in found
    assert "async def union(args: UnionInputOption | UnionInputOption2) -> Content:\n    ...\n" in found


def test_definitions_that_tools_share_are_one_type() -> None:
    definitions = {"$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}}
    taken = {"type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}}, **definitions}
    given = {"type": "object", "$ref": "#/$defs/Node", **definitions}
    tools = [{"name": name, "inputSchema": taken, "outputSchema": given} for name in ("first", "second")]
    text = declarations(contract_of_valid({"tools": tools}), Language.TYPESCRIPT).text
    assert [line for line in text.splitlines() if "Node" in line] == [
        "type Node = { next?: Node };",
        "  first(args?: { node?: Node }): Promise<Node>;",
        "  second(args?: { node?: Node }): Promise<Node>;",
    ]


@pytest.mark.parametrize(("language", "budget"), [(Language.PYTHON, 260), (Language.TYPESCRIPT, 160)])
def test_limits_of_arguments_stand_at_their_tool_if_arguments_are_shared(language: Language, budget: int) -> None:
    place = {name: {"type": "string"} for name in ("continent", "country", "city", "street")}
    schema = {"type": "object", "properties": place}
    limited = {**schema, "minProperties": 2}
    tools = [{"name": f"t{number}", "inputSchema": limited if number == 3 else schema} for number in range(6)]
    lines = declarations(contract_of_valid({"tools": tools}), language, budget).text.splitlines()
    assert any("ContinentCountry" in line for line in lines)
    assert [line.split("(")[0].split()[-1] for line in lines if "minProperties 2" in line] == ["t3"]

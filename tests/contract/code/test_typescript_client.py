"""Typed clients in TypeScript: compiled by strict compilers, run by node against real servers, and bundled."""

from __future__ import annotations

import json
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.app import UriTemplate
from mcp_bindgen.contract.code.typed_client import client_files
from mcp_bindgen.contract.code.typescript_client import stub
from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.ir import build
from mcp_bindgen.spec import Store
from tests.contract.code.test_contract_package import NEWEST, WHOLE, write
from tests.contract.code.test_real_servers import REAL, meet
from tests.harness import hostile_contract as hostile
from tests.harness.commands import inside, save
from tests.harness.effort import examples
from tests.harness.json_instances import Instances, odd_names
from tests.harness.shared import filled
from tests.harness.small_schemas import record
from tests.interop.processes import MODULES, needed, node

PACKAGES = Path(__file__).parents[2] / "typescript" / "node_modules"
_STRICT = """
    exactOptionalPropertyTypes noImplicitOverride noUncheckedIndexedAccess verbatimModuleSyntax isolatedModules
    erasableSyntaxOnly noImplicitReturns
"""
TEXT, NUMBER = {"type": "string"}, {"type": "number"}
COMPILER = {"target": "ES2022", "module": "NodeNext", "types": ["node"], "outDir": "dist", "strict": True}
COMPILER |= dict.fromkeys(_STRICT.split(), True)
CODE = [
    "*/ globalThis.hacked = 1; /*",
    "`); globalThis.hacked = 1; (`",
    "${globalThis.hacked = 1}",
    '"); globalThis.hacked = 1; ("',
    "'); globalThis.hacked = 1; ('",
    "\n*/\nglobalThis.hacked = 1;\n/*",
    "\u2028globalThis.hacked = 1;\u2029",
    "\r\nglobalThis.hacked = 1;//",
    "\\",
    "</script><script>globalThis.hacked = 1</script>",
    "<!-- -->",
    *["@ts-expect-error", "@ts-ignore", "@__NO_SIDE_EFFECTS__", "#__NO_SIDE_EFFECTS__", "@__PURE__"],
    "# sourceMappingURL=data:application/json,{}",
    *["__proto__", "constructor", "then", "default", "Promise", "v", "check$", "$1", "undefined", "globalThis"],
]
"""Code, directives of compilers and bundlers, and names with a meaning in JavaScript."""

EVERYTHING = r"""
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import * as server from "./everything.js";
import { ToolError, ValidationError } from "./mcp-calls.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: command!, args, stderr: "ignore" }));

const [echoed] = await server.echo(client, { message: "Grüße 🌍" });
assert.equal(echoed?.type === "text" && echoed.text, "Echo: Grüße 🌍");
const weather = await server.getStructuredContent(client, { location: "Chicago" });
const humidity: number = weather.humidity;
assert.deepEqual([weather.temperature, humidity], [36, 82]);
assert.equal((await server.getTinyImage(client)).length, 3);
assert.equal((await server.getResourceLinks(client)).length, 1 + 3);
assert.equal((await server.getResourceLinks(client, { count: 2 })).length, 1 + 2);

// @ts-expect-error: the city is missing
await assert.rejects(server.getStructuredContent(client, {}), ValidationError);
// @ts-expect-error: there is no such city
await assert.rejects(server.getStructuredContent(client, { location: "Oslo" }), /location: must be one of/);
await assert.rejects(server.getSum(client, { a: Number.NaN, b: 1 }), /GetSumInput\/a: must be a number/);
const missing = server.getResourceReference(client, { resourceType: "Text", resourceId: -1 });
await assert.rejects(missing, (error: unknown) => {
  assert(error instanceof ToolError && error.result.isError);
  return /resource/i.test(error.message);
});

const { messages } = await server.promptArgsPrompt(client, { city: "Oslo", state: "Norway" });
assert.deepEqual(messages[0]?.content, { type: "text", text: "What's weather in Oslo, Norway?" });
assert.equal((await server.promptSimplePrompt(client)).messages[0]?.role, "user");
const { contents } = await server.readDynamicTextResource(client, { resourceId: "7" });
assert(contents[0] && "text" in contents[0] && contents[0].text.startsWith("Resource 7:"));
assert.equal((await server.readFeaturesMd(client, { timeout: 5000 })).contents.length, 1);
await client.close();
"""
"""Program that calls an npm server."""

CLOCK = r"""
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { convertTime, getCurrentTime, type ConvertTimeOutput } from "./clock.js";
import { ToolError } from "./mcp-calls.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
await client.connect(new StdioClientTransport({ command: command!, args, stderr: "ignore" }));
assert.equal((await getCurrentTime(client, { timezone: "Asia/Tokyo" })).is_dst, false);
const asked = { source_timezone: "Asia/Tokyo", time: "12:30", target_timezone: "Asia/Kolkata" };
const found: ConvertTimeOutput = await convertTime(client, asked);
assert.equal(found.time_difference, "-3.5h");
await assert.rejects(getCurrentTime(client, { timezone: "Nowhere/Land" }), ToolError);
const fake = { callTool: async () => ({ content: [], structuredContent: { timezone: 1 } }) };
await assert.rejects(getCurrentTime(fake as never, asked as never), /timezone: is missing/);
await assert.rejects(getCurrentTime(fake as never, { timezone: "UTC" }), /TimeResult\/timezone: must be a string/);
await client.close();
"""
"""Program that calls a server of PyPI, in a stateless revision."""

NAMES = ("constructor", "toString", "__proto__", "x")


def modules(document: dict[str, Any], name: str) -> dict[str, str]:
    """Return the files of a client of a contract."""
    return client_files(contract_of(document), build(Store().effective(NEWEST)), "", f"{name}.ts", "a test")


RARE: dict[str, Any] = {
    "contains": record(a={"type": "array", "contains": {"type": "integer", "minimum": 3}, "maxContains": 2}),
    "unevaluated": {**record(a=TEXT), "allOf": [record(b=NUMBER)], "unevaluatedProperties": False},
    "dependent": {**record(a=TEXT, b=NUMBER), "dependentSchemas": {"a": record("b")}, "minProperties": 1},
    "unique": record(a={"type": "array", "items": NUMBER, "uniqueItems": True}),
    "steps": record(a={"type": "number", "multipleOf": 0.01, "exclusiveMaximum": 100}),
    "cents": record(a={"enum": [0.1, 0.2, "x", None, True, [1, 2], {"b": 1}]}),
    "pairs": record(a={"type": "array", "prefixItems": [TEXT, NUMBER], "minItems": 1, "items": {"type": "boolean"}}),
    "dynamic": {**record(a={"$dynamicRef": "#node"}), "$dynamicAnchor": "node", "additionalProperties": False},
    "format": record(
        a={"type": "string", "format": "email"}, b={"type": "string", "format": "email", "not": {"const": ""}}
    ),
    "complex": {
        "type": "object",
        "allOf": [
            {"anyOf": [record(f"a{n}", **{f"a{n}": TEXT}), record(f"b{n}", **{f"b{n}": NUMBER})]} for n in range(24)
        ],
    },
    "twice": record(
        a={"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "b$"}, {"maxLength": 3}, {"maxLength": 4}]},
        b={"type": "integer", "allOf": [{"multipleOf": 2}, {"multipleOf": 3}, {"minimum": 1}]},
        c={"minimum": 3, "minLength": 2, "minItems": 1, "pattern": "a"},
        d={"type": "array", "allOf": [{"items": {"maximum": 3}}, {"items": NUMBER, "maxItems": 2}]},
    ),
    "dash": record(a={"type": "string", "pattern": r"^a\-b$"}),
}
"""Schemas with keywords that types do not state, by the name of a tool."""


def evil() -> dict[str, Any]:
    """Return a contract with code in each text and name."""
    tools: list[dict[str, Any]] = [{"name": text, "inputSchema": {"type": "object"}} for text in CODE]
    for text in CODE:
        words = {"title": text, "description": text}
        schema = {**record(text, **{text: {"const": text, **words}}), **words, "dependentRequired": {text: []}}
        output = record(text, **{text: {"enum": [text, "other"], "default": text}})
        tools.append({"name": f"tool {text}", **words, "inputSchema": schema, "outputSchema": output})
    arguments = [{"name": text, "description": text} for text in CODE]
    return {
        "serverInfo": {"name": CODE[0], "title": CODE[5], "version": "1"},
        "tools": tools,
        "prompts": [{"name": text, "description": text, "arguments": arguments} for text in CODE],
        "resources": [
            {"uri": f"memo://{number}", "name": text, "description": text} for number, text in enumerate(CODE)
        ],
    }


def contracts() -> dict[str, dict[str, Any]]:
    """Return module -> contract, with schemas of all forms and with the tools of real servers."""
    files = (hostile.SCHEMAS.with_name(f"{name}.json") for name in ("hostile_contract", "tool_forms", "real_tools"))
    schemas, more, servers = (json.loads(file.read_text("utf-8")) for file in files)
    inputs = {**schemas["inputs"], **RARE}
    outputs = [{"name": f"gives-{name}", "outputSchema": one} for name, one in {**schemas["outputs"], **RARE}.items()]
    tools = [*more["tools"], *({"name": name, "inputSchema": one} for name, one in inputs.items())]
    tools += [{"inputSchema": {"type": "object"}, **one} for one in outputs]
    return {"forms": {"tools": tools}, **{f"real{n}": {"tools": one} for n, one in enumerate(servers.values())}}


def fill(exported: dict[str, Path], folder: Path) -> None:
    """Write and compile the clients of hostile contracts and of real servers, with the programs that use the latter."""
    write(folder, modules(hostile.contract(folder / "marker"), "hostile"))
    write(folder, modules(evil(), "evil"))
    for name, document in contracts().items():
        write(folder, modules(document, name))
    for name, contract in exported.items():
        inside("client", "--from", contract, "--out", folder / f"{name}.ts", code=0)
    write(folder, {"use_everything.ts": EVERYTHING, "use_clock.ts": CLOCK})
    save(folder / "package.json", {"type": "module"})
    save(folder / "tsconfig.json", {"compilerOptions": COMPILER, "include": ["*.ts"]})
    (folder / "node_modules").symlink_to(PACKAGES)
    compiler = [node(), str(PACKAGES / "typescript" / "bin" / "tsc"), "-p", str(folder)]
    done = subprocess.run(compiler, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the clients; skip the test without the packages of npm (in CI: fail)."""
    needed()
    needed(modules=PACKAGES)
    exported = {real.name: meet(tmp_path_factory, real).contract for real in REAL}
    return filled(tmp_path_factory, partial(fill, exported), "typescript-clients")


def run(folder: Path, program: str, *arguments: object, stdin: str = "") -> Any:
    """Run a program beside the compiled clients, and return the JSON that it prints."""
    command = [node(), "--input-type=module", "-e", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=stdin, cwd=folder / "dist")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.full
@pytest.mark.parametrize("name", ["everything", "clock"])
def test_calls_of_real_servers_are_typed_and_checked(
    name: str, made: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = meet(tmp_path_factory, next(real for real in REAL if real.name == name))
    command = ["timeout", "60", node(), str(made / "dist" / f"use_{name}.js"), *place.command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_texts_of_a_server_do_not_become_code(made: Path) -> None:
    program = """
        const both = [await import("./evil.js"), await import("./hostile.js")];
        console.log(JSON.stringify([...both.map((one) => Object.keys(one).length), globalThis.hacked ?? null]));
    """
    evils, hostiles, hacked = run(made, program)
    assert (hacked, (made / "marker").exists()) == (None, False)
    assert evils >= 4 * len(CODE)
    assert hostiles > 400
    text = (made / "dist" / "evil.js").read_text("utf-8")
    assert "</script" not in text
    comments = "".join(re.findall(r"/\*\*.*?\*/", text, re.S))
    assert re.findall(r"[@#]\s*(?:__|ts-|source)", comments) == []


@pytest.mark.full
def test_bundlers_leave_other_tools_out_and_keep_calls_without_a_use_of_their_result(made: Path) -> None:
    functions = re.findall(r"^export async function (\w+)", (made / "evil.ts").read_text("utf-8"), re.M)
    programs = {
        "one": 'import { getSum } from "./everything.js"; globalThis.sum = getSum;',
        "calls": 'import * as evil from "./evil.js";'
        + "".join(f"await evil.{name}(globalThis.client, globalThis.args);" for name in functions),
    }
    write(made / "dist", {f"bundled_{name}.js": text for name, text in programs.items()})
    bundler = (MODULES / "rolldown" / "dist" / "index.mjs").as_uri()
    program = f"""
        import {{ rolldown }} from {json.dumps(bundler)};
        const texts = [];
        for (const name of ["one", "calls"]) {{
          const bundle = await rolldown({{ input: `./bundled_${{name}}.js`, external: [/^@modelcontextprotocol/] }});
          texts.push((await bundle.generate({{ format: "es" }})).output[0].code);
        }}
        console.log(JSON.stringify(texts));
    """
    one, calls = run(made, program)
    assert '"get-sum"' in one
    assert not [found for found in ("get-tiny-image", "EchoInput", "expand", "GetStructuredContent") if found in one]
    assert calls.count("globalThis.client") == len(functions) == 4 * len(CODE)


def is_finite(value: Any) -> bool:
    """Return True if a document has no numbers that differ in JavaScript: integers beyond 2^53, and infinite ones."""
    if isinstance(value, dict | list):
        return all(map(is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or abs(value) < 2**53


@pytest.mark.full
def test_validators_agree_with_the_json_schema(made: Path) -> None:
    documents: list[tuple[str, str, str, bool]] = []
    for module, document in contracts().items():
        for tool in contract_of(document).tools:
            name = tool.output or tool.arguments
            near = Instances(tool.raw.get("outputSchema", tool.raw["inputSchema"]), tool.name, names=odd_names(*NAMES))
            values = filter(is_finite, map(near.sample, range(examples(70, 400))))
            documents += [(module, name, json.dumps(value), near.validator().is_valid(value)) for value in values]
    program = """
        import { text } from "node:stream/consumers";
        const verdicts = [];
        for (const [module, name, value] of JSON.parse(await text(process.stdin))) {
          verdicts.push((await import(`./${module}.js`))[name].is(JSON.parse(value)));
        }
        console.log(JSON.stringify(verdicts));
    """
    judged = zip(documents, run(made, program, stdin=json.dumps(documents)), strict=True)
    wrong = [one for one, verdict in judged if verdict != one[3]]
    assert len({valid for *_, valid in documents}) == 2
    assert not wrong, f"{len(wrong)} of {len(documents)}: {wrong[:5]}"


@pytest.mark.full
def test_a_schema_that_the_sdk_cannot_read_is_left_to_the_server(made: Path) -> None:
    program = """
        const { also, any } = await import("./mcp-calls.js");
        const unique = { uniqueItems: true };
        const checks = [unique, { ...unique, pattern: "(" }].map((schema) => also(any, JSON.stringify(schema)));
        console.log(JSON.stringify(checks.map((check) => check([1, 1]) === undefined)));
    """
    assert run(made, program) == [False, True]


@pytest.mark.full
def test_uris_are_expanded_like_in_python(made: Path) -> None:
    templates = [
        *[
            "a://{x}",
            "a://{x}/{y}",
            "a://{x,y}",
            "a://{+x}",
            "a://b{#x,y}",
            "a://b{.x,y}",
            "a://b{/x,y}",
            "a://b{;x,y}",
        ],
        *[
            "a://b{?x,y}",
            "a://b?c=1{&x,y}",
            "a://{x:3}",
            "a://{+y:2}",
            "a://b{/z*}",
            "a://b{?z*}",
            "a://b{;z*}",
            "a://b[é]%41{x}",
        ],
    ]
    values: list[dict[str, Any]] = [
        {"x": "a b/c!'()*[]%41%é🌍", "y": "", "z": ["1", "a/b"]},
        {"x": "100%", "z": {"k y": "v&w", "l": ""}},
        {"y": "{x}?#", "constructor": "no"},
    ]
    cases = [(template, value) for template in templates for value in values]
    cases = [one for one in cases if "z*" not in one[0] or "?" in one[0] or not isinstance(one[1].get("z"), dict)]
    program = """
        const { expand } = await import("./mcp-calls.js");
        console.log(JSON.stringify(JSON.parse(process.argv[1]).map(([template, values]) => expand(template, values))));
    """
    assert run(made, program, json.dumps(cases)) == [UriTemplate(one).expand(value) for one, value in cases]


def test_names_of_functions() -> None:
    found = {name: stub(name) for name in ("get-sum", "getURL", "class", "then", "1st", "🌦", "天気", "Promise", "v")}
    assert [*found.values()] == ["getSum", "getURL", "class_", "then_", "tool1st", "tool", "天気", "promise", "v_"]
    assert stub("simple-prompt", "prompt") == "promptSimplePrompt"


def test_check_finds_drift_edits_and_broken_calls(tmp_path: Path) -> None:
    contract, out = save(tmp_path / "weather.json", WHOLE), tmp_path / "weather.ts"
    done = inside("client", "--from", contract, "--out", out, "--language", "typescript", code=0)
    assert "weather.ts: 3 tools" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("mcp-calls.ts", "weather.json", "weather.ts", "weather.ts.contract.json")
    ]
    inside("client", "--from", contract, "--out", out, "--check", code=0)
    changed = json.loads(json.dumps(WHOLE))
    changed["tools"][0]["inputSchema"]["required"].append("days")
    done = inside("client", "--from", save(tmp_path / "next.json", changed), "--out", out, "--check", code=1)
    assert "argument days is required now" in " ".join(done.stdout.split())
    for name in ("mcp-calls.ts", "weather.ts"):
        text = (tmp_path / name).read_text("utf-8")
        (tmp_path / name).write_text(f"{text}// mine\n", "utf-8")
        done = inside("client", "--from", contract, "--out", out, "--check", code=1)
        assert f"{name} was edited" in done.stdout
        (tmp_path / name).write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("out", "more", "problem"),
    [
        (
            "mcp-calls.ts",
            (),
            "this is not the name of a module; give --out a file like everything.py, or everything.ts",
        ),
        ("weather.js", (), "this is not the name of a module"),
        ("weather.py", ("--language", "typescript"), "this is not the name of a module"),
        ("weather.ts", ("--language", "python"), "this is not the name of a module"),
        ("weather.ts", ("--name", "Weather"), "--name names a class, which clients in TypeScript do not have"),
    ],
)
def test_wrong_options_are_refused(out: str, more: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    contract = save(tmp_path / "weather.json", WHOLE)
    done = inside("client", "--from", contract, "--out", tmp_path / out, *more, code=2)
    assert problem in " ".join(done.stderr.split())

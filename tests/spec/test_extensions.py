"""Schemas of extensions: read as published, pinned, and combined with core, which stays unchanged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.diff.extensions import timelines
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.model import Const, Object, Ref, Union
from mcp_bindgen.ir.schema import document_of
from mcp_bindgen.ir.status import extension_reports
from mcp_bindgen.spec import BadInput, ExtensionSchema, Pin, Schema, Store, extend, patches, read_extension
from mcp_bindgen.spec.idioms import lifted, plain
from mcp_bindgen.spec.keywords import DIALECT, rebuild
from mcp_bindgen.spec.semantics import read_extension_facts
from tests.harness.commands import UPSTREAM, inside, save, shuffled
from tests.harness.effort import examples
from tests.harness.json_instances import JSON, Instances, damaged, of_definitions
from tests.harness.small_schemas import record

STORE = Store()
CORE = STORE.effective("2026-07-28")
TASKS, APPS = "io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui"
JOBS = "com.example/jobs"
PUBLISHED = {f"{TASKS}@2026-07-28": "tasks-2026-07-28", f"{TASKS}@draft": "tasks-draft", f"{APPS}@2026-01-26": "apps"}
"""Versions of extensions -> folders of the files that upstream publishes."""

STRING: Schema = {"type": "string"}
SAFE = 2**53 - 1

each_pin = pytest.mark.parametrize("pin", STORE.extension_pins, ids=lambda pin: pin.label)


@cache
def core() -> Protocol:
    return build(CORE)


@cache
def protocol(name: str) -> Protocol:
    return build(extend(CORE, STORE.extension_schema(name, CORE)))


def wires(whole: Protocol, name: str) -> dict[str, Any]:
    """Return wire name -> default for the fields of a definition."""
    type = whole.definitions[name].type
    assert isinstance(type, Object)
    return {field.wire: field.default for field in type.fields}


# --- pinned extensions --------------------------------------------------------------------------------------------


@pytest.mark.full
@each_pin
def test_structures_match_their_pins_and_have_no_problems(pin: Pin) -> None:
    assert STORE.is_pinned(pin)
    (report,) = extension_reports(STORE, pin.label)
    assert report.sound
    assert not report.problems
    assert report.definitions > 0


@pytest.mark.skipif(not (UPSTREAM / "extensions").is_dir(), reason="the upstream files are not on this machine")
@pytest.mark.parametrize("name", PUBLISHED)
def test_structures_equal_the_published_files(name: str) -> None:
    file = UPSTREAM / "extensions" / PUBLISHED[name] / "schema.json"
    assert STORE.verify(name, file) == (True, [])
    read = STORE.extension_schema(name, CORE)
    assert (read.copies, read.context.diagnostics) == ((), ())


@pytest.mark.full
@each_pin
def test_an_extension_does_not_change_core(pin: Pin) -> None:
    whole = protocol(pin.label)
    assert {name: one for name, one in whole.definitions.items() if not one.origin} == core().definitions
    assert tuple(method for method in whole.methods if not method.origin) == core().methods
    assert tuple(error for error in whole.errors if not error.origin) == core().errors
    assert (whole.facts, whole.capabilities, whole.digest) == (core().facts, core().capabilities, core().digest)
    assert {one.origin for one in whole.definitions.values()} == {"", pin.id}


def test_the_tasks_extension_adds_its_methods_and_definitions() -> None:
    """Each assertion covers a mistake of reading the extension as a part of core."""
    whole = protocol("tasks")
    (tasks,) = whole.extensions
    methods = {method.name: method for method in whole.methods if method.origin}
    assert methods.keys() == {"tasks/get", "tasks/update", "tasks/cancel", "notifications/tasks"}
    assert all(method.named_by == "taskId" for method in methods.values() if method.kind == "request")
    listened = methods["notifications/tasks"]
    assert listened.filter is not None
    assert (listened.filter.member, listened.filter.compares, listened.filter.by) == ("taskIds", "taskId", "equal")
    assert tasks.alternatives == (("tools/call", ("CreateTaskResult",)),)
    assert all(Ref("CreateTaskResult") not in method.alternatives for method in whole.methods)
    for name in ("GetTaskRequestParams", "UpdateTaskRequestParams", "CancelTaskRequestParams"):
        assert {"_meta", "taskId"} <= wires(whole, name).keys()
    assert wires(whole, "CreateTaskResult") | {"ttlMs": None, "resultType": "task"} == wires(whole, "CreateTaskResult")
    assert wires(whole, "UpdateTaskResult")["resultType"] == "complete"
    state = whole.definitions["GetTaskResult"].type
    assert isinstance(state, Union)
    assert (state.tag, len(state.members)) == ("status", 5)
    assert state.members[0] == Ref("GetTaskResultWorkingTask")
    states = ("working", "input_required", "completed", "failed", "cancelled")
    assert whole.definitions["TaskStatus"].type == Const(states)
    words = {name: one.doc for name, one in whole.definitions.items()}
    assert words["CreateTaskResult"].startswith("Result of a request that runs as a task")


def test_the_apps_extension_has_only_definitions_for_servers_and_clients() -> None:
    whole = protocol("apps")
    own = {name for name, one in whole.definitions.items() if one.origin and not one.inline}
    assert {"McpUiToolMeta", "McpUiResourceMeta", "McpUiClientCapabilities", "McpUiResourceCsp"} <= own
    assert not any(name.endswith(("Request", "Notification")) for name in own)
    assert {(key.key, key.type) for key in whole.extensions[0].meta_keys} >= {("ui", Ref("McpUiToolMeta"))}


# --- files of other tools -----------------------------------------------------------------------------------------


def as_zod_writes(structure: Schema, core: dict[str, Schema]) -> Schema:
    """Return a schema file as zod-based tools publish it: with all definitions of core, and inlined types."""
    own: dict[str, Schema] = structure["$defs"]
    forms = [json.dumps(schema, sort_keys=True) for schema in own.values()]

    def told(schema: Schema, _: str = "") -> Schema:
        name = schema.get("$ref", "").rpartition("/")[2]
        once = name in own and forms.count(json.dumps(own[name], sort_keys=True)) == 1
        once = once and name not in _referred(own[name])
        if once and (len(own[name].get("properties", ())) > 1 or len(own[name].get("anyOf", ())) > 1):
            schema = {"description": f"{name}, here.", **own[name]}
        schema = rebuild(schema, told)
        if len(schema.get("enum", ())) > 1:
            values = [{"type": "string", "const": value} for value in schema["enum"]]
            schema = {"description": "One of a few.", "anyOf": values}
        if schema.get("type") == "integer":
            schema = {**schema, "minimum": -SAFE, "maximum": SAFE}
        if schema.get("type") == "object" and "properties" not in schema:
            schema = {**schema, "propertyNames": STRING}
            if schema.get("additionalProperties") is False:
                schema["additionalProperties"] = {"not": {}}
        return schema

    definitions = {name: {"$schema": DIALECT, **told(schema)} for name, schema in own.items()}
    needed, pending = dict(definitions), list(definitions.values())
    while pending:
        for name in _referred(pending.pop()):
            if name not in needed:
                needed[name] = core[name]
                pending.append(core[name])
    return {"$schema": DIALECT, "$id": "https://example.com/x", "$defs": needed}


def _referred(node: Any) -> Iterator[str]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node if isinstance(node, list) else ()):
        if key == "$ref" and isinstance(value, str):
            yield value.rpartition("/")[2]
        yield from _referred(value)


@pytest.mark.full
@pytest.mark.parametrize("name", ["tasks@2026-07-28", "apps"])
@pytest.mark.parametrize("patched", [True, False])
def test_inlined_types_and_copies_of_core_are_folded(tmp_path: Path, name: str, patched: bool) -> None:
    """Copies of core count as core, with or without our corrections; descriptions may differ."""
    definitions = dict(CORE.definitions) if patched else STORE.structure("2026-07-28")["$defs"]
    document = as_zod_writes(STORE.structure(STORE.extension(name)), definitions)
    assert STORE.verify(name, save(tmp_path / "schema.json", shuffled(document, 7))) == (False, [])


OPEN: Schema = {"additionalProperties": {}}
CLOSED: Schema = {"additionalProperties": False}
NOTHING: Schema = {"not": {}}
IDIOMS: list[tuple[Schema, Schema]] = [
    ({"$schema": DIALECT, **STRING}, STRING),
    ({"type": "object", "propertyNames": STRING, **OPEN}, {"type": "object", **OPEN}),
    ({"type": "object", "propertyNames": {}}, {"type": "object"}),
    ({"anyOf": [{**STRING, "const": "a"}, {"const": "b"}]}, {**STRING, "enum": ["a", "b"]}),
    ({"anyOf": [{"const": "a"}, {"const": 1}]}, {"anyOf": [{"const": "a"}, {"const": 1}]}),
    (
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": STRING, "required": ["a"]},
        {**record("a", a=STRING, b=STRING), **CLOSED},
    ),
    (
        {**record(a=STRING, c={}), "propertyNames": {"anyOf": [{"const": "a"}, {"const": "x"}]}},
        {**record(a=STRING, x=True), **CLOSED},
    ),
    ({"type": "object", "additionalProperties": NOTHING}, {"type": "object", **CLOSED}),
    ({"type": "array", "items": NOTHING}, {"type": "array", "items": False}),
    ({**record(a=NOTHING, b=STRING), **CLOSED}, {**record(b=STRING), **CLOSED}),
    (record(a=NOTHING), record(a=False)),
    ({**record("a", a=NOTHING), **CLOSED}, {**record("a", a=False), **CLOSED}),
    ({"type": "string", "propertyNames": {"maxLength": 1}}, {"type": "string", "propertyNames": {"maxLength": 1}}),
    ({"type": "integer", "minimum": 0, "maximum": SAFE}, {"type": "integer", "minimum": 0, "maximum": SAFE}),
]


def test_idioms_of_schema_generators_are_simplified() -> None:
    for written, read in IDIOMS:
        assert plain(written) == read
        assert plain(read) == read


MEMBERS = st.dictionaries(st.sampled_from(["a", "b", "c", "x"]), JSON, max_size=3)


@given(value=MEMBERS | st.lists(JSON, max_size=2) | JSON)
def test_simplified_idioms_accept_the_same_values(value: Any) -> None:
    for written, read in IDIOMS:
        assert jsonschema_rs.is_valid(written, value) is jsonschema_rs.is_valid(read, value)


def test_an_integer_with_the_javascript_safe_range_is_a_plain_integer() -> None:
    assert plain({"type": "integer", "minimum": -SAFE, "maximum": SAFE}) == {"type": "integer"}


def test_nested_definitions_are_lifted_to_the_top_level() -> None:
    free = {"anyOf": [STRING, {"type": "array", "items": {"$ref": "#/$defs/__schema0"}}]}
    nested = {"properties": {"x": {"$ref": "#/$defs/__schema0"}}, "$defs": {"__schema0": free}}
    other = {"properties": {"y": {"$ref": "#/$defs/Other/$defs/__schema0"}}, "$defs": {"__schema0": free}}
    result, places = lifted({"One": nested, "Other": other, "OneSchema0": STRING})
    moved = {"$ref": "#/$defs/OneSchema02"}
    assert result["One"] == {"properties": {"x": moved}}
    assert result["Other"] == {"properties": {"y": moved}}
    assert result["OneSchema02"] == {"anyOf": [STRING, {"type": "array", "items": moved}]}
    assert places == {"OneSchema02": "/$defs/One/$defs/__schema0"}


# --- an independent oracle ----------------------------------------------------------------------------------------


Judges = tuple[str, jsonschema_rs.Validator, jsonschema_rs.Validator, bool]


def validator(document: Schema, name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({**document, "$ref": f"#/$defs/{name}"}, validate_formats=False)


@cache
def judges(name: str) -> tuple[Instances, list[Judges]]:
    """Return values of a protocol's types, and two validators (structure, types) for each definition of an extension.

    The flag tells whether both must agree: messages and params also need `_meta`, so their types are narrower.
    """
    whole = protocol(name)
    pin = STORE.extension(name)
    known = patches.load(STORE.root / pin.path / "patches.toml")
    whole_structure = {"$defs": {**CORE.definitions, **STORE.structure(pin)["$defs"]}}
    structure, _ = patches.apply(whole_structure, known, pin.name)
    types = document_of(whole)
    messages = {method.definition for method in whole.methods}
    params = {method.params.name for method in whole.methods if isinstance(method.params, Ref)}
    own = [one for one in structure["$defs"] if whole.definitions.get(one) and whole.definitions[one].origin]
    found = [(one, validator(structure, one), validator(types, one), one not in messages | params) for one in own]
    return of_definitions(types["$defs"]), found


@pytest.mark.full
@pytest.mark.parametrize("name", ["tasks", "apps"])
@settings(max_examples=examples(20, 150))
@given(data=st.data())
def test_types_and_structure_agree_on_valid_documents(name: str, data: st.DataObject) -> None:
    instances, every = judges(name)
    one, structure, types, alike = data.draw(st.sampled_from(every))
    value = data.draw(instances.strategy_of(one))
    assert types.is_valid(value)
    assert structure.is_valid(value)
    other = data.draw(damaged(st.just(value)))
    assert structure.is_valid(other) or not types.is_valid(other)
    assert structure.is_valid(other) is types.is_valid(other) or not alike


# --- extensions of users ------------------------------------------------------------------------------------------

FACTS = f"""
[extension]
id = "{JOBS}"
core = ["2026-07-28"]
"""


def jobs(folder: Path, own: Schema, facts: str = "", **options: Any) -> ExtensionSchema:
    folder.mkdir(exist_ok=True)
    stated = folder / "jobs.toml"
    stated.write_text(FACTS + facts, "utf-8")
    file = save(folder / "jobs.json", {"$schema": DIALECT, "$defs": own})
    return read_extension(file, stated, CORE, errata=STORE.errata, **options)


def test_a_copy_that_differs_from_core_is_reported_and_not_used(tmp_path: Path) -> None:
    icon = {**CORE.definitions["Icon"], "properties": {"src": STRING}}
    job = record(icon={"$ref": "#/$defs/Icon"})
    read = jobs(tmp_path, {"Icon": icon, "Tool": CORE.definitions["Tool"], "Job": job})
    (copy,) = read.copies
    assert copy.name == "Icon"
    assert "/properties/sizes: gone" in copy.differences
    assert read.definitions.keys() == {"Job"}
    assert build(extend(CORE, read)).definitions["Icon"] == core().definitions["Icon"]


def test_own_definitions_may_refer_to_core_without_copies_of_it(tmp_path: Path) -> None:
    read = jobs(tmp_path, {"Job": record("tool", tool={"$ref": "#/$defs/Tool"})}, strict=True)
    type = build(extend(CORE, read)).definitions["Job"].type
    assert isinstance(type, Object)
    assert type.fields[0].type == Ref("Tool")


def test_the_inferred_sender_of_a_message_is_reported_with_the_file(tmp_path: Path) -> None:
    own = {"RunRequest": record("method", method={"const": "jobs/run"}), "RunResult": record()}
    (diagnostic,) = build(extend(CORE, jobs(tmp_path, own))).diagnostics
    assert (diagnostic.kind, diagnostic.file) == ("sender-inferred", str(tmp_path / "jobs.json"))
    assert 'write roles.RunRequest = "both"' in diagnostic.fix
    with pytest.raises(BadInput, match=r"jobs\.json#/\$defs/RunRequest: .* nobody is known to send it"):
        build(extend(CORE, jobs(tmp_path, own, strict=True)))
    none = build(extend(CORE, jobs(tmp_path, own, '[roles]\nRunRequest = "none"', strict=True)))
    assert not [method for method in none.methods if method.origin]


def test_an_extension_that_redefines_a_method_is_refused(tmp_path: Path) -> None:
    own = {"CallRequest": record("method", method={"const": "tools/call"})}
    with pytest.raises(BadInput, match="CallToolRequest and CallRequest are both the message of 'tools/call'"):
        build(extend(CORE, jobs(tmp_path, own, '[roles]\nCallRequest = "client"', strict=True)))


def test_extensions_must_have_distinct_ids_and_definitions(tmp_path: Path) -> None:
    first, second = jobs(tmp_path / "a", {"Job": record()}), jobs(tmp_path / "b", {"Other": record()})
    with pytest.raises(BadInput, match=r"have the same id 'com\.example/jobs'"):
        extend(CORE, first, second)
    tasks = STORE.extension_schema("tasks", CORE)
    with pytest.raises(BadInput, match="another extension has a definition 'Task' too"):
        extend(CORE, tasks, jobs(tmp_path, {"Task": record(a=STRING)}))
    together = build(extend(CORE, tasks, first, STORE.extension_schema("apps", CORE)))
    assert [one.name for one in together.extensions] == ["tasks", "jobs", "apps"]
    assert {one.origin for one in together.definitions.values()} == {"", TASKS, JOBS, APPS}


BAD_FACTS = [
    ("", "there is no table [extension]"),
    ("[extension]\nid = 'com.example/jobs'", "#/extension: 'core' is missing"),
    ("[extension]\nid = 'jobs'\ncore = ['2026-07-28']", "'jobs' is not the id of an extension"),
    ("[extension]\nid = 'com.example/../jobs'\ncore = ['2026-07-28']", "is not the id of an extension"),
    ("[extension]\nid = 'a.b/c'\ncore = ['2025-11-25']", "a.b/c extends 2025-11-25 and not 2026-07-28"),
    ("[extension]\nid = 'a.b/c'\ncore = ['2026-07-28']\nmodule = 'A/b'", "'A/b' cannot be a module"),
    ("[extension]\nid = 'a.b/c'\ncore = ['2026-07-28']\nmodule = 'import'", "'import' cannot be a module"),
    ("[extension]\nid = 'a.b/c'\ncore = ['2026-07-28']\nsettings = { both = 'X' }", "'settings' has a value of"),
    ("[extension]\nid = 'a.b/c'\ncore = ['2026-07-28']\nonly = ['Nothing']", "there is no definition 'Nothing'"),
    *(
        (f"{FACTS}version = {json.dumps(bad)}", "#/extension/version: 'version' has a value of the wrong kind")
        for bad in ["", "../x", "1; import os", "1\n0", "a/b"]
    ),
    (f"{FACTS}options = {{ python_engine = 1 }}", "#/extension/options: 'options' has a value of the wrong kind"),
    (FACTS + "[unions]\nX = { sender = 'client', kind = 'request' }", "there is no table 'unions' of facts"),
    (FACTS + "[roles]\nX = 'somebody'", "#/roles/X: 'X' has a value of the wrong kind"),
    (FACTS + "[meta.k]\nTool = 1", "#/meta/k: 'k' has a value of the wrong kind"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), BAD_FACTS)
def test_invalid_facts_are_refused_with_the_file_and_a_fix(tmp_path: Path, text: str, says: str) -> None:
    stated, file = tmp_path / "jobs.toml", save(tmp_path / "jobs.json", {"$defs": {"Job": record()}})
    stated.write_text(text, "utf-8")
    with pytest.raises(BadInput) as caught:
        read_extension(file, stated, CORE)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(stated))
    assert caught.value.fix


# --- commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a schema folder without extensions."""
    copy = tmp_path / "schema"
    shutil.copytree(STORE.root, copy, ignore=shutil.ignore_patterns("extensions*"))
    return copy


def test_an_extension_is_imported_listed_verified_and_removed(tmp_path: Path, folder: Path) -> None:
    stated = tmp_path / "jobs.toml"
    stated.write_text(FACTS + '[roles]\nRunRequest = "client"\n', "utf-8")
    own = {
        "RunRequest": {"description": "Run.", **record("method", method={"const": "jobs/run"})},
        "RunResult": record(),
        "Icon": record(src=STRING),
    }
    file = save(tmp_path / "jobs.json", {"$defs": own})
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = inside("schema", "import", f"{JOBS}@draft", file, "--semantics", stated, "--folder", folder)
    assert (done.returncode, done.stdout.split()[0]) == (0, f"{JOBS}@draft")
    assert done.stderr.startswith(f"differs from core: {file}: Icon differs from the core definition")
    kept = json.loads((folder / "extensions" / JOBS / "draft" / "schema.json").read_text("utf-8"))
    assert kept["$defs"].keys() == {"RunRequest", "RunResult"}
    assert "description" not in kept["$defs"]["RunRequest"]
    listed = json.loads(inside("schema", "list", "--json", "--folder", folder).stdout)
    assert listed[-1].items() >= {"name": "jobs@draft", "id": JOBS, "status": "draft"}.items()
    assert listed[-1]["extends"] == ["2026-07-28"]
    assert inside("schema", "verify", "jobs", file, "--folder", folder).returncode == 0
    save(file, {"$defs": {**own, "RunResult": record(a=STRING)}})
    changed = inside("schema", "verify", "jobs@draft", file, "--folder", folder)
    assert (changed.returncode, changed.stdout) == (1, "/$defs/RunResult/properties/a: new\n")
    assert inside("schema", "status", "--folder", folder).returncode == 0
    inside("schema", "import", f"{JOBS}@draft", file, "--folder", folder, code=0)
    assert inside("schema", "remove", "jobs@draft", "--folder", folder).returncode == 0
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == {**before, folder / "extensions.toml": after[folder / "extensions.toml"]}


SCHEMA = STORE.root / STORE.extension("tasks").path / "schema.json"


def test_commands_report_errors_in_one_line() -> None:
    for arguments, says in [
        (("import", "com.example/jobs@draft", "gone.json"), "cannot be read"),
        (("import", "com.example/jobs@draft", SCHEMA), "semantics.toml: cannot be read"),
        (("import", "com.example/jobs@1.0", SCHEMA), "it is not known where the file is from; give --commit"),
        (("import", "com.example/jobs", SCHEMA), "'' is not the name of a revision"),
        (("verify", "task@draft", SCHEMA), "there is no revision 'task@draft'"),
        (("verify", "tasks@2020-01-01", SCHEMA), "tasks has no version '2020-01-01'"),
        (("status", "--revision", "tasks@1"), "tasks has no version '1'"),
        (("remove", "tasks@draft"), "belongs to this installation"),
    ]:
        done = inside("schema", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.full
def test_methods_and_definitions_are_listed_with_their_origin() -> None:
    alone = json.loads(inside("methods", "tasks@draft", "--json").stdout)
    names = ["notifications/tasks", "tasks/cancel", "tasks/get", "tasks/update"]
    assert {one["name"]: one["origin"] for one in alone} == dict.fromkeys(names, TASKS)
    listed = json.loads(inside("methods", "2026-07-28", "--extension", "tasks", "--json").stdout)
    both = {one["name"]: one for one in listed}
    assert both["tools/call"]["origin"] is None
    assert both["tools/call"]["alternatives"] == ["InputRequiredResult", "CreateTaskResult"]
    assert both["tasks/get"]["origin"] == TASKS
    told = inside("methods", "2026-07-28", "--extension", "tasks").stdout
    assert {line.split()[-1] for line in told.splitlines()} == {"FROM", "core", "tasks@2026-07-28"}
    assert inside("show", "tasks", "Task").stdout.startswith(f"Task ({TASKS} 2026-07-28 on MCP 2026-07-28): object")
    assert json.loads(inside("show", "apps", "McpUiToolMeta", "--json").stdout)["origin"] == APPS
    assert json.loads(inside("show", "apps", "Tool", "--json").stdout)["origin"] is None
    wrong = inside("methods", "2025-11-25", "--extension", "tasks")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert f"{TASKS} extends 2026-07-28 and not 2025-11-25" in wrong.stderr


@pytest.mark.full
def test_versions_of_an_extension_are_compared(tmp_path: Path) -> None:
    same = inside("diff", "tasks@2026-07-28", "tasks@draft", "--fail-on", "any", code=0)
    assert same.stdout.startswith("MCP tasks@2026-07-28 -> tasks@draft\n")
    assert same.stdout.endswith("\nNothing changed.\n")
    structure = STORE.structure(STORE.extension("tasks"))
    structure["$defs"]["Task"]["properties"]["owner"] = STRING
    file = save(tmp_path / "more.json", structure)
    wider = json.loads(inside("diff", "tasks", file, "--format", "json").stdout)
    rules = {finding["rule"]: finding for finding in wider["comparisons"][0]["findings"]}
    assert "field-added-optional" in rules
    assert "extension-broken" not in rules
    structure["$defs"]["WorkingTask"]["required"].append("owner")
    save(file, structure)
    broken = inside("diff", "tasks", file, "--fail-on", "breaking", code=1)
    assert f"{TASKS} breaks under the id that it has" in " ".join(broken.stdout.split())
    odd = inside("diff", "tasks", "2026-07-28")
    assert (odd.returncode, odd.stderr.count("\n")) == (2, 1)


@pytest.mark.full
def test_a_diff_of_core_reports_methods_that_moved_to_an_extension() -> None:
    report = json.loads(inside("diff", "2025-11-25", "2026-07-28", "--format", "json").stdout)
    found = [one for finding in report["comparisons"][0]["findings"] for one in finding["places"] or [finding]]
    hints = {one["subject"]: one["hint"] for one in found}
    told = {subject: hint for subject, hint in hints.items() if "moved to the extension" in hint}
    moved = f"It moved to the extension {TASKS}, where it is tasks/get"
    assert told["client->server request tasks/get"].startswith(moved)
    assert "notifications/tasks:" in told["server->client notification notifications/tasks/status"]
    assert "server->client request tasks/get" not in told, "the extension lets only clients send it"
    assert not [subject for subject in told if "tasks/list" in subject or "tasks/result" in subject]


@pytest.mark.full
def test_the_history_of_a_method_continues_in_its_extension() -> None:
    both = json.loads(inside("history", "tasks/get", "--json").stdout)
    assert (both["origin"], list(both["names"])) == (None, ["2025-11-25"])
    (own,) = both["extensions"]
    assert (own["origin"], list(own["names"])) == (TASKS, ["tasks@2026-07-28", "tasks@draft"])
    for words, owners in (("tasks/update", [TASKS]), ("Task.ttlMs", [TASKS]), ("Tool", []), ("nothing/such", [])):
        assert list(timelines(words, STORE)) == owners


def test_a_table_of_pins_whose_versions_are_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "extensions.toml").write_text('"com.example/jobs" = []\n', "utf-8")
    with pytest.raises(BadInput, match="is not a table; write its versions as tables"):
        _ = Store(users=tmp_path).extension_pins


def test_status_reports_a_damaged_extension(folder: Path) -> None:
    for name in ("extensions", "extensions.toml"):
        source = STORE.root / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    place = folder / STORE.extension("tasks").path
    schema = json.loads((place / "schema.json").read_text("utf-8"))
    del schema["$defs"]["Task"]["properties"]["statusMessage"]
    save(place / "schema.json", schema)
    docs = place / "docs.toml"
    docs.write_text(docs.read_text("utf-8") + "\n[Nothing]\ndoc = 'x'\n", "utf-8")
    done = inside("schema", "status", "--folder", folder, "--revision", "tasks", code=1)
    assert "differs from its pin" in done.stdout
    assert "words for what it has not" in done.stdout
    assert read_extension_facts(place / "semantics.toml")["extension"]["module"] == "tasks"

"""Bindings are complete: they contain all definitions and methods that a plain reading of the schemas finds."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter

from mcp_bindgen.runtime.model.base import Model, wire_fields, wire_name

ROOT = Path(__file__).parents[2]
METHODS = {"2024-11-05": 24, "2025-03-26": 24, "2025-06-18": 25, "2025-11-25": 31, "2026-07-28": 21}
DEFINITIONS = {"2024-11-05": 79, "2025-03-26": 83, "2025-06-18": 91, "2025-11-25": 145, "2026-07-28": 155}
ROLES = {
    "ClientRequest": ("client", "request", "message"),
    "ClientNotification": ("client", "notification", "message"),
    "ServerRequest": ("server", "request", "message"),
    "ServerNotification": ("server", "notification", "message"),
    "InputRequest": ("server", "request", "embedded"),
}
BY_THE_RUNTIME = {"initialize", "server/discover", "subscriptions/listen"} | {
    f"notifications/{name}" for name in ("cancelled", "initialized", "progress", "subscriptions/acknowledged")
}
NOTHING_TO_SAY = {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}

every_revision = pytest.mark.parametrize("revision", METHODS)


class Expected(NamedTuple):
    """Expected row of the method table, from the schema file."""

    definition: str
    kind: str
    sender: str
    carrier: str
    params: str
    params_required: bool
    result: str | None
    alternatives: frozenset[str]


@cache
def definitions_of(revision: str) -> dict[str, Any]:
    """Return the `$defs` of a committed schema file."""
    document: dict[str, Any] = json.loads((ROOT / "schema" / revision / "schema.json").read_text("utf-8"))
    return dict(document["$defs"])


def module(revision: str, name: str) -> Any:
    """Return a module of the revision's bindings."""
    return import_module(f"mcp_bindgen.v{revision.replace('-', '_')}.{name}")


def referred(schema: dict[str, Any]) -> str:
    """Return the definition that a schema refers to."""
    return str(schema["$ref"]).removeprefix("#/$defs/")


def method_of(schema: dict[str, Any]) -> str:
    return str(schema["properties"]["method"]["const"])


def is_message(schema: dict[str, Any]) -> bool:
    return "const" in schema.get("properties", {}).get("method", {})


def members_of(revision: str, union: str) -> list[str]:
    """Return the names of the members of a role union; an inlined member is identified by its method."""
    definitions = definitions_of(revision)
    if union not in definitions:
        return []
    members = definitions[union].get("anyOf", [definitions[union]])
    messages = [name for name, schema in definitions.items() if name not in ROLES and is_message(schema)]
    named = {method_of(definitions[name]): name for name in messages}
    return [referred(member) if "$ref" in member else named[method_of(member)] for member in members]


def may_become_task(definitions: dict[str, Any], params: dict[str, Any]) -> bool:
    """Return True if params, or one of their forms, have the member `task`."""
    if "$ref" in params:
        params = definitions[referred(params)]
    forms = [definitions[referred(form)] for form in params.get("anyOf", [])]
    return any("task" in form.get("properties", {}) for form in [params, *forms])


def answers(definitions: dict[str, Any], definition: str, method: str) -> tuple[str, set[str]]:
    """Return the usual result of a request, and its alternatives."""
    stem = definition.removesuffix("Request")
    response = definitions.get(f"{stem}ResultResponse")
    if response is None:
        usual = "EmptyResult" if method in NOTHING_TO_SAY else f"{stem}Result"
        assert usual in definitions, definition
        return usual, set()
    result = response["properties"]["result"]
    return f"{stem}Result", {referred(member) for member in result.get("anyOf", [result])} - {f"{stem}Result"}


@cache
def table(revision: str) -> dict[str, Expected]:
    """Return the methods of a revision, from its schema file alone."""
    definitions = definitions_of(revision)
    rows: dict[str, Expected] = {}
    for union, (sender, kind, carrier) in ROLES.items():
        for definition in members_of(revision, union):
            schema = definitions[definition]
            method = method_of(schema)
            if method in rows:
                rows[method] = rows[method]._replace(sender="both")
                continue
            params = schema["properties"]["params"]
            result, instead = answers(definitions, definition, method) if kind == "request" else (None, set[str]())
            if kind == "request" and may_become_task(definitions, params):
                instead = instead | {"CreateTaskResult"}
            named, required = (
                referred(params) if "$ref" in params else f"{definition}Params",
                schema.get("required", ()),
            )
            sent = (definition, kind, sender, carrier, named, "params" in required)
            rows[method] = Expected(*sent, result, frozenset(instead))
    return rows


def stub(definition: str) -> str:
    """Return the name of a stub: `CallToolRequest` -> `call_tool`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub("(Request|Notification)$", "", definition)).lower()


def sent_by(revision: str, sender: str) -> list[Expected]:
    return [row for row in table(revision).values() if row.sender in (sender, "both")]


def calls(revision: str, sender: str) -> set[str]:
    """Return the calls that users make on a side, with an iterator for each paginated list."""
    definitions = definitions_of(revision)
    found: set[str] = set()
    for row in sent_by(revision, sender):
        if method_of(definitions[row.definition]) in BY_THE_RUNTIME:
            continue
        name = stub(row.definition)
        found.add(name if row.kind == "request" else f"notify_{name}")
        if row.result is not None and "nextCursor" in definitions[row.result].get("properties", {}):
            found.add(re.sub("^list_(.*)s$", r"iter_\1s", name))
    return found


def own_functions(cls: type) -> set[str]:
    return {name for name, value in vars(cls).items() if inspect.isfunction(value)}


@every_revision
def test_methods_and_definitions_have_the_expected_counts(revision: str) -> None:
    assert len(table(revision)) == METHODS[revision]
    assert len(module(revision, "methods").METHODS) == METHODS[revision]
    assert len(definitions_of(revision)) == DEFINITIONS[revision]


@every_revision
def test_every_message_definition_is_in_the_method_table(revision: str) -> None:
    bases = {"Request", "Notification", "PaginatedRequest", *ROLES}
    named = {name for name in definitions_of(revision) if name.endswith(("Request", "Notification"))}
    messages = {name for name in named - bases if not name.startswith("JSONRPC")}
    assert {row.definition for row in table(revision).values()} == messages


@every_revision
def test_methods_match_the_schema(revision: str) -> None:
    types, methods = module(revision, "types"), module(revision, "methods").METHODS
    assert set(methods) == set(table(revision))
    for name, row in table(revision).items():
        method = methods[name]
        assert method.name == name
        assert (method.kind, method.sender, method.carrier) == (row.kind, row.sender, row.carrier), name
        assert method.params is getattr(types, row.params), name
        assert method.params_required is row.params_required, name
        if row.result is not None:
            assert method.result is getattr(types, row.result), name
            assert set(method.alternatives) == {getattr(types, other) for other in row.alternatives}, name


@every_revision
def test_descriptors_are_named_after_their_messages(revision: str) -> None:
    methods = module(revision, "methods")
    for name, row in table(revision).items():
        assert getattr(methods, stub(row.definition).upper()) is methods.METHODS[name]


@pytest.mark.full
@every_revision
def test_every_definition_is_a_type_of_its_own_name(revision: str) -> None:
    types = module(revision, "types")
    for name, schema in definitions_of(revision).items():
        type = getattr(types, name)
        assert name in types.__all__
        other_name_of_a_class = "$ref" in schema or name == "ClientNotification"  # 2026-07-28: a union with one member
        assert type.__name__ == name or other_name_of_a_class
        adapter = TypeAdapter[Any](type)
        adapter.rebuild(raise_errors=True)
        assert adapter.pydantic_complete, name


@every_revision
def test_required_members_come_first_and_metadata_last(revision: str) -> None:
    types, checked = module(revision, "types"), 0
    for name, definition in definitions_of(revision).items():
        fields = getattr(getattr(types, name), "model_fields", {})
        required = definition.get("required", ())
        wires = [field.alias or wire_name(attribute) for attribute, field in fields.items()]
        ranks = [(wire == "_meta", wire not in required) for wire in wires]
        if "allOf" not in definition:
            assert ranks == sorted(ranks), name
            checked += len(ranks) > 1
    assert checked > 40


@every_revision
def test_no_docstring_states_only_the_kind_of_a_message(revision: str) -> None:
    for name in ("types", "server", "client", "methods"):
        text = Path(module(revision, name).__file__).read_text("utf-8")
        assert re.search(r'"""(Request|Notification|Result)(, sent by (the \w+|either side))?\.?"""', text) is None


@every_revision
def test_docstrings_have_attributes_and_no_wire_names(revision: str) -> None:
    folder = Path(module(revision, "types").__file__).parent
    parts = ["types", *(f"extensions.{file.parent.name}.types" for file in folder.glob("extensions/*/types.py"))]
    values = [value for part in parts for value in vars(module(revision, part)).values()]
    models = [value for value in values if isinstance(value, type) and issubclass(value, Model)]
    names = {wire: name for model in models for wire, name in wire_fields(model).items() if wire != name}
    assert names["nextCursor"] == "next_cursor"
    checked = 0
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    words = {word for span in re.findall(r"`([\w$.]+)`", text) for word in span.split(".")}
                    assert not words & names.keys() - {"list"}, (file, text)
                    checked += len(words)
                case _:
                    pass
    assert checked > 100


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_deprecations_are_stated_once_for_type_checkers(revision: str) -> None:
    types, notices = module(revision, "types"), 0
    text = Path(types.__file__).read_text("utf-8")
    for fact in tomllib.loads((ROOT / "schema" / "semantics.toml").read_text("utf-8"))["deprecations"]:
        notice = f"since {fact['since']}: {fact['instead']}"
        for name, _, wire in (one.partition(".") for one in fact["definitions"] if fact["since"] <= revision):
            found, notices = getattr(types, name), notices + 1
            if wire:
                attribute = wire_fields(found)[wire]
                assert found.model_fields[attribute].deprecated == f"`{attribute}` is deprecated {notice}"
                assert found.model_json_schema()["properties"][wire]["deprecated"] is True
            elif hasattr(found, "model_fields"):
                assert found.__deprecated__ == notice
                assert "eprecated" not in str(found.__doc__)
            else:
                assert f"Deprecated {notice}." in " ".join(text.split())
    assert notices >= (22 if revision == "2026-07-28" else 2)


def test_deprecated_calls_and_handlers_are_marked() -> None:
    for role, names in {
        module("2026-07-28", "server").Context: {"create_message", "list_roots", "notify_logging_message"},
        module("2026-07-28", "client").Client: {"on_create_message", "on_list_roots", "on_logging_message"},
        module("2026-07-28", "server").Server: set[str](),
        module("2025-11-25", "server").Context: set[str](),
    }.items():
        assert {name for name, value in vars(role).items() if hasattr(value, "__deprecated__")} == names


@every_revision
def test_descriptors_of_deprecated_methods_have_the_notice(revision: str) -> None:
    body = ast.parse(Path(module(revision, "methods").__file__).read_text("utf-8")).body
    said = {
        str(assigned.target.id)
        for assigned, doc in pairwise(body)
        if isinstance(assigned, ast.AnnAssign) and isinstance(assigned.target, ast.Name)
        if isinstance(doc, ast.Expr) and "\nDeprecated since 2026-07-28: " in ast.literal_eval(doc.value)
    }
    assert said == ({"CREATE_MESSAGE", "LIST_ROOTS", "LOGGING_MESSAGE"} if revision == "2026-07-28" else set())


CALLS = [
    (name, call)
    for place in ("", "extensions.skills.", "extensions.tasks.")
    for name, role in (("client", "Client"), ("server", "Context"))
    for call in vars(getattr(module("2026-07-28", f"{place}{name}"), role)).values()
    if inspect.iscoroutinefunction(call)
]


def test_calls_describe_metadata_that_they_complete() -> None:
    docs = [str(call.__doc__) for _, call in CALLS if "Mapping" in str(inspect.signature(call).parameters.get("meta"))]
    assert len(docs) == 14
    assert all("meta: Further metadata, by its keys in JSON; the call adds" in text for text in docs)


def test_calls_for_subscribers_name_the_context_that_sends_them() -> None:
    said = {call.__name__ for _, call in CALLS if "contexts of `Server.broadcast`" in str(call.__doc__)}
    lists = {f"notify_{name}_list_changed" for name in ("prompt", "resource", "tool")}
    assert said == {*lists, "notify_resource_updated", "notify_task_status"}


def test_none_is_the_last_type_of_a_signature() -> None:
    for file in Path(module("2026-07-28", "types").__file__).parents[1].rglob("types.py"):
        assert not re.search(r"None \| dict\[", file.read_text("utf-8"))


@every_revision
def test_an_alias_of_a_class_constructs_it(revision: str) -> None:
    types = module(revision, "types")
    assert types.EmptyResult(meta={"a": 1}) == types.Result(meta={"a": 1})


def statements(revision: str, name: str) -> list[tuple[str, ast.stmt]]:
    """Return the definitions of a module of types, in order: name and statement."""
    tree = ast.parse(Path(module(revision, name).__file__).read_text("utf-8"))
    found: list[tuple[str, ast.stmt]] = []
    for statement in tree.body:
        match statement:
            case (
                ast.ClassDef(name=defined)
                | ast.Assign(targets=[ast.Name(id=defined)], value=ast.Call(func=ast.Name(id="TypeAliasType")))
                | ast.AnnAssign(target=ast.Name(id=defined))
            ):
                found.append((defined, statement))
            case _:
                pass
    return found


@pytest.mark.parametrize("name", ["types", "envelopes"])
@every_revision
def test_definitions_are_classes_then_aliases_in_alphabetical_order(revision: str, name: str) -> None:
    found = statements(revision, name)
    classes = [defined for defined, statement in found if isinstance(statement, ast.ClassDef)]
    assert [defined for defined, _ in found[: len(classes)]] == sorted(classes)
    aliases, needed = found[len(classes) :], set[str]()
    late = {defined for defined, _ in aliases}
    for defined, statement in sorted(aliases, key=lambda row: row[0]):
        uses = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} & late - {defined}
        needed |= {one for one in uses if one > defined}
    assert [one for one, _ in aliases if one not in needed] == sorted(late - needed)
    assert classes
    assert aliases


@every_revision
def test_types_are_what_methods_carry_and_envelopes_the_rest(revision: str) -> None:
    types, envelopes = ({name for name, _ in statements(revision, part)} for part in ("types", "envelopes"))
    assert not types & envelopes
    assert types | envelopes >= definitions_of(revision).keys()
    messages = {row.definition for row in table(revision).values() if row.carrier == "message"}
    assert messages <= envelopes
    assert {name for row in table(revision).values() for name in (row.params, row.result) if name} <= types
    assert sorted(module(revision, "types").__all__) == sorted({*types, *envelopes})


@every_revision
def test_envelopes_are_imported_on_first_use_under_the_names_of_types(revision: str) -> None:
    package = module(revision, "types").__package__
    program = (
        f"import sys\nfrom {package} import types\ntypes.Tool\n"
        f"assert {package + '.envelopes'!r} not in sys.modules\n"
        f"from {package}.types import CallToolRequest\n"
        f"assert CallToolRequest is types.CallToolRequest is sys.modules[{package + '.envelopes'!r}].CallToolRequest\n"
        f"from {package}.types import *\n"
        "assert {*types.__all__} <= {*globals()} and {*types.__all__} <= {*dir(types)}\n"
        "print(hasattr(types, 'CallToolRequests'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_references_to_later_definitions_mean_those_of_the_module_in_any_caller() -> None:
    program = (
        "from mcp_bindgen.v2025_11_25 import types\n"
        "def called():\n"
        "    Tool = int\n"
        "    return types.ListToolsResult(tools=[3])\n"
        "class Own(types.ListPromptsResult): pass\n"
        "print(types.ListToolsResult.model_fields['tools'].annotation)\n"
        "print(Own(prompts=[]))\n"
        "called()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "list[mcp_bindgen.v2025_11_25.types.Tool]\nprompts=[]\n"
    assert "Input should be a valid dictionary or instance of Tool" in done.stderr


@every_revision
def test_dunder_all_is_sorted_and_lists_only_existing_names(revision: str) -> None:
    types = module(revision, "types")
    assert sorted(types.__all__) == types.__all__
    assert len(set(types.__all__)) == len(types.__all__)
    assert all(hasattr(types, name) for name in types.__all__)


def test_the_oldest_revision_defines_its_type_annotated() -> None:
    annotated = module("2024-11-05", "types").Annotated
    assert annotated(annotations=None).model_dump() == {}
    assert "annotations" in annotated.model_fields


@every_revision
def test_a_server_has_a_handler_for_each_client_message(revision: str) -> None:
    names = {("" if row.kind == "request" else "on_") + stub(row.definition) for row in sent_by(revision, "client")}
    assert own_functions(module(revision, "server").Server) == names


@every_revision
def test_a_client_has_a_handler_per_server_message_and_a_call_per_own_message(revision: str) -> None:
    handlers = {f"on_{stub(row.definition)}" for row in sent_by(revision, "server")}
    assert own_functions(module(revision, "client").Client) == handlers | calls(revision, "client")


@every_revision
def test_a_context_has_a_call_for_each_server_message(revision: str) -> None:
    assert own_functions(module(revision, "server").Context) == calls(revision, "server") | {"ask_params"}


@every_revision
@pytest.mark.parametrize(("receiver", "sender"), [("SERVER", "client"), ("CLIENT", "server")])
def test_every_message_has_a_route_to_its_stub(revision: str, receiver: str, sender: str) -> None:
    dispatcher = getattr(module(revision, "dispatcher"), receiver)
    routes = {**dispatcher.routes, **dispatcher.embedded}
    methods = module(revision, "methods").METHODS
    side = getattr(module(revision, receiver.lower()), receiver.capitalize())
    assert set(routes) == {method.name for method in methods.values() if method.sender in (sender, "both")}
    for name, route in routes.items():
        row = table(revision)[name]
        plain = receiver == "SERVER" and row.kind == "request"
        handler = stub(row.definition) if plain else f"on_{stub(row.definition)}"
        assert route.method is methods[name]
        assert route.handler == handler
        assert callable(getattr(side, handler))


NEEDS: dict[str, dict[str, str]] = {
    "tools/list": {"client": "server.tools"},
    "tools/call": {"client": "server.tools"},
    "resources/templates/list": {"client": "server.resources"},
    "resources/subscribe": {"client": "server.resources.subscribe"},
    "resources/unsubscribe": {"client": "server.resources.subscribe"},
    "sampling/createMessage": {"server": "client.sampling"},
    "roots/list": {"server": "client.roots"},
    "logging/setLevel": {"client": "server.logging"},
    "tasks/cancel": {"client": "server.tasks.cancel", "server": "client.tasks.cancel"},
    "notifications/tools/list_changed": {"server": "server.tools.listChanged"},
    "notifications/roots/list_changed": {"client": "client.roots.listChanged"},
    "notifications/resources/updated": {"server": "server.resources.subscribe"},
    "notifications/message": {"server": "server.logging"},
    "notifications/elicitation/complete": {"server": "client.elicitation.url"},
    **{name: {} for name in ("notifications/progress", "initialize", "ping")},
}


@every_revision
def test_methods_require_the_expected_capabilities(revision: str) -> None:
    methods = module(revision, "methods").METHODS
    for method, needs in NEEDS.items():
        assert (method in methods) == (method in table(revision)), method
        if method in methods:
            assert {side: ".".join(path) for side, path in methods[method].capabilities.items()} == needs, method


@every_revision
def test_completions_require_a_capability_after_the_oldest_revision(revision: str) -> None:
    needs = {} if revision == "2024-11-05" else {"client": ("server", "completions")}
    assert module(revision, "methods").METHODS["completion/complete"].capabilities == needs

"""Write the files of a server with a contract that its user owns: the subclass with first answers, and its tests."""

from __future__ import annotations

import ast
import itertools
import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from mcp_bindgen.app import MOST_STEPS, Complexity, UriTemplate
from mcp_bindgen.emit.python.environment import docstring, quoted, style
from mcp_bindgen.emit.python.expressions import expression
from mcp_bindgen.emit.python.imports import use
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir.examples import Unfit, example
from mcp_bindgen.ir.model import Ref
from mcp_bindgen.scaffold.plan import Plan
from mcp_bindgen.scaffold.project import Project
from mcp_bindgen.scaffold.rendering import module, render
from mcp_bindgen.spec.json import is_array, is_object

from ..sample_values import sample_values
from .functions import Functions
from .package import TEMPLATES, contract_class
from .python_contract import PythonContract, lower_contract

if TYPE_CHECKING:
    from ..model import Contract, Entry

PREFIX = f"{use('.contract', 'models')}."
"""Prefix of the names of a contract's models in the files of a project."""

_app = partial(use, "mcp_bindgen.app")
_MOST_GUESSES = 2000


@dataclass(frozen=True)
class Answer:
    """A method of the subclass.

    Attributes:
        name: Its name.
        arguments: Annotation of its arguments; empty if it takes none.
        returns: Annotation of its result.
        doc: Its docstring, as source.
        body: Its statement.
    """

    name: str
    arguments: str
    returns: str
    doc: str
    body: str


@dataclass
class Examples:
    """The messages of a project's tests to its server, as JSON.

    Attributes:
        tools: Tool -> arguments that its schema accepts.
        refused: Tools for which none were found; they need some.
        unwritten: Tools for which no example of their output was found, so that they have no answer yet.
        prompts: Prompt -> arguments.
        resources: The URIs that can be read.
    """

    tools: dict[str, Any] = field(default_factory=dict[str, Any])
    refused: list[str] = field(default_factory=list[str])
    unwritten: list[str] = field(default_factory=list[str])
    prompts: dict[str, Any] = field(default_factory=dict[str, Any])
    resources: list[str] = field(default_factory=list[str])


def server_files(plan: Plan, known: Contract, calls: Functions | None) -> dict[str, str]:
    """Return path -> text of the subclass and its tests; the generated package beside them is `generated_files`'s.

    Args:
        plan: The project.
        known: Its contract.
        calls: The functions that it calls, if there are any.
    """
    contract, source = lower_contract(known), f"src/{plan.names.package}"
    called = [tool.name for tool in contract.tools if calls is not None and tool.name in calls.names]
    answers = list(_answers(contract, calls))
    values = {
        "functions": calls,
        "called": called,
        "names": plan.names,
        "base": contract_class(plan.names.package),
        "answers": answers,
        "doc": docstring(_doc(contract, plan.introduced)),
        "info": None if contract.info else repr({"name": plan.names.project, "version": "0.1.0"}),
        "introduced": quoted(plan.introduced),
    }
    newest = plan.revision_plans[-1]
    text = module("contracted.py.jinja", TEMPLATES, **values)
    test = module(
        "test_contracted.py.jinja",
        TEMPLATES,
        bindings=newest.bindings,
        refused_in_results=newest.protocol.facts.argument_errors_in_results,
        known=examples(contract, called),
        offered=[name for name in ("tools", "prompts", "resources") if getattr(contract, name)],
        literal=repr,
        **values,
    )
    copied = {f"{source}/{calls.name}.py": calls.file} if calls is not None and calls.file is not None else {}
    return {f"{source}/server.py": text, "tests/test_server.py": test, **copied}


def unwritten(project: Project, contract: Contract) -> str:
    """Return methods to paste into the class of a project: for the entries of its contract that it has none for."""
    files = (file for file in project.source.rglob("*.py") if not file.is_relative_to(project.generated))
    written = {name for file in files for name in _functions(file)}
    left = [answer for answer in _answers(lower_contract(contract)) if answer.name not in written]
    methods = render("contracted_methods.py.jinja", TEMPLATES, answers=left)
    return style(f"class Yours:\n{methods}").partition("\n")[2].strip("\n") + "\n" if left else ""


def _functions(file: Path) -> Iterator[str]:
    """Return the names of all functions and methods in a file; none of one that is not Python."""
    with suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name


def first_calls(contract: Contract) -> list[str]:
    """Return arguments of `mcp-bindgen call` that show a first answer."""
    known = examples(contract)
    lines = [_line("tools/call", name, value) for name, value in known.tools.items() if name not in known.unwritten]
    lines += [_line("prompts/get", name, value) for name, value in known.prompts.items()]
    lines += [f"resources/read {shlex.quote(uri)}" for uri in known.resources]
    return [line for line in lines if line.isprintable()][:1]  # another line would leave the README's block of code


def examples(contract: Contract, called: Sequence[str] = ()) -> Examples:
    """Make examples for everything that a contract has, each of them held against its schema.

    Args:
        contract: The contract.
        called: The tools that call functions of the user: no test should call them with made-up arguments.
    """
    found = Examples()
    for tool in contract.tools:
        if tool.name in called:
            continue
        arguments = _valid(contract, tool.arguments, tool.raw["inputSchema"])
        if arguments is None:
            found.refused.append(tool.name)
        else:
            found.tools[tool.name] = arguments
            if tool.output and _output(contract, tool) is None:
                found.unwritten.append(tool.name)
    for prompt in contract.prompts:
        found.prompts[prompt.name] = example(contract.types, Ref(prompt.arguments)) if prompt.arguments else {}
    found.resources += [resource.key for resource in contract.resources]
    uris = (_uri(contract, template) for template in contract.templates)
    found.resources += [uri for uri in uris if uri is not None]
    return found


_FIRST_ANSWERS = {
    "tool": "This is what {} answers.",
    "prompt": "This is what {} asks.",
    "resource": "This is {}.",
    "template": "This is a {}.",
}
"""Kind of entry -> the text that its method returns."""


_NOUNS = {"tool": "tools", "prompt": "prompts", "resource": "resources", "template": "resources"}


def _answers(contract: PythonContract, functions: Functions | None = None) -> Iterator[Answer]:
    for entry in contract.all_entries:
        given, structured = (f"{PREFIX}{one}" if one else "" for one in (entry.arguments, entry.output))
        returns = structured or "str"
        if entry.kind == "tool" and functions is not None and entry.name in functions.names:
            more = f", {structured}" if structured else ""
            body = f"return await {_app('delegate')}({functions.name}.{entry.name}, arguments, ctx{more})"
            returns = structured or use(".contract", "Content")
        elif structured:
            output = _output(contract, entry)
            body = f"return {output}" if output else f'raise {_app("ToolError")}("There is no answer yet.")'
        else:
            body = f"return {quoted(_FIRST_ANSWERS[entry.kind].format(entry.name))}"
        yield Answer(contract.stub(entry), given, returns, docstring(entry.summary, indent=8), body)


def _doc(contract: Contract, introduced: str) -> str:
    """Return the description in the server's `--help`."""
    *most, last = dict.fromkeys(_NOUNS[entry.kind] for entry in contract.all_entries) or ["contract"]
    listed = f"{', '.join(most)} and {last}" if most else last
    return f"Serve `{introduced}`: its {listed}."


def _output(contract: Contract, tool: Entry) -> str | None:
    """Return the expression of an output that a tool may have, if one can be found."""
    value = _valid(contract, tool.output, tool.raw["outputSchema"])
    try:
        return None if value is None else expression(lower(contract.types), Ref(tool.output), value, PREFIX)
    except Unfit:
        return None


def _valid(contract: Contract, name: str, schema: Any) -> Any:
    """Return a value of a definition that its schema accepts as well, if one can be found."""
    if Complexity(schema).exceeds(MOST_STEPS):
        return None
    validator = jsonschema_rs.validator_for(schema, offline=True)
    return next((value for value in _guesses(contract, name, schema) if validator.is_valid(value)), None)


def _guesses(contract: Contract, name: str, schema: Any) -> Iterator[Any]:
    given = schema.get("examples") if is_object(schema) else None
    yield from given if is_array(given) else ()
    for full in (False, True):
        try:
            yield example(contract.types, Ref(name), full=full)
        except Unfit:
            continue
    yield {}
    yield from itertools.islice(sample_values(schema), _MOST_GUESSES)


def _uri(contract: Contract, template: Entry) -> str | None:
    """Return a URI that a template matches, if one can be found."""
    uri_template = UriTemplate(template.key)
    try:
        uri = uri_template.expand(example(contract.types, Ref(template.arguments), full=True))
    except (Unfit, ValueError):
        return None
    return uri if uri_template.match(uri) is not None else None


def _line(method: str, name: str, value: Any) -> str:
    return f"{method} {shlex.quote(name)} {shlex.quote(json.dumps(value, ensure_ascii=False))}"

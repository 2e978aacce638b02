"""Generate a typed client of one server: a module with its models, and a class with a method for each entry."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from mcp_bindgen.emit.python import naming, types
from mcp_bindgen.emit.python.annotations import PLAIN, annotation, optional
from mcp_bindgen.emit.python.environment import arguments_section, docstring, style
from mcp_bindgen.emit.python.imports import use
from mcp_bindgen.emit.python.installation import NAMESPACE
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.constants import is_literal
from mcp_bindgen.ir.model import Array, Const, Field, Map, Object, Ref, Scalar, Tuple, Type, Union, parts, references
from mcp_bindgen.ir.naming import class_name
from mcp_bindgen.scaffold.ownership import Origin, stamp, stamp_json
from mcp_bindgen.scaffold.rendering import noted, render
from mcp_bindgen.spec import BadInput

from ..exact import VALUE, exact_types
from ..model import Contract, Entry
from .package import COMMAND, TEMPLATES, answer, item
from .python_contract import PythonContract, lower_contract
from .typescript_client import TYPESCRIPT, typescript_files

MODULE = "client"
"""The module of a typed client in a project."""

LEFT_OUT = "leftOut"
"""The member of the saved contract's stamp with the entries of the server that are not valid."""

_ABSENT = "app.ABSENT"
_MORE = [f"more{'_' * count}" for count in range(1000)]  # names of open members
_SENT = {**PLAIN, "number": "float"}  # which is said of an int too, and nothing turns it into a float


@dataclass(frozen=True)
class _Argument:
    """A keyword argument.

    Attributes:
        name: Its name in the signature.
        field: The field of the model that it stands for.
        annotation: Its type.
        default: Its default as source code; an optional argument that is left out is not sent.
        nullable: Whether `None` is a value that is sent.
    """

    name: str
    field: Field
    annotation: str
    default: str | None
    nullable: bool


@dataclass(frozen=True)
class _Method:
    """A method of the client.

    Attributes:
        name: Its name.
        entry: The entry that it calls.
        arguments: Its keyword arguments.
        returns: Annotation of its result.
        doc: Its docstring, as source code.
        whole: Annotation of its one argument, if it takes a union of objects.
        more: Name and annotation of further keyword arguments.
        model: The model of its structured result, if it has one.
        is_any: True if type checkers read the model as `Any`.
    """

    name: str
    entry: Entry
    arguments: Sequence[_Argument]
    returns: str
    doc: str
    whole: str = ""
    more: tuple[str, str] = ("", "")
    model: str = ""
    is_any: bool = False


def client_files(
    contract: Contract,
    protocol: Protocol,
    class_name: str,
    file_name: str,
    source: str,
    command: str = COMMAND,
) -> dict[str, str]:
    """Return the module of a typed client, and beside it the contract that it was made of; all with our stamp.

    Args:
        contract: The contract of the server.
        protocol: The revision that the client speaks.
        class_name: The name of its class in Python.
        file_name: The file of the module, which ends with `.py` or `.ts`.
        source: The source of the contract.
        command: The command that makes the files again.

    Returns:
        File name -> text.

    Raises:
        BadInput: The models of the contract cannot be written, or one has the name of the class.
    """
    origin = Origin(source, (protocol.revision,), command)
    title = title_of(contract, file_name.rpartition(".")[0])
    if file_name.endswith(TYPESCRIPT):
        files = typescript_files(contract, file_name, title, origin)
    else:
        files = {file_name: stamp(noted(_module(contract, protocol, class_name, title)), origin)}
    notes: dict[str, object] = {"class": class_name, "revision": protocol.revision}
    notes |= {LEFT_OUT: contract.left_out} if contract.left_out else {}
    return {**files, saved_name(file_name): stamp_json(contract.document, origin, **notes)}


def _module(contract: Contract, protocol: Protocol, class_name: str, title: str) -> str:
    """Return the text of the module of a typed client; raise `BadInput` as `client_files`."""
    contract = lower_contract(contract)
    client = _Client(contract, protocol)
    methods = list(client.methods())
    text = render(
        "typed_client.py.jinja",
        TEMPLATES,
        words=docstring(f"A typed client of the server `{title}`: a method for each tool, prompt and resource.", 0),
        class_name=class_name,
        doc=docstring(f"Calls the server `{title}` over MCP {protocol.revision}."),
        package=naming.package(protocol.revision),
        models=types.body(_only(contract.types, client.used), types.CONTRACT),
        methods=methods,
    )
    text = style(text)
    if list(_bound(text)).count(class_name) > 1:
        raise BadInput(f"the module has something else of the name {class_name!r}", fix="choose another name")
    return text


def client_package(contract: Contract, protocol: Protocol, class_name: str, source: str) -> dict[str, str]:
    """Return the files of a package that holds a typed client, for a project; see `client_files`."""
    files = client_files(contract, protocol, class_name, f"{MODULE}.py", source)
    init = render(
        "contract_init.py.jinja",
        TEMPLATES,
        doc=docstring(f"The typed client of `{title_of(contract, class_name)}`.", indent=0),
        module=MODULE,
        names=[class_name],
        exported=[class_name],
    )
    return {"__init__.py": stamp(style(init), Origin(source, (protocol.revision,), COMMAND)), **files}


def saved_name(file_name: str) -> str:
    """Return the name of the saved contract beside the module of a typed client; both languages may be in a folder."""
    return f"{file_name.removesuffix('.py')}.contract.json"


def client_class(name: str) -> str:
    """Return the name of a client's class: `everything` and `everything_client` -> `EverythingClient`."""
    prefix = class_name(name)
    return f"{prefix.removesuffix('Client') or prefix}Client"


def title_of(contract: Contract, name: str) -> str:
    """Return the name of the server in its contract, or else `name`."""
    info = contract.info or {}
    return str(info.get("title") or info.get("name") or name)


class _Client:
    """The methods of a client of a contract.

    Args:
        contract: The contract.
        protocol: The revision that is spoken.

    Attributes:
        used: The models that the methods name.
    """

    def __init__(self, contract: PythonContract, protocol: Protocol) -> None:
        self._contract = contract
        self._types = lower(contract.types)
        self.used: set[str] = set()
        prefix = f"{use(f'{NAMESPACE}.{naming.package(protocol.revision)}', 'types')}."
        self._blocks = f"list[{annotation(item(protocol, 'tools/call', 'content'), prefix=prefix)}]"
        self._prompted = f"{prefix}{answer(protocol, 'prompts/get')}"
        self._read = f"{prefix}{answer(protocol, 'resources/read')}"
        self._structured = protocol.field_of(Ref(answer(protocol, "tools/call")), "structuredContent") is not None
        self._begins_tasks = any(method.name == "tools/call" and method.opt_in for method in protocol.methods)

    def methods(self) -> Iterator[_Method]:
        """Return the methods, in the order of the contract."""
        yield from map(self._tool, self._contract.tools)
        yield from map(self._prompt, self._contract.prompts)
        yield from map(self._resource, self._contract.resources)
        yield from map(self._template, self._contract.templates)

    def _tool(self, tool: Entry) -> _Method:
        model = tool.output if self._structured else ""
        self.used |= {model} if model else set()
        arguments, whole, more = self._takes(tool)
        found = self._method(tool, arguments, model or self._blocks, self._demanding(tool))
        is_any = bool(model) and not isinstance(self._types.definitions[model].type, Object)
        return replace(found, whole=whole, more=more, model=model, is_any=is_any)

    def _demanding(self, tool: Entry) -> str:
        """Return the description of a tool, with a note for tools that run as tasks only."""
        if not tool.is_task_only:
            return tool.summary
        how = "call it with a client that extends the `Client` of the extension `tasks`, which waits for the result"
        if self._begins_tasks:
            how = "call it with `client.call_tool(..., task=...)`, which begins one"
        return f"{tool.summary}\n\nThe server runs this tool as a task only, and refuses this call of it: {how}."

    def _prompt(self, prompt: Entry) -> _Method:
        return self._method(prompt, self._arguments(prompt.arguments), self._prompted, prompt.summary)

    def _resource(self, resource: Entry) -> _Method:
        return self._method(resource, [], self._read, resource.summary)

    def _template(self, template: Entry) -> _Method:
        words = template.description or f"A resource `{template.key}`."
        return self._method(template, self._arguments(template.arguments), self._read, words)

    def _method(self, entry: Entry, arguments: list[_Argument], returns: str, words: str) -> _Method:
        return _Method(self._contract.stub(entry), entry, arguments, returns, _doc(words, arguments))

    def _takes(self, tool: Entry) -> tuple[list[_Argument], str, tuple[str, str]]:
        """Return the arguments of a tool, or the annotation of a union of objects; and the further arguments."""
        model = self._types.resolve(Ref(tool.arguments))
        if not isinstance(model, Object):
            is_object = self._is_object(model)
            self.used |= {tool.arguments} if is_object else set()
            return [], tool.arguments if is_object else f"dict[str, {PLAIN['any']}]", ("", "")
        schema = tool.raw["inputSchema"]
        arguments = self._arguments(tool.arguments, _sent(schema))
        if model.extra is None or "additionalProperties" not in schema:
            return arguments, "", ("", "")
        self.used.update(references(model.extra))
        name = next(name for name in _MORE if name not in {argument.name for argument in arguments})
        return arguments, "", (name, annotation(model.extra, _SENT, prefix=""))

    def _is_object(self, type: Type) -> bool:
        """Return whether every value of `type` is an object."""
        match self._types.resolve(type):
            case Object() | Map():
                return True
            case Union(members):
                return all(map(self._is_object, members))
            case _:
                return False

    def _arguments(self, name: str, sent: Mapping[str, Type] = MappingProxyType({})) -> list[_Argument]:
        """Return the fields of a model as arguments, mandatory ones first; `sent` are types of values to be sent."""
        found = (field.of(sent.get(field.wire, field.type)) for field in self._types.fields_of(Ref(name)))
        fields = sorted(found, key=lambda field: not field.required or field.default is not None)
        taken = {"self", "app", *self._types.definitions}
        return [self._argument(self._types.attribute(Ref(name), field.wire), field, taken) for field in fields]

    def _argument(self, attribute: str, field: Field, taken: set[str]) -> _Argument:
        name = naming.argument(attribute, frozenset())
        while name in taken:
            name += "_"
        taken.add(name)
        self.used.update(references(field.type))
        text = annotation(field.type, _SENT, prefix="")
        nullable = self._types.accepts_null(field.type)
        if field.required:
            constant = None if field.default is None else repr(field.default)
            return _Argument(name, field, text, constant, nullable)
        if nullable:
            return _Argument(name, field, f"{text} | app.Absent", _ABSENT, nullable)
        return _Argument(name, field, optional(text), "None", nullable)


def _sent(schema: Any) -> dict[str, Type]:
    """Return the exact types of arguments that need no definitions: values are only sent, and need no model.

    The models of a contract take `1.0` for the `1` of an `enum`, and lists of any length for a tuple.
    """
    exact = exact_types(schema)
    return {field.wire: field.type for field in exact.fields_of(VALUE) if _is_plain(field.type)}


def _is_plain(type: Type) -> bool:
    """Return True if an annotation states a type without loss and without names of definitions."""
    match type:
        case Const(values):
            return all(map(is_literal, values))
        case Tuple(prefix=prefix, least=least, rest=rest):
            return rest is None and least == len(prefix) and all(map(_is_plain, prefix))
        case Array() | Union():
            return bool(inner := parts(type)) and all(map(_is_plain, inner))
        case _:
            return isinstance(type, Scalar)


def _only(types: Protocol, names: Iterable[str]) -> Protocol:
    """Return the types that `names` need."""
    wanted = types.reach(names)
    kept = {name: definition for name, definition in types.definitions.items() if name in wanted}
    return dataclasses.replace(types, definitions=kept)


def _bound(text: str) -> Iterator[str]:
    """Return the names that a module gives to something, each as often as it does."""
    for node in ast.parse(text).body:
        match node:
            case ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                yield name
            case _:
                pass


def _doc(description: str, arguments: Iterable[_Argument]) -> str:
    """Return the docstring of a method, with a section for the arguments that have words."""
    about = arguments_section({argument.name: _argument_doc(argument.field) for argument in arguments})
    return docstring("\n\n".join(filter(None, [description, about])), indent=8)


def _argument_doc(field: Field) -> str:
    """Return the description of an argument, and the meaning of its absence."""
    words = " ".join(field.doc.split())
    if field.required or not field.fallback:
        return words
    default = json.dumps(json.loads(field.fallback), ensure_ascii=False)
    return f"{words} (default of the server: {default})".lstrip()

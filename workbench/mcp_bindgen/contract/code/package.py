"""Generate the package of a contract: models, and an abstract class with a method for each of its entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_bindgen.emit.python import naming, types
from mcp_bindgen.emit.python.annotations import annotation
from mcp_bindgen.emit.python.environment import docstring, quoted, style
from mcp_bindgen.emit.python.imports import use
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Array, Ref, Type
from mcp_bindgen.ir.naming import class_name
from mcp_bindgen.ir.naming import words as words_of
from mcp_bindgen.scaffold.ownership import Origin, stamp, stamp_json
from mcp_bindgen.scaffold.rendering import noted, render

from ..model import Contract
from .python_contract import PythonContract, lower_contract

TEMPLATES = Path(__file__).with_name("templates")
COMMAND = "mcp-bindgen contract generate"
"""The command that generates the package."""


@dataclass(frozen=True)
class _Method:
    """An abstract method.

    Attributes:
        name: Its name.
        decorator: Its link to the contract, without the `@`.
        takes: Its parameters after `self`.
        returns: Annotation of its result.
        doc: Its docstring, as source code.
    """

    name: str
    decorator: str
    takes: str
    returns: str
    doc: str


def contract_files(
    contract: Contract, protocols: Sequence[Protocol], project_name: str, source_name: str
) -> dict[str, str]:
    """Return the files of the generated package, with our stamp.

    Args:
        contract: The contract of the server.
        protocols: The revisions that it speaks, the oldest first.
        project_name: The name of its package, which names the class.
        source_name: The file that the contract was read from.

    Returns:
        File name -> text.

    Raises:
        BadInput: The models of the contract cannot be written.
    """
    contract = lower_contract(contract)
    origin = Origin(source_name, tuple(protocol.revision for protocol in protocols), COMMAND)
    aliases = dict(_aliases(contract, protocols))
    class_name = contract_class(project_name)
    title = " ".join(words_of(project_name)) or project_name
    names = sorted([*aliases, class_name])
    base = render(
        "contract_base.py.jinja",
        TEMPLATES,
        words=docstring(f"What the server `{project_name}` offers: a method for each tool, prompt and resource.", 0),
        class_name=class_name,
        doc=docstring(f"What `{title}` offers. Subclass it and answer what is abstract; `run` serves an object of it."),
        packages=[naming.package(protocol.revision) for protocol in protocols],
        aliases=aliases,
        methods=list(_methods(contract)),
    )
    words = docstring(f"The types of the contract of `{project_name}`: arguments, variables and structured results.", 0)
    models = render(
        "contract_models.py.jinja", TEMPLATES, words=words, models=types.body(contract.types, types.CONTRACT)
    )
    package = render(
        "contract_init.py.jinja",
        TEMPLATES,
        doc=docstring(
            f"The contract of `{title}`: subclass `{class_name}` and answer what is abstract in it.", indent=0
        ),
        module="base",
        names=names,
        exported=sorted([*names, "models"]),
    )
    return {
        "__init__.py": stamp(style(package), origin),
        "base.py": stamp(style(base), origin),
        "models.py": stamp(noted(style(models)), origin),
        "contract.json": stamp_json(contract.document, origin),
    }


def contract_class(project_name: str) -> str:
    """Return the name of the generated class: `weather_server` -> `WeatherServerContract`."""
    return f"{class_name(project_name)}Contract"


def answer(protocol: Protocol, method: str) -> str:
    """Return the name of the result of a request."""
    found = next(known.result for known in protocol.methods if known.name == method)
    assert isinstance(found, Ref)
    return found.name


def item(protocol: Protocol, method: str, member: str) -> Type:
    """Return the type of the items of a list in the result of a request."""
    field = protocol.field_of(Ref(answer(protocol, method)), member)
    assert field is not None
    assert isinstance(field.type, Array)
    return field.type.items


def _aliases(contract: Contract, protocols: Sequence[Protocol]) -> Iterator[tuple[str, str]]:
    """Yield the used names of types that depend on the revisions."""

    def each(text: str, method: str, member: str = "") -> str:
        """Return `text` for every revision, with the answer or the type of its items filled in."""
        return " | ".join(text.format(_named(protocol, method, member)) for protocol in protocols)

    sequence = f"{use('collections.abc', 'Sequence')}[{{}}]"
    if contract.all_entries:
        yield "Context", " | ".join(f"{naming.package(protocol.revision)}.Context" for protocol in protocols)
    if contract.tools:
        yield "CallToolResult", each("{}", "tools/call")
    if not all(tool.output for tool in contract.tools):
        yield "Content", f"str | {each(sequence, 'tools/call', 'content')} | CallToolResult"
    if contract.prompts:
        messages = each(sequence, "prompts/get", "messages")
        yield "Prompted", f"str | {messages} | {each('{}', 'prompts/get')}"
    if contract.resources or contract.templates:
        yield "Read", f"str | bytes | {each('{}', 'resources/read')}"


def _named(protocol: Protocol, method: str, member: str) -> str:
    prefix = f"{naming.package(protocol.revision)}.types."
    type = item(protocol, method, member) if member else Ref(answer(protocol, method))
    return annotation(type, prefix=prefix)


_RETURNS = {"tool": "Content", "prompt": "Prompted", "resource": "Read", "template": "Read"}
"""Kind of entry -> annotation of what its method returns, if it is not structured."""


def _methods(contract: PythonContract) -> Iterator[_Method]:
    for entry in contract.all_entries:
        models = [f"{use('.', 'models')}.{name}" for name in (entry.arguments, entry.output) if name]
        yield _Method(
            name=contract.stub(entry),
            decorator=f"{use('mcp_bindgen.app', entry.kind)}({', '.join([quoted(entry.key), *models])})",
            takes=f"arguments: {models[0]}, ctx: Context" if entry.arguments else "ctx: Context",
            returns=f"{models[-1]} | CallToolResult" if entry.output else _RETURNS[entry.kind],
            doc=docstring(entry.summary, indent=8),
        )

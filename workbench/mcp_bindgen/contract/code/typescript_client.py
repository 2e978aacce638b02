"""Generate a typed client of one server in TypeScript: a module with a function for each entry."""

from __future__ import annotations

import json
import re
from typing import Any
from unicodedata import normalize

from mcp_bindgen.emit.templates import environment, render
from mcp_bindgen.emit.typescript import names as naming
from mcp_bindgen.emit.typescript.package import FOLDER, module_values
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Map, Object, Ref
from mcp_bindgen.ir.naming import unicode_words
from mcp_bindgen.json_schema.dialects import modern
from mcp_bindgen.json_schema.keywords import edited
from mcp_bindgen.scaffold.ownership import Origin, stamp
from mcp_bindgen.spec.keywords import CONSTRAINTS

from ..exact import Limits, exact_contract
from ..model import Contract
from ..names import entry_names
from .package import TEMPLATES

TYPESCRIPT = ".ts"
"""End of the names of modules."""

CALLS = f"mcp-calls{TYPESCRIPT}"
"""The module that all clients in a folder share."""

_RESERVED = re.compile(
    """
    arguments|as|async|await|break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|eval|export|
    exports|extends|false|finally|for|from|function|globalThis|if|implements|import|in|instanceof|interface|let|new|null|
    package|private|protected|public|require|return|static|super|switch|then|this|throw|true|try|typeof|undefined|v|var|
    void|while|with|yield
    """,
    re.VERBOSE,
)
"""Names that functions cannot have; `then` would make a promise of an imported module."""


def typescript_files(contract: Contract, file_name: str, title: str, origin: Origin) -> dict[str, str]:
    """Return the module of a client, and the module that all clients in a folder share; both with our stamp.

    Args:
        contract: The contract of the server.
        file_name: The file of the module.
        title: The title of the server.
        origin: The origin of the module.

    Returns:
        File name -> text.
    """
    contract, limits = exact_contract(contract)
    exact = {
        name: _unstated(contract.types, limits, name, entry.raw.get(member))
        for entry in contract.all_entries
        for name, member in ((entry.arguments, "inputSchema"), (entry.output, "outputSchema"))
        if name
    }
    names = naming.types(contract.types)
    values = module_values(contract.types, names, exact) | {
        "entries": contract.all_entries,
        "optional": {name for name in exact if _is_optional(contract.types, name)},
        "stubs": entry_names(contract, stub, taken=names.values()),
        "title": title,
    }
    shared = Origin("", ("of any revision",), "mcp-bindgen client --out FILE.ts")
    files = dict[str, str]()
    for name, template, made in ((file_name, "typed_client.ts", origin), (CALLS, CALLS, shared)):
        text = render(environment(FOLDER, TEMPLATES), f"{template}.jinja", None, "", **values)
        files[name] = stamp(re.sub(r"\n{3,}", "\n\n", text), made, comment="//")
    return files


def stub(name: str, prefix: str = "") -> str:
    """Return the function name of an entry: `get-sum` -> `getSum`. Reserved words get a trailing underscore."""
    first, *more = [*filter(None, [prefix]), *unicode_words(name)] or [""]
    text = normalize("NFKC", "".join([first.lower(), *(word[0].upper() + word[1:] for word in more)]))
    text = text if text.isidentifier() else f"tool{text}"
    return f"{text}_" if _RESERVED.fullmatch(text) else text


def _unstated(types: Protocol, limits: Limits, name: str, schema: Any) -> str:
    """Return the JSON Schema of a definition as text; empty if its type, with limits of scalars and arrays, states it.

    `format` is an annotation, by which the SDK would refuse values.
    """
    parts = types.reach([name])
    keywords = {text.partition(" ")[0] for (part, _), texts in limits.items() if part in parts for text in texts}
    whole = edited(modern(schema), lambda _, copy: copy.pop("format", None))
    return json.dumps(whole) if keywords - {*CONSTRAINTS, "format"} else ""


def _is_optional(types: Protocol, name: str) -> bool:
    """Return True if `{}` has a type; with `constructor?: string` it does not."""
    fields = types.fields_of(Ref(name))
    is_record = isinstance(types.resolve(Ref(name)), Map | Object)
    return is_record and not any(field.required or field.wire in naming.INHERITED for field in fields)

"""Imports of generated modules: a name that code uses brings its import with it.

Marks of control characters carry the imports through templates. Text of a schema has none: docstrings leave control
characters out, and literals escape them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Callable

ABI = "mcp_bindgen.runtime.abi"

_NAME = re.compile("\1([^\1\2]*)\1([^\1\2]*)\1([^\1\2]*)\1")
_STATEMENTS = re.compile("\2([^\2]*)\2")


def use(module: str, name: str = "", alias: str = "") -> str:
    """Return the text that stands for a name of a module in code, and adds its import.

    Args:
        module: The module.
        name: The name; without it, the module itself is imported.
        alias: The name in the code, if it is another.
    """
    return f"\1{module}\1{name}\1{'' if alias == name else alias}\1"


def abi(name: str) -> str:
    """Return the text for a name that the runtime provides for generated code."""
    return use(ABI, name)


def imports(caller: Callable[[], str]) -> str:
    """Return the text that stands for the statements in a call block; the first block is the place of all imports."""
    return f"\2{caller()}\2"


def carried(text: str) -> str:
    """Return the imports of code without the code, for code that datamodel-code-generator writes."""
    lines = (f"from {one[1]} import {one[2]} as {one[3] or one[2]}" for one in _NAME.finditer(text))
    return imports(lambda: "\n".join(lines))


def local(text: str) -> str:
    """Return code as its module shows it, with plain names."""
    return _NAME.sub(lambda found: found[3] or found[2] or found[1], _STATEMENTS.sub("", text))


def resolved(text: str, package: str = "") -> str:
    """Return a module with its imports in the place of its first call block, sorted as isort does.

    Args:
        text: Its text.
        package: Name of the package of a project, whose own modules are imported after those of others.
    """
    start, *blocks = _STATEMENTS.split(text)
    found = {(one[1], one[2], one[3]) for one in _NAME.finditer(text)}
    for node in ast.parse("\n".join(blocks[::2])).body:
        for one in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            origin = f"{'.' * node.level}{node.module or ''}" if isinstance(node, ast.ImportFrom) else ""
            name, alias = one.name if origin else "", one.asname or ""
            found.add((origin or one.name, name, "" if alias == name else alias))
    return local("".join([start, *([_block(found, package)] if blocks else []), *blocks[1::2]]))


def _block(found: set[tuple[str, str, str]], package: str) -> str:
    plain: defaultdict[str, list[str]] = defaultdict(list)
    lines: list[tuple[str, str, str]] = []
    for module, name, alias in sorted(found, key=lambda one: rank(one[1])):
        if name and not alias:
            plain[module].append(name)
        else:
            text = f"from {module} import {name}" if name else f"import {module}"
            lines.append((module, name, f"{text} as {alias}" if alias else text))
    lines += ((module, names[0], f"from {module} import {', '.join(names)}") for module, names in plain.items())
    sections: defaultdict[int, list[str]] = defaultdict(list)
    for module, _, text in sorted(lines, key=lambda line: (line[1] != "", _distance(line[0]), rank(line[1]))):
        sections[_section(module, package)].append(text)
    return "\n\n".join("\n".join(sections[number]) for number in sorted(sections))


def _distance(module: str) -> tuple[int, str]:
    """Return the key that sorts modules: relative names of far folders first."""
    return len(module.lstrip(".")) - len(module), _natural(module.lower())


def _section(module: str, package: str) -> int:
    """Return the section of a module: future, standard library, other packages, own package, relative."""
    top = module.partition(".")[0]
    return 4 if not top else 0 if top == "__future__" else 1 if top in sys.stdlib_module_names else 2 + (top == package)


def rank(name: str, *, lower: bool = True) -> tuple[int, str, str]:
    """Return the key that sorts names: constants, classes, functions and modules; capitals first if not `lower`."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, _natural(name.lower() if lower else name), name


def _natural(text: str) -> str:
    """Return the key that sorts numbers in texts by value."""
    return re.sub("[0-9]+", lambda digits: digits[0].zfill(20), text)

"""Jinja for all templates, and the format of generated code.

Undefined names are errors, docstrings are wrapped, literals are escaped. black writes code with the imports that it
uses.
"""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment

from .. import templates as emitted
from .imports import abi, imports, resolved, use

TEMPLATES = Path(__file__).parent / "templates"
WIDTH = 110


def docstring(text: str, indent: int = 4) -> str:
    """Return `text` as a Python docstring: quoted, escaped, and wrapped at `indent` columns; paragraphs are kept.

    The quotes of a text with several lines end on a line of their own, as in PEP 257. Lines have room for both quotes:
    the text that fits between them stays on one line, and the first line of a longer text is no longer than others.
    """
    pad = " " * indent
    plain = _printable(text).strip()
    safe = _escaped(plain)
    if "\n" not in safe and len(safe) + indent + 6 <= WIDTH:
        ends_loose = (len(plain) - len(plain.rstrip('"'))) % 3 > 0
        return f'"""{safe[:-1]}\\""""' if ends_loose else f'"""{safe}"""'
    lines = [_escaped(line) for part in _reflow(plain) for line in _wrap(part, WIDTH - indent - 6)]
    return '"""' + "\n".join(f"{pad}{line}" if line else "" for line in lines).lstrip() + f'\n{pad}"""'


def noticed(doc: str, deprecated: str) -> str:
    """Return a description with the notice that its subject, which no decorator can mark, is deprecated."""
    return f"{doc}\n\nDeprecated {deprecated}." if deprecated else doc


def arguments_section(docs: Mapping[str, str]) -> str:
    """Return the `Args` section of a docstring: argument -> words, of which every line is below its argument.

    It is empty if there are no words to see.
    """
    parts = {name: _reflow(_printable(text).strip()) for name, text in docs.items()}
    lines: list[str] = []
    for name, (first, *rest) in ((name, found) for name, found in parts.items() if found):
        lines += [f"    {name}: {first}", *(f"        {part}" if part else "" for part in rest)]
    return "\n".join(["Args:", *lines]) if lines else ""


def _escaped(text: str) -> str:
    """Return `text` as it is written inside of three quotes."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _printable(text: str) -> str:
    """Return `text` without characters that source code cannot hold, such as NUL and halves of surrogate pairs."""
    return "\n".join(line if line.isprintable() else "".join(map(_visible, line)) for line in text.splitlines())


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char.isspace() else ""


def _reflow(text: str) -> list[str]:
    """Join the lines of a paragraph; blank lines, list items and indented lines stay apart."""
    parts: list[str] = []
    for line in text.splitlines():
        is_apart = not line.strip() or line.startswith((" ", "- ", "* "))
        if is_apart or not parts or not parts[-1] or parts[-1].endswith(":"):
            parts.append(line.rstrip())
        else:
            parts[-1] += f" {line.strip()}"
    return parts


def _wrap(part: str, width: int) -> list[str]:
    margin = " " * (len(part) - len(part.lstrip()))
    hanging = "" if len(margin) > 4 and not part.lstrip().startswith(("- ", "* ")) else "    "
    return textwrap.wrap(part, width, subsequent_indent=f"{margin}{hanging}" if margin else "") or [""]


@cache
def environment(own: Path, templates: Path | None = None) -> Environment:
    """Return the environment of a folder of templates of Python code; arguments as in `emit.templates`."""
    found = emitted.environment(own, templates)
    names = {"abi": abi, "docstring": docstring, "imports": imports, "literal": repr, "quoted": quoted, "use": use}
    cast(Any, found).globals.update(names)
    return found


def render(template: str, templates: Path | None = None, **values: object) -> str:
    """Return the text of a template with `values` filled in.

    Args:
        template: Its name.
        templates: Folder of templates of a user, which take the place of ours.
        values: The variables of the template.

    Raises:
        BadInput: A template of the user cannot be rendered.
    """
    return emitted.render(environment(TEMPLATES, templates), template, templates, "docs/how-to/emitters.md", **values)


def quoted(text: str) -> str:
    """Return `text` as a string literal of Python in double quotes; invisible characters are escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in plain)


# --- layout -----------------------------------------------------------------------------------------------------------


def style(code: str, package: str = "") -> str:
    """Return `code` as black formats it; `package` as in `resolved`."""
    return _formatted("code.py", resolved(code, package))


def style_files(files: Mapping[str, str]) -> dict[str, str]:
    """Return the Python files of a package as black formats them, without configuration of the user.

    Args:
        files: File name -> text.

    Raises:
        SyntaxError: A file is not Python; its `filename` is the name.
    """
    return {name: _formatted(name, resolved(text)) for name, text in files.items()}


def _formatted(name: str, text: str) -> str:
    from black import format_str  # it takes time to load
    from black.mode import Mode, TargetVersion
    from black.parsing import InvalidInput

    try:
        return format_str(text, mode=Mode({TargetVersion.PY311}, WIDTH))
    except InvalidInput:
        ast.parse(text, name)
        raise

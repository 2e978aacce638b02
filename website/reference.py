"""Reference pages, generated from the code: command line, Python API, rules of `diff`, errors, limits."""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from docstring_parser import Docstring, DocstringStyle, parse

from mcp_bindgen.cli.app import app as command_line
from mcp_bindgen.diff.finding import RULES, Impact, Rule

from .markdown import Pages, block, code, page, plain, table

ROOT = Path(__file__).parents[1]
_MAX_LINE_CHARS = 100
_PACKAGE_ROW = re.compile(r"^\| `(mcp_bindgen[\w.]+)` \| `?(\w*)`? ?\|$", re.MULTILINE)


def reference() -> Pages:
    """Return all generated pages of the reference."""
    return {
        "reference/cli.md": cli(),
        "reference/diff-rules.md": diff_rules(),
        "reference/errors.md": errors(),
        "reference/limits.md": limits(),
        **api(),
    }


# --- command line ---------------------------------------------------------------------------------------------


def cli() -> str:
    """Return the page of all commands."""
    root = typer.main.get_command(command_line)
    context = typer.Context(root, info_name="mcp-bindgen")
    parts = [
        "Each command has `--help`. Exit codes are the same in all commands: 0 for success, 1 for a check that found "
        "something or a server that refused, 2 for wrong usage and unusable input. "
        "[Errors](errors.md) lists the messages.",
    ]
    found = list(_commands(root, context, "mcp-bindgen"))
    parts.append(table(["command", "effect"], [(f"[`{name}`](#{_anchor(name)})", _first(one)) for name, one in found]))
    parts += [_command(name, one) for name, one in found]
    return page("Command line", *parts)


def _commands(group: Any, context: typer.Context, name: str) -> Iterator[tuple[str, Any]]:
    for child in group.list_commands(context):
        command, full = group.get_command(context, child), f"{name} {child}"
        if hasattr(command, "list_commands"):
            yield from _commands(command, context, full)
        else:
            yield full, command


def _anchor(name: str) -> str:
    return name.removeprefix("mcp-bindgen ").replace(" ", "-")


def _first(command: Any) -> str:
    return plain(" ".join((command.help or "").partition("\n\n")[0].split()))


def _command(name: str, command: Any) -> str:
    text, _, examples = inspect.cleandoc(command.help or "").partition("Examples:")
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join([name, *("[OPTIONS]" for _ in options[:1]), *(_argument(one) for one in arguments)])
    parts = [
        f"## {code(name)} {{ #{_anchor(name)} }}",
        "\n\n".join(plain(" ".join(each.split())) for each in text.split("\n\n")),
        block(usage, "text"),
        table(["argument", "meaning"], [(code(_argument(one)), plain(one.help or "")) for one in arguments]),
        table(["option", "meaning"], [_option(one) for one in options]),
    ]
    if shown := re.findall(r"^`([^`]*)`(.*(?:\n(?!`|\n).*)*)", examples, re.MULTILINE):
        lines = [f"- `{one}`{plain(' ' + ' '.join(more.split()) if more.strip() else '')}" for one, more in shown]
        parts.append("\n".join(["Examples:", "", *lines]))
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def _argument(one: Any) -> str:
    name = one.metavar or str(one.name).upper()
    return f"{name}..." if one.nargs == -1 else name


def _option(one: Any) -> tuple[str, str]:
    names = ", ".join(code(name) for name in one.opts)
    if one.secondary_opts:
        names += " / " + ", ".join(code(name) for name in one.secondary_opts)
    if not one.is_flag and one.metavar:
        names += f" {code(one.metavar)}"
    default = one.default
    shown = not one.is_flag and isinstance(default, str | int | float) and str(default)
    more = f" Default: {code(str(default))}." if shown else ""
    many = " You can give it several times." if one.multiple else ""
    return names, plain(one.help or "") + more + many


# --- rules of diff --------------------------------------------------------------------------------------------

_PAIRINGS = ("old client, new server", "new client, old server")


def diff_rules() -> str:
    """Return the page of rules, with an anchor for each."""
    return page(
        "Rules of diff",
        "Each finding of `mcp-bindgen diff` has one of these rules. Rules have stable names, for `--ignore` and for "
        "accepted findings. The impact depends on the side that sends the changed message. "
        "*Breaks*: the receiver rejects some messages. *Risky*: the receiver accepts them, but may misinterpret them. "
        "*Ignored*: the receiver ignores the value. *Safe*: no effect. *None*: not visible on the wire.",
        table(
            ["rule", "worst impact", "visible in"],
            [(f"[`{rule.id}`](#{rule.id})", _worst(rule).name.lower(), rule.plane) for rule in RULES.values()],
        ),
        *(_rule(rule) for rule in RULES.values()),
    )


def _worst(rule: Rule) -> Impact:
    return max(*rule.client, *rule.server)


def _rule(rule: Rule) -> str:
    rows = [
        (f"sent by {side}s", *(impact.name.lower() for impact in impacts))
        for side, impacts in (("client", rule.client), ("server", rule.server))
    ]
    mirror = f" In the other direction: [`{rule.mirror}`](#{rule.mirror})." if rule.mirror != rule.id else ""
    says = rule.says.format(old="*old*", new="*new*")
    return "\n\n".join(
        [
            f"## {code(rule.id)} {{ #{rule.id} }}",
            f"The report says: “{says}”.{mirror}",
            table(["message", *_PAIRINGS], rows).strip() if rule.plane == "wire" else f"Visible in: {rule.plane}.",
            f"Fix: {rule.hint}",
        ]
    )


# --- errors ---------------------------------------------------------------------------------------------------


def errors() -> str:
    """Return the page of exit codes and messages."""
    found = sorted(set(_messages()))
    return page(
        "Errors and exit codes",
        "The command line ends with one of three codes.",
        table(
            ["exit code", "meaning"],
            [
                ("0", "The command did its work, and a check found nothing."),
                ("1", "A check found something, a server refused or failed, or you declined a question."),
                ("2", "Wrong usage or unusable input. One line on stderr names the place, the problem and a fix."),
            ],
        ),
        "A line of code 2 has this form; file and JSON Pointer are left out where there are none:",
        block("error: FILE#POINTER: PROBLEM; FIX", "text"),
        "[JSON-RPC errors](../atlas/errors.md) of the protocol are in the atlas. "
        "These are the problems with their fixes, by package. An ellipsis stands for a name or a value.",
        *(
            f"## {code(package)} {{ #{package.rpartition('.')[2]} }}\n\n"
            + table(["problem", "fix"], [(plain(text), plain(fix)) for owner, text, fix in found if owner == package])
            for package in dict.fromkeys(owner for owner, *_ in found)
        ),
    )


def _messages() -> Iterator[tuple[str, str, str]]:
    """Yield package, problem and fix of each `BadInput` that the code raises with a text of its own."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for root in settings["tool"]["hatch"]["build"]["dev-mode-dirs"]:
        for path in sorted((ROOT / root).rglob("*.py")):
            package = ".".join(path.relative_to(ROOT / root).parts[:2]).removesuffix(".py")
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "BadInput" and node.args:
                    fix = next((word.value for word in node.keywords if word.arg == "fix"), None)
                    if text := _text(node.args[0]):
                        yield package, text, _text(fix) or ""


def _text(node: ast.expr | None) -> str | None:
    """Return a text with an ellipsis for each expression in it; None if it has no words of its own."""
    match node:
        case ast.Constant(str(value)):
            return value
        case ast.JoinedStr(values):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in values]
            text = "".join(map(str, parts))
            return text if re.search("[a-z]{2}", text) else None
        case _:
            return None


# --- limits ---------------------------------------------------------------------------------------------------


def limits() -> str:
    """Return the page of all classes of limits with their defaults."""
    classes = {
        one.__name__: (package, one)
        for package in packages()
        for name, one in _names(package)
        if inspect.isclass(one) and name.endswith("Limits") and dataclasses.is_dataclass(one)
    }
    return page(
        "Limits",
        "Every limit has a default that suits a server on the internet. "
        "[Security](../explanation/security.md#limits-of-servers) describes the answers to requests beyond them.",
        *(
            f"## {code(name)} {{ #{name.lower()} }}\n\n`from {package} import {name}`\n\n{_describe(one)}"
            for name, (package, one) in sorted(classes.items())
        ),
    )


# --- Python API -----------------------------------------------------------------------------------------------


def packages() -> list[str]:
    """Return the public packages in the order of the versions page."""
    text = (ROOT / "docs" / "versioning.md").read_text("utf-8")
    return [name for name, _ in _PACKAGE_ROW.findall(text)]


def api() -> Pages:
    """Return a page for each public package, and their index."""
    pages: Pages = {}
    rows: list[tuple[str, str, str]] = []
    for package in packages():
        module = importlib.import_module(package)
        file = package.removeprefix("mcp_bindgen.")
        pages[f"reference/api/{file}.md"] = page(
            code(package),
            _text_of(parse(inspect.getdoc(module) or "", DocstringStyle.GOOGLE)),
            *(_name(package, name, one) for name, one in _names(package)),
        )
        shown = ", ".join(f"[`{name}`]({file}.md#{name})" for name, _ in _names(package))
        rows.append((f"[`{package}`]({file}.md)", shown, ""))
    pages["reference/api/index.md"] = page(
        "Python API",
        "All public names, by package. [Versions](../../versioning.md) has the extra that each package needs.",
        table(["package", "names"], [row[:2] for row in rows]),
        "The types of a revision have the names of the "
        "[definitions in the protocol atlas](../../atlas/definitions/index.md): "
        "`mcp_bindgen.v2026_07_28.types.Tool` is `Tool`.",
    )
    return pages


def _names(package: str) -> Iterator[tuple[str, Any]]:
    """Yield the public names with their values: first those that the docstring names, last those that are no code."""
    module = importlib.import_module(package)
    named = re.findall(r"`(\w+)\b[^`]*`", inspect.getdoc(module) or "")

    def place(one: tuple[str, Any]) -> tuple[int, bool, str]:
        name, value = one
        at = named.index(name) if name in named else len(named)
        return at, not (inspect.isclass(value) or inspect.isroutine(value)), name.lower()

    yield from sorted(((name, getattr(module, name)) for name in module.__all__), key=place)


def _name(package: str, name: str, value: Any) -> str:
    if inspect.ismodule(value):
        return f"## {code(name)} {{ #{name} }}\n\n{plain(inspect.getdoc(value) or 'Module.')}"
    is_described = inspect.isclass(value) or inspect.isroutine(value)
    parts = [f"## {code(name)} {{ #{name} }}"]
    if is_described:
        parts += [block(_signature(name, value), "python"), _describe(value)]
    else:
        parts.append(f"{code(_one_line(repr(value)))}" if not _is_type(value) else f"Type: {code(_shown(value))}")
        parts.append(_text_of(parse(_docstring(name, value), DocstringStyle.GOOGLE)))
    if inspect.isclass(value):
        parts += [_member(name, *one) for one in _members(value)]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def _docstring(name: str, value: object) -> str:
    """Return the text below the assignment of a name; by default, what the class of a generated value says."""
    for module in [one for key, one in sorted(sys.modules.items()) if key.startswith("mcp_bindgen.")]:
        if vars(module).get(name) is value and not module.__name__.startswith("mcp_bindgen.v"):
            body = ast.parse(inspect.getsource(module)).body
            for assigned, text in itertools.pairwise(body):
                targets = assigned.targets if isinstance(assigned, ast.Assign) else [getattr(assigned, "target", None)]
                match targets[0], text:
                    case ast.Name(id), ast.Expr(ast.Constant(str(found))) if id == name:
                        return inspect.cleandoc(found)
                    case _:
                        pass
    is_ours = type(value).__module__.startswith("mcp_bindgen.")
    return (inspect.getdoc(type(value)) or "").partition("\n\n")[0] if is_ours else ""


def _is_type(value: Any) -> bool:
    return hasattr(value, "__origin__") or hasattr(value, "__value__") or hasattr(value, "__args__")


def _shown(value: Any) -> str:
    return _one_line(str(getattr(value, "__value__", value)))


def _one_line(text: str) -> str:
    text = re.sub(r"\bmcp_bindgen\.[\w.]+\.(?=\w)|<class '([\w.]+)'>| at 0x\w+", r"\1", text)
    return text if len(text) <= 100 else text[:97] + "..."


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield public methods and properties, but no fields, that the class or a base in this project defines."""
    seen: dict[str, Any] = {}
    fields: dict[str, Any] = getattr(owner, "__dataclass_fields__", {})
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("mcp_bindgen."):
            seen |= {name: one for name, one in vars(base).items() if not name.startswith("_")}
    for name, one in seen.items():
        inner: Any = getattr(one, "__func__", one)  # of class methods and static methods
        if name not in fields and (inspect.isfunction(inner) or isinstance(inner, property)):
            yield name, inner


def _member(owner: str, name: str, value: Any) -> str:
    heading = f"### {code(f'{owner}.{name}')} {{ #{owner}.{name} }}"
    if isinstance(value, property):
        return f"{heading}\n\n*Property.* {_describe(value)}".strip()
    return "\n\n".join([heading, block(_signature(name, value), "python").strip(), _describe(value)]).strip()


def _signature(name: str, value: Any) -> str:
    prefix = "class " if inspect.isclass(value) else "async def " if inspect.iscoroutinefunction(value) else "def "
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return "\n".join([f"class {name}(Enum):", *(f"    {one.name} = {one.value!r}" for one in value)])
    if getattr(value, "_is_protocol", False):
        return f"class {name}(Protocol)"
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{prefix}{name}"
    shown = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    parameters = list(_parameters(shown))
    ends = inspect.isclass(value) or signature.return_annotation is inspect.Signature.empty
    returns = "" if ends else f" -> {_annotation(signature.return_annotation)}"
    line = f"{prefix}{name}({', '.join(parameters)}){returns}"
    if len(line) <= _MAX_LINE_CHARS:
        return line
    return "\n".join([f"{prefix}{name}(", *(f"    {one}," for one in parameters), f"){returns}"])


def _parameters(found: list[inspect.Parameter]) -> Iterator[str]:
    marks: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    is_keyword_only = False
    for at, one in enumerate(found):
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword_only:
            yield "*"
        is_keyword_only |= one.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
        text = marks.get(one.kind, "") + one.name
        has_type = one.annotation is not inspect.Parameter.empty
        if has_type:
            text += f": {_annotation(one.annotation)}"
        if one.default is not inspect.Parameter.empty:
            text += f" = {_default(one.default)}" if has_type else f"={_default(one.default)}"
        yield text
        following = found[at + 1].kind if at + 1 < len(found) else None
        if one.kind is inspect.Parameter.POSITIONAL_ONLY and following is not inspect.Parameter.POSITIONAL_ONLY:
            yield "/"


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:mcp_bindgen|collections\.abc|typing|pydantic)\.(?:[a-z_]\w*\.)*(?=\w)", "", text)
    return re.sub(r"Annotated\[Any, <[\w.]+ object at 0x\w+>\]", "Json", text)


def _default(value: Any) -> str:
    text = re.sub(r"<[^<>]* at 0x\w+>", "...", repr(value))
    return value.__name__ if inspect.isclass(value) else "..." if text.startswith("<") else text


def _describe(value: Any) -> str:
    """Return the docstring of a name as Markdown: text, then tables of parameters, attributes and errors."""
    found = parse(inspect.getdoc(value) or "", DocstringStyle.GOOGLE)
    defaults = _defaults(value)
    parts = [_text_of(found)]
    for title, kinds in (("parameter", {"param", "keyword"}), ("attribute", {"attribute"})):
        rows = [
            (code(one.arg_name), plain(one.description or ""), defaults.get(one.arg_name, ""))
            for one in found.params
            if one.args[0] in kinds
        ]
        head = [title, "meaning", "default"]
        parts.append(table(head, rows) if any(row[2] for row in rows) else table(head[:2], [row[:2] for row in rows]))
    if found.returns and found.returns.description:
        parts.append(f"Returns: {plain(found.returns.description)}")
    errors = [(code(one.type_name or ""), plain(one.description or "")) for one in found.raises]
    parts.append(table(["error", "cause"], errors))
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def _defaults(value: Any) -> dict[str, str]:
    """Field -> default of a dataclass."""
    if not (inspect.isclass(value) and dataclasses.is_dataclass(value)):
        return {}
    return {
        one.name: code(f"{one.default:,}" if type(one.default) is int else repr(one.default))
        for one in dataclasses.fields(value)
        if one.default is not dataclasses.MISSING and len(repr(one.default)) < 40 and not callable(one.default)
    }


def _text_of(found: Docstring) -> str:
    paragraphs = "\n\n".join(filter(None, (found.short_description, found.long_description))).split("\n\n")
    return "\n\n".join(one if one.startswith("    ") else plain(one) for one in paragraphs)

"""Find the uses of changed names: the errors of a type checker that only the new bindings cause.

The code is checked twice, as it is, with other bindings under the name that it imports. The first run has the old
bindings with marks (`overlay`): it finds the handlers, the questions, and the errors that the code has anyway. The
second run has the new bindings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mcp_bindgen.conversion.rules import Rules
from mcp_bindgen.diff.finding import Comparison

from . import overlay
from .changes import MAPPING, SHAPE, Changes, owners
from .checker import Checked, Diagnostic, check
from .files import Located, Module
from .repeats import Asked, repeats
from .result import Change, Edit, EditKind, Place, Use

_FINAL = re.compile(r'Cannot override final attribute "(\w+)" \(previously declared in base class "(\w+)"\)')
_MARKED = re.compile(r"function [\w.]+\.(\w+)\.(\w+) is deprecated: $")
_TARGET = r'(?: to| for(?: overloaded function)?| in call to) "(?P<function>\w+)"(?: of "(?P<owner>[\w.]+)")?'
_SUPER = r'(?:with|in) supertype "(?:[\w.]+\.)?(?P<owner>\w+)"'
_BINDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
"""Expressions that code around them relies on."""

_REVISION = re.compile(r"\bv\d{4}_\d\d_\d\d\b")
_TYPES = re.compile(rb"\b(self|cls)\.types(?=\.[A-Z])")
_HINT = re.compile(r"; (maybe|did you mean|expected) .*")


@dataclass(frozen=True)
class Handler:
    """A method that overrides a handler of `owner`, a class of the bindings."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str

    @property
    def name(self) -> str:
        """The name in the bindings."""
        return f"{self.owner}.{self.node.name}"

    @property
    def parameters(self) -> list[ast.arg]:
        """The parameters after `self`."""
        return self.node.args.args[1:]


Said = dict[str, str | Any]
"""The groups of a message; a group that is absent is `None`."""

Handlers = Mapping[tuple[Path, int], Handler]
"""File and line -> the handler that starts there."""


@dataclass(frozen=True)
class Found:
    """The outcome of an analysis.

    Attributes:
        uses: The uses of changed names, in the order of files and lines.
        blocked: Files that the type checker cannot read, and the reasons.
    """

    uses: tuple[Use, ...]
    blocked: Mapping[Path, str] = field(default_factory=dict[Path, str])


class Analysis:
    """Checks of the code of a project against new bindings.

    Args:
        comparison: The old revision compared with the new one.
        root: The folder of the code, or one file.
        package: The import name of the bindings.
        rules: The rules of `bridges.toml`.
    """

    def __init__(self, comparison: Comparison, root: Path, package: str, rules: Rules) -> None:
        self.changes = Changes(comparison, rules)
        self._root, self._package = root, package
        self._before: set[tuple[Path, str]] | None = None
        self._kept = self.changes.kept
        """The members that the new bindings hide at first: uses are rewritten once."""
        old, self._new = (overlay.bindings(one, package) for one in (comparison.old, comparison.new))
        self._old = overlay.marked(old, self.changes)
        self._signatures = [overlay.signatures(one, package) for one in (old, self._new)]

    def find(self, modules: Mapping[Path, Module], context: Mapping[Path, bytes]) -> Found:
        """Return the uses in some modules; `context` has other files that they import."""
        package = self._package.rpartition(".")[2].encode()
        texts = [*(one.raw for one in modules.values()), *context.values()]
        if not modules or not any(package in text for text in texts):
            return Found(())
        known, handlers = self._with_old(modules, context, {})
        if any(one.annotation is None for handler in handlers.values() for one in handler.parameters):
            known, handlers = self._with_old(modules, context, handlers)
        names = {place: one.name for place, one in handlers.items()}
        if self._before is None:
            self._before = {(one.file, _plain(one)) for one in known.diagnostics}
        code = {path: self._annotated(module, handlers, self._signatures[1]) for path, module in modules.items()}
        checked = check({**code, **context}, self._root, overlay.without(self._new, self._kept), "new")
        wrong = {(one.file, one.line, one.offset): one.code for one in known.diagnostics if one.code != "deprecated"}
        kept, self._kept = self._kept, set[tuple[str, str]]()
        bases = _Bases(self.changes, modules.values())
        blocked = known.blocked | checked.blocked
        uses: dict[Use, None] = {}
        asked: list[Asked] = []
        for one in known.diagnostics:
            if one.code == "deprecated" and one.file in modules and (match := _MARKED.search(one.message)):
                owner, short = match.groups()
                change = self.changes.asking.get(short) if owner == "Context" else None
                if change is not None:
                    asked.append(Asked(one.file, one.line, one.offset, change))
                name = f"{owner}.{short}"
                change = (change if name in self.changes.old.stubs else None) or self.changes.guarded.get(name)
                if change is not None:
                    uses[Use(modules[one.file].tail(one.line, one.offset, short), name, change)] = None
        for (path, _), handler in handlers.items():
            change = self.changes.gone_handlers.get(handler.name)
            if change is not None:
                uses[Use(modules[path].header(handler.node), handler.name, change)] = None
        for one in checked.diagnostics:
            codes = wrong.get((one.file, one.line, one.offset), ""), one.code
            is_wrong = codes[0] and (kept or "call-overload" in codes)  # overloads have other messages for a wrong call
            is_known = is_wrong or (one.file, _plain(one)) in self._before
            if one.file in modules and not is_known and one.code != "deprecated":
                uses |= dict.fromkeys(_Reader(self.changes, modules[one.file], one, self._package, bases).uses())
        for module in modules.values():
            uses |= dict.fromkeys(self._quoted(module, bases) if package in module.raw else ())
        uses |= dict.fromkeys(repeats(modules, names, asked, self.changes))
        blocked = {path: why for path, why in blocked.items() if path in modules}
        return Found(tuple(sorted(uses, key=lambda use: use.position)), blocked)

    def _with_old(
        self, modules: Mapping[Path, Module], context: Mapping[Path, bytes], handlers: Handlers
    ) -> tuple[Checked, Handlers]:
        """Check the code with the old bindings, and return the errors and the handlers."""
        code = {path: self._annotated(module, handlers, self._signatures[0]) for path, module in modules.items()}
        checked = check({**code, **context}, self._root, self._old, "old")
        found: dict[tuple[Path, int], Handler] = {}
        for one in checked.diagnostics:
            match = _FINAL.match(one.message)
            if match is not None and one.file in modules:
                for node in ast.walk(modules[one.file].tree):
                    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == match[1]:
                        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                        if first <= one.line <= node.lineno:
                            found[one.file, node.lineno] = Handler(node, match[2])
        return checked, found

    def _quoted(self, module: Module, bases: _Bases) -> Iterator[Use]:
        """Yield uses that no type checker sees: literals with the names of members that are gone or elsewhere."""
        any_class = self.changes.names.keys() - {one.definition for one in self.changes.old.protocol.methods}
        for owner, node in (found for one in ast.walk(module.tree) for found in _literals(one)):
            for definition in bases.of(owner) if owner else sorted(any_class):
                names = {
                    key: one.name for one in self.changes.old.fields(definition) for key in (one.name, one.field.wire)
                }
                change = self.changes.field(definition, names.get(str(node.value), ""), gives=True)
                if change is not None and change.kind in ("gone", "renamed"):
                    yield Use(module.place_of(node), f"types.{definition}.{names[str(node.value)]}", change)
                    break

    def _annotated(self, module: Module, handlers: Handlers, signatures: Mapping[str, list[str]]) -> bytes:
        """Return the code with annotations for bare parameters of handlers, and with modules for `self.types`."""
        added: list[tuple[int, int, str]] = []
        for (path, _), handler in handlers.items():
            types = signatures.get(handler.name, []) if path == module.path else []
            for parameter, type in zip(handler.parameters, types, strict=False):
                if parameter.annotation is None and len(handler.parameters) == len(types):
                    end = parameter.end_lineno or parameter.lineno, parameter.end_col_offset or 0
                    added.append((*end, f': "{type}"'))
        last = self._package.rpartition(".")[2]
        is_only = {*_REVISION.findall(module.text)} <= {last}  # then `self.types`, an `Any`, holds this module
        lines = [_TYPES.sub(rb"\1_types", one) if is_only else one for one in module.lines]
        if not added and lines == module.lines:
            return module.raw
        for line, offset, text in sorted(added, reverse=True):
            lines[line - 1] = lines[line - 1][:offset] + text.encode() + lines[line - 1][offset:]
        modules = "client", "server", "types as self_types", "types as cls_types"
        imports = f"\nimport {', '.join(f'{self._package}.{one}' for one in modules)}\n"
        return (b"".join(lines).decode() + imports).encode(module.encoding)


def _plain(found: Diagnostic) -> str:
    """Return the message of a diagnostic without hints at similar names."""
    return _HINT.sub("", found.message)


def _literals(node: ast.AST) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the literals of a call that name members, and its class; empty if the call does not say the class."""
    match node:
        case ast.Call(
            func=ast.Name("getattr" | "hasattr" | "setattr" | "delattr"), args=[_, ast.Constant() as name, *_]
        ):
            yield "", name
        case ast.Call(func, arguments, keywords):
            of = ast.unparse(func).split(".")
            method = of.pop() if of[-1] in ("model_validate", "model_construct", "model_copy") else ""
            owner = "" if method == "model_copy" else of[-1] if of else ""
            given = [*(arguments if method == "model_validate" else ())]
            given += [one.value for one in keywords if one.arg == ("update" if method == "model_copy" else None)]
            keys = (key for one in given if isinstance(one, ast.Dict) for key in one.keys)
            yield from ((owner, key) for key in keys if isinstance(key, ast.Constant))
        case _:
            pass


class _Bases:
    """The classes and aliases of a project, and the classes of the old bindings behind them."""

    def __init__(self, changes: Changes, modules: Iterable[Module]) -> None:
        self._changes, self._behind = changes, dict[str, list[str]]()
        for node in (node for module in modules for node in ast.walk(module.tree)):
            match node:
                case ast.ClassDef(name=name, bases=bases):
                    self._behind[name] = [ast.unparse(base).rpartition(".")[2] for base in bases]
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as base):
                    self._behind.setdefault(name, [ast.unparse(base).rpartition(".")[2]])
                case _:
                    pass

    def of(self, name: str, above: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield the old names of a class, or of the classes that a class of the project inherits."""
        yield from self._changes.before(name)
        if name not in self._changes.new.protocol.definitions and name not in above:
            for base in self._behind.get(name, ()):
                yield from self.of(base, (*above, name))


class _Reader:
    """Reads one diagnostic.

    Args:
        changes: The changes between the bindings.
        module: The file that it is about.
        found: The diagnostic.
        package: The import name of the bindings.
        bases: The classes of the project.
    """

    def __init__(self, changes: Changes, module: Module, found: Diagnostic, package: str, bases: _Bases) -> None:
        self._changes, self._module, self._found = changes, module, found
        self._package, self._bases = package, bases

    def uses(self) -> Iterator[Use]:
        """Return the uses that explain the diagnostic; without an explanation, the message of the type checker."""
        for rule, read in _RULES:
            match = rule.match(self._found.message)
            found = list(read(self, match.groupdict())) if match is not None else []
            if found:
                yield from found
                return
        hint = f"mypy reports it with the bindings of {self._changes.new.protocol.revision} only."
        change = Change("changed", "type-error", self._found.code, "", self._found.message, hint)
        yield Use(self._place(), "", change)

    @property
    def _start(self) -> tuple[int, int]:
        return self._found.line, self._found.offset

    def _nodes(self) -> list[Located]:
        return self._module.nodes.get(self._start, [])

    def _edit(self, kind: EditKind, old: str, new: str = "") -> Edit:
        return Edit(kind, *self._start, old, new)

    def name(self, names: Said) -> Iterator[Use]:
        """Read a name that a module does not have."""
        name = names["name"]
        modules = [ast.unparse(one.value) for one in self._nodes() if isinstance(one, ast.Attribute)]
        fates = [("types", self._changes.definition(name)), ("errors", self._changes.error(name))]
        fates += [("methods", self._changes.member(f"methods.{name}"))]
        fates.sort(key=lambda fate: not any(one.endswith(fate[0]) for one in modules))
        for module, change in fates:
            if change is not None and change.kind != "changed":
                node = self._module.named(*self._start, name)
                line, offset = (node.lineno, node.col_offset) if node is not None else self._start
                is_edited = change.kind == "renamed" and node is not None
                edit = Edit("rename", line, offset, name, change.new) if is_edited else None
                yield Use(self._module.tail(line, offset, name), f"{module}.{name}", change, edit)
                return

    def member(self, names: Said) -> Iterator[Use]:
        """Read a member that a class does not have."""
        owner, name = names["owner"], names["name"]
        for label, change in self._fates(owner, name):
            edit = None
            if change.kind == "renamed" and label.endswith(f".{name}"):
                nodes, is_union = {*self._nodes()}, self._found.message.startswith("Item ")
                classes = (one for one in ast.walk(self._module.tree) if isinstance(one, ast.MatchClass))
                here = [one for one in classes if name in one.kwd_attrs and nodes & {one, *one.kwd_patterns}]
                edit = self._by_rule(label, name, here or ([] if is_union else self._attributes(name)))
                if edit is None and change.new.isidentifier():
                    edit = self._edit("rename", name, change.new)
            if change.rule == "field-opened" and self._reads(name):
                wire = change.new.partition("'")[2].rstrip("'")
                edit = self._edit("extra", name, wire)
            elif change.rule == "notification-removed":
                edit = self._statement()
            yield Use(self._tail(name), label, change, edit)
            return

    def _by_rule(self, label: str, name: str, nodes: Iterable[ast.AST]) -> Edit | None:
        """Return the edit of the use of a member by a rule: of an attribute, a constructor or a class pattern."""
        definition, recipes = re.split(r"\W", label)[1], self._changes.recipes
        found = (recipes.edits(definition, name, self._module, node, self._package) for node in nodes)
        spans = next(filter(None, found), ())
        return Edit("rule", *self._start, name, spans=spans) if spans else None

    def _reads(self, name: str) -> bool:
        return any(isinstance(one.ctx, ast.Load) for one in self._attributes(name))

    def _attributes(self, name: str) -> list[ast.Attribute]:
        return [one for one in self._nodes() if isinstance(one, ast.Attribute) and one.attr == name]

    def _statement(self) -> Edit | None:
        """Return the removal of the statement that consists of the call in question."""
        for node in ast.walk(self._module.tree):
            call = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Await) else None
            if isinstance(node, ast.Expr) and isinstance(call, ast.Call) and call.func in self._nodes():
                return Edit("statement", node.lineno, node.col_offset, "")
        return None

    def _fates(self, owner: str, name: str) -> Iterator[tuple[str, Change]]:
        """Yield the changes that may explain a missing member of a class, which may be a subclass of the user."""
        for one in self._bases.of(owner):
            change = self._changes.field(one, name, gives=False)
            if change is not None:
                yield f"types.{one}.{name}", change
        classes = owners() if owner else ("Server", *owners())
        for one in sorted(classes, key=lambda one: one != owner):
            change = self._changes.member(f"{one}.{name}")
            if change is not None and change.kind != "changed":
                yield f"{one}.{name}", change
        for one in self._changes.old.protocol.definitions:
            change = self._changes.field(one, name, gives=False)
            whole = self._changes.definition(one) if self._changes.new.is_alias(one) else None
            if change is not None and whole is not None:
                yield f"types.{one}", whole
            elif change is not None and (change.kind != "changed" or change.rule == "field-opened"):
                yield f"types.{one}.{name}", change

    def _tail(self, name: str) -> Place:
        return self._module.tail(*self._start, name)

    def _call(self) -> ast.Call | None:
        return next((one for one in self._nodes() if isinstance(one, ast.Call)), None)

    def _arguments(
        self, names: Said, argument: str | int, *, missing: bool = False
    ) -> Iterator[tuple[str, str, Change]]:
        """Return label, old name and fate of an argument of a constructor or a call, which may be missing."""
        function, owner = names["function"], names["owner"]
        if owner is None:
            is_known = function in self._changes.new.protocol.definitions
            known = list(self._bases.of(function)) or ([] if is_known else self._changes.old.protocol.definitions)
            for one in known:
                name = str(argument)
                needed = self._changes.needed(one, name)
                change = needed if missing else self._changes.field(one, name, gives=True) or needed
                if change is not None:
                    yield f"types.{one}({argument}=)", str(argument), change
            return
        for one in sorted(owners(), key=lambda one: one != owner):
            found = self._changes.argument(name := f"{one}.{function}", argument, missing=missing)
            if found is not None:
                yield name if found[1].rule == SHAPE else f"{name}({found[0]}=)", *found

    def unexpected(self, names: Said) -> Iterator[Use]:
        """Read a keyword that a constructor or call does not take."""
        name = names["name"]
        for label, _, change in self._arguments(names, name):
            if change.rule == SHAPE:
                yield self._shape(label, change, self._call())
                return
            if change.kind in ("gone", "renamed"):
                calls = [one for one in self._nodes() if isinstance(one, ast.Call)]
                calls.sort(key=lambda call: not ast.unparse(call.func).endswith(names["function"]))
                found = next(((call, one) for call in calls for one in call.keywords if one.arg == name), None)
                place, edit = self._place(), None
                if found is not None:
                    call, keyword = found
                    place = self._module.place_of(keyword)
                    if change.kind == "renamed" and change.new.isidentifier():
                        edit = Edit("rename", keyword.lineno, keyword.col_offset, name, change.new)
                    elif change.kind == "renamed" and label.startswith("types."):
                        edit = self._by_rule(label, name, [call])
                    elif not change.new and not any(isinstance(one, _BINDING) for one in ast.walk(keyword)):
                        edit = Edit("drop", keyword.lineno, keyword.col_offset, name)
                yield Use(place, label, change, edit)
                return

    def missing(self, names: Said) -> Iterator[Use]:
        """Read arguments that have become mandatory."""
        for name in re.findall(r'"(\w+)"', names["name"]):
            for label, _, change in self._arguments(names, name, missing=True):
                if change.kind == "needed" or change.rule == SHAPE:
                    use, call, spans = self._shape(label, change, self._call()), self._call(), None
                    if call is not None and label.startswith("types.") and call not in self._module.formatted:
                        definition, recipes = re.split(r"\W", label)[1], self._changes.recipes
                        spans = recipes.needed(definition, name, self._module, call, self._package)
                        if spans is None:  # a value that moves there is in the way
                            break
                    yield replace(use, edit=Edit("rule", *self._start, name, spans=spans)) if spans else use
                    break

    def _shape(self, label: str, change: Change, call: ast.Call | None) -> Use:
        """Return a use of the function that is called."""
        return Use(self._module.place_of(call.func) if call is not None else self._place(), label, change)

    def argument(self, names: Said) -> Iterator[Use]:
        """Read an argument of another type."""
        index = names["name"] or int(names["index"]) - 1
        for label, _, change in self._arguments(names, index):
            if change.rule == SHAPE:
                yield self._shape(label, change, self._module.call_around(*self._start))
                return
            keyword = self._module.keyword_of(*self._start)
            edit = self._mapping() if change.new == MAPPING else None
            yield Use(self._module.place_of(keyword) if keyword else self._place(), label, change, edit)
            return

    def _mapping(self) -> Edit | None:
        """Return the edit that makes a constructor a dictionary, if it gives nothing but fields by keyword."""
        call = self._call()
        name = ast.unparse(call.func).rpartition(".")[2] if call is not None else ""
        if call is None or name not in self._changes.new.protocol.definitions or call.args:
            return None
        wires = {one.name: one.field.wire for one in self._changes.new.fields(name)}
        given = [wires.get(one.arg or "") for one in call.keywords]
        return self._edit("mapping", name, " ".join(map(str, given))) if None not in given else None

    def positional(self, names: Said) -> Iterator[Use]:
        """Read positional arguments that have become keywords."""
        call = self._call()
        for index, argument in enumerate(call.args if call is not None else ()):
            for label, name, change in self._arguments(names, index):
                if change.rule == SHAPE:
                    yield self._shape(label, change, call)
                    return
                if not isinstance(argument, ast.Starred) and change.new == "a keyword":
                    edit = Edit("keyword", *self._start, str(index), name)
                    yield Use(self._module.place_of(argument), label, change, edit)
                break

    def overloaded(self, names: Said) -> Iterator[Use]:
        """Read a call that fits no overload: the message does not say which argument is wrong."""
        yield from self.positional(names)
        call = self._call()
        for keyword in call.keywords if call is not None else ():
            yield from self.unexpected({**names, "name": keyword.arg}) if keyword.arg else ()

    def params(self, names: Said) -> Iterator[Use]:
        """Read an override whose parameters do not fit."""
        label = f"{names['owner']}.{names['name']}"
        change = self._changes.params(label)
        if change is not None:
            node = next((one for one in self._nodes() if isinstance(one, ast.arg)), None)
            wanted = re.fullmatch(r"Take (\w+)\.", change.hint)
            annotation = node.annotation if node is not None else None
            edit = None
            if wanted is not None and isinstance(annotation, ast.Attribute):
                edit = Edit("rename", annotation.lineno, annotation.col_offset, annotation.attr, wanted[1])
            yield Use(self._header(), label, change, edit)

    def returns(self, names: Said) -> Iterator[Use]:
        """Read an override whose result does not fit."""
        label = f"{names['owner']}.{names['name']}"
        change = self._changes.member(label)
        if change is not None:
            yield Use(self._header(), label, change)

    def alias(self, names: Said) -> Iterator[Use]:
        """Read the use of a class that has become an alias."""
        for node in self._nodes():
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            change = self._changes.definition(name)
            if change is not None:
                yield Use(self._tail(name), f"types.{name}", change)
                return

    def _place(self) -> Place:
        return self._module.place(*self._start)

    def _header(self) -> Place:
        """Return the place of the name of the function that the diagnostic is about."""
        line = self._found.line
        around = [
            one
            for one in ast.walk(self._module.tree)
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.lineno <= line <= (one.end_lineno or 0)
        ]
        return self._module.header(around[-1]) if around else self._place()


_RULES: tuple[tuple[re.Pattern[str], Callable[[_Reader, Said], Iterator[Use]]], ...] = (
    (re.compile(r'Module (?:"[\w.]+" )?has no attribute "(?P<name>\w+)"'), _Reader.name),
    (re.compile(r'Name "(?:[\w.]+\.)?(?P<name>\w+)" is not defined'), _Reader.name),
    (
        re.compile(r'(?:"(?:TypeAliasType|<typing special form>)" (?:not|has)|Annotated\[\.\.\.\] m)'),
        _Reader.alias,
    ),
    (
        re.compile(r'(?:Item )?"(?:type\[)?(?P<owner>\w+)\]?"(?: of .*)? has no attribute "(?P<name>\w+)"'),
        _Reader.member,
    ),
    (re.compile(r'Class "(?:[\w.]+\.)?(?P<owner>\w+)" has no attribute "(?P<name>\w+)"'), _Reader.member),
    (re.compile(r'(?P<owner>)"(?P<name>\w+)" undefined in superclass'), _Reader.member),
    (re.compile(rf'Unexpected keyword argument "(?P<name>\w+)"{_TARGET}'), _Reader.unexpected),
    (re.compile(rf'Missing (?:named|positional) arguments? (?P<name>"\w+".*?){_TARGET}'), _Reader.missing),
    (re.compile(rf'Argument (?:"(?P<name>\w+)"|(?P<index>\d+)){_TARGET} has incompatible type'), _Reader.argument),
    (re.compile(rf"Too many (?:positional )?arguments{_TARGET}"), _Reader.positional),
    (re.compile(r'No overload variant of "(?P<function>\w+)" of "(?P<owner>\w+)"'), _Reader.overloaded),
    (re.compile(rf'(?:Argument \d+|Signature) of "(?P<name>\w+)" (?:is )?incompatible {_SUPER}'), _Reader.params),
    (re.compile(rf'Return type ".*" of "(?P<name>\w+)" incompatible with return type ".*" {_SUPER}'), _Reader.returns),
)
"""Message of mypy -> its reader; a reader without an answer leaves the message to the next one."""

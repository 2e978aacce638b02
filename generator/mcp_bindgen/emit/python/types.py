"""Emit `types.py`: datamodel-code-generator makes models of the schema, and our templates give them their form."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from datamodel_code_generator.enums import DataModelType
from datamodel_code_generator.format import PythonVersion
from datamodel_code_generator.imports import Import
from datamodel_code_generator.model import get_data_model_types
from datamodel_code_generator.model.pydantic_v2 import BaseModel
from datamodel_code_generator.model.type_alias import TypeAliasTypeBackport
from datamodel_code_generator.parser.jsonschema import JsonSchemaParser
from datamodel_code_generator.reference import FieldNameResolver
from datamodel_code_generator.types import DataType

from mcp_bindgen.ir.model import (
    AnyValue,
    Array,
    Const,
    Definition,
    Field,
    Map,
    Object,
    Protocol,
    Ref,
    Scalar,
    Type,
    Union,
    map_parts,
    parts,
    references,
    renamed,
)
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.spec import BadInput

from . import naming
from .annotations import CHECKED, annotation, optional
from .calls import classes, takes_any
from .environment import TEMPLATES, docstring, noticed, quoted, render
from .imports import ABI as _ABI
from .imports import imports, local, use
from .lowered import PythonProtocol
from .lowering import lower
from .package_scope import PackageScope

_EXTRA = "extra__"
_RESULT = "ExtensionResult"
"""Base class of results that extensions add to methods of the core."""

_KEYWORDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "pattern": "pattern",
}

_CLASSES = {
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\w": "[0-9A-Za-z_]",
    r"\W": "[^0-9A-Za-z_]",
    r"\s": r"[\s\u{feff}--\u{85}]",
    r"\S": r"[[^\s\u{feff}]\u{85}]",
    ".": r"[^\n\r\u{2028}\u{2029}]",
}
"""Character class of ECMA-262 -> the same in patterns of pydantic, whose classes are those of Unicode."""

_ESCAPE = re.compile(r"\\.")
_PART_OF_PATTERN = re.compile(r"\[(?:\\.|[^\]\\])*\]|\\.|\.")


@dataclass(frozen=True)
class Form:
    """The purpose of models: their base class, and their defaults.

    Attributes:
        base: The module of their base class, `Model`.
        defaults: Whether an optional field may have a default of its own; else it is `None`.
        origin: Id of the extension with the definitions; empty for the core and for contracts.
        core: Module of the core types, which extensions import.
        results: Definitions that are results of core methods, and have a base class of their own.
    """

    base: str
    defaults: bool
    origin: str = ""
    core: str = ""
    results: frozenset[str] = frozenset()


PROTOCOL = Form(base=_ABI, defaults=False)
"""The types of a revision."""

CONTRACT = Form(base="mcp_bindgen.app", defaults=True)
"""The types of a contract."""


def form_of(scope: PackageScope, core: str) -> Form:
    """Return the form of the types of a part of a protocol; `core` is the package with the bindings of the revision."""
    if not scope.origin:
        return PROTOCOL
    answers = [Ref(name) for _, definitions in scope.extension.alternatives for name in definitions]
    results = frozenset(name for answer in answers for name in classes(scope.protocol, answer))
    return replace(PROTOCOL, origin=scope.origin, core=f"{core}.types", results=results)


@dataclass(frozen=True)
class _Module:
    """A module of types."""

    protocol: PythonProtocol
    form: Form

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """The definitions that it has."""
        known = self.protocol.definitions.items()
        return {name: definition for name, definition in known if definition.origin == self.form.origin}

    @cached_property
    def imported(self) -> list[str]:
        """The definitions of the core that it imports."""
        used = {name for definition in self.definitions.values() for name in references(definition.type)}
        return sorted(used - self.definitions.keys())

    @cached_property
    def own(self) -> dict[str, str]:
        """Import -> its name in the module: private if the schema has a definition of that name."""
        if self.form.base != PROTOCOL.base:
            return {name: name for name in naming.IMPORTED}
        taken = {*self.definitions, *self.imported, *self.protocol.schema_names.values()}
        return {name: _private(name, taken) for name in naming.IMPORTED}

    @property
    def shadows(self) -> bool:
        """Whether a definition hides `typing.Annotated` (2024-11-05 has one of that name)."""
        return "Annotated" in (*self.definitions, *self.imported)

    @cached_property
    def recursive(self) -> dict[str, str]:
        """Name -> expression, of its aliases that contain themselves."""
        found = _recursive_aliases(self.protocol, self.scalars)
        return {name: local(expression) for name, expression in found.items() if name in self.definitions}

    @cached_property
    def scalars(self) -> dict[str, str]:
        """JSON type -> its name in the module."""
        return {kind: self.own.get(name, name) for kind, name in CHECKED.items()}

    @property
    def annotated(self) -> str:
        """The name of `typing.Annotated` there."""
        return "typing.Annotated" if self.shadows else "Annotated"


def emit(
    protocol: Protocol,
    header: str,
    form: Form = PROTOCOL,
    templates: Path | None = None,
    template: str = "types.py.jinja",
) -> str:
    """Return the text of `types.py`.

    Raises:
        BadInput: A definition has a name that is no good for a class.
    """
    module = _Module(lower(protocol), form)
    named = {alias: name for name, alias in module.protocol.schema_names.items() if name in module.definitions}
    aliases = {alias: named[alias] for alias in sorted(named) if naming.is_importable(alias)}
    return render(
        template,
        templates,
        header=header,
        title=PackageScope(module.protocol, form.origin).title,
        body=_body(module),
        alias_type=module.own["TypeAlias"],
        aliases=aliases,
        names=sorted({*module.definitions, *aliases}),
    )


def body(protocol: Protocol, form: Form = PROTOCOL) -> str:
    """Return the definitions alone, without the module around them; for modules that hold more than types.

    Raises:
        BadInput: A definition has a name that is no good for a class.
    """
    return _body(_Module(lower(protocol), form))


def _body(module: _Module) -> str:
    if not module.definitions:
        return ""
    late: dict[str, str] = {}
    tree = ast.parse(local(text := _models(module)))
    while found := dict(_quoted(tree)):
        late |= found
        tree = ast.parse(local(text := _models(replace(module, protocol=_without(module.protocol, late)))))
    _check_names({*_defined(tree.body), *late}, module)
    for name, target in late.items():
        doc = docstring(_doc(module.definitions[name]), indent=0)
        text += f"\n\n\n{name}: {use('typing', 'TypeAlias', module.own['TypeAlias'])} = {target}\n{doc}"
    return imports(lambda: "\n".join(_imports(tree, module))) + text


_ORIGINS = {
    **dict.fromkeys(("Annotated", "Literal", "Optional", "TYPE_CHECKING", "TypeAlias", "Union"), "typing"),
    "Field": "pydantic",
    "TypeAliasType": "typing_extensions",
}
"""Name in modules of types -> its module, if that is not the runtime's."""


def _imports(tree: ast.Module, module: _Module) -> Iterator[str]:
    """Yield the import statements of the names that datamodel-code-generator and our templates for it have used."""
    code = [tree, *map(ast.parse, module.recursive.values())]
    used = {node.id for part in code for node in ast.walk(part) if isinstance(node, ast.Name)}
    origins = dict.fromkeys(naming.IMPORTED, _ABI) | {"Model": module.form.base, **_ORIGINS}
    origins |= dict.fromkeys(module.imported, module.form.core)
    names = {module.own.get(name, name): f"from {origin} import {name}" for name, origin in origins.items()}
    yield from (f"{line} as {name}" for name, line in names.items() if name in used)
    yield from ["import typing"] if "typing" in used else []


class _KeptNames(FieldNameResolver):
    """Resolver that keeps the names of fields, which `naming.py` makes."""

    def get_valid_name(
        self,
        name: str,
        excludes: set[str] | None = None,
        ignore_snake_case_field: bool = False,
        upper_camel: bool = False,
    ) -> str:
        """Return `name`."""
        return name


class _WithoutImports:
    @property
    def imports(self) -> tuple[Import, ...]:
        """No imports: our template of the module has them, and finding them takes a fifth of the time."""
        return ()


class _DataModel(_WithoutImports, BaseModel):
    FIELD_NAME_RESOLVER_CLASS = _KeptNames
    SUPPORTS_FIELD_RENAMING = False


class _Alias(_WithoutImports, TypeAliasTypeBackport):
    pass


class _Parser(JsonSchemaParser):
    def parse_any_of(self, name: str, obj: Any, path: list[str]) -> list[DataType]:
        """Parse the members of a union one by one; looking for what they have in common takes a twelfth of the time."""
        return [self.parse_item(name, member, [*path, str(index)]) for index, member in enumerate(obj.anyOf)]


def _models(module: _Module) -> str:
    kinds = get_data_model_types(DataModelType.PydanticV2BaseModel, PythonVersion.PY_311, use_type_alias=True)
    parser = _Parser(
        json.dumps(_document(module)),
        data_model_type=_DataModel,
        data_model_root_type=_Alias,
        data_model_field_type=kinds.field_model,
        data_type_manager_type=kinds.data_type_manager,
        target_python_version=PythonVersion.PY_311,
        base_class=f"{module.form.base}.{module.own['Model']}",
        custom_template_dir=TEMPLATES / "types",
        extra_template_data=_template_data(module),
        enum_field_as_literal="all",  # type: ignore[arg-type]
        use_standard_collections=True,
        use_union_operator=True,
        use_type_alias=True,
        skip_root_model=True,
    )
    text = parser.parse(with_import=False, format_=False, disable_future_imports=True)
    assert isinstance(text, str)
    return text


def _quoted(body: ast.Module) -> Iterator[tuple[str, str]]:
    """Return other names of classes -> the class, that stand before it in quotes: they would be texts."""
    for statement in body.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(target))):
                yield name, target
            case _:
                pass


def _private(name: str, taken: Set[str]) -> str:
    """Return `name`, or where it is taken, `_name` with as many underscores behind it as make it free."""
    return _free(f"_{name}", taken) if name in taken else name


def _free(name: str, taken: Set[str]) -> str:
    """Return `name` with as many underscores behind it as make it free."""
    while name in taken:
        name += "_"
    return name


def _without(protocol: PythonProtocol, aliases: Mapping[str, str]) -> PythonProtocol:
    """Return `protocol` without other names of classes."""

    definitions = {
        name: replace(definition, type=renamed(definition.type, aliases))
        for name, definition in protocol.definitions.items()
        if name not in aliases
    }
    return replace(protocol, definitions=definitions)


def _check_names(defined: Set[str], module: _Module) -> None:
    """Refuse definitions that were renamed, dropped or invented on the way."""
    for name in sorted(defined ^ module.definitions.keys()):
        raise BadInput(
            f"the definition {name!r} has the name of something that generated modules use",
            pointer=f"/$defs/{name}",
            fix="rename it with a patch",
        )


def _defined(statements: list[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case (
                ast.ClassDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
            ):
                yield name
            case ast.If(orelse=alternative):
                yield from _defined(alternative)
            case _:
                pass


# --- aliases that contain themselves -----------------------------------------------------------------------------


def _recursive_aliases(protocol: Protocol, scalars: Mapping[str, str]) -> dict[str, str]:
    """Name -> expression of every alias that contains itself, directly or through other definitions.

    In a cycle of aliases one is written out, and the rest refers to it: `JSONValue` is a union with itself inside,
    `JSONObject` is just a `dict[str, JSONValue]`. `scalars` maps JSON types to the value types of the module.
    """
    found: dict[str, str] = {}
    for name, definition in protocol.definitions.items():
        if not isinstance(definition.type, Object) and name in protocol.reach(references(definition.type)):
            circle = _circle(protocol, name)
            if name == min(circle | {name}, key=lambda alias: _rank(protocol, alias)):
                found[name] = annotation(_expanded(definition.type, protocol, circle, {name}), scalars, prefix="")
    return found


def _rank(protocol: Protocol, alias: str) -> tuple[bool, str]:
    """Rank unions first: that is where people expect the whole list of alternatives."""
    return not isinstance(protocol.definitions[alias].type, Union), alias


def _circle(protocol: Protocol, name: str) -> set[str]:
    """Return the aliases that contain `name` and that `name` contains, with no class in between."""
    aliases = {alias for alias, definition in protocol.definitions.items() if not isinstance(definition.type, Object)}
    below = protocol.reach(references(protocol.definitions[name].type), aliases)
    return {alias for alias in below if name in protocol.reach(references(protocol.definitions[alias].type), aliases)}


def _expanded(type: Type, protocol: Protocol, circle: set[str], trail: set[str]) -> Type:
    """Return `type` with the other aliases of its circle written out."""
    if isinstance(type, Ref) and type.name in circle and type.name not in trail:
        return _expanded(protocol.definitions[type.name].type, protocol, circle, {*trail, type.name})
    return map_parts(type, lambda part: _expanded(part, protocol, circle, trail))


# --- the input of datamodel-code-generator ----------------------------------------------------------------------


def _document(module: _Module) -> dict[str, Any]:
    """Return the effective schema without inline objects with Python names, in which optional fields may be `None`."""
    return {
        "$defs": {
            # Our template writes recursive aliases; a type that refers to nothing makes them come first.
            name: {"type": "string"} if name in module.recursive else _definition(definition, module)
            for name, definition in module.definitions.items()
        }
    }


def _definition(definition: Definition, module: _Module) -> dict[str, Any]:
    type = definition.type
    if not isinstance(type, Object):
        return _schema(type, module)
    attributes = module.protocol.attributes[definition.name]
    fields = [field for field in type.fields if not _is_plain(field.type)]
    properties = {attributes[field.wire]: _schema(field.type, module) for field in fields}
    required = [attributes[field.wire] for field in fields if not _is_optional(field, module)]
    if type.extra is not None and type.extra != AnyValue():
        properties[_EXTRA] = _schema(type.extra, module)
        required.append(_EXTRA)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if definition.name in module.form.results:
        schema["customBasePath"] = f"{_ABI}.{module.own[_RESULT]}"
    return schema


def _is_optional(field: Field, module: _Module) -> bool:
    """Return whether `None` stands for the absence of a field, beside the values of its type."""
    return not (field.required or module.protocol.accepts_null(field.type) or _has_default(field, module.form))


def _is_plain(type: Type) -> bool:
    """Return whether a type has no references and no `null` among constants, so that `annotation` spells it."""
    if isinstance(type, Const):
        return None not in type.values
    return not isinstance(type, Ref) and all(map(_is_plain, parts(type)))


def _ordered(type: Object, form: Form) -> Iterable[Field]:
    """Return the members of an object. In types of the protocol required members are first, and `_meta` is last."""
    if form.base != PROTOCOL.base:
        return type.fields
    return sorted(type.fields, key=lambda field: (field.wire == "_meta", not field.required))


def _has_default(field: Field, form: Form) -> bool:
    """Return whether an optional field reads as something else than `None` where it is absent."""
    return form.defaults and field.default is not None


def _schema(type: Type, module: _Module) -> dict[str, Any]:
    match type:
        case AnyValue():
            return _imported(_ABI, module.own["Json"])
        case Scalar(kind):
            return {"type": kind} if kind in ("string", "null") else _imported(_ABI, module.own[CHECKED[kind]])
        case Const(values):
            return {"enum": list(values)}
        case Array(items):
            return {"type": "array", "items": _schema(items, module)}
        case Map(values):
            return {"type": "object", "additionalProperties": _schema(values, module)}
        case Ref(name) if name not in module.definitions:
            return _imported(module.form.core, name)
        case Ref(name):
            return {"$ref": f"#/$defs/{name}"}
        case Union(members):
            return {"anyOf": [_schema(member, module) for member in members]}
        case Object():
            raise TypeError("an object has a name; refer to it")


def _imported(module: str, name: str) -> dict[str, Any]:
    return {"customTypePath": f"{module}.{name}"}


# --- the variables of our templates -----------------------------------------------------------------------------------


def _template_data(module: _Module) -> defaultdict[str, dict[str, Any]]:
    protocol, own = module.protocol, {**module.own, "Annotated": module.annotated}
    # Constants have quotes of their own: plain quotes around the expression would let schema text out as code.
    recursive = {name: quoted(expression) for name, expression in module.recursive.items()}
    data: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, definition in module.definitions.items():
        type = definition.type
        data[name] = {"doc": docstring(_doc(definition)), "own": own}
        if isinstance(type, Object):
            data[name]["closed"] = type.extra is None
            attributes = protocol.attributes[name]
            takes_others = module.form.base == _ABI and takes_any(definition)
            data[name]["others"] = _free("members", {*attributes.values()}) if takes_others else ""
            data[name]["members"] = {
                attributes[field.wire]: _member(attributes[field.wire], field, module)
                for field in _ordered(type, module.form)
            }
        else:
            data[name]["recursive"] = recursive.get(name)
            data[name]["class"] = isinstance(type, Ref) and isinstance(protocol.resolve(type), Object)
            data[name]["refinements"] = _refinements(type, protocol)
            data[name]["plain_doc"] = docstring(_doc(definition), indent=0)
    return data


def _doc(definition: Definition) -> str:
    """Return the words for a definition; without any, its name in words."""
    return noticed(definition.doc or f"`{definition.name}` of the protocol.", definition.deprecated)


def _member(attribute: str, field: Field, module: _Module) -> Mapping[str, Any]:
    protocol, form = module.protocol, module.form
    hint = annotation(field.type, module.scalars, prefix="") if _is_plain(field.type) else ""
    refinements = _refinements(field.type, protocol)
    if wire_name(attribute) != field.wire:
        refinements.append(f"alias={field.wire!r}")
    return {
        "hint": optional(hint) if hint and _is_optional(field, module) else hint,
        "required": field.required,
        "default": field.default,
        "constant": form.defaults and field.required and field.default is not None,
        "nullable": not field.required
        and not _has_default(field, form)
        and protocol.accepts_null(field.type)
        and protocol.resolve(field.type) != AnyValue(),
        "refinements": refinements,
        "doc": docstring(doc) if (doc := noticed(field.doc, field.deprecated)) else "",
    }


def _refinements(type: Type, protocol: PythonProtocol) -> list[str]:
    """Return the arguments of pydantic's `Field` for constraints that a type expression cannot express."""
    match type:
        case Scalar() | Array():
            return limits(type)
        case Union(members, tag) if tag is not None:
            return [f"discriminator={protocol.attribute(members[0], tag)!r}"]
        case _:
            return []


def limits(type: Scalar | Array) -> list[str]:
    """Return the arguments of pydantic's `Field` for the constraints of a type."""
    pairs = [(word, _pattern(value) if word == "pattern" else value) for word, value in type.constraints]
    return [f"{_KEYWORDS[word]}={value!r}" for word, value in pairs]


def _pattern(text: str) -> str:
    """Return a pattern of JSON Schema as a pattern of pydantic."""

    def translated(part: re.Match[str]) -> str:
        if part[0].startswith("["):  # where a dot is a character
            return _ESCAPE.sub(lambda escape: _CLASSES.get(escape[0], escape[0]), part[0])
        return _CLASSES.get(part[0], part[0])

    return _PART_OF_PATTERN.sub(translated, text)

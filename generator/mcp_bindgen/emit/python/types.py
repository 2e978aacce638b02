"""Emit `types.py`: datamodel-code-generator makes models of the schema, and our templates give them their form."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
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

from mcp_bindgen.ir import model as ir
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.toml import read_toml

from ..emitter import Options
from . import naming
from .annotations import CHECKED, optional, spelled
from .calls import classes, is_json_schema, takes_any
from .environment import TEMPLATES, docstring, noticed, quoted, render
from .imports import ABI, carried, local, rank, use
from .lowered import PythonProtocol
from .lowering import lower
from .package_scope import PackageScope
from .settings import PythonSettings

_EXTRA = "extra__"
_RESULT = "ExtensionResult"
"""Base class of results that extensions add to methods of the core."""

_TABLES = read_toml(Path(__file__).with_suffix(".toml"))
_ARGUMENTS: Mapping[str, str] = _TABLES["arguments"]
_CLASSES: Mapping[str, str] = _TABLES["classes"]

_ESCAPE = re.compile(r"\\.")
_PART_OF_PATTERN = re.compile(r"\[(?:\\.|[^\]\\])*\]|\\.|\.")


@dataclass(frozen=True)
class Form:
    """The purpose of models: their base class, and their defaults.

    Attributes:
        base: The module of their base class, `Model`.
        defaults: Whether an optional field may have a default of its own, as in a contract; else it is `None`.
        settings: Settings of types without the runtime.
        origin: Id of the extension with the definitions; empty for the core and for contracts.
        core: Package of the core, whose types extensions import.
        results: Definitions that are results of core methods, and have a base class of their own.
    """

    base: str
    defaults: bool = False
    settings: PythonSettings = field(default_factory=PythonSettings)
    origin: str = ""
    core: str = ""
    results: frozenset[str] = frozenset()


PROTOCOL = Form(base=ABI)
"""The types of a revision."""

CONTRACT = Form(base="mcp_bindgen.app", defaults=True)
"""The types of a contract."""


_ALONE = ".model"
"""Module of the base class of types without the runtime, which has all other names of the runtime that they need."""


def form_of(scope: PackageScope, options: Options) -> Form:
    """Return the form of the types of a package."""
    if options.parts:
        return Form(base=_ALONE, settings=options.settings_as(PythonSettings))
    if not scope.origin:
        return PROTOCOL
    answers = [ir.Ref(name) for _, definitions in scope.extension.alternatives for name in definitions]
    results = frozenset(name for answer in answers for name in classes(scope.protocol, answer))
    return replace(PROTOCOL, origin=scope.origin, core=options.core, results=results)


@dataclass(frozen=True)
class _Module:
    """A module of types.

    Attributes:
        protocol: The protocol.
        form: The purpose of the models.
        names: The names of its definitions.
    """

    protocol: PythonProtocol
    form: Form
    names: Set[str]

    @cached_property
    def definitions(self) -> dict[str, ir.Definition]:
        """Its definitions in order: classes by name, then aliases by name, each after the aliases that it refers to."""
        found: dict[str, ir.Definition] = {}
        for name in sorted(self.names, key=lambda name: (not self.is_class(name), name)):
            self._add(name, found)
        return found

    def is_class(self, name: str) -> bool:
        """Return whether a definition is a class, by name; all others are aliases."""
        return isinstance(self.protocol.definitions[name].type, ir.Object)

    def _add(self, name: str, found: dict[str, ir.Definition]) -> None:
        definition = self.protocol.definitions[name]
        is_lazy = self.is_class(name) or name in self.recursive
        for other in [] if is_lazy else sorted(ir.references(definition.type)):
            if other in self.names and other not in found:
                self._add(other, found)
        found[name] = definition

    @cached_property
    def own(self) -> dict[str, str]:
        """Name -> text that imports it: as a private name if the schema has a definition of that name."""
        is_contract = self.form.defaults  # its models have no such names
        taken = set[str]() if is_contract else {*self.protocol.definitions, *self.protocol.schema_names.values()}
        values = ABI if is_contract else self.form.base
        known = {name: values if origin == ABI else origin for name, origin in naming.IMPORTED.items()}
        origins = {**known, "Model": self.form.base}
        return {name: use(origin, name, _private(name, taken)) for name, origin in origins.items()}

    @cached_property
    def scalars(self) -> dict[str, str]:
        """JSON type -> its name in the module."""
        return {kind: self.own.get(name, name) for kind, name in CHECKED.items()}

    def hint(self, type: ir.Type) -> str:
        """Return a type as an annotation."""
        return spelled(type, self.named, self.scalars)

    def named(self, definition: str) -> str:
        """Return the name of a definition, which is imported from another module if that has it."""
        return definition if definition in self.names else use(self.home(definition), definition)

    def home(self, definition: str) -> str:
        """Return the module with a definition of another module."""
        if self.protocol.definitions[definition].origin == self.form.origin:
            return ".types"
        return f"{self.form.core}.{'envelopes' if definition in self.core_envelopes else 'types'}"

    @cached_property
    def core_envelopes(self) -> frozenset[str]:
        """The definitions in the module `envelopes` of the core."""
        return PackageScope(self.protocol).envelopes

    @cached_property
    def metadata(self) -> set[str | None]:
        """The classes of `_meta`."""
        types = [definition.type for definition in self.definitions.values()]
        fields = [field for type in types if isinstance(type, ir.Object) for field in type.fields]
        return {self.protocol.class_of(field.type) for field in fields if field.wire == "_meta"}

    @cached_property
    def recursive(self) -> dict[str, str]:
        """Name -> expression, of its aliases that contain themselves."""
        found = _recursive_aliases(self.protocol, self.hint)
        return {name: expression for name, expression in found.items() if name in self.names}


def emit(
    protocol: ir.Protocol,
    header: str,
    form: Form = PROTOCOL,
    templates: Path | None = None,
    template: str = "types.py.jinja",
) -> str:
    """Return the text of `types.py` or `envelopes.py`, as the name of the template says.

    Raises:
        BadInput: A definition has a name that is no good for a class.
    """
    lowered = lower(protocol)
    scope = PackageScope(lowered, form.origin)
    is_beside = template.endswith("envelopes.py.jinja")
    beside = scope.envelopes if form.base != _ALONE else frozenset[str]()
    module = _Module(lowered, form, beside if is_beside else {*scope.definitions} - beside)
    named = {alias: name for name, alias in lowered.schema_names.items() if naming.is_importable(alias)}
    owners = {**{name: name for name in scope.definitions}, **named}
    envelopes = sorted((name for name, owner in owners.items() if owner in beside), key=rank)
    return render(
        template,
        templates,
        header=header,
        title=scope.title,
        envelopes=[] if is_beside else envelopes,
        definitions=_texts(module),
        own=module.own,
        has_classes=any(map(module.is_class, module.names)),
        aliases={alias: named[alias] for alias in sorted(named) if named[alias] in module.names},
        names=sorted(envelopes if is_beside else owners, key=partial(rank, lower=False)),
    )


def body(protocol: ir.Protocol, form: Form = PROTOCOL) -> str:
    """Return the definitions alone, without the module around them; for modules that hold more than types.

    Raises:
        BadInput: A definition has a name that is no good for a class.
    """
    lowered = lower(protocol)
    return "\n\n\n".join(_texts(_Module(lowered, form, lowered.definitions.keys())))


def _texts(module: _Module) -> list[str]:
    """Return the text of each definition, in order."""
    if not module.definitions:
        return []
    kinds = get_data_model_types(DataModelType.PydanticV2BaseModel, PythonVersion.PY_311, use_type_alias=True)
    parser = _Parser(
        json.dumps(_document(module)),
        data_model_type=_DataModel,
        data_model_root_type=_Alias,
        data_model_field_type=kinds.field_model,
        data_type_manager_type=kinds.data_type_manager,
        target_python_version=PythonVersion.PY_311,
        base_class=f"{ABI}.Model",
        custom_template_dir=TEMPLATES / "types",
        extra_template_data=_template_data(module),
        enum_field_as_literal="all",  # type: ignore[arg-type]
        use_standard_collections=True,
        use_union_operator=True,
        use_type_alias=True,
        skip_root_model=True,
    )
    parser.parse_raw()
    texts = {model.class_name: model.render() for model in parser.results}
    for name in sorted(texts.keys() ^ module.names):
        raise BadInput(
            f"the definition {name!r} has the name of something that generated modules use",
            pointer=f"/$defs/{name}",
            fix="rename it with a patch",
        )
    return [texts[name] for name in module.definitions]


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


def _private(name: str, taken: Set[str]) -> str:
    """Return `name`, or where it is taken, `_name` with as many underscores behind it as make it free."""
    return _free(f"_{name}", taken) if name in taken else name


def _free(name: str, taken: Set[str]) -> str:
    """Return `name` with as many underscores behind it as make it free."""
    while name in taken:
        name += "_"
    return name


# --- aliases that contain themselves -----------------------------------------------------------------------------


def _recursive_aliases(protocol: ir.Protocol, hint: Callable[[ir.Type], str]) -> dict[str, str]:
    """Name -> expression of every alias that contains itself, directly or through other definitions.

    In a cycle of aliases one is written out, and the rest refers to it: `JSONValue` is a union with itself inside,
    `JSONObject` is just a `dict[str, JSONValue]`. `hint` writes a type.
    """
    found: dict[str, str] = {}
    for name, definition in protocol.definitions.items():
        if not isinstance(definition.type, ir.Object) and name in protocol.reach(ir.references(definition.type)):
            circle = _circle(protocol, name)
            if name == min(circle | {name}, key=lambda alias: _rank(protocol, alias)):
                found[name] = hint(_expanded(definition.type, protocol, circle, {name}))
    return found


def _rank(protocol: ir.Protocol, alias: str) -> tuple[bool, str]:
    """Rank unions first: that is where people expect the whole list of alternatives."""
    return not isinstance(protocol.definitions[alias].type, ir.Union), alias


def _circle(protocol: ir.Protocol, name: str) -> set[str]:
    """Return the aliases that contain `name` and that `name` contains, with no class in between."""
    aliases = {
        alias for alias, definition in protocol.definitions.items() if not isinstance(definition.type, ir.Object)
    }
    below = protocol.reach(ir.references(protocol.definitions[name].type), aliases)
    return {
        alias for alias in below if name in protocol.reach(ir.references(protocol.definitions[alias].type), aliases)
    }


def _expanded(type: ir.Type, protocol: ir.Protocol, circle: set[str], trail: set[str]) -> ir.Type:
    """Return `type` with the other aliases of its circle written out."""
    if isinstance(type, ir.Ref) and type.name in circle and type.name not in trail:
        return _expanded(protocol.definitions[type.name].type, protocol, circle, {*trail, type.name})
    return ir.map_parts(type, lambda part: _expanded(part, protocol, circle, trail))


# --- the input of datamodel-code-generator ----------------------------------------------------------------------


def _document(module: _Module) -> dict[str, Any]:
    """Return the effective schema without inline objects with Python names, in which optional fields may be `None`."""
    return {
        "$defs": {
            # Our template writes recursive aliases.
            name: {"type": "string"} if name in module.recursive else _definition(definition, module)
            for name, definition in module.definitions.items()
        }
    }


def _definition(definition: ir.Definition, module: _Module) -> dict[str, Any]:
    type = definition.type
    if not isinstance(type, ir.Object):
        return _schema(type, module)
    attributes = module.protocol.attributes[definition.name]
    fields = [field for field in type.fields if not _is_plain(field.type)]
    properties = {attributes[field.wire]: _schema(field.type, module) for field in fields}
    required = [attributes[field.wire] for field in fields if not _is_optional(field, module)]
    if type.extra is not None and type.extra != ir.AnyValue():
        properties[_EXTRA] = _schema(type.extra, module)
        required.append(_EXTRA)
    return {"type": "object", "properties": properties, "required": required}


def _is_optional(field: ir.Field, module: _Module) -> bool:
    """Return whether `None` stands for the absence of a field, beside the values of its type."""
    form, accepts_null = module.form, module.protocol.accepts_null(field.type)
    return form.settings.absent == "None" and not (field.required or accepts_null or _has_default(field, form))


def _is_plain(type: ir.Type) -> bool:
    """Return whether a type has no references and no `null` among constants, so that `annotation` spells it."""
    if isinstance(type, ir.Const):
        return None not in type.values
    return not isinstance(type, ir.Ref) and all(map(_is_plain, ir.parts(type)))


def _ordered(type: ir.Object, form: Form) -> Iterable[ir.Field]:
    """Return the members of an object. In types of the protocol required members are first, and `_meta` is last."""
    if form.defaults:
        return type.fields
    return sorted(type.fields, key=lambda field: (field.wire == "_meta", not field.required))


def _has_default(field: ir.Field, form: Form) -> bool:
    """Return whether an optional field reads as something else than `None` where it is absent."""
    return form.defaults and field.default is not None


def _schema(type: ir.Type, module: _Module) -> dict[str, Any]:
    match type:
        case ir.AnyValue():
            return _written(module.own["Json"])
        case ir.Scalar(kind):
            return {"type": kind} if kind in ("string", "null") else _written(module.own[CHECKED[kind]])
        case ir.Const(values):
            return {"enum": list(values)}
        case ir.Array(items):
            return {"type": "array", "items": _schema(items, module)}
        case ir.Map(values):
            return {"type": "object", "additionalProperties": _schema(values, module)}
        case ir.Ref(name):
            return {"$ref": f"#/$defs/{name}"} if name in module.names else _written(name)
        case ir.Union(members):
            return {"anyOf": [_schema(member, module) for member in members]}
        case ir.Object():
            raise TypeError("an object has a name; refer to it")


def _written(name: str) -> dict[str, Any]:
    """Return the schema for which datamodel-code-generator writes a name that is imported."""
    return {"customTypePath": f"imported.{local(name)}"}


# --- the variables of our templates -----------------------------------------------------------------------------------


def _template_data(module: _Module) -> defaultdict[str, dict[str, Any]]:
    protocol = module.protocol
    data: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, definition in module.definitions.items():
        type = definition.type
        expression = module.recursive.get(name, "")
        written = [part for part in ir.parts(type) if part != ir.AnyValue()] if isinstance(type, ir.Object) else [type]
        hints = [expression] if expression else map(module.hint, written)
        data[name] = {"doc": docstring(_doc(definition)), "own": module.own, "imports": carried("".join(hints))}
        if isinstance(type, ir.Object):
            data[name]["base"] = module.own[_RESULT if name in module.form.results else "Model"]
            data[name]["deprecated"] = quoted(definition.deprecated) if definition.deprecated else ""
            data[name]["extra"] = _extra(definition, type, module)
            attributes = protocol.attributes[name]
            takes_keys = name in module.metadata and not any(field.required for field in type.fields)
            takes_others = not module.form.defaults and (takes_keys or takes_any(definition))
            data[name]["others"] = _free("members", {*attributes.values()}) if takes_others else ""
            data[name]["takes_keys"] = takes_keys
            data[name]["members"] = {
                attributes[field.wire]: _member(attributes[field.wire], field, module)
                for field in _ordered(type, module.form)
            }
        else:
            # Constants have quotes of their own: plain quotes around the expression would let schema text out as code.
            data[name]["recursive"] = quoted(local(expression)) if expression else ""
            data[name]["class"] = isinstance(type, ir.Ref) and isinstance(protocol.resolve(type), ir.Object)
            data[name]["refinements"] = _refinements(type, protocol)
            data[name]["plain_doc"] = docstring(_doc(definition), indent=0)
    return data


def _extra(definition: ir.Definition, type: ir.Object, module: _Module) -> str:
    """Return the argument `extra` of a class; empty if it is the one of its base class."""
    if type.extra is None:
        return "forbid"
    is_stated = not (isinstance(type.extra, ir.AnyValue) and type.extra.implied)
    is_open = is_stated or definition.name in module.metadata or is_json_schema(definition)
    return "allow" if is_open and module.form.settings.extra != "allow" else ""


def _doc(definition: ir.Definition) -> str:
    """Return the words for a definition; without any, its name in words."""
    doc = definition.doc or f"`{definition.name}` of the protocol."
    return doc if isinstance(definition.type, ir.Object) else noticed(doc, definition.deprecated)


def _member(attribute: str, field: ir.Field, module: _Module) -> Mapping[str, Any]:
    protocol, form = module.protocol, module.form
    hint = module.hint(field.type) if _is_plain(field.type) else ""
    refinements = _refinements(field.type, protocol)
    if (attribute if form.settings.aliases == "explicit" else wire_name(attribute)) != field.wire:
        refinements.append(f"alias={field.wire!r}")
    if field.deprecated:
        refinements.append(f"deprecated={quoted(f'`{attribute}` is deprecated {field.deprecated}')}")
    return {
        "hint": optional(hint) if hint and _is_optional(field, module) else hint,
        "value": _value(field, module),
        "constant": form.defaults and field.required and field.default is not None,
        "nullable": not field.required
        and form.settings.absent == "None"
        and not _has_default(field, form)
        and protocol.accepts_null(field.type)
        and protocol.resolve(field.type) != ir.AnyValue(),
        "refinements": refinements,
        "takes_dict": not form.defaults
        and any(is_json_schema(protocol.definitions[name]) for name in ir.references(field.type)),
        "doc": docstring(field.doc) if field.doc else "",
    }


def _value(field: ir.Field, module: _Module) -> str:
    """Return the default of a field as an expression; empty if there is none."""
    if field.default is not None:
        return repr(field.default)
    absent = module.form.settings.absent
    return "" if field.required else module.own.get(absent, absent)


def _refinements(type: ir.Type, protocol: PythonProtocol) -> list[str]:
    """Return the arguments of pydantic's `Field` for constraints that a type expression cannot express."""
    match type:
        case ir.Scalar() | ir.Array():
            return limits(type)
        case ir.Union(members, tag) if tag is not None:
            return [f"discriminator={protocol.attribute(members[0], tag)!r}"]
        case _:
            return []


def limits(type: ir.Scalar | ir.Array) -> list[str]:
    """Return the arguments of pydantic's `Field` for the constraints of a type."""
    pairs = [(word, _pattern(value) if word == "pattern" else value) for word, value in type.constraints]
    return [f"{_ARGUMENTS[word]}={value!r}" for word, value in pairs]


def _pattern(text: str) -> str:
    """Return a pattern of JSON Schema as a pattern of pydantic."""

    def translated(part: re.Match[str]) -> str:
        if part[0].startswith("["):  # where a dot is a character
            return _ESCAPE.sub(lambda escape: _CLASSES.get(escape[0], escape[0]), part[0])
        return _CLASSES.get(part[0], part[0])

    return _PART_OF_PATTERN.sub(translated, text)

"""Base of all generated models: Python names inside, wire names outside, nothing lost in between."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from functools import partial
from inspect import Signature
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, ForwardRef, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import MISSING, PydanticUndefined, core_schema
from typing_extensions import evaluate_forward_ref

from .scalars import NULL_IS_DATA, IsConstant, Json

_is_none = partial(is_, None)


def wire_name(name: str) -> str:
    """Return the wire name of a Python field, unless the field says otherwise: `next_cursor` -> `nextCursor`."""
    if name == "meta":
        return "_meta"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def optional(holder: object, name: str) -> Any:
    """Return an attribute that only some revisions or classes have, such as a field of a model; `None` if absent."""
    return getattr(holder, name, None)


def fields_of(kind: Any) -> Mapping[str, FieldInfo]:
    """Return the fields of a model by their Python names; nothing for any other type."""
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def fields_filled_in(kind: object) -> dict[str, FieldInfo]:
    """Return the fields of a model that its constructor fills in, by their Python names."""
    nothing = (None, MISSING, PydanticUndefined)
    return {name: field for name, field in fields_of(kind).items() if field.default not in nothing}


def wire_fields(kind: Any) -> dict[str, str]:
    """Return the fields of a model: wire name -> Python name."""
    return {field.alias or wire_name(name): name for name, field in fields_of(kind).items()}


class _Signature:
    """Signature with Python names, also before pydantic builds the class."""

    def __get__(self, model: Model | None, kind: type[Model]) -> Signature:
        from .introspection import signature

        return signature(kind)


class Model(BaseModel):
    """A JSON object of the protocol.

    - Python uses the field names, JSON the wire names; the wire form is the default of `model_dump_json()`,
      `model_dump()` and `TypeAdapter.dump_json()`.
    - An optional field that is absent reads as `None` and stays absent.
    - Members that the schema does not name are kept, if it allows them, and written back.
    - A required constant such as `type` must be there on the wire; a constructor fills it in.
    - Values are checked as JSON Schema checks them: `"1"` is no number and `true` is no integer.

    Models build their validators on first use, so importing a revision stays cheap.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow",
        strict=True,
        alias_generator=wire_name,
        serialize_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
        protected_namespaces=(),
    )

    if not TYPE_CHECKING:  # type checkers would take the first for a field, and know the second otherwise
        __pydantic_extra__: dict[str, Json]
        __signature__ = _Signature()
    __constructor_defaults__: ClassVar[dict[str, Any]] = {}
    __defaults_are_required__: ClassVar[bool] = True

    def __init__(self, /, **data: Any) -> None:
        """Create the object from fields by their Python names.

        Raises:
            pydantic.ValidationError: A field is missing or has the wrong type.
        """
        __tracebackhide__ = True
        validate = self.__pydantic_validator__.validate_python  # builds the class, if this is its first use
        defaults = self.__constructor_defaults__
        try:
            validate({**defaults, **data} if defaults else data, self_instance=self, by_alias=True, by_name=True)
        except ValidationError as error:
            from .introspection import in_python  # these imports are for people, not for the first message

            raise in_python(error, wire_fields(type(self)), self.model_config.get("hide_input_in_errors")) from None

    # Tells pydantic that this constructor only validates, so it need not be called for objects that come from JSON.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Show the fields that were set: no absent fields and no constants."""
        silent = self.__constructor_defaults__
        absent = self.__pydantic_fields__.keys() - self.__pydantic_fields_set__
        for name, value in super().__repr_args__():
            if name is None or (name not in absent and value is not None and silent.get(name, _ABSENT) != value):
                yield name, value

    def __iter__(self) -> Generator[tuple[str, Any], None, None]:
        """Yield the fields with their values; an unset field has its default."""
        for name, value in super().__iter__():
            yield name, value.default if value.__class__ is _Unset else value

    @classmethod
    def __pydantic_init_subclass__(cls, **options: object) -> None:
        super().__pydantic_init_subclass__(**options)
        _undo_additions(cls)

    if not TYPE_CHECKING:  # type checkers know the method of pydantic, which has the same options

        @classmethod
        def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **options: object) -> bool | None:
            """Build the class, as its first use does, or build it again."""
            is_built = super().model_rebuild(_parent_namespace_depth=_parent_namespace_depth + 1, **options)
            _undo_additions(cls)
            return is_built

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Add the docstrings of fields as descriptions."""
        from .introspection import described

        return described(cls, handler(schema), handler)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        schema = handler(source)
        fields = cast(dict[str, Any], schema)
        while fields["type"] != "model-fields" and "schema" in fields:  # model validators wrap the model or its fields
            fields = fields["schema"]
        if fields["type"] == "model-fields":
            _wire_rules(cls, fields["fields"])
        return schema


_ABSENT: Any = object()


def _undo_additions(cls: type[Model]) -> None:
    """Undo what pydantic adds to a class: a signature with wire names, and warnings when deprecated fields are read.

    The runtime reads the fields that a peer has sent, so deprecations are for type checkers and JSON Schemas only.
    Each class has its own signature, as one of a base that is no model of the protocol may come first.
    """
    cls.__signature__ = _Signature()  # type: ignore[assignment]
    for name, field in cls.__pydantic_fields__.items():
        if field.deprecated is not None:
            setattr(cls, name, _UnsetAsDefault(name))


def _wire_rules(cls: type[Model], fields: dict[str, Any]) -> None:
    """Teach pydantic the difference between a constructor's default and absence on the wire."""
    all_, filled_in = cls.__defaults_are_required__, fields_filled_in(cls).items()
    constants = {name: field.default for name, field in filled_in if all_ or IsConstant in field.metadata}
    cls.__constructor_defaults__ = constants
    for name, field in fields.items():
        value = field["schema"]
        if value["type"] != "default" or value.get("default", MISSING) is MISSING:
            continue
        if name in constants:  # it is required on the wire
            field["schema"] = value["schema"]
        elif is_absent_if_null(value):
            field["serialization_exclude_if"] = _is_none
        else:  # `null` or the default is a value here, so only a field that was never set is absent
            value["metadata"] = {**value.get("metadata", {}), "pydantic_js_updates": {"default": value["default"]}}
            value["default"] = _Unset(value["default"])
            field["serialization_exclude_if"] = _is_unset
            setattr(cls, name, _UnsetAsDefault(name))


def is_absent_if_null(value: dict[str, Any]) -> bool:
    """Return whether `null` means that a field is absent, by the field's schema for pydantic."""
    if value["type"] != "default" or value.get("default", _ABSENT) is not None:
        return False
    return value["schema"]["type"] == "nullable" and NULL_IS_DATA not in value["schema"].get("metadata", {})


class _Unset(NamedTuple):
    """Value of a field that was never set; a mutable default makes it unhashable, and so pydantic copies it."""

    default: Any


def _is_unset(value: object) -> bool:
    return value.__class__ is _Unset


class _UnsetAsDefault:
    """Attribute of a field that reads as its default where it is unset; the serializer still sees the difference."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, model: Model | None, kind: type) -> Any:
        if model is None:  # like any field, the attribute belongs to instances only
            raise AttributeError(self._name)
        value = model.__dict__[self._name]
        return value.default if value.__class__ is _Unset else value

    def __set__(self, model: Any, value: object) -> None:
        model.__dict__[self._name] = value


def complete(names: Mapping[str, Any]) -> None:
    """Resolve the references of models to definitions below them, among the names of their module.

    pydantic would resolve them on first use, and then prefer the names of the function that uses the model first.
    """
    for model in [one for one in names.values() if isinstance(one, type) and issubclass(one, Model)]:
        for name, field in model.model_fields.items():
            if isinstance(field.annotation, ForwardRef):
                hint: Any = evaluate_forward_ref(field.annotation, globals=names)
                default: Any = ... if field.is_required() else field.default
                found: Any = FieldInfo.from_annotated_attribute(hint, default)
                # pydantic makes the fields of `Generic` subclasses from these two, and has no public name for them
                found._original_annotation, found._original_assignment = hint, default
                if found.alias is None:
                    found.alias = found.validation_alias = found.serialization_alias = wire_name(name)
                    found.alias_priority = 1
                model.model_fields[name] = found
        extra: Any = model.__pydantic_extra_info__
        if extra is not None and not extra.complete:
            extra.annotation, extra.complete = evaluate_forward_ref(extra.annotation, globals=names), True

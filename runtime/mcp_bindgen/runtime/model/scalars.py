"""Define the value types of generated models that Python has no exact word for."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast

from pydantic import GetCoreSchemaHandler, Strict
from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema
from typing_extensions import TypeAliasType

T = TypeVar("T")

_NO_JSON: Final = "Input should be a JSON value with finite numbers"


class _Alternatives:
    """The six types of JSON value, tried in order, with one message when none fits; written without a second look.

    Values from JSON text can have no other type, if their numbers are finite; trying there would be slow, because a
    type that does not fit copies the value with all that is in it.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        itself = handler.generate_schema(_Json)
        alternatives = core_schema.union_schema(
            [
                core_schema.str_schema(strict=True),
                core_schema.int_schema(strict=True),
                core_schema.bool_schema(strict=True),
                core_schema.float_schema(strict=True, allow_inf_nan=False),
                core_schema.none_schema(),
                core_schema.list_schema(itself, strict=True),
                core_schema.dict_schema(core_schema.str_schema(strict=True), itself, strict=True),
            ],
            mode="left_to_right",
            custom_error_type="json_value",
            custom_error_message=_NO_JSON,
        )
        return core_schema.json_or_python_schema(
            core_schema.no_info_after_validator_function(_finite, core_schema.any_schema()),
            alternatives,
            serialization=core_schema.simple_ser_schema("any"),
        )


def _finite(value: object) -> Any:
    if value.__class__ in _WITH_NUMBERS and not _is_finite(value):
        raise PydanticCustomError("json_value", _NO_JSON)
    return value


_WITH_NUMBERS = frozenset({float, list, dict})


def _is_finite(value: Any) -> bool:
    kind = value.__class__
    if kind is float:
        return isfinite(value)
    if kind is not list and kind is not dict:
        return True
    items = value if kind is list else value.values()
    return _WITH_NUMBERS.isdisjoint(map(type, items)) or all(map(_is_finite, items))


class _IsJson:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return handler.generate_schema(_Json)


# A named alias, so that pydantic sees where the type contains itself.
_Json = TypeAliasType("_Json", Annotated[Any, _Alternatives()])

Json = Annotated[Any, _IsJson()]
"""Any JSON value: `None` is `null`, numbers are finite. Type checkers see `Any`, as there is nothing to know."""


class _IsWhole:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        whole = core_schema.no_info_after_validator_function(_whole, core_schema.float_schema(strict=True))
        return core_schema.union_schema(
            [core_schema.int_schema(strict=True), whole],
            mode="left_to_right",
            custom_error_type="int_type",
            serialization=core_schema.simple_ser_schema("int"),
        )


def _whole(value: float) -> int:
    if not value.is_integer():
        raise PydanticKnownError("int_type")
    return int(value)


class _IsNumber:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.union_schema(
            [core_schema.int_schema(strict=True), core_schema.float_schema(strict=True, allow_inf_nan=False)],
            mode="left_to_right",
            custom_error_type="float_type",
            serialization=core_schema.simple_ser_schema("any"),
        )


Integer = Annotated[int, _IsWhole()]
"""A JSON integer. `1.0` is one too (JSON Schema 2020-12, 6.1.1) and becomes `1`; `true` and `"1"` are not."""

Number = Annotated[int | float, _IsNumber()]
"""A JSON number: `1` stays `1`, `1.0` stays `1.0`, and integers of any size stay exact."""

Boolean = Annotated[bool, Strict()]
"""`true` or `false`, and nothing that Python could take for one."""


NULL_IS_DATA = "null_is_data"
"""The metadata key that keeps an explicit `null` apart from absence."""


class _NullIsData:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        schema: Any = handler(source)
        schema["metadata"] = {**schema.get("metadata", {}), NULL_IS_DATA: True}
        return cast(core_schema.CoreSchema, schema)


Nullable: TypeAlias = Annotated[T | None, _NullIsData()]
"""An optional field for which an explicit `null` means something: setting `None` sends it, leaving it out does not."""


class IsConstant:
    """Marks the type of a field whose default is required on the wire."""


Constant: TypeAlias = Annotated[T, IsConstant]
"""A required constant of a contract: its constructor fills it in. Any other default stands for absence."""

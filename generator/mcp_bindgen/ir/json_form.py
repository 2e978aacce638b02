"""Annotations that state how attributes of the model are written as JSON."""

from __future__ import annotations

import json
from operator import not_
from typing import Annotated, Any, TypeAlias, TypeVar, get_args

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    StrictBool,
    WithJsonSchema,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import core_schema

_T = TypeVar("_T")

OMITTED = Field(exclude_if=not_)
"""Leave the member out where the attribute is empty or false."""

Text: TypeAlias = Annotated[str, OMITTED]
Flag: TypeAlias = Annotated[StrictBool, OMITTED]
Texts: TypeAlias = Annotated[tuple[str, ...], OMITTED]
List: TypeAlias = Annotated[tuple[_T, ...], OMITTED]


def _is_none(value: object) -> bool:
    return value is None


def _given(value: Any) -> Any:
    if value is None:
        raise ValueError("null has no meaning here: leave out the member")
    return value


Maybe: TypeAlias = Annotated[_T | SkipJsonSchema[None], BeforeValidator(_given), Field(exclude_if=_is_none)]
"""A value, or `None` where JSON has no such member; it never has `null`."""


def _limit(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a constraint is a number or a string")
    return value


Limit: TypeAlias = Annotated[Any, BeforeValidator(_limit), WithJsonSchema({"type": ["number", "string"]})]
"""The value of a keyword that constrains a scalar or an array."""

MaybeAny: TypeAlias = Annotated[Any, BeforeValidator(_given), Field(exclude_if=_is_none)]
"""Any JSON value but `null`, or `None` where JSON has no such member."""


class AsObject:
    """Writes pairs of a key and a value as an object. Needs hashable values."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        (pair, _) = get_args(source)
        mapping = handler.generate_schema(dict[get_args(pair)])  # type: ignore[misc]

        def pairs(found: dict[Any, Any]) -> tuple[Any, ...]:
            return tuple(found.items())

        return core_schema.no_info_after_validator_function(
            pairs,
            mapping,
            serialization=core_schema.plain_serializer_function_ser_schema(dict, return_schema=mapping),
        )


Pairs: TypeAlias = Annotated[tuple[tuple[str, _T], ...], AsObject, OMITTED]
"""Keys with values, hashable; an object in JSON."""

JsonText: TypeAlias = Annotated[
    str,
    BeforeValidator(json.dumps),
    PlainSerializer(json.loads),
    WithJsonSchema({}),
    OMITTED,
]
"""The text of any JSON value, hashable; the value itself in JSON. Empty where there is none."""


class NoneAsFalse:
    """Writes `None` as `false`, where an absent member has another meaning."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        def read(value: Any) -> Any:
            return None if value is False else _given(value)

        def write(value: Any, inner: core_schema.SerializerFunctionWrapHandler) -> Any:
            return False if value is None else inner(value)

        schema = handler(source)
        serialization = core_schema.wrap_serializer_function_ser_schema(write, schema=schema)
        return core_schema.no_info_before_validator_function(read, schema, serialization=serialization)

    @staticmethod
    def __get_pydantic_json_schema__(schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"const": False}]}

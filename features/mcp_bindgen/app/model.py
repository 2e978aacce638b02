"""The base of the models of a contract."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from mcp_bindgen.runtime.model import base as model


class Model(model.Model):
    """A JSON object of a contract.

    It is like the objects of the protocol, but a default is what JSON Schema calls one: a field that is absent reads as
    it, and is not written, whether the object came from the wire or was made here. Only what is required and `Constant`
    is filled in by the constructor. In JSON, `null` is refused where the schema does not allow it.
    """

    __defaults_are_required__: ClassVar[bool] = False

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        schema = super().__get_pydantic_core_schema__(source, handler)
        inner: dict[str, Any] = cast("dict[str, Any]", schema)["schema"] if schema["type"] == "model" else {}
        fields: dict[str, Any] = inner.get("fields", {})
        for field in fields.values():
            default = field["schema"]
            if model.is_absent_if_null(default):
                # An alternative that takes `null` for absence would drop it, though the next alternative may allow it.
                nullable = default["schema"]
                default["schema"] = core_schema.json_or_python_schema(nullable["schema"], nullable)
        return schema

"""The base of the models of a contract."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from mcp_bindgen.runtime.model import base as model


class Model(model.Model):
    """A JSON object of a contract.

    It differs from the objects of the protocol in its defaults. As in JSON Schema, an absent field reads as its default
    and is not written, in objects from the wire and in new ones. The constructor fills in only required
    fields of the type `Constant`. In JSON, `null` is refused unless the schema allows it.
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

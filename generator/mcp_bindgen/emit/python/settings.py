"""Settings of the Python emitter in the project configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..emitter import Settings


class PythonSettings(Settings):
    """Settings of a package.

    Attributes:
        base_class: Base class of all types, as `module:Class`; empty for pydantic's. Like the settings below it, for
            types without the runtime only.
        extra: Treatment of members that the schema does not name, in pydantic's words. Where the schema itself says
            that any member is allowed, or none, the types do the same.
        aliases: `explicit` if each field states its wire name; else the base class derives it.
        absent: Value of an absent field: `None`, which stands for `null` too, or pydantic's `MISSING`.
    """

    base_class: Annotated[str, Field(pattern=r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)?$")] = ""
    extra: Literal["allow", "ignore", "forbid"] = "allow"
    aliases: Literal["derived", "explicit"] = "derived"
    absent: Literal["None", "MISSING"] = "None"

"""Read and write typed members of `_meta`, where extensions put what they add to objects of the core."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter

from ..model.json_types import is_object

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class MetaKey(Generic[T]):
    """A member of `_meta` with a type.

    Attributes:
        key: Its name.
        type: What stands there.
    """

    key: str
    type: Any

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.type)

    def read(self, holder: BaseModel) -> T | None:
        """Return what stands in the `_meta` of an object; `None` where the member is absent.

        Raises:
            pydantic.ValidationError: It is not of the type.
        """
        meta = getattr(holder, "meta", None)
        members = meta.model_dump() if isinstance(meta, BaseModel) else meta
        return self._adapter.validate_python(members[self.key]) if is_object(members) and self.key in members else None

    def put(self, holder: M, value: T) -> M:
        """Return an object like `holder`, with `value` in its `_meta` beside what stands there.

        Raises:
            pydantic.ValidationError: `value` is not of the type.
        """
        written = holder.model_dump()
        member = self._adapter.dump_python(self._adapter.validate_python(value))
        return holder.model_validate({**written, "_meta": {**(written.get("_meta") or {}), self.key: member}})

"""JSON values in and out of the Python types of a contract: arguments, models, and files as content."""

from __future__ import annotations

import mimetypes
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from inspect import formatannotation
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema, from_json, to_json

from mcp_bindgen.runtime.model import base as model
from mcp_bindgen.runtime.protocol import jsonrpc

_MODULES = re.compile(r"[\w.<>]+\.(?=[^\W\d])")

TypeForm: TypeAlias = Any
"""An annotation: a class, a union, an alias."""


MOST_STEPS = 100_000
"""The maximum of steps of the validation of a value; a schema that can take more is refused as too complex."""


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT
"""Marks an argument as not given, where `None` is a value: `null`."""


def is_json(value: object) -> bool:
    """Return True if JSON can express a value: no NaN or infinity, and no half of a surrogate pair."""
    try:
        from_json(to_json(value), allow_inf_nan=False)
    except ValueError:
        return False
    return True


def type_name(kind: TypeForm) -> str:
    """Return an annotation as its author wrote it, without the names of modules."""
    return _MODULES.sub("", formatannotation(kind))


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


_UNKNOWN = "application/octet-stream"
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"ID3": "audio/mpeg",
    b"fLaC": "audio/flac",
    b"OggS": "audio/ogg",
    b"%PDF-": "application/pdf",
}


@dataclass(frozen=True)
class File:
    """A file as the content of a result: an embedded resource.

    Attributes:
        data: The bytes, or the path of a file.
        mime_type: The MIME type; by default derived from the path's suffix, or the first bytes.
    """

    data: bytes | str | PathLike[str]
    mime_type: str = ""
    kind: ClassVar[str] = "resource"

    def block(self) -> dict[str, Any]:
        """Return the content block in wire form; raise `OSError` if the file cannot be read."""
        path = None if isinstance(self.data, bytes) else Path(self.data).resolve()
        data = self.data if isinstance(self.data, bytes) else Path(self.data).read_bytes()
        guessed = mimetypes.guess_type(path.name)[0] if path is not None else None
        kind, blob = self.mime_type or guessed or mime_type_of(data), b64encode(data).decode()
        if self.kind != "resource":
            return {"type": self.kind, "data": blob, "mimeType": kind}
        uri = "attachment:content" if path is None else path.as_uri()
        return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "blob": blob}}


class Image(File):
    """An image as the content of a result; see `File`."""

    kind = "image"


class Audio(File):
    """A sound as the content of a result; see `File`."""

    kind = "audio"


IconLike: TypeAlias = str | PathLike[str] | Mapping[str, Any]
"""An icon: the URL or the path of an image, or its wire form, `{"src": ..., "mimeType": ..., "sizes": [...]}`."""


def icons_of(given: IconLike | Iterable[IconLike]) -> list[Mapping[str, Any]]:
    """Return icons in wire form: URLs with the MIME type of their suffix, files as data URIs.

    Raises:
        ValueError: A file cannot be read, or is no image.
    """
    several = cast(Iterable[IconLike], [given] if isinstance(given, str | PathLike | Mapping) else given)
    return [_icon(one) for one in several]


def _icon(given: IconLike) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str) and given.startswith(("https:", "http:", "data:")):
        kind = mimetypes.guess_type(given.partition("?")[0])[0]
        return {"src": given, **({} if kind is None else {"mimeType": kind})}
    try:
        block = Image(given).block()
    except OSError as error:
        raise ValueError(f"the icon {given}: {error.strerror}; name an image, or its URL") from None
    if not block["mimeType"].startswith("image/"):  # all clients would get another file
        raise ValueError(f"the icon {given}: the file is {block['mimeType']}; name an image, or its URL")
    return {"src": f"data:{block['mimeType']};base64,{block['data']}", "mimeType": block["mimeType"]}


def mime_type_of(data: bytes) -> str:
    """Return the MIME type that the first bytes tell."""
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], _UNKNOWN)
    return next((kind for start, kind in _SIGNATURES.items() if data.startswith(start)), _UNKNOWN)


def content_block(one: Any) -> Any:
    """Return a content block or message in wire form; bytes are an image or a sound if they begin like one."""
    if isinstance(one, bytes):
        kinds: dict[str, type[File]] = {"image": Image, "audio": Audio}
        one = kinds.get(mime_type_of(one).partition("/")[0], File)(one)
    return one.block() if isinstance(one, File) else jsonrpc.plain(one)

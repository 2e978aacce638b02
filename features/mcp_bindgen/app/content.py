"""Return types of tools for images, audio and files."""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.protocol import jsonrpc

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


Content: TypeAlias = str | bytes | File | Model


def mime_type_of(data: bytes) -> str:
    """Return the MIME type that the first bytes tell."""
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], _UNKNOWN)
    return next((kind for start, kind in _SIGNATURES.items() if data.startswith(start)), _UNKNOWN)


def blocks(returned: Sequence[Any]) -> list[Any]:
    """Return the content blocks of a result in wire form; bytes are an image or a sound if they begin like one."""
    return [_block(one) for one in returned]


def _block(one: Any) -> Any:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    if isinstance(one, bytes):
        kinds: dict[str, type[File]] = {"image": Image, "audio": Audio}
        one = kinds.get(mime_type_of(one).partition("/")[0], File)(one)
    return one.block() if isinstance(one, File) else jsonrpc.plain(one)

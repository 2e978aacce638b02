"""Load skills of servers by the rules for hosts: entries are checked, and files are verified against them.

The entry of a skill has URI, digest and size of each file. A host shows the entry to its user and loads the skill on
demand. It reads only files of the entry, and refuses a file with other bytes. The text of the files stays untrusted,
because the server writes both entries and files.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Awaitable, Mapping
from posixpath import normpath
from typing import Any, Protocol, Self
from urllib.parse import quote, unquote

from pydantic import BaseModel
from pydantic_core import to_json

from mcp_bindgen.runtime.model.json_types import is_array, is_object, same_json

from .folder import FILE, MOST_BYTES, MOST_FILES, BadFrontmatter, digest, parse_frontmatter

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class SkillRefused(Exception):
    """A skill, or a file of it, must not be used; the message has the reason for the user of a host."""


class ReadsResources(Protocol):
    """The part of a client that reads resources; clients of all revisions have it."""

    def with_options(self, *, fresh: bool) -> Self:
        """Return a client that sends the request to the server even if its cache has a result."""
        ...

    def read_resource(self, uri: str, /) -> Awaitable[Any]:
        """Read a resource."""
        ...


class SkillEntry:
    """The entry of a skill that keeps the rules of the extension.

    Args:
        skill: The `Skill` of `skills/list` or `skills/get`, typed or in wire form.
        dynamic: True to accept a skill with generated content, which cannot be verified.

    Attributes:
        uri: The URI of its `SKILL.md`.
        root: The URI of its folder.
        frontmatter: Its description by the author: untrusted.
        files: Path in the folder -> URI, digest and size; `None` for a skill with generated content.

    Raises:
        SkillRefused: It breaks a rule, or is larger than hosts must accept.
    """

    def __init__(self, skill: BaseModel | Mapping[str, Any], *, dynamic: bool = False) -> None:
        wire: Mapping[str, Any] = skill.model_dump() if isinstance(skill, BaseModel) else skill
        self.uri: str = str(wire.get("uri"))
        self.root: str
        self.root, _, last = self.uri.rpartition("/")
        frontmatter = wire.get("frontmatter")
        if not is_object(frontmatter):
            raise SkillRefused(f"{self.uri} has no frontmatter")
        self.frontmatter: dict[str, Any] = frontmatter
        if last != FILE or unquote(self.root.rpartition("/")[2]) != frontmatter.get("name"):
            raise SkillRefused(f"{self.uri} is not the {FILE} of {frontmatter.get('name')!r}")
        resources = wire.get("resources")
        if resources == "dynamic" and not dynamic:
            raise SkillRefused(f"{self.uri} has no fixed content, so nothing could be verified")
        self.files: dict[str, tuple[str, str, int]] | None = None if resources == "dynamic" else self._files(resources)

    @property
    def fingerprint(self) -> str:
        """Key of a user's approval: if it changes, the user must approve the skill again.

        Raises:
            SkillRefused: The content is generated, so no approval can be kept.
        """
        if self.files is None:
            raise SkillRefused(f"{self.uri} has no fixed content, so no approval of it can be kept")
        return digest(to_json(sorted((uri, known) for uri, known, _ in self.files.values())))

    def _files(self, resources: object) -> dict[str, tuple[str, str, int]]:
        if not is_array(resources):
            raise SkillRefused(f"{self.uri} has no list of its files")
        files: dict[str, tuple[str, str, int]] = {}
        for one in resources:
            uri, known, size = (one.get(key) if is_object(one) else None for key in ("uri", "digest", "size"))
            path = self._path(uri)
            if path in files:
                raise SkillRefused(f"{self.uri} lists {path!r} twice")
            if not (isinstance(known, str) and _DIGEST.fullmatch(known)) or type(size) is not int or size < 0:
                raise SkillRefused(f"{self.uri} has no SHA-256 digest or no size for {path!r}")
            files[path] = (str(uri), known, size)
        if FILE not in files:
            raise SkillRefused(f"{self.uri} does not list its own {FILE}")
        if len(files) > MOST_FILES or sum(size for _, _, size in files.values()) > MOST_BYTES:
            raise SkillRefused(f"{self.uri} is too large: the limits are {MOST_FILES} files and {MOST_BYTES} bytes")
        return files

    def _path(self, uri: object) -> str:
        """Return the path of a file in the folder; raise `SkillRefused` if it is outside."""
        path = unquote(uri[len(self.root) + 1 :]) if isinstance(uri, str) and uri.startswith(f"{self.root}/") else ""
        if not is_inside(path):
            raise SkillRefused(f"{self.uri} lists a file outside of its folder: {str(uri)[:200]!r}")
        return path


def is_inside(path: str) -> bool:
    """Return True if a relative path is in normal form and stays inside of its folder, on each platform."""
    is_normal = path not in ("", ".", "..") and normpath(path) == path
    return is_normal and not path.startswith(("/", "../")) and not {"\\", "\0"} & {*path}


class LoadedSkill:
    """A loaded skill: its entry, its instructions, and access to its files.

    Attributes:
        entry: The entry.
        text: The text of its `SKILL.md`, frontmatter included: untrusted.
    """

    def __init__(self, client: ReadsResources, entry: SkillEntry, text: str) -> None:
        self.entry = entry
        self.text = text
        self._client = client
        self._known: dict[str, bytes] = {FILE: text.encode()}

    async def read(self, path: str) -> bytes:
        """Return the bytes of a file of the skill, by its path in the skill's folder, e.g. `references/FORMS.md`.

        It is read from the server once, on first use.

        Raises:
            SkillRefused: The entry has no such file, or the bytes on the server differ from the entry.
            ProtocolError: The server has no such file.
        """
        wanted = normpath(path)
        if wanted not in self._known:
            if not is_inside(wanted):
                raise SkillRefused(f"{path!r} is not in the folder of {self.entry.uri}")
            self._known[wanted] = await _read(self._client, self.entry, wanted, sum(map(len, self._known.values())))
        return self._known[wanted]


async def load_skill(
    client: ReadsResources, skill: BaseModel | Mapping[str, Any], *, dynamic: bool = False
) -> LoadedSkill:
    """Load a skill of a server on demand: read its `SKILL.md` and verify it against the entry.

    The user must approve the skill before. No other file is read yet, and no instruction of the skill is followed.

    Args:
        client: The client of the server that sent the entry.
        skill: The entry, of `skills/list` or `skills/get`.
        dynamic: True to accept a skill with generated content, which cannot be verified.

    Raises:
        SkillRefused: The entry breaks a rule, or size, digest or frontmatter of the file differ from the entry. If the
            skill may have changed meanwhile, get the entry again, and ask the user again.
        ProtocolError: The server has no such file.
        ImportError: `mcp-bindgen[skills]` is not installed.
    """
    entry = SkillEntry(skill, dynamic=dynamic)
    data = await _read(client, entry, FILE, 0)
    try:
        text = data.decode("utf-8")
        written = parse_frontmatter(text)
    except (UnicodeDecodeError, BadFrontmatter) as error:
        problem = str(error) if isinstance(error, BadFrontmatter) else "is not UTF-8"
        raise SkillRefused(f"{entry.uri} {problem}") from None
    if not same_json(written, entry.frontmatter):
        raise SkillRefused(f"{entry.uri} has other frontmatter than its entry, which the user saw")
    return LoadedSkill(client, entry, text)


async def _read(client: ReadsResources, entry: SkillEntry, path: str, read: int) -> bytes:
    """Read a file of a skill and verify it.

    Args:
        client: The client.
        entry: The entry of the skill.
        path: The path of the file in the folder.
        read: Number of bytes of the skill that were read before.
    """
    if entry.files is None:
        data = await _bytes(client, f"{entry.root}/{quote(path)}")
        if read + len(data) > MOST_BYTES:
            raise SkillRefused(f"{entry.uri} is too large: the limit is {MOST_BYTES} bytes")
        return data
    if path not in entry.files:
        raise SkillRefused(f"{entry.uri} has no file {path!r}")
    uri, known, size = entry.files[path]
    data = await _bytes(client, uri)
    if len(data) != size or digest(data) != known:
        raise SkillRefused(f"{uri} differs from the entry of its skill: it has changed, or was tampered with")
    return data


async def _bytes(client: ReadsResources, uri: str) -> bytes:
    """Return the current bytes of a resource."""
    result = await client.with_options(fresh=True).read_resource(uri)
    found = [one.model_dump() for one in result.contents if one.uri == uri]
    if len(found) != 1:
        raise SkillRefused(f"{uri} has {len(found)} contents instead of one")
    if "text" in found[0]:
        return str(found[0]["text"]).encode("utf-8", "surrogatepass")
    try:
        return b64decode(found[0]["blob"], validate=True)
    except ValueError:
        raise SkillRefused(f"{uri} is not base64") from None

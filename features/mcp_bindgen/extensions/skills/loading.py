"""Load skills of servers as hosts have to: entries are checked, and only what they promise is used.

The entry of a skill says what each of its files is. A host shows it to its user, loads the skill when it is wanted, and
reads no other file than those of the entry, nor one whose bytes are others. What the files say stays untrusted: the
server writes entries and files alike.
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

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .folder import FILE, MOST_BYTES, MOST_FILES, digest
from .frontmatter import BadFrontmatter, parse

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class SkillRefused(Exception):
    """A skill, or a file of it, must not be used; the message says why, for the user of a host."""


class ReadsResources(Protocol):
    """The part of a client that reads resources; clients of all revisions have it."""

    def with_options(self, *, fresh: bool) -> Self:
        """Return a client that asks the server, whatever its cache knows."""
        ...

    def read_resource(self, uri: str, /) -> Awaitable[Any]:
        """Read a resource."""
        ...


class SkillEntry:
    """The entry of a skill, once it is known to keep the rules of the extension.

    Args:
        skill: The `Skill` of `skills/list` or `skills/get`, typed or in wire form.
        dynamic: Whether to take a skill whose content is generated, of which nothing says what it must be.

    Attributes:
        uri: The URI of its `SKILL.md`.
        root: The URI of its folder.
        frontmatter: What the author says of it: untrusted.
        files: Path in the folder -> URI, digest and size; `None` for a skill whose content is generated.

    Raises:
        SkillRefused: It breaks a rule, or is larger than hosts have to take.
    """

    def __init__(self, skill: BaseModel | Mapping[str, Any], *, dynamic: bool = False) -> None:
        wire: Mapping[str, Any] = skill.model_dump() if isinstance(skill, BaseModel) else skill
        self.uri = str(wire.get("uri"))
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
        self.files = None if resources == "dynamic" else self._files(resources)

    @property
    def fingerprint(self) -> str:
        """What an approval of a user has to be kept with: another one, and the user has to be asked again.

        Raises:
            SkillRefused: The content is generated, so no approval can be kept.
        """
        if self.files is None:
            raise SkillRefused(f"{self.uri} has no fixed content, so no approval of it can be kept")
        return digest(to_json(sorted((uri, known) for uri, known, _ in self.files.values())))

    def _files(self, resources: object) -> dict[str, tuple[str, str, int]]:
        if not is_array(resources):
            raise SkillRefused(f"{self.uri} does not say which files it has")
        files: dict[str, tuple[str, str, int]] = {}
        for one in resources:
            uri, known, size = (one.get(key) if is_object(one) else None for key in ("uri", "digest", "size"))
            path = self._path(uri)
            if path in files:
                raise SkillRefused(f"{self.uri} lists {path!r} twice")
            if not (isinstance(known, str) and _DIGEST.fullmatch(known)) or type(size) is not int or size < 0:
                raise SkillRefused(f"{self.uri} does not say what {path!r} is: it needs a SHA-256 digest and a size")
            files[path] = (str(uri), known, size)
        if FILE not in files:
            raise SkillRefused(f"{self.uri} does not list its own {FILE}")
        if len(files) > MOST_FILES or sum(size for _, _, size in files.values()) > MOST_BYTES:
            raise SkillRefused(f"{self.uri} is too large: the limits are {MOST_FILES} files and {MOST_BYTES} bytes")
        return files

    def _path(self, uri: object) -> str:
        """Return where in the folder a file is; raise `SkillRefused` for one that is elsewhere."""
        path = unquote(uri[len(self.root) + 1 :]) if isinstance(uri, str) and uri.startswith(f"{self.root}/") else ""
        if not is_inside(path):
            raise SkillRefused(f"{self.uri} lists a file that is not its own: {str(uri)[:200]!r}")
        return path


def is_inside(path: str) -> bool:
    """Tell whether a relative path is in normal form and leads to something inside of where it begins, anywhere."""
    return (
        "\\" not in path
        and "\0" not in path
        and path not in ("", ".")
        and normpath(path) == path
        and not path.startswith(("/", "../"))
        and path != ".."
    )


class LoadedSkill:
    """A skill that a host acts on: the entry that it was loaded by, its instructions, and the way to its files.

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

        It is read once, when it is wanted first.

        Raises:
            SkillRefused: The entry does not have such a file, or the server has others than its entry says.
            ProtocolError: The server has none.
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
    """Load a skill of a server: read its `SKILL.md` and hold it against the entry. Call it when the skill is wanted.

    Approval by the user comes before. Nothing else is read yet, and nothing that the skill says is done.

    Args:
        client: The client of the very server that the entry came from.
        skill: The entry, of `skills/list` or `skills/get`.
        dynamic: Whether to take a skill whose content is generated, of which nothing says what it must be.

    Raises:
        SkillRefused: The entry breaks a rule, or the file is not what the entry says: size, digest, frontmatter. If
            the skill may have changed meanwhile, get the entry again, and ask the user again.
        ProtocolError: The server has no such file.
        ImportError: `mcp-bindgen[skills]` is not installed.
    """
    entry = SkillEntry(skill, dynamic=dynamic)
    data = await _read(client, entry, FILE, 0)
    try:
        text = data.decode("utf-8")
        written = parse(text)
    except (UnicodeDecodeError, BadFrontmatter) as error:
        said = str(error) if isinstance(error, BadFrontmatter) else "is not UTF-8"
        raise SkillRefused(f"{entry.uri} {said}") from None
    if not _same(written, entry.frontmatter):
        raise SkillRefused(f"{entry.uri} has other frontmatter than its entry, which is what was shown")
    return LoadedSkill(client, entry, text)


async def _read(client: ReadsResources, entry: SkillEntry, path: str, read: int) -> bytes:
    """Read a file of a skill and verify it.

    Args:
        client: The client.
        entry: The entry of the skill.
        path: Which file.
        read: How many bytes of the skill were read before.
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
        raise SkillRefused(f"{uri} is not what the entry of its skill says: it has changed, or was tampered with")
    return data


async def _bytes(client: ReadsResources, uri: str) -> bytes:
    """Return the bytes of a resource, as the server has them now."""
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


def _same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are the same: as in JSON, and unlike in Python, true is not 1."""
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if is_array(one) and is_array(other):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)

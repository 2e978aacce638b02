"""Skills of a folder for servers of the skills extension: entries with their frontmatter, files and directories.

Each file is read once and served from memory. The URIs of requests are keys there and never become paths. The bytes of
a response are those whose digest is in the entry of the skill.
"""

from __future__ import annotations

import math
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcp_bindgen.runtime.extras import NotInstalled
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_array, is_object

try:
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
except ModuleNotFoundError as _error:
    raise NotInstalled.of(_error, "reading skills", "skills") from None

_BLOCK = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)(?:^---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_MAX_CHARACTERS = 16_384  # of frontmatter, which is a few lines in all known skills
_MAX_VALUES = 4_096  # a few lines of YAML aliases can stand for more values than any memory holds
_MAX_DEPTH = 32
_MAX_BITS = 64  # of a whole number
_MERGE = "tag:yaml.org,2002:merge"
_RESERVED = "io.modelcontextprotocol/"


class BadFrontmatter(ValueError):
    """The text is no valid `SKILL.md`; the message has the reason in one line."""


def parse_frontmatter(text: str) -> dict[str, Any]:
    """Return the frontmatter of a `SKILL.md` as a JSON object, with dates as text.

    Raises:
        BadFrontmatter: There is none, or it is not an object of JSON values with a `name` and a `description`.
    """
    found = _BLOCK.match(text[:_MAX_CHARACTERS])
    if found is None:
        limit = f"(at most {_MAX_CHARACTERS} characters)"
        raise BadFrontmatter(f"does not begin with YAML between two lines of --- {limit}")
    frontmatter = _yaml(found[1])
    if not is_object(frontmatter):
        raise BadFrontmatter("has frontmatter that is no mapping")
    for member in ("name", "description"):
        if not isinstance(frontmatter.get(member), str) or not frontmatter[member].strip():
            raise BadFrontmatter(f"has no text for {member} in its frontmatter")
    return frontmatter


def check_frontmatter(frontmatter: dict[str, Any]) -> None:
    """Check the rules that apply to authors, but not to clients; raise `BadFrontmatter`."""
    name = frontmatter["name"]
    if _NAME.fullmatch(name) is None:
        raise BadFrontmatter(f"has the name {name!r}: use lowercase letters, digits and single hyphens, at most 64")
    metadata = frontmatter.get("metadata")
    for key in metadata if is_object(metadata) else ():
        if key.startswith(_RESERVED):
            raise BadFrontmatter(f"has the key {key!r} in its metadata, which is reserved for extensions of MCP")


_SAFE: Any = SafeConstructor  # ruamel.yaml has no types


class _AsWritten(SafeConstructor):
    """Constructs JSON values from YAML: a date or bytes become the text as written.

    Merge keys are no part of YAML 1.2, and a few lines of them take very long to expand.
    """

    def flatten_mapping(self, node: Any) -> None:
        if any(str(key.tag) == _MERGE for key, _ in node.value):
            raise BadFrontmatter("has << in its frontmatter, which YAML 1.2 does not have: write out the members")

    def construct_text(self, node: object) -> str:
        text: str = _SAFE.construct_scalar(self, node)
        return text.encode("utf-16", "surrogatepass").decode("utf-16")  # JSON escapes, two for a character


_KIND: Any = _AsWritten
for _tag in ("str", "timestamp", "binary"):
    _KIND.add_constructor(f"tag:yaml.org,2002:{_tag}", _AsWritten.construct_text)


def _yaml(text: str) -> Any:
    """Return the JSON value of a YAML 1.2 document."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Constructor = _AsWritten
    try:
        depth = 0
        for event in yaml.parse(text):  # before a function calls itself for each level
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > _MAX_DEPTH:
                raise BadFrontmatter(f"has frontmatter that is nested deeper than {_MAX_DEPTH} levels")
        value = yaml.load(text)
    except MarkedYAMLError as error:
        marked: Any = error
        raise BadFrontmatter(f"has frontmatter that is not YAML: {marked.problem or marked.context}") from None
    except BadFrontmatter:
        raise
    except (YAMLError, ValueError, LookupError, AssertionError) as error:  # the last two for odd tags and directives
        reason = " ".join(str(error).split()) or "a value does not fit its tag"
        raise BadFrontmatter(f"has frontmatter that is not YAML: {reason[:200]}") from None
    for count, inner in enumerate(_values(value)):
        if count == _MAX_VALUES:
            raise BadFrontmatter(f"has frontmatter that stands for more than {_MAX_VALUES} values")
        if is_object(inner):
            if not all(isinstance(key, str) for key in inner):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadFrontmatter("has a key in its frontmatter that is no text: put it in quotes")
        elif not (inner is None or is_array(inner) or isinstance(inner, str | int | float)):
            raise BadFrontmatter(f"has a {type(inner).__name__} in its frontmatter, which JSON does not have")
        elif isinstance(inner, float) and not math.isfinite(inner):
            raise BadFrontmatter(f"has {inner} in its frontmatter, which is no number of JSON")
        elif isinstance(inner, int) and inner.bit_length() > _MAX_BITS:
            raise BadFrontmatter(f"has a number of more than {_MAX_BITS} bits in its frontmatter")
    return value


def _values(value: Any) -> Iterator[Any]:
    """Yield a value and all values inside of it; the iteration is endless if it contains itself."""
    pending = [value]
    while pending:
        found = pending.pop()
        yield found
        pending += found.values() if is_object(found) else found if is_array(found) else ()


FILE = "SKILL.md"
DIRECTORY = "inode/directory"
MOST_FILES = 512
MOST_BYTES = 16 * 1024 * 1024

_PAGE = 100  # entries of a list


class BadSkill(ValueError):
    """A folder contains a file that cannot be served as a skill's; the message names the file and a fix."""


@dataclass(frozen=True)
class SkillFile:
    """A file of a skill.

    Attributes:
        uri: Its URI.
        name: Its name.
        data: Its bytes.
    """

    uri: str
    name: str
    data: bytes = field(repr=False)

    @property
    def contents(self) -> str | bytes:
        """Its text, or its bytes if they are not UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return self.data

    @property
    def mime_type(self) -> str:
        """Its MIME type: by its name, else that of plain text or of bytes."""
        known = _types().guess_type(self.name)[0]
        return known or ("text/plain" if isinstance(self.contents, str) else "application/octet-stream")

    @property
    def resource(self) -> dict[str, Any]:
        """Its entry in a list of resources, in wire form."""
        return {"uri": self.uri, "name": self.name, "mimeType": self.mime_type, "size": len(self.data)}

    @property
    def read(self) -> dict[str, Any]:
        """The entry of a result of `resources/read`, in wire form."""
        contents = self.contents
        content = {"text": contents} if isinstance(contents, str) else {"blob": b64encode(contents).decode()}
        return {"uri": self.uri, "mimeType": self.mime_type, **content}

    @property
    def manifest(self) -> dict[str, Any]:
        """Its entry in the entry of its skill, a `SkillResource` in wire form."""
        return {"uri": self.uri, "digest": digest(self.data), "size": len(self.data)}


def digest(data: bytes) -> str:
    """Return the digest of the bytes of a file in the form of the skills extension."""
    return f"sha256:{sha256(data).hexdigest()}"


class Skills:
    """The skills of folders: each folder with a `SKILL.md`, at any depth, is a skill under `skill://PATH`.

    Hidden files and folders, `__pycache__` and symbolic links are left out.

    Args:
        folders: The folders. A folder that has a `SKILL.md` itself is a single skill.

    Attributes:
        entries: URI of its `SKILL.md` -> the `Skill` in wire form.
        files: URI -> file, of all skills.
        directories: URI -> entries of its direct children in wire form, for the folders in skills and above them.

    Raises:
        BadSkill: A folder has no skill, or a skill that clients need not accept: no frontmatter, a name that differs
            from the folder's, more than 512 files or 16 MiB; or two skills have the same path.
        ImportError: `mcp-bindgen[skills]` is not installed.
    """

    def __init__(self, *folders: str | os.PathLike[str]) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self.files: dict[str, SkillFile] = {}
        self.directories: dict[str, list[dict[str, Any]]] = {}
        for folder in folders:
            self.add(folder)

    def add(self, folder: str | os.PathLike[str]) -> list[SkillFile]:
        """Add the skills of a folder, and return their files; raise `BadSkill` as the constructor does."""
        root = Path(folder).resolve()
        if not root.is_dir():
            raise BadSkill(f"{folder} is no folder: use a folder with a {FILE}, or with such folders in it")
        base = root.parent if (root / FILE).is_file() else root
        paths, folders = _walk(root)
        homes = sorted(path.parent.relative_to(base) for path in paths if path.name == FILE)
        if not homes:
            raise BadSkill(f"{folder} has no skill: no folder in it has a file {FILE}")
        named = {name: path for path in paths if _is_in(name := path.relative_to(base), homes)}
        files = {name: SkillFile(_uri(name), name.name, _bytes(path)) for name, path in named.items()}
        entries = {_uri(home / FILE): _entry(home, files, base / home / FILE) for home in homes}
        for uri in self.files.keys() & {file.uri for file in files.values()}:
            raise BadSkill(f"{folder} has {uri}, which another folder has too: rename one of the skills")
        inside = {name for path in folders if _is_in(name := path.relative_to(base), homes)}
        for uri, children in _directories(files, inside.union(homes)).items():
            known = self.directories.setdefault(uri, [])
            known += [child for child in children if child not in known]
        self.entries |= entries
        self.files |= {file.uri: file for file in files.values()}
        return list(files.values())

    def resource(self, file: SkillFile) -> dict[str, Any]:
        """Return the entry of a file in a list of resources, in wire form: frontmatter describes each `SKILL.md`."""
        skill = self.entries.get(file.uri)
        about = {} if skill is None else {member: skill["frontmatter"][member] for member in ("name", "description")}
        return {**file.resource, **about}

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The entries for `resources/list` in wire form: each `SKILL.md`."""
        return [self.resource(self.files[uri]) for uri in self.entries]


@cache
def _types() -> MimeTypes:
    """Return the MIME types that Python knows, and Markdown, which Python knows from 3.13 on."""
    types = MimeTypes()
    types.add_type("text/markdown", ".md")
    return types


def page(entries: Iterable[dict[str, Any]], cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of entries with URIs, and the cursor of the next page, or None.

    Raises:
        LookupError: No page begins at the cursor.
    """
    listed = list(entries)
    begin = 0
    if cursor is not None:
        begin = 1 + next((index for index, entry in enumerate(listed) if entry["uri"] == cursor), -1)
        if begin == 0:
            raise LookupError(cursor)
    shown = listed[begin : begin + _PAGE]
    return shown, shown[-1]["uri"] if begin + _PAGE < len(listed) else None


def _walk(root: Path) -> tuple[list[Path], list[Path]]:
    """Return the files and the folders below a folder, in a stable order."""
    files: list[Path] = []
    found: list[Path] = []
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _is_left_out(Path(place, name)))
        files += [path for name in sorted(names) if not _is_left_out(path := Path(place, name)) and path.is_file()]
        found += [Path(place, name) for name in folders]
    return files, found


def _is_left_out(path: Path) -> bool:
    """Return True if a file or folder is not served; log a warning for a link."""
    if path.is_symlink():
        log.warning("%s is a symbolic link, so it is not served", path)
        return True
    return path.name.startswith(".") or path.name == "__pycache__"


def _is_in(name: Path, homes: Iterable[Path]) -> bool:
    return any(name.is_relative_to(home) for home in homes)


def _bytes(path: Path) -> bytes:
    """Return the bytes of a file, unless it alone is too large."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadSkill(f"{path} is too large: clients need not accept more than {MOST_BYTES} bytes of a skill")
        return path.read_bytes()
    except OSError as error:
        raise BadSkill(f"{path} cannot be read: {error.strerror}") from None


def _uri(name: Path) -> str:
    if "\\" in name.as_posix():
        raise BadSkill(f"{str(name)!r} has a name that leads elsewhere on some systems: rename it")
    try:
        return f"skill://{quote(name.as_posix())}"
    except UnicodeEncodeError:
        raise BadSkill(f"{str(name)!r} has a name that is not UTF-8: rename it") from None


def _entry(home: Path, files: Mapping[Path, SkillFile], path: Path) -> dict[str, Any]:
    """Return the `Skill` of a folder; messages name `path`, which leads to its `SKILL.md`."""
    own = {name: file for name, file in files.items() if name.is_relative_to(home)}
    try:
        text = own[home / FILE].contents
        if not isinstance(text, str):
            raise BadFrontmatter("is not UTF-8")
        frontmatter = parse_frontmatter(text)
        check_frontmatter(frontmatter)
    except BadFrontmatter as error:
        raise BadSkill(f"{path} {error}") from None
    if frontmatter["name"] != home.name:
        raise BadSkill(f"{path} has the name {frontmatter['name']!r}: it must be the name of the folder, {home.name!r}")
    size = sum(len(file.data) for file in own.values())
    if len(own) > MOST_FILES or size > MOST_BYTES:
        most = f"clients need not accept more than {MOST_FILES} files and {MOST_BYTES} bytes"
        raise BadSkill(f"{path.parent} has {len(own)} files and {size} bytes: {most}")
    manifest = [file.manifest for _, file in sorted(own.items())]
    return {"uri": _uri(home / FILE), "frontmatter": frontmatter, "resources": manifest}


def _directories(files: Mapping[Path, SkillFile], folders: Iterable[Path]) -> dict[str, list[dict[str, Any]]]:
    """Return URI -> entries of the direct children, for folders and their parents."""
    every = {above for folder in folders for above in (folder, *folder.parents)} - {Path()}
    children: dict[Path, list[dict[str, Any]]] = {folder: [] for folder in sorted(every)}
    for folder in children:
        if folder.parent in children:
            entry = {"uri": _uri(folder), "name": folder.name, "mimeType": DIRECTORY}
            children[folder.parent].append(entry)
    for name, file in sorted(files.items()):
        children[name.parent].append(file.resource)
    return {_uri(folder): entries for folder, entries in children.items()}

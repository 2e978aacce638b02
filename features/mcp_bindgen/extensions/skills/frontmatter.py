"""Read the YAML frontmatter at the top of a `SKILL.md` as JSON (Agent Skills specification)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

_BLOCK = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)(?:^---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_LONGEST = 16_384  # characters of frontmatter, which is a few lines in all skills that exist
_MOST = 4_096  # values in it: a few lines of YAML aliases can stand for more than any memory holds
_DEEPEST = 32  # levels of it
_BITS = 64  # of a whole number
_MERGE = "tag:yaml.org,2002:merge"
_RESERVED = "io.modelcontextprotocol/"


class BadFrontmatter(ValueError):
    """The text is not that of a `SKILL.md`; the message says why, in one line."""


def parse(text: str) -> dict[str, Any]:
    """Return the frontmatter of the text of a `SKILL.md` as a JSON object: dates and the like stay as written.

    Raises:
        BadFrontmatter: There is none, or it is not an object of JSON values with a `name` and a `description`.
        ImportError: `mcp-bindgen[skills]` is not installed.
    """
    found = _BLOCK.match(text[:_LONGEST])
    if found is None:
        raise BadFrontmatter(f"does not begin with YAML between two lines of --- (at most {_LONGEST} characters)")
    frontmatter = _yaml(found[1])
    if not is_object(frontmatter):
        raise BadFrontmatter("has frontmatter that is no mapping")
    for member in ("name", "description"):
        if not isinstance(frontmatter.get(member), str) or not frontmatter[member].strip():
            raise BadFrontmatter(f"has no text for {member} in its frontmatter")
    return frontmatter


def check(frontmatter: dict[str, Any]) -> None:
    """Check what only the author of a skill is held to; raises `BadFrontmatter`."""
    name = frontmatter["name"]
    if _NAME.fullmatch(name) is None:
        raise BadFrontmatter(f"has the name {name!r}: use lowercase letters, digits and single hyphens, at most 64")
    metadata = frontmatter.get("metadata")
    for key in metadata if is_object(metadata) else ():
        if key.startswith(_RESERVED):
            raise BadFrontmatter(f"has the key {key!r} in its metadata, which is reserved for extensions of MCP")


def _yaml(text: str) -> Any:
    """Return the JSON value of a YAML 1.2 document."""
    if find_spec("ruamel.yaml") is None:
        raise ImportError("reading skills needs ruamel.yaml: pip install 'mcp-bindgen[skills]'")
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Constructor = _constructor()
    try:
        _check_depth(yaml.parse(text))
        value = yaml.load(text)
    except MarkedYAMLError as error:
        marked: Any = error
        raise BadFrontmatter(f"has frontmatter that is not YAML: {marked.problem or marked.context}") from None
    except BadFrontmatter:
        raise
    except (YAMLError, ValueError, LookupError, AssertionError) as error:  # the last two for odd tags and directives
        said = " ".join(str(error).split()) or "it has a value that does not fit its tag"
        raise BadFrontmatter(f"has frontmatter that is not YAML: {said[:200]}") from None
    for count, inner in enumerate(_values(value)):
        if count == _MOST:
            raise BadFrontmatter(f"has frontmatter that stands for more than {_MOST} values")
        if is_object(inner):
            keys: dict[Any, Any] = inner
            if not all(isinstance(key, str) for key in keys):
                raise BadFrontmatter("has a key in its frontmatter that is no text: put it in quotes")
        elif not (inner is None or is_array(inner) or isinstance(inner, str | int | float)):
            raise BadFrontmatter(f"has a {type(inner).__name__} in its frontmatter, which JSON does not know")
        elif isinstance(inner, float) and not math.isfinite(inner):
            raise BadFrontmatter(f"has {inner} in its frontmatter, which is no number of JSON")
        elif isinstance(inner, int) and inner.bit_length() > _BITS:
            raise BadFrontmatter(f"has a number of more than {_BITS} bits in its frontmatter")
    return value


def _check_depth(events: Iterable[Any]) -> None:
    """Check how deep a document is nested, before anything calls itself for each level."""
    depth = 0
    for event in events:
        depth += {"MappingStartEvent": 1, "SequenceStartEvent": 1}.get(type(event).__name__, 0)
        depth -= {"MappingEndEvent": 1, "SequenceEndEvent": 1}.get(type(event).__name__, 0)
        if depth > _DEEPEST:
            raise BadFrontmatter(f"has frontmatter that is nested deeper than {_DEEPEST} levels")


def _values(value: Any) -> Iterator[Any]:
    """Yield a value and all that is inside of it; without end where it holds itself."""
    pending = [value]
    while pending:
        found = pending.pop()
        yield found
        pending += found.values() if is_object(found) else found if is_array(found) else ()


@cache
def _constructor() -> Any:
    """Return what constructs JSON values from YAML: a date or bytes are the text that stands there.

    Keys that merge mappings are no part of YAML 1.2, and a few lines of them take longer than anybody waits.
    """
    from ruamel.yaml import constructor

    safe: Any = constructor.SafeConstructor

    def flatten(_: object, node: Any) -> None:
        if any(str(key.tag) == _MERGE for key, _ in node.value):
            raise BadFrontmatter(
                "has << in its frontmatter, which YAML 1.2 does not know: write out what it stands for"
            )

    def text(self: Any, node: Any) -> str:
        found: str = safe.construct_scalar(self, node)
        return found.encode("utf-16", "surrogatepass").decode("utf-16")  # escapes of JSON, two for a character

    kind: Any = type("AsWritten", (safe,), {"flatten_mapping": flatten})
    for tag in ("str", "timestamp", "binary"):
        kind.add_constructor(f"tag:yaml.org,2002:{tag}", text)
    return kind

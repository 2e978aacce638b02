"""Read the YAML frontmatter at the top of a `SKILL.md` as JSON (Agent Skills specification)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

try:
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
except ImportError:
    raise ImportError("reading skills needs ruamel.yaml: pip install 'mcp-bindgen[skills]'") from None

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


def parse(text: str) -> dict[str, Any]:
    """Return the frontmatter of a `SKILL.md` as a JSON object, with dates as text.

    Raises:
        BadFrontmatter: There is none, or it is not an object of JSON values with a `name` and a `description`.
    """
    found = _BLOCK.match(text[:_MAX_CHARACTERS])
    if found is None:
        raise BadFrontmatter(
            f"does not begin with YAML between two lines of --- (at most {_MAX_CHARACTERS} characters)"
        )
    frontmatter = _yaml(found[1])
    if not is_object(frontmatter):
        raise BadFrontmatter("has frontmatter that is no mapping")
    for member in ("name", "description"):
        if not isinstance(frontmatter.get(member), str) or not frontmatter[member].strip():
            raise BadFrontmatter(f"has no text for {member} in its frontmatter")
    return frontmatter


def check(frontmatter: dict[str, Any]) -> None:
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
        said = " ".join(str(error).split()) or "a value does not fit its tag"
        raise BadFrontmatter(f"has frontmatter that is not YAML: {said[:200]}") from None
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

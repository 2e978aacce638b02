"""Read and write contracts as text: strict JSON, or YAML 1.2 with JSON values."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from mcp_bindgen.spec.errors import BadInput, locating
from mcp_bindgen.spec.json import is_array, is_object, join, parse, split
from mcp_bindgen.spec.transaction import save

_YAML = (".yaml", ".yml")
_FIX = "give a document of JSON, as in the result of tools/list"
_MAX_DEPTH = 64  # levels of JSON; readers and writers recurse several times for each
_MAX_VALUES = 1_000_000
_MAX_COPIES = 100_000  # values from aliases of YAML
_MAX_NUMBER_CHARS = 4300  # as Python's own limit for decimal numbers
_DEPTH_CHANGES = {"MappingStartEvent": 1, "SequenceStartEvent": 1, "MappingEndEvent": -1, "SequenceEndEvent": -1}


def read(path: Path) -> Any:
    """Return the document in a file, JSON or YAML by its name.

    Raises:
        BadInput: The file cannot be read, or is not a JSON document.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path, fix="give the path of a contract") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 (byte {error.start})", file=path, fix="save it as UTF-8") from None
    with locating(path):
        return _yaml(text) if path.suffix.lower() in _YAML else parse(text, "contract", _FIX)


def write(document: Any, path: Path | None = None) -> str:
    """Return `document` as text, JSON or YAML by the name of the file; members keep their order.

    Returns:
        The text, which is also written to `path`, if given.

    Raises:
        BadInput: The file cannot be written.
    """
    if path is not None and path.suffix.lower() in _YAML:
        buffer = io.StringIO()
        yaml: Any = YAML(typ="safe", pure=True)
        yaml.default_flow_style = False
        # YAML treats some characters as line breaks unless they are escaped.
        yaml.allow_unicode = not any(
            char in json.dumps(document, ensure_ascii=False) for char in "\x85\u2028\u2029\ufeff"
        )
        yaml.width = 110
        yaml.sort_base_mapping_type_on_output = False
        yaml.representer.ignore_aliases = _never_an_alias
        yaml.dump(document, buffer)
        text = buffer.getvalue()
    else:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if path is not None:
        save(path, text, "choose another file")
    return text


def check(document: Any) -> None:
    """Raise `BadInput` for values that are not JSON: dates, infinite numbers, lone surrogates, excessive depth.

    Raises:
        BadInput: With the pointer to the value.
    """
    level: list[tuple[str, Any]] = [("", document)]
    for _ in range(_MAX_DEPTH):
        level = list(islice((inner for place, node in level for inner in _checked(place, node)), _MAX_VALUES))
        if not level:
            return
        if len(level) == _MAX_VALUES:
            raise BadInput("has too many values", pointer="", fix="make a contract of each part")
    raise BadInput(
        "is nested too deeply", pointer=join("", *split(level[0][0])[:3]), fix="give the schema there a name in '$defs'"
    )


def _checked(place: str, node: Any) -> list[tuple[str, Any]]:
    """Check `node`, and return its children."""
    if is_object(node):
        members: dict[Any, Any] = node
        for name in members:
            if not isinstance(name, str):
                raise BadInput(f"the member {name!r} has no text as its name", pointer=place, fix="put it in quotes")
        return [(join(place, name), child) for name, child in node.items()] + [(place, name) for name in node]
    if is_array(node):
        return [(join(place, index), child) for index, child in enumerate(node)]
    if not (node is None or isinstance(node, str | int | float)):
        raise BadInput(f"is no JSON value but a {type(node).__name__}", pointer=place, fix="put it in quotes")
    try:
        json.dumps(node, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise BadInput("has half of a character", pointer=place, fix="write the whole surrogate pair") from None
    except ValueError:
        raise BadInput("is a number that JSON does not have", pointer=place, fix="use a finite, shorter one") from None
    return []


def _yaml(text: str) -> Any:
    yaml: Any = YAML(typ="safe", pure=True)
    # Dates and bytes are not JSON: they are read as text.
    for tag in ("timestamp", "binary"):
        yaml.constructor.add_constructor(f"tag:yaml.org,2002:{tag}", _as_written)
    try:
        _check_depth(yaml.parse(text))
        node = yaml.compose(text)
        if node is None:
            return None
        _check_size(node)
        return yaml.constructor.construct_document(node)
    except DuplicateKeyError as error:
        raise BadInput(f"a member stands twice in one object{_line(error)}", fix="remove one of them") from None
    except MarkedYAMLError as error:
        marked: Any = error
        problem = str(marked.problem or marked.context or "it cannot be understood")
        raise BadInput(f"is not YAML: {problem}{_line(error)}", fix="correct it there") from None
    except (YAMLError, ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:  # odd tags
        problem = next(iter(str(error).splitlines()), "it has a value that does not fit its tag")
        raise BadInput(f"is not YAML: {problem}", fix="correct it there") from None


def _check_depth(events: Iterable[Any]) -> None:
    """Check the depth before the composer, which recurses for each level.

    Raises:
        BadInput: The document has more than `_MAX_DEPTH` levels.
    """
    depth = 0
    for event in events:
        depth += _DEPTH_CHANGES.get(type(event).__name__, 0)
        if depth > _MAX_DEPTH:
            raise BadInput(f"is nested too deeply to be a contract{_at(event.start_mark)}", fix=_FIX)


def _check_size(root: Any) -> None:
    """Check the number of values of a document after resolving aliases and merge keys.

    Raises:
        BadInput: The document has too many values, a number is too long, or a value contains itself.
    """
    sizes: dict[int, int] = {}
    pending: list[tuple[Any, bool]] = [(root, False)]
    open_nodes: set[int] = set()
    while pending:
        node, is_complete = pending.pop()
        children = _children(node)
        if is_complete:
            open_nodes.remove(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
            if sizes[id(node)] > _MAX_COPIES + len(sizes):
                words = f"stands for more than {_MAX_COPIES} values by aliases and merge keys"
                raise BadInput(f"{words}{_at(node.start_mark)}", fix="write out fewer copies")
        elif id(node) in open_nodes:
            raise BadInput(f"has a value that contains itself{_at(node.start_mark)}", fix="remove the alias")
        elif id(node) not in sizes:
            open_nodes.add(id(node))
            pending += [(node, True), *((child, False) for child in children)]


def _children(node: Any) -> list[Any]:
    """Return the direct children of a node."""
    if node.id != "scalar":
        inner: list[Any] = node.value
        return [child for pair in inner for child in pair] if node.id == "mapping" else inner
    if str(node.tag).endswith((":int", ":float")) and len(node.value) > _MAX_NUMBER_CHARS:
        raise BadInput(f"has a number with too many digits{_at(node.start_mark)}", fix="use a smaller one")
    return []


def _as_written(loader: Any, node: Any) -> Any:
    return loader.construct_scalar(node)


def _never_an_alias(data: object) -> bool:
    return True


def _line(error: Any) -> str:
    return _at(error.problem_mark or error.context_mark)


def _at(mark: Any) -> str:
    return f" at line {mark.line + 1} column {mark.column + 1}" if mark is not None else ""

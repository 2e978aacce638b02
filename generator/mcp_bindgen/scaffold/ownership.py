"""Distinguish untouched generated files from files of a user, by a stamp with a digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcp_bindgen.emit.header import MARK, header
from mcp_bindgen.spec.json import is_object

State = Literal["untouched", "edited", "foreign", "missing"]
"""State of a path: an untouched generated file, an edited generated file, something else, or nothing."""

STAMP = "generated"
"""The first member of a generated JSON file: how it was made, and its digest."""

_FIRST_LINE = re.compile(rf"((?:#|//) {re.escape(MARK)} .*\bsha256 )([0-9a-f]{{16}})\.")
_JSON_START = re.compile(rf'\s*\{{\s*"{STAMP}"\s*:\s*\{{')
_UNSAID = "0" * 16


@dataclass(frozen=True)
class Origin:
    """The origin of generated files.

    Attributes:
        source: Their source, e.g. `contract.yaml`.
        revisions: The revisions of the protocol that they are for.
        command: The command that makes them again.
    """

    source: str
    revisions: tuple[str, ...]
    command: str


def stamp(text: str, origin: Origin, comment: str = "#") -> str:
    """Return a file with the code `text` below our header, which has its source, its command and its digest."""
    first = f"for MCP {', '.join(origin.revisions)}. Do not edit: sha256 {_UNSAID}."
    top = header(first, origin.command, origin.source, comment=comment)
    whole = f"{top}\n{text}"
    return whole.replace(_UNSAID, _digest(whole), 1)


def stamp_json(document: Mapping[str, Any], origin: Origin, **notes: object) -> str:
    """Return a JSON file with the members of `document` below our stamp, which says `notes` too."""
    made = {"by": origin.command, "from": origin.source, **notes}
    whole: dict[str, Any] = {STAMP: made, **{name: value for name, value in document.items() if name != STAMP}}
    made["digest"] = _digest_json(whole)
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs, which only JSON's escapes can write
        text = json.dumps(whole, indent=2)
    return f"{text}\n"


def state(path: Path) -> State:
    """Return the state of a file. Line ends do not count as changes, nor does the layout of JSON."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return "foreign"
    if not path.exists():
        return "missing"
    try:
        text = path.read_text("utf-8")
    except ValueError:
        return "foreign"
    return _json_state(text) if path.suffix == ".json" else _code_state(text)


def stamped(path: Path) -> Mapping[str, Any]:
    """Return the stamp of a generated JSON file; an empty mapping if there is none."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    stamp = document.get(STAMP) if is_object(document) else None
    return stamp if is_object(stamp) else {}


def _code_state(text: str) -> State:
    first, _, rest = text.partition("\n")
    found = _FIRST_LINE.fullmatch(first)
    if found is None:
        return "edited" if first.startswith((f"# {MARK} ", f"// {MARK} ")) and " sha256 " in first else "foreign"
    return "untouched" if _digest(f"{found[1]}{_UNSAID}.\n{rest}") == found[2] else "edited"


def _json_state(text: str) -> State:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return "edited" if _JSON_START.match(text) else "foreign"
    stamp = document.get(STAMP) if is_object(document) else None
    if not is_object(stamp) or "digest" not in stamp:
        return "foreign"
    return "untouched" if stamp["digest"] == _digest_json(document) else "edited"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _digest_json(document: Mapping[str, Any]) -> str:
    """Return the digest of a document without the digest that it has."""
    stamp = {name: value for name, value in document[STAMP].items() if name != "digest"}
    plain = json.dumps({**document, STAMP: stamp}, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()[:16]

"""Compare a schema file with what it was at the last look, and remember what it is now."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from platformdirs import user_state_path

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.spec import BadInput, Store, named
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.git import Commit
from mcp_bindgen.spec.json import is_object, parse
from mcp_bindgen.spec.sources import Source, git_place
from mcp_bindgen.spec.transaction import Change, put, read

from .engine import compare
from .finding import Comparison

_FORM = 1
"""The form of state files; another number is another form."""

_HASH = re.compile("[0-9a-f]{40,64}")
_FIX = "remove it, and the next look is the first one again"


@dataclass(frozen=True)
class Look:
    """A look at a schema file.

    Attributes:
        source: The file.
        protocol: Its model.
        seen: The day of the look before, as `2026-11-20`; empty at the first one.
        comparison: What changed since then; `None` at the first look.
    """

    source: Source
    protocol: Protocol
    seen: str = ""
    comparison: Comparison | None = None


@dataclass(frozen=True)
class _Seen:
    day: str
    source: Source


class State:
    """What a file says about the last look.

    Args:
        path: The file; it need not exist.

    Raises:
        BadInput: It cannot be read, or says something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._before = read(path)
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", file=path, fix="give another --state") from None
        with locating(path):
            self._seen = _read(self._before, path) if self._before is not None else None

    def look(self, source: Source, store: Store, semantics: Mapping[str, Any], *, evidence: bool = False) -> Look:
        """Return what changed in a source since the last look.

        Args:
            source: The schema file.
            store: The `schema/` folder.
            semantics: The facts about it.
            evidence: Whether each finding on the wire gets a witness.

        Raises:
            BadInput: It is not a usable schema.
        """
        new = build(named(source, store, semantics))
        if self._seen is None:
            return Look(source, new)
        old = build(named(self._seen.source, store, semantics))
        if old.revision == new.revision:
            old = replace(old, revision=f"{old.revision} of {self._seen.day}")
        compared = compare(old, new, evidence=evidence)
        commits = _between(self._seen.source.commit, source)
        return Look(source, new, self._seen.day, replace(compared, commits=commits))

    def remember(self, source: Source, today: date) -> None:
        """Write down what a source is now.

        Raises:
            BadInput: The file cannot be written, or was written meanwhile.
        """
        record = {
            "form": _FORM,
            "source": source.argument,
            "day": today.isoformat(),
            "revision": source.revision,
            "commit": asdict(source.commit) if source.commit is not None else None,
            "schema": json.loads(source.content.decode("utf-8-sig")),
        }
        after = json.dumps(record, indent=1).encode()
        put(self.path.parent, {self.path.name: Change(self._before, after)})


def state_path(source: Source) -> Path:
    """Return where the state of a source is kept: in the folder that the system has for such things of a user."""
    stem = "".join(char if char.isalnum() or char in "-_" else "-" for char in source.revision.partition("@")[0])
    return user_state_path("mcp-bindgen", appauthor=False) / "watch" / f"{stem[:40]}-{source.key}.json"


def _read(content: bytes, path: Path) -> _Seen:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BadInput("is not UTF-8", fix=_FIX) from None
    record = parse(text, "state file", _FIX)
    if not is_object(record) or record.get("form") != _FORM or not _is_text(record, "day", "revision"):
        raise BadInput("is no state file of this version", fix=_FIX)
    commit: Commit | None = None
    match record.get("commit"):
        case {"id": str(id), "date": str(day), "subject": str(subject)} if _HASH.fullmatch(id):
            commit = Commit(id, day, subject)
        case None:
            pass
        case _:
            raise BadInput("is damaged: it names no commit", fix=_FIX)
    schema = json.dumps(record.get("schema")).encode()
    return _Seen(record["day"], Source(schema, str(path), record["revision"], path.name, "", commit))


def _is_text(record: Mapping[str, Any], *names: str) -> bool:
    return all(isinstance(record.get(name), str) for name in names)


def _between(old: Commit | None, source: Source) -> tuple[Commit, ...]:
    """Return the commits that changed a file since an old one, where the clone knows them."""
    if old is None or source.commit is None or old.id == source.commit.id:
        return ()
    place = git_place(source.argument)
    if not place.repository.follows(source.commit, old):
        return ()
    return tuple(place.repository.touching(place.path, source.commit, old))

"""The skills, from the folder beside this module."""

from __future__ import annotations

from pathlib import Path

from mcp_bindgen.extensions.skills import Skills, page
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS

from .call import Object

SKILLS = Skills(Path(__file__).with_suffix(""))


def list_skills(cursor: str | None) -> Object:
    """Return a page of the skills."""
    return _page("skills", list(SKILLS.entries.values()), cursor)


def get_skill(uri: str) -> Object:
    """Return a skill; raise `ProtocolError` where there is none."""
    if uri not in SKILLS.entries:
        raise ProtocolError(INVALID_PARAMS, "No skill is served there", {"uri": uri})
    return SKILLS.entries[uri]


def read_directory(uri: str, cursor: str | None) -> Object:
    """Return a page of a directory; raise `ProtocolError` if there is no such directory."""
    if uri not in SKILLS.directories:
        raise ProtocolError(INVALID_PARAMS, "No directory is served there", {"uri": uri})
    return _page("resources", SKILLS.directories[uri], cursor)


def _page(member: str, entries: list[Object], cursor: str | None) -> Object:
    try:
        shown, following = page(entries, cursor)
    except LookupError:
        raise ProtocolError(INVALID_PARAMS, "There is no such page") from None
    return {member: shown, **({} if following is None else {"nextCursor": following})}

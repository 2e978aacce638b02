"""Pages of lists."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from mcp_bindgen.runtime.protocol.errors import InvalidParams

from .catalog import Entry


def cut(
    method: str, key: str, entries: list[Entry], cursor: str | None, size: int | None
) -> tuple[list[Entry], dict[str, str]]:
    """Return a page of a list, and its `nextCursor` if it is not the last one.

    Pages are in the order of names. A cursor has the name before its page, so another process can go on, and changes of
    the list in between neither repeat nor skip other entries.

    Args:
        method: The list method.
        key: The member of an entry that names it.
        entries: The whole list.
        cursor: The cursor of the page; `None` for the first one.
        size: Maximum of entries in a page; `None` for one page.

    Raises:
        InvalidParams: The cursor was not made for this list.
    """
    after = ""
    if cursor is not None:
        try:
            made_for, _, after = urlsafe_b64decode(cursor).decode().partition(" ")
        except ValueError:
            made_for = ""
        if made_for != method or size is None:
            problem = "no page of this list has this cursor; list again without one"
            raise InvalidParams(method, [{"path": "params.cursor", "problem": problem}])
    rest = sorted((one for one in entries if cursor is None or one[key] > after), key=lambda one: str(one[key]))
    shown = rest[:size]
    following = urlsafe_b64encode(f"{method} {shown[-1][key]}".encode()).decode() if shown else ""
    return shown, {"nextCursor": following} if len(shown) < len(rest) else {}

"""Read TOML files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from .errors import BadInput


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; raise `BadInput` if it is missing or damaged.

    Equal files share their tables and lists, so change only the outermost one.
    """
    try:
        return {**_parsed(path.read_text("utf-8-sig"))}
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path, fix="give the path of a TOML file") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 (byte {error.start})", file=path, fix="save it as UTF-8 TOML") from None
    except RecursionError:
        raise BadInput("is nested too deeply", file=path, fix="correct it there") from None
    except ValueError as error:  # syntax, or a number with too many digits
        raise BadInput(f"is not TOML: {error}", file=path, fix="correct it there") from None


@lru_cache
def _parsed(text: str) -> Mapping[str, Any]:
    return tomllib.loads(text)


def key_text(text: str) -> str:
    """Return `text` as a key of TOML, in quotes if it needs them."""
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else quoted(text)


def quoted(text: str) -> str:
    """Return `text` as a quoted string or key of TOML."""
    plain = json.dumps(text, ensure_ascii=False)  # TOML does not allow escaped surrogates
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in plain)

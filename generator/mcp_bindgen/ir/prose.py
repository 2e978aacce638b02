"""Turn the TypeScript doc comments of schema files into plain text."""

from __future__ import annotations

import re
from collections.abc import Collection

from mcp_bindgen.spec import Schema

_LINK = re.compile(r"`?\{@link(?:code|plain)?\b\s*([^{}]*)\}`?|\[([^\[\]\n]*)\]\{@link(?:code|plain)?\b\s*([^{}]*)\}")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_TAG = re.compile(r"^[ \t]*@([A-Za-z][\w-]*)[ \t]*(.*)$", re.MULTILINE)
_COMMENT = re.compile(r"\A\s*/\*\*+|(?<!\*)\*+/\s*\Z")
_CAPTION = re.compile(r"<caption>([^<]*)</caption>")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_MAX_NAME = 200  # characters of the name of a definition that a label may follow directly
_DEPRECATED = re.compile(
    r"(?im)^[ \t/*_]*(?:@deprecated\b:?|deprecated[*_]*:[*_]*)[ \t]*(.*(?:\n(?![ \t]*(?:@|$)).*)*)\n?"
)
_MODIFIERS = frozenset(
    {"alpha", "beta", "experimental", "internal", "nullable", "packageDocumentation", "public", "readonly"}
)
_HEADINGS = {"see": "See", "example": "Example:", "default": "Default:", "remarks": ""}


def split_notice(schema: Schema) -> tuple[str, str]:
    """Return the description of a schema, and the notice that its subject is deprecated; empty if it is not.

    The keyword `deprecated` states it, or a paragraph `@deprecated` or `Deprecated:` of the description, which goes.
    """
    text, flag = schema.get("description", ""), schema.get("deprecated")
    if (found := _DEPRECATED.search(_FENCE.sub("", text))) is None and not flag:
        return text, ""
    words = found[1].removesuffix("*/") if found else flag if isinstance(flag, str) else ""
    rest = text.replace(found[0], "", 1).strip() if found else text
    return rest, f"by its schema: {' '.join(words.split())}".rstrip(": .")


def plain(text: str, definitions: Collection[str]) -> str:
    """Return `text` without the markup of doc comments: links, tags, captions and fences; code is indented.

    Args:
        text: The prose of a schema file.
        definitions: The names of its definitions, which tell a link's target from the words behind it.
    """
    if not any(mark in text for mark in ("@", "<caption>", "```", "~~~", "*/")):
        return text
    found = _COMMENT.sub("", text) if text.lstrip().startswith("/**") else text
    found = _LINK.sub(lambda match: _link(match[1] or match[3] or "", match[2] or "", definitions), found)
    blocks: list[str] = []
    position = 0
    for fence in _FENCE.finditer(found):  # nothing in code is markup
        blocks += [_words(found[position : fence.start()]), _indented(fence[2])]
        position = fence.end()
    return "\n".join(filter(None, [*blocks, _words(found[position:])])).strip()


def _words(text: str) -> str:
    found = _CAPTION.sub(lambda match: match[1].strip(), text)
    return _TAG.sub(lambda match: _tag(match[1], match[2].strip()), found).strip("\n")


def _indented(code: str) -> str:
    lines = [f"    {line}".rstrip() for line in code.rstrip().splitlines()]
    return "\n".join(["", *lines, ""])


def _tag(name: str, text: str) -> str:
    if name in _MODIFIERS:
        return text
    heading = _HEADINGS.get(name, f"{name}:" if text else "")
    return f"{heading} {text}".strip()


def _link(body: str, words: str, definitions: Collection[str]) -> str:
    """Return the words of a link: its label, or the name or address that it leads to.

    Some files have lost the bar between the name and the label: `{@link CallToolRequesttools/call}`.
    """
    target, _, label = (" ".join(part.split()) for part in body.partition("|"))
    if (url := _URL.match(target)) is not None:
        label = words or label or target[url.end() :].strip()
        return f"{label} ({url[0]})" if label else url[0]
    if not label and target not in definitions:
        ends = range(min(len(target), _MAX_NAME), 0, -1)
        name = next((target[:end] for end in ends if target[:end] in definitions), "")
        rest = target[len(name) :]
        if name and ("/" in rest or not rest[:1].isalnum() or name.endswith(("Request", "Notification"))):
            label = "" if rest.startswith(".") else rest.strip()
    label = words or label or target
    return label if not label or " " in label or "`" in label else f"`{label}`"

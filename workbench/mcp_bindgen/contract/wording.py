"""Suspicious parts of texts that a model reads: hidden characters and instructions to the model.

Both are hints for a reviewer. A text without a hint may still be hostile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import name

from mcp_bindgen.spec.errors import is_visible

_MAX_HINTS = 5
_MAX_EXCERPT = 60

_INSTRUCTIONS = re.compile(
    r"""
    \b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|other|instructions?|rules?)\b
    | \b(?:do\s*n[o']t|never|without)\b.{0,20}\b(?:tell|mention|show|inform|reveal|ask|asking|telling|notify|warn)
    | \b(?:always|first|must|before|whenever|instead)\b.{0,40}\b(?:call|use|using|read|send|include|pass|run|execute)\b
    | </?\s*(?:important|system|instructions?|secret|admin)\b
    | \bsystem\s+(?:prompt|message)\b | \byou\s+(?:must|should|are\s+now)\b
    | ~/\.\w+ | \bid_rsa\b | \.env\b | \bmcp\.json\b
    | \b(?:api[\s_-]?keys?|passwords?|private\s+keys?|credentials?|access\s+tokens?)\b
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""Wording that addresses the model, or asks for secrets."""


def hints(text: str) -> Iterator[str]:
    """Yield hints about a text: its hidden characters, and the parts that read like instructions."""
    hidden = {char: text.index(char) for char in text if char not in "\n\t" and not is_visible(char)}
    for char, offset in list(hidden.items())[:_MAX_HINTS]:
        yield f"hidden character U+{ord(char):04X} {name(char, 'without a name')} at {offset}"
    if len(hidden) > _MAX_HINTS:
        yield f"and {len(hidden) - _MAX_HINTS} other hidden characters"
    shown = "".join(char for char in text if char in "\n\t" or is_visible(char))
    found = dict.fromkeys(" ".join(match[0].split())[:_MAX_EXCERPT] for match in _INSTRUCTIONS.finditer(shown))
    if found:
        yield f"reads like instructions: {' | '.join(list(found)[:_MAX_HINTS])}"

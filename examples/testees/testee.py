"""Testee protocol over standard input and output, for implementations in Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A document to read.

    Attributes:
        revision: Revision of the protocol.
        definition: Name of the definition.
        text: The document as JSON text.
        extension: Id and version of the extension that has the definition, as `ID@VERSION`; else empty.
        kind: `request` or `notification`, for messages.
        envelope: True for a message with the members of JSON-RPC.
    """

    revision: str
    definition: str
    text: str
    extension: str = ""
    kind: str = ""
    envelope: bool = False


class Unsupported(Exception):
    """The implementation lacks the definition."""


class Rejected(Exception):
    """The implementation refuses the document."""


Reader = Callable[[Case], tuple[str, str]]
"""Reads a document; returns the text that it writes for it, and the name of the type that read it."""


def serve(name: str, version: str, revisions: tuple[str, ...], read: Reader) -> None:
    """Answer the messages of the runner until it says `stop`."""
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        match message["cmd"]:
            case "start":
                about = {"name": name, "version": version, "language": "python", "revisions": revisions}
                reply: Mapping[str, Any] = {"protocol": 1, **about}
            case "parse":
                fields = {key: message[key] for key in Case.__annotations__ if key in message}
                reply = {"seq": message["seq"], **_answer(read, Case(**fields), revisions)}
            case _:
                return
        print(json.dumps(reply), flush=True)


def _answer(read: Reader, case: Case, revisions: tuple[str, ...]) -> dict[str, str]:
    if case.revision not in revisions:
        return {"unsupported": case.revision}
    try:
        text, kind = read(case)
    except Unsupported as reason:
        return {"unsupported": str(reason)}
    except Rejected as reason:
        return {"rejected": str(reason)[:300]}
    except Exception as error:  # any other exception is a finding
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"accepted": text, "as": kind}

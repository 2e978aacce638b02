"""Fuzz a server's state machine with single messages that libFuzzer mutates to reach more code.

Atheris is no dependency of the project: `pip install atheris && python -m tests.fuzzer.guided`. Arguments go to
libFuzzer: options such as `-max_total_time=60`, or a file that it has written, to repeat that input.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

REVISION = "2025-03-26"


def main() -> None:
    """Fuzz until the first failure or until the time is over."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["mcp_bindgen.runtime.protocol"]):
        import mcp_bindgen.runtime.protocol.connection  # noqa: F401 - it must be the first to import it
    from mcp_bindgen.runtime.protocol.errors import ProtocolError
    from mcp_bindgen.runtime.protocol.events import Rejected, Requested
    from tests.harness.checked_connections import copied, essence, ready, slow

    from .checker import Checker
    from .failure import Violation
    from .traffic import traffic

    original = ready(REVISION)

    def judge(data: bytes) -> None:
        peer, checker = copied(original), Checker([REVISION], batches=True)
        expected, events = essence(list(slow(original).read(data))), list(peer.read(data))
        if essence(events) != expected:
            raise Violation("the quick way and the slow way differ")
        replies = [event.reply for event in events if isinstance(event, Rejected)]
        replies += [peer.fail(event.id, ProtocolError(1, "no")) for event in events if isinstance(event, Requested)]
        checker.sent(data)
        for reply in filter(None, replies):
            for part in _parts(reply):
                checker.answered(part)
        if checker.outstanding:
            raise Violation(f"not answered: {dict(checker.outstanding)}")

    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        for number, message in enumerate(traffic(REVISION).client):
            (Path(folder) / str(number)).write_text(json.dumps(message), "utf-8")
        given = sys.argv[1:]
        atheris.Setup([sys.argv[0], *given, *([] if any(map(_is_file, given)) else [folder])], judge)
        atheris.Fuzz()


def _parts(data: bytes) -> list[Any]:
    found: Any = json.loads(data)
    return found if isinstance(found, list) else [found]


def _is_file(word: str) -> bool:
    return not word.startswith("-")


if __name__ == "__main__":
    main()

"""The command `mcp-bindgen`."""

from __future__ import annotations

import codecs
import gc
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

_INTERRUPTED = 130  # as shells say it of a program that Ctrl-C ended
_ESCAPED = "mcp_bindgen.escaped"


def main() -> None:
    """Run the command line.

    Exit code 0 is success, 1 "checked and found wanting" or a closed output, 2 bad input, bad usage or an output
    that cannot be written, 130 Ctrl-C.
    """
    gc.disable()  # a command ends before a collection would pay off
    try:
        _prepare_streams()
        if find_spec("typer") is None:
            fix = "run: pip install 'mcp-bindgen[generate]'; 'mcp-bindgen[cli]' is enough for call"
            sys.exit(f"error: the command line is not installed; {fix}")
        from .app import run

        try:
            run()
        finally:
            sys.stdout.flush()
            gc.freeze()  # Python collects once more when it ends
    except KeyboardInterrupt:
        _abandon(_INTERRUPTED)
    except BrokenPipeError:
        _abandon(1)
    except OSError as error:
        with suppress(OSError):
            from .terminal import say

            say(f"error: {error.filename or 'the output'}: {error.strerror or error}", err=True)
        _abandon(2)
    except Exception:  # Python would write colours itself, and past our streams
        from traceback import print_exc

        print_exc()
        _abandon(1)


def _prepare_streams() -> None:
    """Make stdout and stderr take any text: escaped as in JSON where their encoding lacks it, or nowhere if closed."""
    codecs.register_error(_ESCAPED, _escape)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for as long as we run
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPED)


def _escape(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2)), error.end


def _abandon(code: int) -> None:
    """End without flushing stdout once more, which would fail again and say so."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)

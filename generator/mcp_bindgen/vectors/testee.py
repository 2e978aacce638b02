"""Testee: a program that reads documents with one implementation, and says over its standard output how it went."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, Queue
from threading import Thread
from typing import Any, Literal, Self

from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import is_array, is_object

PROTOCOL = 1
"""Version of the testee protocol."""

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_MAX_LINES = 100
"""Maximum number of unread lines of a testee; one that writes more is ended."""

_MAX_LINE_BYTES = 1_000_000

Status = Literal["accepted", "rejected", "unsupported", "error", "crash", "timeout"]


@dataclass(frozen=True)
class Answer:
    """Answer to one document.

    Attributes:
        status: `accepted` and `rejected` are verdicts; `unsupported` is no verdict; `error`, `crash` and `timeout` are
            failures of the testee.
        text: The document that was written for an accepted one; else the reason, if there is one.
        reads_as: Name of the type that read the document; empty if the testee does not tell.
    """

    status: Status
    text: str = ""
    reads_as: str = ""


@dataclass(frozen=True)
class Implementation:
    """Description that a testee gives of the implementation.

    Attributes:
        name: Name of the package, with the mode in parentheses if there are several.
        version: Version of the package.
        language: Programming language.
        revisions: Revisions that it implements.
    """

    name: str
    version: str
    language: str
    revisions: tuple[str, ...]

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"


class Testee:
    """Running testee; it is started again after a crash.

    Args:
        command: Command line.
        timeout: Seconds to wait for one answer.
        verbose: True to leave its stderr on ours.
    """

    __test__ = False  # for pytest

    def __init__(self, command: str, timeout: float = 10.0, *, verbose: bool = False) -> None:
        self._command, self._timeout, self._verbose = command, timeout, verbose
        self._seq = 0
        self._process, self._messages, self._lines = self._started()
        self.implementation = self._introduced()

    def __enter__(self) -> Self:
        """Return the testee."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the process."""
        if self._process.poll() is None:
            self._send({"cmd": "stop"})
            self._end()

    def parse(self, request: Mapping[str, Any]) -> Answer:
        """Send one document, and return the answer."""
        if self._process.poll() is not None:
            self._process, self._messages, self._lines = self._started()
            self._introduced()
        self._seq += 1
        try:
            self._send({"cmd": "parse", "seq": self._seq, **request})
            reply = self._reply(self._timeout)
        except Empty:
            self._end(0)
            return Answer("timeout", f"no answer in {self._timeout:g} s")
        if reply is None:
            self._end()
            return Answer("crash", f"the process ended with code {self._process.returncode}")
        if reply.get("seq") != self._seq:
            self._end(0)
            return Answer("error", f"the answer is no JSON object with seq {self._seq}")
        return _answer(reply)

    def _started(self) -> tuple[subprocess.Popen[bytes], Queue[bytes], Queue[bytes]]:
        words = shlex.split(self._command)
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's command
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if self._verbose else subprocess.DEVNULL,
            )
        except (OSError, IndexError, ValueError) as error:
            raise BadInput(f"the testee cannot be started: {error}", fix="correct --testee") from None
        messages, lines = Queue[bytes](), Queue[bytes]()
        for target, queue in ((_write, messages), (_read, lines)):
            Thread(target=target, args=(process, queue), daemon=True).start()
        return process, messages, lines

    def _introduced(self) -> Implementation:
        """Begin the conversation, and return the description of the implementation."""
        try:
            self._send({"cmd": "start", "protocol": PROTOCOL})
            reply = self._reply(_START_SECONDS)
        except Empty:
            reply = None
        if reply is None or reply.get("protocol") != PROTOCOL:
            self._end(0)
            raise BadInput(
                f"the testee does not start protocol {PROTOCOL}: {self._command}",
                fix="see its messages with --verbose, and the protocol in docs/how-to/vectors.md",
            )
        name, version, language = (str(reply.get(member, "")) for member in ("name", "version", "language"))
        revisions = reply.get("revisions")
        return Implementation(name, version, language, tuple(map(str, revisions)) if is_array(revisions) else ())

    def _send(self, message: Mapping[str, Any]) -> None:
        self._messages.put(json.dumps(message).encode() + b"\n")

    def _reply(self, timeout: float) -> Mapping[str, Any] | None:
        """Return the next line as JSON, empty if it is no JSON object; None if the process ended."""
        line = self._lines.get(timeout=timeout)
        if not line:
            return None
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return {}
        return found if is_object(found) else {}

    def _end(self, patience: float = _STOP_SECONDS) -> None:
        """Wait for the end of the process, and kill it after `patience` seconds."""
        self._messages.put(b"")
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _write(process: subprocess.Popen[bytes], messages: Queue[bytes]) -> None:
    """Write messages up to an empty one; a process that does not read blocks this thread only."""
    assert process.stdin is not None
    with suppress(OSError), process.stdin as stream:
        for message in iter(messages.get, b""):
            stream.write(message)
            stream.flush()


def _read(process: subprocess.Popen[bytes], lines: Queue[bytes]) -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        for line in iter(partial(stream.readline, _MAX_LINE_BYTES), b""):
            lines.put(line)
            if lines.qsize() > _MAX_LINES:
                process.kill()
                break
    lines.put(b"")


def _answer(reply: Mapping[str, Any]) -> Answer:
    for status in ("accepted", "rejected", "unsupported", "error"):
        if status in reply:
            return Answer(status, str(reply[status]), str(reply.get("as", "")))
    return Answer("error", "the answer has none of accepted, rejected, unsupported and error")

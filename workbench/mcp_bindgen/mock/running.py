"""Servers for tests of agents: mocks of contracts, and replays of recordings."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Self

from anyio.from_thread import start_blocking_portal

from mcp_bindgen.contract.document import ContractSource, contract_from
from mcp_bindgen.runtime.extras import NotInstalled

from . import Mock
from .answers import answers_of

_START = "import sys; from mcp_bindgen.cli import main; sys.argv[0] = 'mcp-bindgen'; sys.exit(main())"


def _command(*words: str) -> list[str]:
    """Return the command line of `mcp-bindgen` in this environment."""
    return [sys.executable, "-c", _START, *words]


class MockServer:
    """Mock of a contract, in this process and as a command; a context manager that stops it.

    Args:
        contract: The contract, its document, or the path of its file.
        answers: Tool -> fixed answers, as the file of `mcp-bindgen mock --answers` has them.
        seed: Selects other sample values.

    Attributes:
        app: The mock in this process: `async with Client.connect(server.app)`.

    Raises:
        BadInput: The contract cannot be read, or an answer does not fit it.
        ValueError: The bindings of the contract's revision are not installed.
    """

    def __init__(self, contract: ContractSource, answers: Mapping[str, Any] | None = None, seed: int = 0) -> None:
        self._contract, self._answers, self._seed = contract_from(contract), answers, seed
        self.app: Mock = Mock(self._contract, seed=seed, answers=answers_of(dict(answers or {}), self._contract))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    @property
    def calls(self) -> Sequence[tuple[str, dict[str, Any]]]:
        """The calls to `app` and `url` so far: name of the tool, and arguments."""
        return self.app.calls

    @cached_property
    def command(self) -> Sequence[str]:
        """The command line that serves the mock over stdio."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="mcp-bindgen-")))
        contract, answers = folder / "contract.json", folder / "answers.json"
        contract.write_text(json.dumps(dict(self._contract.document)), "utf-8")
        answers.write_text(json.dumps(dict(self._answers or {})), "utf-8")
        return _command("mock", str(contract), "--seed", str(self._seed), "--answers", str(answers))

    @cached_property
    def url(self) -> str:
        """The URL of the mock over Streamable HTTP on a free port of this machine; it is started at first use.

        Raises:
            ImportError: `mcp-bindgen[http]` is not installed.
        """
        try:
            from mcp_bindgen.testing.http import listening
        except ModuleNotFoundError as error:
            raise NotInstalled.of(error, "a mock over HTTP", "http") from None
        portal = self._stack.enter_context(start_blocking_portal())
        return self._stack.enter_context(portal.wrap_async_context_manager(listening(self.app)))


class ReplayServer:
    """Server that answers as a recording of `mcp-bindgen tap --out` shows.

    Args:
        recording: Path of the recording.

    Attributes:
        command: The command line that serves the recording over stdio.

    Raises:
        FileNotFoundError: There is no such file.
    """

    def __init__(self, recording: str | PathLike[str]) -> None:
        path = Path(recording).resolve(strict=True)
        self.command: Sequence[str] = _command("tap", "serve", str(path))

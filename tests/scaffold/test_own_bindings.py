"""A project with a revision that its author imported contains the bindings, so a clone of the project is complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands import Done, execute, inside, save, snapshot
from tests.support.forks import PYTHON
from tests.support.next_revision import BASIS, FACTS, NAME, next_revision

pytestmark = pytest.mark.full


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an author who has imported the next revision, outside of a checkout."""
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("mcp_bindgen.emit.python.installation.is_checkout", lambda: False)
    (tmp_path / "facts.toml").write_text(FACTS, "utf-8")
    file = save(tmp_path / "next.json", next_revision())
    inside("schema", "import", NAME, file, "--status", "draft", "--semantics", tmp_path / "facts.toml", code=0)
    return tmp_path


def elsewhere(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """Continue as another user without imported revisions, in a clone of the project."""
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(project.parent / "nobody"))
    monkeypatch.chdir(project)


def run(*words: object) -> Done:
    return execute(PYTHON, *words, PYTHONPATH="src", code=0)


def test_a_clone_of_a_project_has_the_bindings_and_can_regenerate_them(
    author: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside("scaffold", "server", "books", "--revision", NAME, "--with", "tools", "--out", author, code=0)
    project = author / "books"
    elsewhere(monkeypatch, project)
    shown = run("-c", "from books.server import Books; print(Books.revision, Books.__mro__[1].__module__)").stdout
    assert shown == f"{NAME} books.v2027_01_15.server\n"

    (line,) = re.findall("`(mcp-bindgen generate --schema .*)`", (project / "README.md").read_text("utf-8"))
    before = snapshot(project)
    (project / "src" / "books" / "v2027_01_15" / "errors.py").unlink()
    assert inside(*shlex.split(line)[1:]).returncode == 0
    assert snapshot(project) == before
    assert inside(*shlex.split(line.replace("generate", "check", 1))[1:]).stdout == f"{NAME}  in sync\n"

    refused = inside("upgrade", ".", "--to", BASIS, code=2)
    assert f"migrate schema/{NAME}.json {BASIS} . --package books.v2027_01_15" in refused.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("server", "books", "--revision", NAME, "--revision", BASIS, "--with", "tools,resources"),
        ("server", "books", "--revision", NAME, "--with", "tools", "--transport", "stdio,http"),
        ("client", "books", "--revision", NAME, "--with", "elicitation"),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_cloned_project_passes_its_tests(
    words: tuple[str, ...], author: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inside("scaffold", *words, "--out", author).returncode == 0
    elsewhere(monkeypatch, author / "books")
    run("-m", "pytest", "-q", "-p", "no:cacheprovider")
    run("-m", "ruff", "check", "--no-cache", ".")
    run("-m", "ruff", "format", "--no-cache", "--check", ".")


def test_the_server_of_a_project_serves_other_revisions_with_the_conversions_of_its_author(author: Path) -> None:
    inside("scaffold", "server", "books", "--revision", NAME, "--with", "tools", "--out", author, code=0)
    server = shlex.join([PYTHON, "-m", "books"])
    called = inside(
        *("call", server, "tools/list", "--revision", BASIS, "--env", f"PYTHONPATH={author / 'books' / 'src'}"), code=0
    )
    assert "greet" in called.stdout


def test_a_contract_with_an_imported_revision_is_refused(author: Path) -> None:
    file = save(author / "contract.json", {"tools": []})
    done = inside("scaffold", "server", "books", "--revision", NAME, "--contract", file, "--out", author, code=2)
    assert f"MCP {NAME} is not part of mcp-bindgen" in done.stderr
    assert not (author / "books").exists()

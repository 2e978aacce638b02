"""Revisions in the user's folder, beside the installed ones: all commands find them.

Their code is only imported if no other user can write to the folder.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen import user_bindings as bindings
from mcp_bindgen import v2026_07_28
from mcp_bindgen.bridging.client import ClientBridges
from mcp_bindgen.bridging.entry import plan
from mcp_bindgen.runtime.connecting import installed as clients
from mcp_bindgen.runtime.protocol.revision import facts_of
from mcp_bindgen.spec import BadInput, Store, Upstream
from mcp_bindgen.user_bindings import home
from tests.harness.commands import ROOT, Done, execute, inside, save, snapshot
from tests.harness.forks import PYTHON
from tests.harness.installation import Installation, installed
from tests.harness.small_schemas import INCOMPLETE, draft, message, record, ref, small, union

REVISIONS = list(Store().pins)


@dataclass
class User:
    """A user of an installation, in this process, and the user's folder."""

    home: Path
    bindgen = staticmethod(inside)

    def run(self, *arguments: object) -> Done:
        """Run Python."""
        return execute(PYTHON, *arguments)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """Return a user of an installation (no checkout) without imported revisions."""
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("mcp_bindgen.emit.python.installation.is_checkout", lambda: False)
    return User(tmp_path / "home")


@pytest.fixture
def kept(user: User, tmp_path: Path) -> User:
    """Return a user who has imported `draft`."""
    done = user.bindgen("schema", "import", "draft", save(tmp_path / "draft.json", small()))
    assert (done.returncode, done.stderr) == (0, INCOMPLETE)
    return user


def refused(done: Done) -> str:
    """Return the single-line error, which states the mistake and the fix."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "; " in done.stderr
    return done.stderr


def test_corrections_are_told_by_the_import_and_by_the_status_only(user: User, tmp_path: Path) -> None:
    (patch,) = [patch for patch in Store().errata if "JSONValue" in patch.pointer]
    schema = small()
    schema["$defs"]["JSONValue"] = Store().structure("2026-07-28")["$defs"]["JSONValue"]
    done = user.bindgen("schema", "import", "draft", save(tmp_path / "draft.json", schema))
    (told,) = [line for line in done.stderr.splitlines() if line.startswith("corrected: ")]
    assert told.endswith(f"#{patch.pointer}: {patch.reason}")
    assert f"#{patch.pointer}: {patch.reason}" in user.bindgen("schema", "status", "--revision", "draft").stdout
    for command in (("diff", "2026-07-28", "draft"), ("show", "draft", "JSONValue"), ("history", "JSONValue")):
        assert "corrected: " not in user.bindgen(*command).stderr


# --- a revision of the user -----------------------------------------------------------------------------------

USE = """
from mcp_bindgen.user_bindings import install
from mcp_bindgen.runtime.connecting import installed
install()
from mcp_bindgen.vdraft import Client, REVISION, Server, types
assert types.FindBookResult
print(*[client.revision for client in installed()])
print(REVISION, REVISION.draft)
"""


def check_life(user: User | Installation, folder: Path) -> None:
    """Import a draft, use it by its name everywhere, replace it by another draft of that name, and remove it."""
    done = user.bindgen("schema", "import", "draft", save(folder / "draft.json", small()), "--commit", "abc")
    assert done.returncode == 0, done.stderr
    folder_of_it = str(user.home / "generated/mcp_bindgen/vdraft")
    assert done.stdout.splitlines()[1].split() == ["mcp_bindgen.vdraft", folder_of_it]

    shown, extensions = user.bindgen("schema", "list").stdout.split("\n\n")
    listed = shown.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [*REVISIONS, "draft"]
    assert listed[-1].split()[2:] == ["draft", listed[-1].split()[3], "abc", "your", "folder"]
    assert extensions.splitlines()[-1] == f"Your folder: {user.home}"

    used = user.run("-W", "error", "-c", USE)
    assert used.returncode == 0, used.stderr
    assert used.stdout.splitlines() == [" ".join(["draft", *REVISIONS]), "draft True"]

    assert "books/find" in user.bindgen("methods", "draft").stdout
    assert "2026-07-28 -> draft" in user.bindgen("diff", "2026-07-28", "draft").stdout
    assert user.bindgen("check", "draft").stdout == "draft  in sync\nbridges  in sync\n"
    status = user.bindgen("schema", "status", "--revision", "draft")
    assert status.returncode == 0, status.stderr
    assert "in its file" in status.stdout
    assert "without words" not in status.stdout

    requests = {"MoveRequest": message("move"), "ClientRequest": union("FindBookRequest", "MoveRequest")}
    other = save(folder / "other.json", small(requests, MoveResult=record()))
    assert user.bindgen("schema", "import", "draft", other).returncode == 0
    assert "move" in user.bindgen("methods", "draft").stdout

    assert user.bindgen("schema", "remove", "draft").stdout == "draft  removed\n"
    assert list(snapshot(user.home)) == ["schema/revisions.toml"]
    assert "no revision 'draft'" in refused(user.bindgen("schema", "remove", "draft"))
    assert "No module named 'mcp_bindgen.vdraft'" in user.run("-c", USE).stderr


@pytest.mark.full
def test_a_user_can_import_use_replace_and_remove_a_draft(user: User, tmp_path: Path) -> None:
    before = {name: snapshot(ROOT / name) for name in ("schema", "generated")}
    check_life(user, tmp_path)
    assert {name: snapshot(ROOT / name) for name in before} == before


@pytest.mark.full
def test_a_user_without_revisions_can_import_use_and_remove_an_extension(user: User, tmp_path: Path) -> None:
    facts = tmp_path / "jobs.toml"
    facts.write_text("[extension]\nid = 'com.example/jobs'\ncore = ['2026-07-28']\n", "utf-8")
    file = save(tmp_path / "jobs.json", {"$defs": {"Job": record(id={"type": "string"})}})
    for arguments, says in [
        (("schema", "import", "com.example/jobs@1.0", file, "--semantics", facts), "com.example/jobs@1.0"),
        (("schema", "list"), "jobs@1.0"),
        (("schema", "verify", "jobs@1.0", file), "jobs@1.0"),
        (("show", "jobs", "Job"), "Job"),
        (("generate", "2026-07-28", "--extension", "jobs", "--out", tmp_path, "--package", "acme"), "jobs@1.0"),
        (("schema", "remove", "jobs@1.0"), "jobs@1.0"),
    ]:
        done = user.bindgen(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert says in done.stdout
    assert "jobs" not in user.bindgen("schema", "list").stdout
    done = user.bindgen("schema", "remove", "jobs")
    assert (done.returncode, "there is no revision 'jobs'" in done.stderr) == (2, True)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, own_wheel: Path) -> Installation:
    """Return our wheel, installed in an environment of its own."""
    return installed(tmp_path_factory.mktemp("installation"), own_wheel)


@pytest.mark.full
def test_an_emitter_that_pip_installs_is_used(installation: Installation, tmp_path: Path) -> None:
    done = installation.run("-m", "pip", "install", "--quiet", "--no-deps", ROOT / "examples" / "emitter")
    assert done.returncode == 0, done.stderr
    asked = ("2025-11-25", "--language", "markdown", "--out", tmp_path, "--package", "pages")
    done = installation.bindgen("generate", *asked)
    assert done.returncode == 0, done.stderr
    assert "| `tools/call` | request | client |" in (tmp_path / "pages" / "methods.md").read_text("utf-8")
    assert installation.bindgen("check", *asked).returncode == 0


@pytest.mark.full
def test_the_life_cycle_of_a_draft_leaves_the_installed_wheel_unchanged(
    installation: Installation, tmp_path: Path
) -> None:
    before = installation.files()
    check_life(installation, tmp_path)
    assert installation.files() == before


@pytest.mark.full
@pytest.mark.parametrize("name", ["draft", "another"])
def test_a_schema_that_cannot_be_generated_leaves_the_user_folder_unchanged(
    kept: User, name: str, tmp_path: Path
) -> None:
    before = snapshot(kept.home)
    lost = save(tmp_path / "lost.json", small(LostRequest=message("lost")))
    assert f"{lost}#/$defs/LostRequest" in refused(kept.bindgen("schema", "import", name, lost, "--strict"))
    assert snapshot(kept.home) == before


def test_a_draft_that_breaks_rules_is_kept_with_a_warning_for_each(user: User, tmp_path: Path) -> None:
    file = save(tmp_path / "draft.json", small(LostRequest=message("books/lose"), Shelf=record(book=ref("Book"))))
    done = user.bindgen("schema", "import", "draft", file)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert len(said) == 3
    assert all(line.startswith(f"warning: {file}#/$defs/") for line in said)
    listed = user.bindgen("methods", "draft")
    assert (listed.returncode, "books/lose" in listed.stdout) == (0, True)
    assert user.bindgen("methods", "draft", "--strict").returncode == 2


def test_semantics_imported_with_a_revision_are_kept(user: User, tmp_path: Path) -> None:
    file = save(tmp_path / "draft.json", small(FindBookResult=None, Found=record("pages", pages={"type": "integer"})))
    facts = tmp_path / "facts.toml"
    facts.write_text('[results]\n"books/find" = "Found"\n', "utf-8")
    assert "books/find" in refused(user.bindgen("schema", "import", "draft", file, "--strict"))
    done = user.bindgen("schema", "import", "draft", file, "--strict", "--semantics", facts)
    assert done.returncode == 0, done.stderr
    made = snapshot(user.home)
    done = user.bindgen("schema", "import", "draft", file)
    assert done.returncode == 0, done.stderr
    assert snapshot(user.home).keys() == made.keys()
    done = user.bindgen("generate")
    assert done.stdout.startswith("draft "), done.stderr
    assert done.stdout.endswith("(unchanged)\n")


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("2026-07-28", "MCP 2026-07-28 is part of this installation"),
        ("2026.07.28", "the bindings of '2026.07.28' and '2026-07-28' would both be v2026_07_28"),
        ("Draft", "the bindings of 'Draft' and 'draft' would both be vdraft"),
        ("../draft", "'../draft' is not the name of a revision"),
    ],
)
def test_a_taken_or_invalid_revision_name_is_refused(kept: User, name: str, says: str, tmp_path: Path) -> None:
    before = snapshot(kept.home)
    assert says in refused(kept.bindgen("schema", "import", name, tmp_path / "draft.json"))
    assert snapshot(kept.home) == before


def test_an_installed_revision_hides_the_revision_of_the_user(tmp_path: Path) -> None:
    users = Store(tmp_path / "schema")
    users.root.mkdir()
    for name in ("2026-07-28", "draft"):
        users.add(name, Upstream(save(tmp_path / "draft.json", draft()), "abc"), prose=True)
    both = Store(users=users.root)
    assert list(both.pins) == [*REVISIONS, "draft"]
    assert [pin.name for pin in both.hidden] == ["2026-07-28"]
    assert both.effective("2026-07-28").digest == Store().effective("2026-07-28").digest
    assert both.is_users("draft")
    assert both.newest == "2026-07-28"


# --- owners of imported code ----------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a package in the user's folder, with a name that only this test uses."""
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "generated" / "mcp_bindgen" / f"vtest_{tmp_path.name}"
    folder.mkdir(parents=True)
    (folder.parents[1]).chmod(0o700)
    (folder / "__init__.py").write_text("Client = 'imported'\n", "utf-8")
    bindings.install()
    return folder


def found(package: Path) -> Any:
    """Import the package again; return its `Client`."""
    name = f"mcp_bindgen.{package.name}"
    sys.modules.pop(name, None)
    try:
        return __import__(name, fromlist=["Client"]).Client
    finally:
        sys.modules.pop(name, None)


def test_a_package_in_the_user_folder_is_found(package: Path) -> None:
    assert found(package) == "imported"
    assert bindings.user_packages() == [f"mcp_bindgen.{package.name}"]


@pytest.mark.skipif(os.name != "posix", reason="the system closes the folders of users")
def test_advice_about_a_hostile_file_name_is_safe_to_paste_and_print(package: Path) -> None:
    strange = package / "a; touch \x1b[31m b"
    strange.touch()
    strange.chmod(0o666)
    objection = bindings.unsafe(package)
    assert objection is not None
    assert objection.isprintable()
    assert objection.endswith(f"chmod o-w '{package}/a; touch \\x1b[31m b'")


@pytest.mark.skipif(os.name != "posix", reason="the system closes the folders of users")
@pytest.mark.parametrize(
    ("who", "says"),
    [
        ("anybody may enter", "is open to other users; check its content, then run: chmod 700"),
        ("anybody may write a file", "every user can write to"),
        ("anybody may write the package", "every user can write to"),
        ("anybody may replace the folder", "set MCP_BINDGEN_HOME to a folder of yours"),
        ("a link leads elsewhere", "is a link"),
        ("a file is a link", "is a link"),
        ("somebody else owns it", "belongs to another user"),
    ],
)
def test_code_that_other_users_could_have_written_is_not_imported(
    who: str,
    says: str,
    package: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    modes = {
        "anybody may enter": (package.parents[1], 0o755),
        "anybody may write a file": (package / "__init__.py", 0o666),
        "anybody may write the package": (package, 0o777),
        "anybody may replace the folder": (tmp_path, 0o777),
    }
    links = {"a link leads elsewhere": package, "a file is a link": package / "__init__.py"}
    if who in modes:
        path, mode = modes[who]
        path.chmod(mode)
    elif who in links:
        links[who].rename(tmp_path / "elsewhere")
        links[who].symlink_to(tmp_path / "elsewhere")
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(ImportError, match=rf"mcp_bindgen\.{package.name} is not imported: .*{says}") as refusal:
        found(package)
    assert "\n" not in str(refusal.value)

    with caplog.at_level(logging.WARNING, "mcp_bindgen"):
        assert [client.revision for client in clients()] == REVISIONS
    assert says in caplog.text
    tmp_path.chmod(0o700)


def test_a_damaged_user_package_does_not_affect_other_revisions(
    package: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (package / "__init__.py").write_text("not python", "utf-8")
    steps = package.with_name("bridges")
    steps.mkdir()
    for name in (f"v2026_07_28_to_{package.name}", f"{package.name}_to_v2026_07_28"):
        (steps / f"{name}.py").touch()
    server = v2026_07_28.Server()
    ways: dict[str, Callable[[], list[str]]] = {
        "clients": lambda: [client.revision for client in clients()],
        "served": lambda: [*plan([facts_of(server.dispatcher.revision)], None)],
        "bridges": lambda: [one.name for one in ClientBridges([v2026_07_28.Client()]).revisions] + [server.revision],
    }
    for found in ways.values():
        caplog.clear()
        with caplog.at_level(logging.WARNING, "mcp_bindgen"):
            assert found() == REVISIONS
        assert "bindings are left out" in caplog.text


def test_a_relative_home_folder_is_refused(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCP_BINDGEN_HOME", "home")
    with pytest.raises(ImportError, match="give it an absolute path"):
        found(package)
    with pytest.raises(BadInput, match="give it an absolute path"):
        Store()
    assert bindings.user_packages() == []
    monkeypatch.setenv("MCP_BINDGEN_HOME", "")
    folder = home()
    assert folder is not None
    assert folder.is_absolute()


@pytest.mark.full
@pytest.mark.parametrize("flag", ["-s", "-I"])
def test_python_flags_can_exclude_the_user_folder(kept: User, flag: str) -> None:
    code = "import mcp_bindgen.user_bindings as users, mcp_bindgen.spec as spec; users.install(); "
    code += "print(*spec.Store().pins); import mcp_bindgen.vdraft"
    done = kept.run(flag, "-c", code)
    assert done.stdout.split() == REVISIONS
    assert "No module named 'mcp_bindgen.vdraft'" in done.stderr


def test_installed_bindings_take_precedence_over_user_bindings(package: Path) -> None:
    package.rename(package.with_name("v2026_07_28"))
    code = "import mcp_bindgen.user_bindings; mcp_bindgen.user_bindings.install(); "
    code += "import mcp_bindgen.v2026_07_28 as it; print(it.__file__)"
    assert Path(execute(PYTHON, "-c", code).stdout).parts[-2:] == ("v2026_07_28", "__init__.py\n")
    assert str(package.parent) not in execute(PYTHON, "-c", code).stdout


@pytest.mark.full
def test_outdated_bindings_fail_with_the_command_that_regenerates_them(user: User, tmp_path: Path) -> None:
    assert user.bindgen("schema", "import", "draft", save(tmp_path / "draft.json", small())).returncode == 0
    package = user.home / "generated" / "mcp_bindgen" / "vdraft" / "__init__.py"
    text = package.read_text("utf-8")
    package.write_text(re.sub(r"require\(\d+,", "require(0,", text), "utf-8")
    assert "run: mcp-bindgen generate draft" in user.run("-c", USE).stderr
    server = "from mcp_bindgen.user_bindings import install; install(); "
    server += "from mcp_bindgen.runtime.connecting import installed; print(len(installed()))"
    assert user.run("-c", server).stdout == f"{len(REVISIONS)}\n"
    assert user.bindgen("generate", "draft").returncode == 0
    assert package.read_text("utf-8") == text
    assert user.run("-c", USE).returncode == 0

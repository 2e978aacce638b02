"""Schema files from a path, an address, a commit and standard input, in every command that takes a schema file."""

from __future__ import annotations

import gzip
import io
import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.spec import BadInput, Store, sources, web
from mcp_bindgen.spec.sources import is_range, is_source
from tests.harness.commands import COMMAND, Done, execute, inside, save
from tests.harness.file_server import FileServer, serving
from tests.harness.repositories import PATH, Repo
from tests.harness.small_schemas import INCOMPLETE, record, small

TEXT = json.dumps(small())
BYTES = TEXT.encode()
SECRETS = ("ada", "hunter2", "t0ken")


def refused(done: Done) -> str:
    """Return the single line that a command printed before it exited with 2."""
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr
    return done.stderr.strip()


def refusal(name: str) -> str:
    """Return the reason for which a source cannot be read."""
    with pytest.raises(BadInput) as caught:
        sources.read(name)
    return str(caught.value)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving() as one:
        yield one


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """Return a repository with two states of a draft on `main`; the first state has the tag `v1`."""
    repo = Repo(tmp_path_factory.mktemp("git") / "ada@example" / "specification")
    repo.commit("first", small())
    repo.git("tag", "v1")
    repo.commit("second", small(Extra=record(x={"type": "string"})))
    return repo


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# --- sources and revisions ------------------------------------------------------------------------------------


def test_names_of_revisions_and_sources_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").touch()
    (tmp_path / "2025-11-25").mkdir()
    names = ["2025-11-25", "2025-11-52", "x" * 300]
    places = ["-", "draft.json", "folder/draft", "https://example.org/schema", "git:.@main:schema.json", "here"]
    assert [name for name in (*names, *places) if is_source(name, Store().pins)] == places


@pytest.mark.parametrize(
    ("path", "name"), [("2030-01-31/schema.json", "2030-01-31"), ("draft/schema.json", "draft"), ("acme.json", "acme")]
)
def test_the_path_of_a_source_gives_its_revision(path: str, name: str, tmp_path: Path, server: FileServer) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_bytes(BYTES)
    assert sources.read(str(tmp_path / path)).revision == name
    assert sources.read(server.file(f"/{path}", BYTES)).revision == name


# --- every command, from everywhere ---------------------------------------------------------------------------


@pytest.fixture(params=["path", "address", "commit", "stdin"])
def named(
    request: pytest.FixtureRequest, tmp_path: Path, server: FileServer, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return the name of the same schema file in each kind of source."""
    match request.param:
        case "path":
            return str(save(tmp_path / "draft.json", small()))
        case "address":
            return server.file("/draft.json", BYTES)
        case "commit":
            return repo.at("v1")
        case _:
            pipe(monkeypatch, BYTES)
            return "-"


def test_show_accepts_each_kind_of_source(named: str) -> None:
    done = inside("show", named, "books/find")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("FindBookRequest (MCP ")


def test_methods_accepts_each_kind_of_source(named: str) -> None:
    done = inside("methods", named, "--json")
    assert [method["name"] for method in json.loads(done.stdout)] == ["books/find"]


def test_diff_accepts_each_kind_of_source(named: str, tmp_path: Path) -> None:
    other = save(tmp_path / "other.json", small(FindBookResult=record("pages", pages={"type": "string"})))
    done = inside("diff", named, other, "--fail-on", "breaking")
    assert (done.returncode, done.stderr) == (1, "")
    assert "1 change on the wire (1 breaks)." in done.stdout


@pytest.mark.full
def test_history_accepts_each_kind_of_source(named: str) -> None:
    done = inside("history", "books/find", "--schema", named)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("books/find (method): since ")


@pytest.mark.full
def test_import_verify_and_status_accept_each_kind_of_source(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ("--folder", tmp_path / "schema")
    (tmp_path / "schema").mkdir()
    commit = () if named.startswith("git:") else ("--commit", "abc")
    done = inside("schema", "import", "2030-01-31", named, *commit, *folder)
    assert (done.returncode, done.stderr) == (0, "")
    if named == "-":
        pipe(monkeypatch, BYTES)
    done = inside("schema", "verify", "2030-01-31", named, *folder)
    assert (done.returncode, done.stdout.partition(",")[0]) == (0, "2030-01-31: same structure")
    for name in ("semantics.toml", "docs.toml"):
        (tmp_path / "schema" / name).write_bytes((Store().root / name).read_bytes())
    if named == "-":
        pipe(monkeypatch, BYTES)
    done = inside("schema", "status", "--against", named, *folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2030-01-31: ")


def test_an_import_without_a_commit_is_refused(tmp_path: Path) -> None:
    line = refused(inside("schema", "import", "2030-01-31", save(tmp_path / "x.json", small()), "--folder", tmp_path))
    assert line.endswith("x.json: the upstream commit is not known; give --commit")


def test_an_import_from_a_clone_records_its_commit(tmp_path: Path, repo: Repo) -> None:
    assert inside("schema", "import", "2030-01-31", repo.at("v1"), "--folder", tmp_path).returncode == 0
    assert f'source = "{repo.git("rev-parse", "v1")[:10]}"' in (tmp_path / "revisions.toml").read_text("utf-8")


OWN = ("--revision", "draft", "--out", "out", "--package", "acme")


@pytest.mark.full
def test_generate_and_check_accept_each_kind_of_source(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = inside("generate", "--schema", named, *OWN)
    assert (done.returncode, done.stderr) == (0, INCOMPLETE)
    header = (tmp_path / "out" / "acme" / "types.py").read_text("utf-8").split('"""')[0]
    near = named.removeprefix(f"{tmp_path}/")  # only the path below the working folder is the same for all users
    said = f"mcp-bindgen generate --schema {near} --revision draft --out out --package acme"
    assert f"# Regenerate with: {said}" in header
    assert ("# with the schema file as standard input" in header) == (named == "-")
    if named == "-":
        pipe(monkeypatch, BYTES)
    assert inside("check", "--schema", named, *OWN).stdout == "draft  in sync\n"


@pytest.mark.full
def test_a_command_reads_the_real_standard_input() -> None:
    done = execute(COMMAND, "methods", "-", stdin=TEXT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "books/find" in done.stdout


def test_standard_input_can_be_named_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, BYTES)
    assert refused(inside("diff", "-", "-")).endswith("pipe one schema file into it, and name - only once")

    pipe(monkeypatch, b"{")
    assert "error: standard input: is not JSON" in refused(inside("show", "-", "Tool"))


def test_an_endless_source_is_refused() -> None:
    says = "error: /dev/zero: has more than 16 MiB; give a schema file"
    assert not Path("/dev/zero").exists() or refused(inside("show", "/dev/zero", "Tool")) == says


# --- git ------------------------------------------------------------------------------------------------------


def test_two_commits_of_a_clone_are_compared(repo: Repo) -> None:
    done = inside("diff", repo.at("v1"), repo.at("main"))
    first, second = repo.git("rev-parse", "v1")[:10], repo.head()
    assert done.stdout.startswith(f"MCP draft@{first} -> draft@{second}\n")
    assert "1 in generated code only." in " ".join(done.stdout.split())


def test_any_git_revision_names_a_commit(repo: Repo) -> None:
    for revision in ["main", "v1", "HEAD~1", "main@{0}", "HEAD^{/first}", "@"]:
        source = sources.read(repo.at(revision))
        assert source.commit is not None
        assert source.commit.id == repo.git("rev-parse", revision)


def test_bare_repositories_worktrees_and_subfolders_can_be_read(repo: Repo, tmp_path: Path) -> None:
    repo.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    repo.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"), "v1")
    try:
        for folder in (tmp_path / "bare.git", tmp_path / "tree", repo.folder / "schema"):
            assert sources.read(f"git:{folder}@v1:{PATH}").content == json.dumps(small(), indent=2).encode()
    finally:
        repo.git("worktree", "remove", str(tmp_path / "tree"))


def test_git_variables_of_another_repository_are_ignored(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    assert sources.read(repo.at("v1")).commit is not None


def test_missing_commits_paths_and_repositories_are_refused(repo: Repo, tmp_path: Path) -> None:
    assert "there is no commit 'mian' in this clone; name an existing commit" in refusal(repo.at("mian"))
    assert "there is no 'schema.json' in that commit; give its path" in refusal(repo.at("main", "schema.json"))
    assert "'schema/draft' is a folder there" in refusal(repo.at("main", "schema/draft"))
    assert "there is no folder" in refusal(f"git:{tmp_path}/gone@main:{PATH}")
    assert "is not a git repository" in refusal(f"git:{tmp_path}@main:{PATH}")
    assert "names a range of commits; name one commit" in refusal(repo.at("v1..main"))


def test_an_incomplete_git_source_shows_the_expected_form() -> None:
    for name in ["git:", "git:.", "git:.@main", "git:.@:x", "git:@main:x", "git:.@main:"]:
        assert "write git:REPO@REV:PATH" in refusal(name)


def test_a_repository_of_another_user_is_refused_with_a_fix(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    line = refusal(repo.at("v1"))
    assert "belongs to another user" in line
    assert line.endswith(f"git config --global --add safe.directory {repo.folder}")


def test_a_suggested_shell_command_is_quoted(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a; touch b"
    repo.git("clone", "--quiet", "--bare", ".", str(folder))
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert refusal(f"git:{folder}@v1:{PATH}").endswith(f"safe.directory '{folder}'")


def test_an_impossible_folder_name_is_reported_as_missing() -> None:
    for folder in ["x" * 300, "~nobody-is-called-so"]:
        assert f"there is no folder '{folder}'" in refusal(f"git:{folder}@main:schema.json")


def test_a_git_source_is_refused_if_git_is_not_installed(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(repo.at("v1")).endswith("git is not installed; install it, or give the path of a file")


def test_a_git_revision_is_never_taken_as_an_option(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for revision in ["--output=x", "-h", "--all"]:
        monkeypatch.chdir(tmp_path)
        assert f"{revision!r} is an option, not a revision" in refused(inside("show", repo.at(revision), "Tool"))
        for span in (f"{revision}..main", f"main..{revision}"):
            assert "is an option, not a revision" in refused(inside("diff", repo.at(span)))
        assert list(tmp_path.iterdir()) == []


def test_a_repository_is_never_taken_as_an_option(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    repo.git("clone", "--quiet", ".", str(tmp_path / "--paginate"))
    assert "a repository cannot be called '--paginate'; write ./" in refusal(f"git:--paginate@v1:{PATH}")
    assert sources.read(f"git:./--paginate@v1:{PATH}").commit is not None


@pytest.mark.full
def test_a_path_is_never_taken_as_an_option_or_a_pattern(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ["--output=x", ":(exclude)x", ":/schema", "*", "../schema.json"]:
        monkeypatch.chdir(tmp_path)
        assert f"{path!r}" in refusal(repo.at("main", path))
        assert inside("diff", repo.at("v1..main", path)).returncode == 2
        assert list(tmp_path.iterdir()) == []


def test_links_and_submodules_are_not_followed(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    secret = tmp_path / "secret.json"
    secret.write_text(TEXT)
    (repo.folder / "link.json").symlink_to(secret)
    (repo.folder / "folder").symlink_to(tmp_path)
    head = repo.commit("links", small())
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.git('rev-parse', head)},sub")
    repo.git("commit", "--quiet", "-m", "submodule")
    assert "'link.json' is a symbolic link there" in refusal(repo.at("main", "link.json"))
    assert "'sub' is a submodule there" in refusal(repo.at("main", "sub"))
    for path in ("folder/secret.json", "sub/schema.json"):
        assert "in that commit" in refusal(repo.at("main", path))


def test_a_large_blob_is_not_read(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_BYTES", 100)
    assert "has more than" in refusal(repo.at("v1"))


@pytest.mark.full
def test_no_program_configured_in_a_repository_runs(tmp_path: Path) -> None:
    """A repository's configuration and attributes can name programs. `git log` runs one here; our commands run none."""
    marker, trap = tmp_path / "marker", tmp_path / "trap"
    signature = "-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----"
    signs = f'cat >/dev/null\necho "[GNUPG:] SIG_CREATED " >&2\necho "{signature}"'
    trap.write_text(f'#!/bin/sh\ntouch "{marker}"\n{signs}\n')
    trap.chmod(0o755)
    repo = Repo(tmp_path / "repo")
    repo.commit("first", small())
    programs = "gpg.program core.fsmonitor core.pager core.sshCommand core.askPass diff.x.textconv diff.external"
    for name in [*programs.split(), "filter.x.smudge", "filter.x.clean", "pager.rev-list", "pager.ls-tree"]:
        repo.git("config", name, str(trap))
    hooks = repo.folder / ".git" / "hooks"
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hooks.mkdir(exist_ok=True)
        (hooks / name).write_bytes(trap.read_bytes())
        (hooks / name).chmod(0o755)
    repo.git("config", "log.showSignature", "true")
    (repo.folder / ".gitattributes").write_text("*.json diff=x filter=x\n")
    (repo.folder / PATH).write_text(json.dumps(small(Extra=record())))
    repo.git("-c", "core.fsmonitor=false", "-c", "filter.x.clean=cat", "add", "--all")
    repo.git("-c", "core.fsmonitor=false", "commit", "-S", "--quiet", "-m", "signed")
    marker.unlink()
    repo.git("log", "-1")
    assert marker.exists(), "the trap does not work"
    marker.unlink()
    first = repo.git("rev-list", "--max-parents=0", "HEAD")
    assert inside("diff", repo.at(f"{first}..main")).returncode == 0
    assert not marker.exists()


def test_missing_blobs_of_a_partial_clone_are_not_fetched(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    repo = Repo(tmp_path / "repo")
    repo.commit("first", small())
    blob = repo.git("rev-parse", f"HEAD:{PATH}")
    (repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    partial = "core.repositoryFormatVersion 1, extensions.partialClone evil, remote.evil.promisor true"
    for setting in f"{partial}, protocol.ext.allow always, remote.evil.url ext::touch {marker}".split(", "):
        repo.git("config", *setting.split(" ", 1))
    assert "is not in this clone, a partial one; fetch it" in refusal(repo.at("main"))
    assert not marker.exists()
    with pytest.raises(AssertionError):
        repo.git("cat-file", "blob", blob)
    assert marker.exists(), "the trap does not work"


# --- addresses ------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_redirects_are_followed(server: FileServer) -> None:
    server.file("/draft/schema.json", BYTES)
    for status in (301, 302, 303, 307, 308):
        assert sources.read(server.redirect("/here", "/draft/schema.json", status)).content == BYTES


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("http://example.org/x.json", "redirects to http, which is not https"),
        ("file:///etc/passwd", "redirects to file, which is not https"),
        ("ftp://example.org/x.json", "redirects to ftp, which is not https"),
        ("/again", "redirects more than 5 times"),
        ("http://[/", "redirects to nowhere, which is not https"),
    ],
)
def test_unsafe_or_endless_redirects_are_refused(location: str, says: str, server: FileServer) -> None:
    server.redirect("/again", "/again?again")
    assert says in refusal(server.redirect("/here", location))
    assert len(server.asked) <= 6


def test_addresses_that_are_malformed_or_not_https_are_refused() -> None:
    for url, says in [
        ("http://example.org/schema.json", "http can be read and changed on its way; use https"),
        ("http://127.0.0.1.example.org/schema.json", "use https"),
        ("http://localhost@example.org/schema.json", "use https"),
        ("ftp://example.org/schema.json", "is not an https address"),
        ("https:///schema.json", "is not an https address"),
        ("https://[::1/schema.json", "is not an address"),
        ("https://localhost:x/schema.json", "is not an address"),
    ]:
        line = refused(inside("show", url, "Tool"))
        assert says in line
        assert "https:/e" not in line


def test_a_response_that_does_not_end_times_out(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "TIMEOUT", 0.4)

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        with suppress(ConnectionError):  # the client disconnects before the response ends
            for _ in range(20):
                handler.wfile.write(b" ")
                time.sleep(0.1)

    server.answers["/slow.json"] = drip
    assert "takes longer than 0.4 s" in refusal(server.url("/slow.json"))


@pytest.mark.parametrize("promised", ["100000", "10"])
def test_an_oversized_response_is_refused(promised: str, server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_BYTES", 1000)

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if promised != "10":
            handler.send_header("Content-Length", promised)
        handler.end_headers()
        handler.wfile.write(b" " * 100_000)

    server.answers["/large.json"] = flood
    assert "has more than" in refusal(server.url("/large.json"))


@pytest.mark.full
def test_responses_that_are_not_a_schema_are_refused(server: FileServer) -> None:
    for status, content, headers, says in [
        (404, b"", {}, "is answered by 404 Not Found; check the address"),
        (401, b"", {}, "is answered by 401 Unauthorized; it needs other credentials"),
        (599, b"", {}, "is answered by 599"),
        (200, b"{", {}, "is not JSON: "),
        (200, b"<!doctype html>", {}, "is a web page, not JSON; use the raw address of the file"),
        (200, gzip.compress(BYTES), {"Content_Encoding": "gzip"}, "is compressed (gzip)"),
        (200, BYTES, {"Content_Length": str(len(BYTES) + 1)}, "ends before it is complete"),
    ]:
        url = server.file("/x.json", content, status, **headers)
        assert refused(inside("show", url, "Tool")).startswith(f"error: {url}: {says}")


def test_the_error_for_a_web_page_of_a_file_suggests_its_raw_address(server: FileServer) -> None:
    page = server.file("/org/repo/blob/main/schema.json", b"\n<html>")
    assert refusal(page).endswith(f"use the raw address: {server.url('/org/repo/raw/main/schema.json')}")


def test_an_unreachable_server_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert "cannot be reached (Connection refused)" in refusal(f"http://127.0.0.1:{port}/x.json")


def test_a_server_that_does_not_speak_http_is_reported(server: FileServer) -> None:
    def greet(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"hello\r\n\r\n")

    server.answers["/x"] = greet
    assert "is not answered in HTTP" in refusal(server.url("/x"))


def test_https_to_a_server_without_tls_is_refused(server: FileServer) -> None:
    assert "cannot be reached" in refusal(server.file("/x.json", BYTES).replace("http:", "https:"))


def test_credentials_go_to_their_host_only_and_are_never_shown(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = f"{server.url('/draft.json', 'ada:hunter2')}?token=t0ken"
    shown = f"{server.url('/draft.json', '...')}?..."
    server.file("/draft.json", BYTES)
    done = inside("generate", "--schema", secret, *OWN)
    assert (done.returncode, done.stderr) == (0, INCOMPLETE)
    assert server.asked[-1][1] == "/draft.json?token=t0ken"
    assert server.asked[-1][2]["Authorization"] == "Basic YWRhOmh1bnRlcjI="
    written = "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.py"))
    assert f"--schema '{shown}'" in written
    compared = inside("diff", secret, secret)
    server.file("/draft.json", b"{")
    broken = refused(inside("show", secret, "Tool"))
    assert broken.startswith(f"error: {shown}: is not JSON")
    server.file("/other.json", b"", 403)
    server.redirect("/draft.json", "/other.json")
    lost = refused(inside("show", secret, "Tool"))
    assert "Authorization" not in server.asked[-1][2]
    for text in (written, broken, lost, done.stdout, compared.stdout):
        assert not [word for word in SECRETS if word in text]


def test_the_proxy_of_the_environment_is_used_except_for_localhost(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", server.url(""))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert sources.read(server.file("/x.json", BYTES)).content == BYTES
    assert "cannot be reached" in refusal("https://schemas.example/x.json")
    assert server.asked[-1][:2] == ("CONNECT", "schemas.example:443")


def test_errors_contain_no_terminal_control_sequences() -> None:
    for name in ("git:.@\x1b[2J:x", "https://\x1b[2J/x", "\x1b[2J.json", "git:\x1b]0;x@a:b"):
        assert "\x1b" not in refused(inside("show", name, "Tool"))


def test_only_git_sources_may_be_ranges_and_every_commit_needs_a_range(repo: Repo) -> None:
    assert is_range(repo.at("v1..main"))
    assert not is_range(repo.at("main"))
    assert not is_range("2024-11-05..2026-07-28")
    line = refused(inside("diff", repo.at("v1"), repo.at("main"), "--every-commit"))
    assert "--every-commit needs a range of commits" in line


def test_fetching_a_source_needs_only_the_standard_library(server: FileServer) -> None:
    """Fetching only needs the standard library."""
    url = server.file("/x.json", BYTES)
    code = "import sys; from mcp_bindgen.spec import sources; sources.read(sys.argv[1]); print(*sys.modules)"
    done: Any = execute(sys.executable, "-c", code, url)
    assert done.returncode == 0, done.stderr
    assert not {"httpx2", "anyio", "starlette", "requests"} & set(done.stdout.split())


def test_help_names_the_four_kinds_of_sources() -> None:
    for words in (("show",), ("methods",), ("diff",), ("generate",), ("schema", "verify")):
        text = " ".join(inside(*words, "--help").stdout.split())
        assert "a path, an https address, git:REPO@REV:PATH or - for standard input" in text

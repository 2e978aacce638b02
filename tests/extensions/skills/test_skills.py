"""Skills in folders, and hosts that load skills: only skill files are served, and only verified files are used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.extensions.skills import BadSkill, SkillEntry, SkillRefused, Skills, load_skill
from mcp_bindgen.extensions.skills.folder import MOST_BYTES, MOST_FILES, BadFrontmatter, page, parse_frontmatter
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.checked_connections import refused
from tests.harness.effort import each

HEAD = "---\nname: {}\ndescription: Does something\n---\n"
NAMED = "name: a\ndescription: c\n"
ROOT = "skill://pdf"
Files = dict[str, bytes]


def write(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


def test_a_folder_of_skills_becomes_entries_files_and_directories(tmp_path: Path) -> None:
    words = "---\r\nname: refunds\r\ndescription: Refunds\r\nlicense: MIT\r\nsince: 2024-01-01\r\n---\r\nBody"
    folder, root = "acme/billing/refunds", "skill://acme/billing/refunds"
    files: dict[str, bytes | str] = {"SKILL.md": words, "examples/a b#é.md": "Hello", "scan": b"\xff\x00"}
    files["inner/SKILL.md"] = HEAD.format("inner")
    write(tmp_path, {"acme/README.md": "not in a skill", **{f"{folder}/{name}": data for name, data in files.items()}})
    (tmp_path / folder / "empty").mkdir()
    skills = Skills(tmp_path)
    outer, inner = skills.entries.values()
    assert (outer["uri"], inner["uri"]) == (f"{root}/SKILL.md", f"{root}/inner/SKILL.md")
    told = {"name": "refunds", "description": "Refunds", "license": "MIT", "since": "2024-01-01"}
    assert outer["frontmatter"] == told
    named = {"SKILL.md", "examples/a%20b%23%C3%A9.md", "scan", "inner/SKILL.md"}
    assert {one["uri"].removeprefix(f"{root}/") for one in outer["resources"]} == named
    first = next(one for one in outer["resources"] if one["uri"] == outer["uri"])
    assert (first["size"], first["digest"]) == (len(words), f"sha256:{sha256(words.encode()).hexdigest()}")
    assert skills.files[f"{root}/scan"].contents == b"\xff\x00"
    kinds = {"SKILL.md": "text/markdown", "scan": "application/octet-stream"}
    kinds |= dict.fromkeys(("examples", "empty", "inner"), "inode/directory")
    assert {child["name"]: child["mimeType"] for child in skills.directories[root]} == kinds
    assert [child["name"] for child in skills.directories["skill://acme"]] == ["billing"]
    assert skills.directories[f"{root}/empty"] == []
    assert "skill://acme/README.md" not in skills.files
    about = skills.resources[0]
    assert (about["name"], about["description"], about["mimeType"]) == ("refunds", "Refunds", "text/markdown")
    SkillEntry(outer)  # hosts accept every served skill
    SkillEntry(inner)


def test_hidden_and_linked_files_are_not_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = write(tmp_path / "elsewhere", {"key": "secret"})
    home = write(tmp_path / "served", {"one/SKILL.md": HEAD.format("one"), "one/.env": "x", "one/.git/config": "x"})
    (home / "one/link").symlink_to(secret / "key")
    (home / "one/folder").symlink_to(secret)
    (home / "two").symlink_to(secret)
    assert list(Skills(home).files) == ["skill://one/SKILL.md"]
    assert "symbolic link" in caplog.text


def test_a_folder_with_a_skill_file_is_served_as_one_skill(tmp_path: Path) -> None:
    write(tmp_path, {"pdf/SKILL.md": HEAD.format("pdf"), "other/SKILL.md": HEAD.format("other")})
    assert list(Skills(tmp_path / "pdf").entries) == ["skill://pdf/SKILL.md"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"README.md": "x"}, "has no skill"),
        ({"one/SKILL.md": "# One"}, "two lines of ---"),
        ({"one/SKILL.md": "---\nname: one\n---\n"}, "no text for description"),
        ({"one/SKILL.md": HEAD.format("two")}, "must be the name of the folder"),
        ({"One_/SKILL.md": HEAD.format("One_")}, "lowercase"),
        ({"one/SKILL.md": b"\xff"}, "not UTF-8"),
        ({"one/SKILL.md": HEAD.format("one"), **{f"one/{i}": "" for i in range(MOST_FILES)}}, "513 files"),
        ({"a/SKILL.md": "---\nname: a\ndescription: b\nmetadata: {io.modelcontextprotocol/x: 1}\n---\n"}, "reserved"),
    ],
)
def test_a_folder_that_hosts_would_refuse_is_refused_in_one_line(
    tmp_path: Path, files: dict[str, bytes | str], said: str
) -> None:
    with pytest.raises(BadSkill, match=said) as refused:
        Skills(write(tmp_path, files))
    assert "\n" not in str(refused.value)


def test_a_file_above_the_size_limit_of_a_skill_is_refused(tmp_path: Path) -> None:
    home = write(tmp_path, {"one/SKILL.md": HEAD.format("one")})
    with (home / "one/huge").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(BadSkill, match="too large"):
        Skills(home)


def test_pages_contain_all_entries_and_unknown_cursors_are_refused() -> None:
    entries = [{"uri": f"skill://{index}/SKILL.md"} for index in range(201)]
    seen: list[Any] = []
    cursor: str | None = None
    while True:
        shown, cursor = page(entries, cursor)
        seen += shown
        if cursor is None:
            break
    assert seen == entries
    with pytest.raises(LookupError):
        page(entries, "skill://nowhere/SKILL.md")


# --- frontmatter --------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    "yaml",
    [
        *("name: a\nname: b\ndescription: c", "name: a\ndescription: !!python/object/apply:os.system [x]"),
        *(NAMED + more for more in ("x: .nan", "1: x", "x: &x [*x]", 'x: "\\ud800"', '"\\ud800": x', "[" * 5000)),
        *(f"{NAMED}x: {value}" for value in ("- " * 5000, "0x" + "f" * 9000)),
        *(f"{NAMED}x: !!{kind}" for kind in ["bool abc", "int ''", "float ''", "int _", "set {a}"]),
        f"%YAML 1.9\n---\n{NAMED}",
        f"{NAMED}b0: &b0 {{k: 1}}\n"
        + "".join(f"b{i}: &b{i} {{<<: [{', '.join([f'*b{i - 1}'] * 9)}]}}\n" for i in range(1, 12)),
        f"{NAMED}a: &a [1, 2]\n"
        + "".join(f"b{i}: &b{i} [{', '.join([f'*b{i - 1}' if i else '*a'] * 9)}]\n" for i in range(9)),
    ],
)
def test_frontmatter_that_is_no_json_or_a_bomb_is_refused_quickly(yaml: str) -> None:
    with pytest.raises(BadFrontmatter):
        parse_frontmatter(f"---\n{yaml}\n---\n")


@given(
    st.dictionaries(
        st.text("abcdefghijklmnop", min_size=1, max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_json_in_frontmatter_is_read_as_it_is(more: dict[str, Any]) -> None:
    written = {**more, "name": "a", "description": "b"}
    block = "".join(f"{key}: {json.dumps(value)}\n" for key, value in written.items())
    assert json.dumps(parse_frontmatter(f"---\n{block}---\nBody")) == json.dumps(written)


# --- hosts --------------------------------------------------------------------------------------------------------


class Server:
    """Client of a server that serves the given files."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files, self.reads = files, list[str]()

    def with_options(self, *, fresh: bool) -> Server:
        assert fresh
        return self

    async def read_resource(self, uri: str, /) -> mcp.ReadResourceResult:
        self.reads.append(uri)
        return mcp.ReadResourceResult(contents=[mcp.TextResourceContents(uri=uri, text=self.files[uri].decode())])


BODY = HEAD.format("pdf") + "Body"
FILES: Files = {f"{ROOT}/SKILL.md": BODY.encode(), f"{ROOT}/references/A%20B.md": b"Forms"}


def entry(**changes: Any) -> dict[str, Any]:
    manifest = [
        {"uri": uri, "digest": f"sha256:{sha256(data).hexdigest()}", "size": len(data)} for uri, data in FILES.items()
    ]
    frontmatter = {"name": "pdf", "description": "Does something"}
    return {"uri": f"{ROOT}/SKILL.md", "frontmatter": frontmatter, "resources": manifest, **changes}


async def test_a_host_reads_skill_files_on_demand_and_once() -> None:
    client = Server(FILES)
    skill = await load_skill(client, entry())
    assert (skill.text, client.reads) == (BODY, [f"{ROOT}/SKILL.md"])
    for path in ("references/A B.md", "./references/../references/A B.md"):
        assert await skill.read(path) == b"Forms"
    assert client.reads[1:] == [f"{ROOT}/references/A%20B.md"]


@each("path", ["../pdf2/SKILL.md", "/etc/passwd", "..", ".", "", "references", "skill://other/SKILL.md", "new.md"])
async def test_a_host_reads_only_files_that_the_skill_entry_lists(path: str) -> None:
    client = Server({**FILES, f"{ROOT}/new.md": b"New", "skill://other/SKILL.md": b"x"})
    await refused((await load_skill(client, entry())).read(path), SkillRefused)
    assert client.reads == [f"{ROOT}/SKILL.md"]


@pytest.mark.parametrize(
    ("files", "changes"),
    [
        ({f"{ROOT}/SKILL.md": BODY.replace("Body", "Evil").encode()}, {}),
        ({f"{ROOT}/SKILL.md": (BODY + " and more").encode()}, {}),
        ({}, {"frontmatter": {"name": "pdf", "description": "Something else"}}),
        ({}, {"frontmatter": {"name": "pdf", "description": "Does something", "more": 1}}),
    ],
    ids=["digest", "size", "frontmatter", "more frontmatter"],
)
async def test_a_skill_that_does_not_match_its_entry_is_not_loaded(files: Files, changes: dict[str, Any]) -> None:
    await refused(load_skill(Server({**FILES, **files}), entry(**changes)), SkillRefused)


async def test_a_file_that_does_not_match_its_digest_is_refused() -> None:
    skill = await load_skill(Server({**FILES, f"{ROOT}/references/A%20B.md": b"Firms"}), entry())
    await refused(skill.read("references/A B.md"), SkillRefused, "tampered")


def manifest(*uris: str, size: int = 1) -> list[dict[str, Any]]:
    return [{"uri": uri, "digest": f"sha256:{'0' * 64}", "size": size} for uri in uris]


BESIDE = ["SKILL.md", "%53KILL.md", "../other/SKILL.md", "%2e%2e/other.md", "/etc/passwd", "..%5C..%5Cother.md"]
RESOURCES: list[Any] = [
    *(None, "other", [], "dynamic", manifest(f"{ROOT}/other.md")),
    *(manifest(f"{ROOT}/SKILL.md", f"{ROOT}/{name}") for name in (*BESIDE, "a%00.md")),
    manifest(f"{ROOT}/SKILL.md", "skill://other/SKILL.md"),
    *(manifest(f"{ROOT}/SKILL.md", size=size) for size in (-1, True, MOST_BYTES + 1)),
    manifest(f"{ROOT}/SKILL.md", *(f"{ROOT}/{index}" for index in range(MOST_FILES))),
    [{"uri": f"{ROOT}/SKILL.md", "digest": "sha256:ABC", "size": 1}],
]
CHANGES: list[dict[str, Any]] = [{"frontmatter": None}, {"frontmatter": {"name": "other", "description": "x"}}]


@each("changes", [*({"resources": one} for one in RESOURCES), *CHANGES, {"uri": f"{ROOT}/README.md"}])
def test_an_entry_that_breaks_a_rule_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SkillRefused):
        SkillEntry(entry(**changes))


def test_a_skill_fingerprint_depends_on_the_files_and_not_on_their_order() -> None:
    approved = SkillEntry(entry()).fingerprint
    assert SkillEntry(entry(resources=entry()["resources"][::-1])).fingerprint == approved
    more = [*entry()["resources"], *manifest(f"{ROOT}/x")]
    for other in (manifest(f"{ROOT}/SKILL.md"), entry()["resources"][:1], more):
        assert SkillEntry(entry(resources=other)).fingerprint != approved
    with pytest.raises(SkillRefused, match="no fixed content"):
        _ = SkillEntry(entry(resources="dynamic"), dynamic=True).fingerprint


async def test_dynamic_skills_are_loaded_within_the_limits() -> None:
    client = Server({**FILES, f"{ROOT}/huge": b"x" * MOST_BYTES})
    skill = await load_skill(client, entry(resources="dynamic"), dynamic=True)
    await refused(skill.read("huge"), SkillRefused, "too large")
    await refused(skill.read("../other"), SkillRefused)

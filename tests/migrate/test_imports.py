"""Imports of bindings are rewritten, and every other byte of a file stays."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.migrate.imports import rewrite_imports
from tests.harness.effort import examples

OLD, NEW = "v2025_11_25", "v2026_07_28"
OWN = frozenset({"weather"})

# --- imports to rewrite: braces mark the package name, the only text that changes -------------------------------------

HEADER = "import mcp_bindgen.{P}\nimport mcp_bindgen as mb\nfrom mcp_bindgen import {P}\n"

SNIPPETS = [
    "from mcp_bindgen.{P} import Server, types as mcp  # v2025_11_25 it was",
    "import os, mcp_bindgen.{P}.types as t, sys",
    "import mcp_bindgen . {P} . errors",
    "from mcp_bindgen \\\n  .{P}.types import (  # v2025_11_25\n    Tool,\n)",
    "from mcp_bindgen import (runtime,\n\t{P} as b)",
    "from mcp_bindgen import {P} as {P}",
    "from .base import {P}",
    "from weather.base import {P} as again",
    "from elsewhere import v2025_11_25 as theirs",
    "if True:\n\tfrom mcp_bindgen.{P} import *",
    "def f(x: '{P}.types.Tool | None', *, y: \"list[mb.{P}.types.Tool]\" = []) -> {P}.Context: ...",
    "ä = 'ä', {P}.types.Tool, mcp_bindgen.{P}.types, mb.{P}, self.v2025_11_25",
    "m = import_module('mcp_bindgen.{P}.types'), import_module('.{P}', 'mcp_bindgen'), import_module('.v2025_11_25')",
    "entry = 'mcp_bindgen.{P}:Server', r'mcp_bindgen.{P}', 'mcp_bindgen.' '{P}'",
    "words = 'see mcp_bindgen.v2025_11_25!', 'v2025_11_25', b'mcp_bindgen.v2025_11_25', 'mcp_bindgen.v2025_11_256'",
    "print(f'{{{P}.REVISION}} ö', f\"mcp_bindgen.{P}.{{m}}\")",
    "__all__ = ['{P}', 'm']",
    "__all__ += ['{P}']",
    "@{P}.decorated\nclass C({P}.Server):\n\tv2025_11_25_ = {P}.types\n\tx = y.v2025_11_25.z",
    "match x:\n  case {P}.types.Tool(name=n): pass",
    '"""\n  mcp_bindgen.v2025_11_25 in prose\n"""',
    "call(v2025_11_25=1)",
    "# v2025_11_25 \f and from mcp_bindgen.v2025_11_25 import Server",
    "x = (1,\f 2); y = '''\n\f\u2028\x85''', {P}",
    "\f",
    "",
    "   ",
    "pass;",
]


def filled(template: str, name: str) -> str:
    return template.replace("{{", "\0").replace("}}", "\1").replace("{P}", name).replace("\0", "{").replace("\1", "}")


def test_only_the_package_name_is_rewritten() -> None:
    for template in SNIPPETS:
        before, after = (filled(HEADER + template, name).encode() for name in (OLD, NEW))
        moved = rewrite_imports(before, OLD, NEW, OWN)
        assert (moved.problem, moved.raw) == ("", after)
        changed = [n for n, (a, b) in enumerate(zip(before.split(b"\n"), after.split(b"\n"), strict=True), 1) if a != b]
        assert list(moved.lines) == changed


ENCODINGS = [
    ("utf-8", b"", ""),
    ("utf-8", b"\xef\xbb\xbf", ""),
    ("utf-8", b"", "# -*- coding: utf-8 -*-\n"),
    ("latin-1", b"", "#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n"),
    ("cp1252", b"", "# coding: cp1252\n"),
]


@settings(max_examples=examples(25, 240), deadline=None)
@given(st.data())
def test_a_rewrite_keeps_the_encoding_the_line_ends_and_every_other_byte(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from(SNIPPETS), max_size=8))
    encoding, mark, cookie = data.draw(st.sampled_from(ENCODINGS))
    new = data.draw(st.sampled_from([NEW, "draft", "v2027_01_01_rc"]))
    template = cookie + HEADER + "".join(f"{part}\n" for part in parts)
    if not data.draw(st.booleans()):
        template = template[:-1]
    if encoding != "utf-8":
        template = template.replace("\u2028", "").replace("\x85", "")
    ends = st.sampled_from(["\n", "\r\n", "\r"] if encoding == "utf-8" and not cookie else ["\n", "\r\n"])
    lines = template.split("\n")
    chosen = [data.draw(ends) for _ in lines[1:]]
    mixed = "".join(line + end for line, end in zip(lines, [*chosen, ""], strict=True))
    before, after = (mark + filled(mixed, name).encode(encoding) for name in (OLD, new))
    moved = rewrite_imports(before, OLD, new, OWN)
    assert (moved.problem, moved.raw) == ("", after)
    assert rewrite_imports(after, new, OLD, OWN).raw == before


def test_an_ambiguous_or_invalid_file_is_left_unchanged_with_the_reason() -> None:
    for code, why in [
        ("from mcp_bindgen import v2025_11_25\ndef f(v2025_11_25): return v2025_11_25\n", "line 2 calls something"),
        ("from mcp_bindgen import v2025_11_25\nv2025_11_25 = 1\n", "line 2 calls something else"),
        ("from mcp_bindgen import v2025_11_25\nfrom x import y as v2025_11_25\n", "line 2 calls something else"),
        ("from mcp_bindgen import v2025_11_25, v2026_07_28\n", "one file uses both revisions"),
        ("from mcp_bindgen.v2025_11_25 import A\nfrom mcp_bindgen.v2026_07_28 import B\n", "both revisions"),
        ("import mcp_bindgen.v2025_11_25 as a, mcp_bindgen.v2026_07_28.types as b\n", "both revisions"),
        ("from mcp_bindgen.v2025_11_25 import (\n", "is not Python"),
        ("from mcp_bindgen.v2025_11_25 import x\n\0", "is not Python"),
        ("# coding: klingon\nfrom mcp_bindgen.v2025_11_25 import x\n", "is not Python"),
        ("from mcp_bindgen.v2025_11_25 import x\n\udcff", "is not Python"),
        ("import mcp_bindgen.v2025_11_25\nx = 'mcp_bindgen.\\x762025_11_25'\n", "is not understood"),
        ("from mcp_bindgen.v\uff12025_11_25 import x, v2025_11_25\n", "is not understood"),
        (f"from mcp_bindgen.v2025_11_25 import x\ny = {'(' * 150}{')' * 150}\n{'-' * 100_000}1\n", "too deeply"),
    ]:
        raw = code.encode(errors="surrogateescape")
        moved = rewrite_imports(raw, OLD, NEW, OWN)
        assert why in moved.problem
        assert (moved.raw, moved.lines) == (raw, ())


def test_unrelated_names_are_not_rewritten() -> None:
    for line in [
        "",
        "# v2025_11_25",
        "v2025_11_25 = 1",
        "from . import v2025_11_25",
        "import other.v2025_11_25",
        "x = v2025_11_25",
    ]:
        for code in (line.encode(), f"{line}\n".encode()):
            moved = rewrite_imports(code, OLD, NEW)
            assert (moved.raw, moved.lines, moved.problem) == (code, (), "")

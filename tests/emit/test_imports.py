"""Generated modules import exactly what they use, sorted in one style."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_bindgen.emit import Model
from mcp_bindgen.emit.python.bindings import emit
from mcp_bindgen.emit.python.environment import style
from mcp_bindgen.emit.python.imports import imports, resolved, use
from tests.emit.test_drafts import DRAFT, read
from tests.harness.commands import ROOT, lint
from tests.harness.drafts import DRAFTS
from tests.harness.effort import selection

PLACE = imports(lambda: "")


def test_imports_of_generated_modules_are_exact(tmp_path: Path) -> None:
    lint(ROOT / "generated", cwd=tmp_path)


@pytest.mark.full
def test_imports_of_the_bindings_of_drafts_are_exact(tmp_path: Path) -> None:
    for number, (draft,) in enumerate(case.values for case in selection(quick=DRAFTS[::8], full=DRAFTS)):
        package = tmp_path / f"draft{number}"
        package.mkdir()
        for name, text in emit(Model(read(tmp_path, draft.schema)), DRAFT).items():
            (package / name).write_text(text, "utf-8")
    lint(tmp_path, cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"x = {use('a', 'B')}", "x = B", id="no-place"),
        pytest.param(f"{PLACE}\nx = 1", "\nx = 1", id="no-imports"),
        pytest.param(f"{PLACE}\nx = {use('a', 'B')}", "from a import B\nx = B", id="name"),
        pytest.param(f"{PLACE}\nx = {use('a', 'B', 'C')}", "from a import B as C\nx = C", id="alias"),
        pytest.param(f"{PLACE}\nx = {use('a', 'B', 'B')}", "from a import B\nx = B", id="same-alias"),
        pytest.param(f"{PLACE}\nx = {use('a.b')}", "import a.b\nx = a.b", id="module"),
        pytest.param(f"{PLACE}\nx = {use('a.b', alias='c')}", "import a.b as c\nx = c", id="module-alias"),
        pytest.param(f"{PLACE}{PLACE}\nx = {use('a', 'B')}", "from a import B\nx = B", id="two-places"),
    ],
)
def test_a_used_name_is_imported_at_the_place_of_imports(text: str, expected: str) -> None:
    assert resolved(text) == expected


def test_imports_are_sorted_by_section_module_and_kind_of_name() -> None:
    statements = """
        from .near import a
        from . import near
        from mine.deep import x
        from pydantic import Field
        from ..far import b
        from a import lower, Class, CONSTANT, Page10, Page2, URL_, Upper
        import typing
        from a import Beta as B
        from collections.abc import Mapping
        from __future__ import annotations
    """
    block = imports(lambda: "\n".join(line.strip() for line in statements.splitlines()))
    assert resolved(block, "mine").split("\n") == [
        "from __future__ import annotations",
        "",
        "import typing",
        "from collections.abc import Mapping",
        "",
        "from a import CONSTANT, URL_, Class, Page2, Page10, Upper, lower",
        "from a import Beta as B",
        "from pydantic import Field",
        "",
        "from mine.deep import x",
        "",
        "from ..far import b",
        "from . import near",
        "from .near import a",
    ]


def test_text_that_is_not_python_is_an_error_of_syntax() -> None:
    with pytest.raises(SyntaxError):
        style("def")

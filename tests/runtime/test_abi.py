"""Generated code and the runtime are compatible, or the error names the command to run."""

from __future__ import annotations

import ast
import sys
from importlib import import_module, reload
from pathlib import Path

import pytest

from mcp_bindgen.runtime import abi

GENERATED = Path(__file__).parents[2] / "generated" / "mcp_bindgen"
REVISIONS = sorted(path.name for path in GENERATED.iterdir() if path.name.startswith("v"))


def test_every_exported_name_of_the_abi_exists() -> None:
    assert all(hasattr(abi, name) for name in vars(abi)["__all__"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_generated_code_imports_only_names_of_the_abi(revision: str) -> None:
    for path in (GENERATED / revision).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("mcp_bindgen.runtime."):
                assert node.module == "mcp_bindgen.runtime.abi"
                assert all(hasattr(abi, alias.name) for alias in node.names), path.name


@pytest.mark.parametrize("generation", [abi.GENERATION - 1, abi.GENERATION + 1])
def test_a_package_of_another_generation_is_refused(generation: int) -> None:
    with pytest.raises(ImportError) as caught:
        abi.require(generation, "acme.mcp.v1", "mcp-bindgen generate 2025-11-25 --out src --package acme.mcp")
    assert str(caught.value) == (
        f"acme.mcp.v1 was generated for generation {generation} of the mcp-bindgen runtime, this is {abi.GENERATION}; "
        "run: mcp-bindgen generate 2025-11-25 --out src --package acme.mcp"
    )
    assert caught.value.name == "acme.mcp.v1"


def test_a_package_checks_its_generation_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module("mcp_bindgen.v2024_11_05")
    package = sys.modules["mcp_bindgen.v2024_11_05"]
    monkeypatch.setattr(abi, "GENERATION", abi.GENERATION + 1)
    with pytest.raises(ImportError, match="run: mcp-bindgen generate 2024-11-05"):
        reload(package)
    monkeypatch.undo()
    reload(package)

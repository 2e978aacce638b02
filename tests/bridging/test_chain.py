"""Composition of handwritten steps; `tests/conversion` tests generated steps."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.bridging.chain import (
    Chain,
    Conversion,
    LossReport,
    NotConvertible,
    Remark,
    Ruling,
    Step,
    chain,
    package_name,
    packages,
)
from mcp_bindgen.user_bindings import UserBindings, install

MODULE = """
from mcp_bindgen.bridging.chain import Step
STEP = Step({source!r}, {target!r}, absent={{"only/here": "{target} has it not"}})
"""


def rename(old: str, new: str) -> Conversion:
    def convert(value: Any, notes: LossReport) -> Any:
        if old in value:
            value[new] = value.pop(old)
            notes.record(old, f"is {new}")
        return value

    return Conversion(convert, (f'"{old}":'.encode(),))


ONE = Step("1", "2", params={"m": rename("a", "b")}, errors={"m": {1: 2}, "*": {1: 3}}, absent={"x": "gone"})
TWO = Step("2", "3", params={"m": rename("b", "c"), "n": rename("a", "b")}, errors={"m": {2: 4}})


def test_a_chain_without_steps_changes_nothing() -> None:
    empty = Chain()
    assert empty.params("m") is None
    assert empty.results("m") is None
    assert empty.absent("m") is None
    assert empty.error("m", 1) == 1


def test_each_step_converts_the_output_of_the_previous_step() -> None:
    conversion = Chain(ONE, TWO).params("m")
    assert conversion is not None
    assert (conversion.convert({"a": 1}, LossReport()), conversion.prefilter) == ({"c": 1}, (b'"a":', b'"b":'))


def test_methods_without_a_conversion_are_not_converted() -> None:
    both = Chain(ONE, TWO)
    assert both.params("n") is TWO.params["n"]
    assert both.results("m") is None


@given(st.dictionaries(st.sampled_from("abcd"), st.integers()))
def test_a_payload_excluded_by_the_prefilter_is_unchanged(value: dict[str, int]) -> None:
    conversion = Chain(ONE, TWO).params("m")
    assert conversion is not None
    if not conversion.may_apply(json.dumps(value, separators=(",", ":")).encode()):
        assert conversion.convert(dict(value), LossReport()) == value


def test_a_step_without_a_prefilter_disables_the_prefilter_of_the_chain() -> None:
    conversion = Chain(ONE, TWO, Step("3", "4", params={"m": Conversion(lambda value, notes: value)})).params("m")
    assert conversion is not None
    assert conversion.prefilter == ()
    assert conversion.may_apply(b"{}")


def test_the_prefilter_matches_json_with_any_spaces_and_escapes() -> None:
    conversion = Conversion(lambda value, notes: value, (b'"type":"audio"', b'"tasks":['))
    for data in (b'{"type" : "audio"}', b'{"tasks"\n:\n[ ]}', b'{"t\\u0079pe":"audio"}'):
        assert conversion.may_apply_to_any(data)
    for data in (b'{"type": "text"}', b'{"task": []}', b"{}"):
        assert not conversion.may_apply_to_any(data)
    assert Conversion(lambda value, notes: value).may_apply_to_any(b"{}")


def test_error_codes_are_mapped_by_method_and_then_by_wildcard() -> None:
    both = Chain(ONE, TWO)
    assert [both.error("m", 1), both.error("n", 1), both.error("n", 7)] == [4, 3, 7]


def test_a_method_with_another_name_is_found_by_the_names_at_both_ends() -> None:
    named = Step("3", "4", renamed={"m": "k"}, params={"m": rename("c", "d")}, errors={"m": {4: 5}}, absent={"n": "no"})
    remark: Remark = ("params", Ruling("Tool.icons", "are not known"))
    later = Step("4", "5", {"k": rename("d", "e")}, remarks={"k": (remark,)})
    later = replace(later, field_collisions={"params": {"k": frozenset("z")}})
    whole = Chain(ONE, TWO, named, later)
    for name in ("m", "k"):
        conversion = whole.params(name)
        assert conversion is not None
        assert conversion.convert({"a": 1}, LossReport()) == {"e": 1}
        assert (whole.error(name, 1), whole.absent(name), whole.remarks(name)) == (5, None, (remark,))
        assert whole.field_collisions("params", name) == {"z"}
    assert (whole.name("m"), whole.name("n"), whole.absent("n")) == ("k", "n", "no")


def test_a_method_removed_by_one_step_is_absent_from_the_chain() -> None:
    assert Chain(ONE, TWO).absent("x") == "gone"
    assert Chain(ONE, TWO).absent("m") is None


def test_a_chain_combines_field_collisions_and_remarks_of_all_steps() -> None:
    remark: Remark = ("params", Ruling("Tool.icons", "are not known"))
    steps = [Step("1", "2", field_collisions={"params": {"m": frozenset("a")}}, remarks={"m": (remark,)})] * 2
    steps.append(Step("2", "3", field_collisions={"params": {"m": frozenset("b")}}))
    assert Chain(*steps).field_collisions("params", "m") == {"a", "b"}
    assert (Chain(*steps).field_collisions("results", "m"), Chain(*steps).remarks("m")) == (frozenset(), (remark,))


def test_a_loss_is_reported_once() -> None:
    told: list[tuple[str, str]] = []
    notes = LossReport(lambda place, reason: told.append((place, reason)))
    for _ in range(3):
        notes.record("Tool.icons", "are not known")
    assert told == [("Tool.icons", "are not known")] == list(notes.losses)


def test_a_conversion_error_names_the_definition_and_the_reason() -> None:
    error = NotConvertible("AudioContent", "there is no audio", "client.sampling")
    assert (error.message, error.capability) == ("AudioContent: there is no audio", "client.sampling")


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write steps between three drafts to the user's folder, and let Python import from there."""
    folder = tmp_path / "generated" / "mcp_bindgen" / "bridges"
    folder.mkdir(parents=True)
    for source, target in [("9001-01-01", "9002-01-01"), ("9002-01-01", "next"), ("next", "9002-01-01")]:
        module = folder / f"{package_name(source)}_to_{package_name(target)}.py"
        module.write_text(MODULE.format(source=source, target=target))
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(tmp_path))
    finders = [finder for finder in sys.meta_path if not isinstance(finder, UserBindings)]
    monkeypatch.setattr(sys, "meta_path", finders)
    assert not {*packages()} & {"v9001_01_01", "v9002_01_01", "vnext"}
    install()


@pytest.mark.usefixtures("users")
def test_packages_in_the_user_folder_are_listed_after_install() -> None:
    assert packages()[-3:] == ("v9001_01_01", "v9002_01_01", "vnext")


@pytest.mark.usefixtures("users")
def test_revisions_without_connecting_steps_have_no_chain() -> None:
    assert chain("next", "9001-01-01") is None
    assert chain("unheard-of", "next") is None

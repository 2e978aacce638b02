"""Output of the diff in text, Markdown, JSON and annotations, and the command around it."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from mcp_bindgen.diff import Comparison, Finding, compare
from mcp_bindgen.diff.accept import Acceptance, Accepted, accept
from mcp_bindgen.diff.finding import Impact, Plane, Severity
from mcp_bindgen.diff.grouping import grouped, owners
from mcp_bindgen.ir import build
from mcp_bindgen.report import Format, Page, Report, render
from mcp_bindgen.report.comparison_json import json_schema
from mcp_bindgen.report.diff import comparison_report
from mcp_bindgen.report.document import Document, Paragraph, Section, code
from mcp_bindgen.report.markdown import bounded
from mcp_bindgen.spec import Diagnostic, Store
from tests.harness.commands import Done, bindgen, inside, save
from tests.harness.effort import each
from tests.harness.small_schemas import draft

STORE = Store()
REVISIONS = list(STORE.pins)
STEPS = list(pairwise(REVISIONS))
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "a\x1b[31m`b`\n::error::c%0A<script>|*_[x](y)"


def rendered(
    *comparisons: Comparison,
    format: Format = Format.TEXT,
    witness: bool = False,
    colour: bool = False,
    max_lines: int | None = None,
) -> str:
    report = replace(comparison_report(Accepted(comparisons), witness=witness), max_lines=max_lines)
    return render(report, format, Page(colour=colour))


def markdown(*comparisons: Comparison, witness: bool = False) -> str:
    return rendered(*comparisons, format=Format.MARKDOWN, witness=witness)


@cache
def between(old: str, new: str) -> Comparison:
    return compare(build(STORE.effective(old)), build(STORE.effective(new)))


def hostile() -> Comparison:
    """Return a comparison with names that an attacker chose."""
    whole = between(*STEPS[0])
    bad = [replace(f, subject=f"X.{HOSTILE}", group=HOSTILE, old=HOSTILE, new=HOSTILE) for f in whole.findings]
    diagnostic = Diagnostic("empty-choice", HOSTILE, f"/$defs/{HOSTILE}", HOSTILE, HOSTILE, HOSTILE)
    return replace(whole, findings=tuple(bad), old=replace(whole.old, revision=HOSTILE, diagnostics=(diagnostic,)))


# --- text -----------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(("old", "new"), STEPS)
@pytest.mark.parametrize("witness", [False, True])
def test_text_fits_80_columns_and_opens_with_a_summary(old: str, new: str, witness: bool) -> None:
    lines = rendered(between(old, new), witness=witness).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == f"MCP {old} -> {new}"
    summary = lines[: lines.index(next(line for line in lines if line.endswith("----")))]
    assert len(summary) <= 24
    assert [line for line in summary if line.startswith(("Old client, new server: ", "New client, old server: "))]


def test_text_has_every_finding() -> None:
    for old, new in STEPS:
        shown = rendered(between(old, new))
        causes = grouped(between(old, new).findings)
        for finding in causes:
            assert shown.count(finding.fingerprint) == 1
        words = "".join(shown.split())
        for finding in causes:
            assert "".join(finding.subject.split()) in words
            assert all("".join(owner.split()) in words for owner in owners(finding))
            if finding.plane is Plane.WIRE:
                assert "".join(finding.hint.replace("`", "").split()) in words


def test_text_for_equal_revisions_states_that_nothing_changed() -> None:
    verdicts = "Old client, new server: works\nNew client, old server: works"
    shown = rendered(between(REVISIONS[0], REVISIONS[0]))
    assert shown == f"MCP 2024-11-05 -> 2024-11-05\n\n{verdicts}\n\nNothing changed.\n"


def test_the_colour_option_adds_only_escape_sequences() -> None:
    plain, colourful = (rendered(between(*STEPS[-1]), colour=colour) for colour in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[1;31mcannot talk" in colourful
    assert ESCAPE.sub("", colourful) == plain


def test_the_report_of_a_chain_opens_with_its_steps() -> None:
    lines = rendered(*(between(*step) for step in STEPS)).splitlines()
    assert [line.split("  ")[0] for line in lines[3:7]] == [f"{old} -> {new}" for old, new in STEPS]
    assert "works with limits" in lines[3]
    assert "cannot talk" in lines[6]


def test_schemas_cannot_inject_escape_sequences_or_commands_into_text() -> None:
    shown = rendered(hostile(), witness=True)
    assert "\x1b" not in shown
    assert "\n::error" not in shown


def test_a_witness_is_shown() -> None:
    shown = " ".join(rendered(between(*STEPS[0]), witness=True).split())
    assert 'Old rejects, new accepts: {"content"' in shown
    assert "Old accepts, new accepts: " in shown


@pytest.mark.parametrize("most", [700, 300, 60])
def test_a_limited_text_counts_the_findings_that_it_leaves_out(most: int) -> None:
    for step in STEPS:
        whole = rendered(between(*step))
        shown = rendered(between(*step), max_lines=most)
        assert len(shown.splitlines()) <= most
        counts = re.findall(r"(\d+) more: ", " ".join(shown.split()))
        causes = grouped(between(*step).findings)
        named = sum(finding.fingerprint in shown for finding in causes)
        assert named + sum(map(int, counts)) == len(causes)
        assert shown.count("--full") == len(counts)
        assert (shown == whole) == (len(whole.splitlines()) <= most)
        worst = [one.fingerprint in shown for one in causes if one.severity is Severity.BREAKING]
        mild = [one for one in causes if one.severity is Severity.INFO]
        harmless = [one.fingerprint in shown for one in mild if one.plane is Plane.WIRE]
        others = [one.fingerprint in shown for one in mild if one.plane is not Plane.WIRE]
        assert all(worst) or not any(harmless)
        assert all(harmless) or not any(others)


# --- lines ----------------------------------------------------------------------------------------------------------


def test_a_line_has_severity_rule_subject_and_message() -> None:
    whole = between(*STEPS[-1])
    lines = rendered(whole, format=Format.LINE).splitlines()
    causes = grouped(whole.findings)
    assert len(lines) == len(causes)
    ranks = ["breaking", "risky", "info"]
    keys = [(ranks.index(level), rule) for level, rule, _ in (line.split(": ", 2) for line in lines)]
    assert keys == sorted(keys)
    for finding in causes:
        start = f"{finding.severity.name.lower()}: {finding.rule}: {finding.subject}"
        (line,) = [line for line in lines if line.endswith(f"[{finding.fingerprint}]")]
        assert line.startswith(start)
    assert rendered(between(REVISIONS[0], REVISIONS[0]), format=Format.LINE) == ""


def test_lines_of_a_chain_name_their_step() -> None:
    lines = rendered(*(between(*step) for step in STEPS), format=Format.LINE).splitlines()
    assert {line[line.rindex("] (") + 2 :] for line in lines} == {f"(MCP {old} -> {new})" for old, new in STEPS}


def test_schemas_cannot_add_lines() -> None:
    lines = rendered(hostile(), format=Format.LINE).splitlines()
    assert len(lines) == len(grouped(hostile().findings)) + 1  # and a diagnostic
    assert all(line.isprintable() for line in lines)


# --- Markdown -------------------------------------------------------------------------------------------------------


def test_markdown_has_every_finding_and_no_more() -> None:
    for old, new in STEPS:
        whole = between(old, new)
        shown = markdown(whole)
        assert shown.startswith(f"# MCP {old} → {new}\n\n- **Old client, new server: ")
        causes = grouped(whole.findings)
        wire = [finding for finding in causes if finding.plane is Plane.WIRE]
        assert len(re.findall("<sub ", shown)) == len(wire)
        assert all(f'<sub title="{finding.fingerprint}">{finding.rule}<' in shown for finding in wire)
        assert all(f"`{finding.subject}`" in shown for finding in causes)
        assert all(f"`{owner}" in shown for finding in wire for owner in owners(finding))
        assert not re.search(r"[ \t]$", shown, re.MULTILINE)
        assert shown.endswith("\n")
        assert not shown.endswith("\n\n")
        assert "\n\n\n" not in shown


def test_markdown_sections() -> None:
    headings = [line for line in markdown(between(*STEPS[-1])).splitlines() if line.startswith("## ")]
    assert headings == ["## Breaking", "## Risky", "## Harmless", "## Only in generated code", "## Only in words"]
    assert markdown(between(REVISIONS[0], REVISIONS[0])).endswith("\n\nNothing changed.\n")


def test_schemas_cannot_inject_html_or_links_into_markdown() -> None:
    shown = markdown(hostile())
    outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", shown)
    assert "<script>" not in outside_code
    assert "[x](y)" not in outside_code
    assert "<" not in re.sub(r'<sub title="\w+">|</sub>', "", outside_code)  # some readers do not know an escape
    assert not re.search("^::error", shown, re.MULTILINE)


def test_markdown_separates_backticks_in_a_name_from_the_delimiters() -> None:
    whole = between(*STEPS[0])
    assert "`` `x` ``" in markdown(replace(whole, findings=(replace(whole.findings[0], subject="`x`"),)))


def test_two_names_in_a_row_are_two_spans_of_code() -> None:
    text = code("a") + code("b` <img> `c")
    shown = render(Report(lambda: Document("x", [Section("x", [Paragraph(text)])]), dict), Format.MARKDOWN)
    assert shown.endswith("\n\n`a`&#8203;`` b` <img> `c ``\n")


@each("format", Format)
def test_a_character_that_changes_the_order_of_text_is_visible_in_all_formats(format: Format) -> None:
    whole, name = between(*STEPS[0]), "a\u202eb"
    bad = tuple(replace(finding, subject=name, group=name, old=name, new=name) for finding in whole.findings)
    shown = rendered(replace(whole, findings=bad), format=format)
    assert "\u202e" not in shown
    assert "a\\u202eb" in shown.replace("\\\\", "\\")


def test_schemas_cannot_add_mentions_or_automatic_links_to_markdown() -> None:
    words = "@all https://example.org www.example.org #12"
    diagnostic = Diagnostic("empty-choice", words, f"/{words}", words, words, words)
    whole = between(REVISIONS[0], REVISIONS[0])
    shown = markdown(replace(whole, old=replace(whole.old, diagnostics=(diagnostic,))))
    outside_code = re.sub(r"`.*?`", "", shown).replace("&#8203;", " ")
    assert outside_code.count("example.org") == 6
    assert not re.search(r"@\w|://|www\.|#\d", outside_code)


def test_markdown_shows_witnesses() -> None:
    blocks = re.findall(r"```json\n(.*?)```", markdown(between(*STEPS[0]), witness=True), re.DOTALL)
    assert len(blocks) == sum(finding.witness is not None for finding in grouped(between(*STEPS[0]).findings))
    assert all(json.loads(block) is not None for block in blocks)


# --- JSON -----------------------------------------------------------------------------------------------------------


def test_json_output_is_valid_against_its_schema() -> None:
    whole = tuple(between(*step) for step in STEPS)
    entries = [Acceptance("0" * 16, "never seen", date(2026, 1, 1)), Acceptance(whole[0].findings[0].fingerprint, "ok")]
    document = json.loads(render(comparison_report(accept(whole, entries, date(2026, 2, 1), whole)), Format.JSON))
    judge = Draft202012Validator(json_schema())
    judge.validate(document)
    shown = [entry["findings"] for entry in document["comparisons"]]
    assert [len(findings) for findings in shown[1:]] == [len(grouped(one.findings)) for one in whole[1:]]
    places = [sum(len(finding["places"]) or 1 for finding in findings) for findings in shown]
    assert places == [len(whole[0].findings) - 1, *(len(one.findings) for one in whole[1:])]
    assert document["accepted"]["unused"][0]["expires"] == "2026-01-01"
    last = document["comparisons"][-1]
    assert last["verdict"]["oldClient"]["outcome"] == "cannot-talk"
    assert sum(last["counts"].values()) == len(last["findings"])
    document["comparisons"][0]["findings"][0]["extra"] = 1
    assert not judge.is_valid(document)


def test_the_json_schema_requires_all_properties_and_is_closed() -> None:
    def objects(node: Any) -> list[dict[str, Any]]:
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        inner = [found for child in children for found in objects(child)]
        return [node, *inner] if isinstance(node, dict) and node.get("type") == "object" else inner

    assert len(objects(json_schema())) > 8
    for node in objects(json_schema()):
        assert node["required"] == sorted(node["properties"])
        assert node["additionalProperties"] is False


# --- annotations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("summary", ["", "summary.md"])
def test_ten_errors_and_warnings_are_annotated_and_the_others_counted(
    summary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", summary)
    whole = between(*STEPS[-1])
    lines = rendered(whole, format=Format.GITHUB).splitlines()
    counts = Counter(finding.severity for finding in grouped(whole.findings))
    errors, warnings = counts[Severity.BREAKING], counts[Severity.RISKY]
    kinds = Counter(line.split(" ")[0] for line in lines)
    assert kinds == {"::notice": 4, "::error": min(errors, 10), "::warning": min(warnings, 10)}
    assert list(kinds) == ["::notice", "::error", "::warning"]
    place = "in the summary of this step" if summary else "with --format line"
    left = [
        f"{n - 10} {kind}{'s' if n > 11 else ''}" for n, kind in ((errors, "error"), (warnings, "warning")) if n > 10
    ]
    assert lines[-1] == f"::notice title=diff::More findings are {place}: {', '.join(left)}."
    assert lines[0].startswith("::notice title=MCP 2025-11-25 -> 2026-07-28::Old client, new server: cannot talk.")


def test_annotations_are_escaped() -> None:
    lines = rendered(hostile(), format=Format.GITHUB).splitlines()
    assert all(re.fullmatch(r"::(error|warning|notice) (file=[^:,\n]*,)?title=[^:,\n]*::.*", line) for line in lines)
    assert any("%0A::error::c%250A" in line for line in lines)
    assert all(line.isprintable() for line in lines)


# --- the command ----------------------------------------------------------------------------------------------------


def diff(*arguments: object) -> Done:
    return inside("diff", *arguments)


def test_the_command_prints_text() -> None:
    done = bindgen("diff", *STEPS[0])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == rendered(between(*STEPS[0]))


@pytest.mark.full
@pytest.mark.parametrize("format", list(Format))
def test_the_output_goes_to_a_file(format: Format, tmp_path: Path) -> None:
    file = tmp_path / "report"
    file.write_text("before")
    printed = diff(*STEPS[0], "--format", format, "--witness")
    done = diff(*STEPS[0], "--format", format, "--witness", "--out", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert file.read_text("utf-8") == printed.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_an_unwritable_output_file_is_an_error(tmp_path: Path) -> None:
    done = diff(*STEPS[0], "--out", tmp_path / "nowhere" / "report")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be written" in done.stderr


def test_a_step_of_a_workflow_gets_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(save(tmp_path / "summary.md", "Before")))
    diff(*STEPS[-1], "--format", "github")
    markdown = diff(*STEPS[-1], "--format", "markdown").stdout
    assert (tmp_path / "summary.md").read_text("utf-8") == '"Before"' + markdown


def test_a_body_is_written_when_the_report_changes(tmp_path: Path) -> None:
    body = tmp_path / "body.md"
    same, step = ("latest", REVISIONS[-1]), STEPS[0]
    told: list[str] = []
    for pair in (same, step, step, STEPS[1], same):
        told.append(diff(*pair, "--body", body).stderr)
        if body.exists():  # GitHub gives line breaks of Windows to bodies that a browser sent
            body.write_bytes(body.read_bytes().replace(b"\n", b"\r\n"))
    outcomes = ["unchanged", "written", "unchanged", "written", "written"]
    assert told == [f"{body}: {outcome}\n" for outcome in outcomes]
    assert body.read_text("utf-8") == markdown(between(REVISIONS[-1], REVISIONS[-1]))
    assert diff(*step, "--body", tmp_path / "nowhere" / "body.md").returncode == 2


@pytest.mark.parametrize("most", [20_000, 2_000])
def test_markdown_of_a_limited_size_counts_the_rest(most: int) -> None:
    hidden = replace(between(*STEPS[-1]), findings=between(*STEPS[-1]).findings * 3)
    for whole in (hidden, hostile()):
        document = comparison_report(Accepted((whole,))).document()
        shown = bounded(document, most)
        assert len(shown.encode()) <= most
        counts = re.findall(r"(\d+) more: ", " ".join(shown.split()))
        assert counts or shown == markdown(whole) or shown.endswith("The report is longer.\n")


@pytest.mark.full
def test_the_exit_code_depends_on_the_fail_on_option() -> None:
    codes = {"": 0, "--fail-on never": 0, "--fail-on breaking": 1, "--fail-on any": 1}
    assert {words: diff("2024-11-05", "2025-03-26", *words.split()).returncode for words in codes} == codes
    same = diff("2024-11-05", "2024-11-05", "--fail-on", "any")
    assert (same.returncode, same.stderr) == (0, "")


@pytest.mark.full
def test_only_findings_that_pass_the_filters_affect_the_exit_code() -> None:
    narrowed = ("2025-03-26", "2025-06-18", "--method", "ping")
    envelope = diff(*narrowed, "--fail-on", "breaking", "--min-severity", "risky")
    assert envelope.returncode == 1  # the outcome for all messages
    assert diff(*narrowed, "--plane", "source", "--fail-on", "risky").returncode == 0


def test_accepted_findings_do_not_fail(tmp_path: Path) -> None:
    whole = between("2024-11-05", "2025-03-26")
    path = tmp_path / "accepted.toml"
    breaking = [f for f in whole.findings if f.severity is Severity.BREAKING]
    entries = [f"[{f.fingerprint}]\nreason = 'we know'\n" for f in breaking]
    path.write_text("".join(entries))
    done = diff("2024-11-05", "2025-03-26", "--accept", path, "--fail-on", "breaking")
    assert (done.returncode, done.stderr) == (0, "")
    path.write_text(f"{entries[0]}expires = 2020-01-01\n{''.join(entries[1:])}[{'0' * 16}]\nreason = 'old'\n")
    done = diff("2024-11-05", "2025-03-26", "--accept", path, "--fail-on", "breaking")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"warning: {breaking[0].fingerprint} was accepted until 2020-01-01: we know",
        f"warning: {'0' * 16} is accepted but not found: old",
    ]


@pytest.mark.full
def test_the_command_compares_chains_of_revisions_and_files(tmp_path: Path) -> None:
    done = diff("2024-11-05..2026-07-28", "--format", "json")
    assert len(json.loads(done.stdout)["comparisons"]) == 4
    changed = draft()
    changed["$defs"]["Loan"]["properties"]["fee"] = {"type": "integer"}
    old, new = save(tmp_path / "old.json", draft()), save(tmp_path / "new.json", changed)
    done = diff(old, new, "--format", "json")
    (comparison,) = json.loads(done.stdout)["comparisons"]
    assert [(f["rule"], f["subject"]) for f in comparison["findings"]] == [("field-added-optional", "Loan.fee")]
    assert (comparison["old"]["revision"], comparison["new"]["revision"]) == ("old", "new")


def test_the_semantics_option_adds_facts_about_a_file(tmp_path: Path) -> None:
    schema = draft()
    del schema["$defs"]["EchoResult"]
    file, facts = save(tmp_path / "old.json", schema), tmp_path / "semantics.toml"
    facts.write_text('[results]\n"echo" = "Loan"\n')
    assert diff(file, file, "--strict").returncode == 2
    done = diff(file, file, "--semantics", facts, "--strict")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "MCP old -> old")


@pytest.fixture
def half_finished(tmp_path: Path) -> tuple[Path, Path]:
    """Return two drafts; the second one refers to a definition that it lacks."""
    schema = draft()
    del schema["$defs"]["Loan"]
    new = tmp_path / "new.json"
    new.write_text(json.dumps(schema, indent=1), "utf-8")
    return save(tmp_path / "old.json", draft()), new


def test_every_format_reports_diagnostics(half_finished: tuple[Path, Path]) -> None:
    old, new = half_finished
    place, reason, interpretation = (
        f"{new}#/$defs/BorrowBookResult/properties/loan",
        "leads nowhere",
        "any JSON is accepted",
    )
    for form in Format:
        done = diff(old, new, "--format", form)
        assert done.returncode == 0
        assert re.fullmatch(rf"warning: {re.escape(place)}: [^\n]+{reason}; {interpretation}; [^\n]+\n", done.stderr)
        words = " ".join(done.stdout.split())
        assert reason in words
        assert interpretation in words
    annotations = diff(old, new, "--format", "github").stdout
    lines = new.read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if '"loan": {' in text)
    assert f"::warning file={new},line={line},title=MCP old -> new%3A reference-dangling::" in annotations
    (comparison,) = json.loads(diff(old, new, "--format", "json").stdout)["comparisons"]
    assert comparison["old"]["diagnostics"] == []
    (diagnostic,) = comparison["new"]["diagnostics"]
    assert diagnostic["kind"] == "reference-dangling"
    assert f"{diagnostic['file']}#{diagnostic['pointer']}" == place
    assert Draft202012Validator(json_schema()).is_valid(json.loads(diff(old, new, "--format", "json").stdout))


def test_a_leniently_read_draft_is_compared(half_finished: tuple[Path, Path]) -> None:
    (comparison,) = json.loads(diff(*half_finished, "--format", "json").stdout)["comparisons"]
    changes = {finding["subject"]: (finding["old"], finding["new"]) for finding in comparison["findings"]}
    assert changes["BorrowBookResult.loan"] == ("Loan", "any JSON")


def test_strict_mode_refuses_a_draft_that_breaks_a_rule(half_finished: tuple[Path, Path]) -> None:
    done = diff(*half_finished, "--strict")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+leads nowhere; [^\n]+\n", done.stderr)


def test_the_json_schema_is_printed() -> None:
    assert json.loads(diff("--json-schema").stdout) == json_schema()


def test_bad_input_is_reported_in_one_line() -> None:
    for arguments, words in [
        ((), "two revisions are compared"),
        (("2024-11-05", "2025-03-27"), "did you mean 2025-03-26?"),
        ((*STEPS[0], "--method", "tools/cal"), "did you mean tools/call?"),
        ((*STEPS[0], "--only", ","), "--only names nothing"),
        ((*STEPS[0], "--accept", "missing.toml"), "missing.toml: cannot be read"),
    ]:
        done = diff(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
        assert words in done.stderr


def test_formats_show_the_same_findings() -> None:
    whole = between(*STEPS[1])
    report = accept([whole], [], date(2026, 1, 1), [whole])
    for format in (Format.TEXT, Format.JSON, Format.MARKDOWN):
        shown = render(comparison_report(report), format)
        assert shown.endswith("\n")
        assert all(f.fingerprint in shown for f in grouped(whole.findings) if worst(f) >= Impact.RISKY)


def worst(finding: Finding) -> Impact:
    return max(finding.old_client, finding.new_client)

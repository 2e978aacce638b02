"""Renderers for grep and for continuous integration: lines, workflow commands of GitHub, SARIF 2.1.0, and JUnit XML."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from mcp_bindgen.spec.errors import printable

from . import document as doc


def line(document: doc.Document) -> str:
    """Return `[FILE:LINE:COLUMN: ]LEVEL: RULE: message [FINGERPRINT]` for each finding; empty for none.

    The worst come first, and those of a level in the order of their rules and messages. If several sections have
    findings, each line ends with the title of its section.
    """
    found = [(section, list(doc.findings_of(section))) for section in document.sections]
    is_titled = sum(bool(findings) for _, findings in found) > 1
    lines = [
        f"{_where(one.place)}{document.levels[one.level]}: {one.rule}: {whole(replace(one, fix=''))}"
        + (f" ({doc.plain_title(section)})" if is_titled else "")
        for section, findings in found
        for one in sorted(findings, key=lambda one: (-one.level, one.rule, one.message))
    ]
    return "".join(f"{printable(one)}\n" for one in lines)


def _where(place: doc.Place) -> str:
    parts = [place.file, str(place.line) if place.line else place.pointer, str(place.column or "")]
    return f"{':'.join(filter(None, parts))}: " if place.file else ""


_MAX_ANNOTATIONS = {"notice": 9, "error": 10, "warning": 10}
"""Kind -> number of its annotations; GitHub shows ten of each kind, and the last notice counts the others."""


def github(document: doc.Document) -> str:
    """Return a document as workflow commands: notices with verdicts and summaries, then the findings, the worst first.

    Findings of level `NOTE` are left out. The last notice counts the annotations that GitHub would not show.
    """
    found = [line for section in document.sections for line in _section(section)]
    kinds = {kind: [line for line in found if line.startswith(f"::{kind} ")] for kind in _MAX_ANNOTATIONS}
    shown = [line for kind, lines in kinds.items() for line in lines[: _MAX_ANNOTATIONS[kind]]]
    if left := [
        doc.plural(more, kind) for kind, lines in kinds.items() if (more := len(lines[_MAX_ANNOTATIONS[kind] :]))
    ]:
        place = "in the summary of this step" if os.environ.get("GITHUB_STEP_SUMMARY") else "with --format line"
        shown.append(_command("notice", f"More findings are {place}: {', '.join(left)}.", title=document.command))
    return "".join(f"{line}\n" for line in shown)


def _section(section: doc.Section) -> Iterator[str]:
    title = doc.plain_title(section).partition(": ")[0]
    notices = [f"{one.subject}: {one.outcome}. {' '.join(one.reasons)}".rstrip() for one in doc.verdicts_of(section)]
    notices = notices or [doc.sentence(doc.plain_title(section))]
    notices += [block.text for block in section.blocks if isinstance(block, doc.Paragraph)]
    yield from (_command("notice", words, title=title) for words in notices)
    for finding in sorted(doc.findings_of(section), key=lambda finding: -finding.level):
        if finding.level is not doc.Level.NOTE:
            yield _annotation(finding, title)


def _annotation(finding: doc.Finding, title: str) -> str:
    place = finding.place
    properties = {"file": place.file, "line": place.line, "col": place.column}
    known = {name: value for name, value in properties.items() if value}
    return _command(finding.level.name.lower(), whole(finding), **known, title=f"{title}: {finding.rule}")


def whole(finding: doc.Finding) -> str:
    """Return everything that a finding says, as one line without marks."""
    reference = f"[{finding.fingerprint}]" if finding.fingerprint else ""
    parts = (doc.sentence(finding.message), finding.effect, finding.note, finding.fix, reference)
    return printable(doc.unmarked(" ".join(filter(None, parts))), keep="\r\n")


def _command(name: str, message: str, **properties: object) -> str:
    """Return a workflow command: `::error file=server.py,line=1::message`."""
    stated = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in properties.items())
    return f"::{name} {stated}::{_escaped(doc.unmarked(message))}"


def _escaped(text: str, more: str = "") -> str:
    """Return text without characters that end a command; `more` end a property."""
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{more}" else printable(char) for char in text)


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(document: doc.Document) -> str:
    """Return the findings of a document as a SARIF log with one run."""
    findings = [finding for section in document.sections for finding in doc.findings_of(section)]
    rules = list(dict.fromkeys(finding.rule for finding in findings))
    driver = {
        "name": "mcp-bindgen",
        "version": version("mcp-bindgen"),
        "rules": [{"id": rule, "name": "".join(map(str.capitalize, rule.split("-")))} for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"mcp-bindgen/{document.command}/"},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, rules.index(finding.rule)) for finding in findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _result(finding: doc.Finding, rule_index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": finding.level.name.lower(),
        "message": {"text": whole(finding)},
    }
    if finding.place.file:
        result["locations"] = [_location(finding.place)]
    if finding.fingerprint:
        result["partialFingerprints"] = {"change/v1": finding.fingerprint}
    return result


def _location(place: doc.Place) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
    region = {"startLine": place.line, "startColumn": place.column}
    if place.line:
        physical["region"] = {name: value for name, value in region.items() if value}
    location: dict[str, Any] = {"physicalLocation": physical}
    if place.pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": place.pointer, "kind": "object"}]
    return location


def _uri(file: str) -> str:
    """Return a URI: the address itself, or a path relative to the root of the repository."""
    return file if "://" in file else quote(Path(file).as_posix())


def junit(document: doc.Document) -> str:
    """Return a document as JUnit XML: a suite for each section, a case for each finding.

    Findings of level `ERROR` are failures. A section without findings is one case that passes; overviews are left out.
    """
    root = Element("testsuites", name=f"mcp-bindgen {document.command}")
    judged = [one for one in document.sections if any(doc.verdicts_of(one)) or any(doc.findings_of(one))]
    for section in judged or document.sections[:1]:
        _suite(root, section)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, section: doc.Section) -> None:
    title, findings = _text(doc.plain_title(section)), list(doc.findings_of(section))
    failures = sum(finding.level is doc.Level.ERROR for finding in findings)
    suite = SubElement(root, "testsuite", name=title, tests=str(max(1, len(findings))), failures=str(failures))
    for finding in findings:
        _case(suite, finding)
    if not findings:
        SubElement(suite, "testcase", classname=title, name="no findings")


def _case(suite: Element, finding: doc.Finding) -> None:
    place = finding.place
    case = SubElement(suite, "testcase", classname=finding.rule, name=_text(finding.message))
    if place.file:
        case.set("file", _text(place.file))
    if place.line:
        case.set("line", str(place.line))
    if finding.level is doc.Level.ERROR:
        SubElement(case, "failure", type=finding.rule, message=_text(finding.message)).text = _text(whole(finding))
    else:
        SubElement(case, "system-out").text = _text(whole(finding))


def _text(words: str) -> str:
    """Return words without marks, and without characters that XML cannot hold."""
    return "".join(char if char.isprintable() else " " for char in doc.unmarked(words))

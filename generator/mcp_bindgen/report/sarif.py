"""SARIF 2.1.0 renderer, for code scanning (https://docs.oasis-open.org/sarif/sarif/v2.1.0/)."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .document import Document, Finding, Level, Place, findings_of
from .github import whole

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}


def sarif(document: Document) -> str:
    """Return the findings of a document as a SARIF log with one run."""
    findings = [finding for section in document.sections for finding in findings_of(section)]
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


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.level],
        "message": {"text": whole(finding)},
    }
    if finding.place.file:
        result["locations"] = [_location(finding.place)]
    if finding.fingerprint:
        result["partialFingerprints"] = {"change/v1": finding.fingerprint}
    return result


def _location(place: Place) -> dict[str, Any]:
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

"""JUnit renderer, for the test reports of continuous integration."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from .document import Document, Finding, Level, Section, findings_of, plain_title, unmarked, verdicts_of
from .github import whole


def junit(document: Document) -> str:
    """Return a document as JUnit XML: a suite for each section, a case for each finding.

    Findings of level `ERROR` are failures. A section without findings is one case that passes; overviews are left out.
    """
    root = Element("testsuites", name=f"mcp-bindgen {document.command}")
    judged = [one for one in document.sections if any(verdicts_of(one)) or any(findings_of(one))]
    for section in judged or document.sections[:1]:
        _suite(root, section)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, section: Section) -> None:
    title, findings = _text(plain_title(section)), list(findings_of(section))
    failures = sum(finding.level is Level.ERROR for finding in findings)
    suite = SubElement(root, "testsuite", name=title, tests=str(max(1, len(findings))), failures=str(failures))
    for finding in findings:
        _case(suite, finding)
    if not findings:
        SubElement(suite, "testcase", classname=title, name="no findings")


def _case(suite: Element, finding: Finding) -> None:
    place = finding.place
    case = SubElement(suite, "testcase", classname=finding.rule, name=_text(finding.message))
    if place.file:
        case.set("file", _text(place.file))
    if place.line:
        case.set("line", str(place.line))
    if finding.level is Level.ERROR:
        SubElement(case, "failure", type=finding.rule, message=_text(finding.message)).text = _text(whole(finding))
    else:
        SubElement(case, "system-out").text = _text(whole(finding))


def _text(words: str) -> str:
    """Return words without marks, and without characters that XML cannot hold."""
    return "".join(char if char.isprintable() else " " for char in unmarked(words))

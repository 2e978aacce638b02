"""Render the report for programs: JSON, and the JSON Schema that documents it."""

from __future__ import annotations

import json as encoder
from typing import Any, get_args

from mcp_bindgen.protocol.model import Kind, Protocol, Sender

from ..accept import Acceptance, Accepted
from ..finding import Comparison, Finding, Impact, Outcome, Plane, Severity
from ..rules import RULES
from .record import as_json


def json(report: Accepted) -> str:
    """Return the report as JSON; `json_schema` says what it holds."""
    return encoder.dumps(document(report), indent=2, ensure_ascii=False) + "\n"


def document(report: Accepted) -> dict[str, Any]:
    """Return the report as a JSON document."""
    return {
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
        "accepted": {
            "count": report.count,
            "expired": [_acceptance(acceptance) for acceptance in report.expired],
            "unused": [_acceptance(acceptance) for acceptance in report.unused],
        },
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "old": _revision(comparison.old),
        "new": _revision(comparison.new),
        "verdict": {"oldClient": as_json(comparison.old_client), "newClient": as_json(comparison.new_client)},
        "counts": {
            _name(severity): sum(finding.severity is severity for finding in comparison.findings)
            for severity in reversed(Severity)
        },
        "findings": [_finding(finding) for finding in comparison.findings],
    }


def _revision(protocol: Protocol) -> dict[str, str]:
    return {"revision": protocol.revision, "era": protocol.era, "digest": protocol.digest}


def _finding(finding: Finding) -> dict[str, Any]:
    witness = finding.witness and as_json(finding.witness, or_null=("definition_old", "definition_new"))
    return {
        "fingerprint": finding.fingerprint,
        "severity": _name(finding.severity),
        **as_json(finding, or_null=("definition_old", "definition_new", "gate", "unwitnessed")),
        "witness": witness,
    }


def _acceptance(acceptance: Acceptance) -> dict[str, Any]:
    expires = acceptance.expires.isoformat() if acceptance.expires else None
    return {**as_json(acceptance), "expires": expires}


def _name(value: Impact | Severity | Outcome) -> str:
    return str(as_json(value))


# --- its schema ---------------------------------------------------------------------------------------------------


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the report."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What differs between revisions of the Model Context Protocol",
        **_object(
            comparisons=_list(_ref("Comparison"), "One for two revisions, one for each step of a chain."),
            accepted=_object(
                "What the file of accepted changes did.",
                count=_integer("How many findings it took out."),
                expired=_list(_ref("Acceptance"), "Entries that no longer hold."),
                unused=_list(_ref("Acceptance"), "Entries that no finding has."),
            ),
        ),
        "$defs": {
            "Comparison": _object(
                old=_ref("Revision"),
                new=_ref("Revision"),
                verdict=_object(
                    "Whether the two sides of each pairing can work together.",
                    oldClient=_ref("Verdict"),
                    newClient=_ref("Verdict"),
                ),
                counts=_object(
                    "How many findings there are of each severity.",
                    **{_name(severity): _integer("") for severity in reversed(Severity)},
                ),
                findings=_list(_ref("Finding"), "In groups: the worst group first, the worst first in each."),
            ),
            "Revision": _object(
                revision=_string("Its name."),
                era={"enum": ["stateful", "stateless"]},
                digest=_string("sha256 of the structure that was compared."),
            ),
            "Verdict": _object(outcome=_names(Outcome), reasons=_list({"type": "string"}, "Why not fully.")),
            "Finding": _object(
                fingerprint={**_string("Names the change, whatever the words."), "pattern": "^[0-9a-f]{16}$"},
                rule={"enum": sorted(RULES)},
                subject=_string("What changed, such as `Tool.annotations`."),
                group=_string("The method or definition that it is listed under."),
                plane={"enum": [plane.value for plane in Plane]},
                severity=_names(Severity),
                oldClient={**_names(Impact), "description": "What it does to an old client with a new server."},
                newClient={**_names(Impact), "description": "What it does to a new client with an old server."},
                old=_string("What there was, in a few words."),
                new=_string("What there is."),
                definitionOld=_optional(_string("The definition of the old revision that it is about.")),
                definitionNew=_optional(_string("The definition of the new revision.")),
                reaches=_list(_ref("Message"), "The messages that it reaches."),
                gate=_optional(_string("What must be declared or asked for first, which makes it safe.")),
                hint=_string("What to do about it."),
                witness=_optional(_ref("Witness")),
                unwitnessed=_optional(_string("Why there is no witness.")),
            ),
            "Message": _object(
                method=_string("Its name on the wire."),
                kind={"enum": list(get_args(Kind))},
                sender={"enum": list(get_args(Sender))},
            ),
            "Witness": _object(
                "A value that shows the change.",
                instance={"description": "The value."},
                definitionOld=_optional(_string("What the old revision calls its type.")),
                definitionNew=_optional(_string("What the new revision calls it.")),
                oldAccepts={"type": "boolean"},
                newAccepts={"type": "boolean"},
            ),
            "Acceptance": _object(
                fingerprint=_string("The finding's."),
                reason=_string("Why it was accepted."),
                expires=_optional({"type": "string", "format": "date"}),
            ),
        },
    }


def _object(description: str = "", /, **members: Any) -> dict[str, Any]:
    words = {"description": description} if description else {}
    return {
        **words,
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "array", "items": items, "description": description}


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _integer(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 0, **({"description": description} if description else {})}


def _names(values: type[Impact] | type[Severity] | type[Outcome]) -> dict[str, Any]:
    return {"enum": [_name(value) for value in values]}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _optional(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}

"""Texts of log records: no credentials, and no line that looks like another record."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from mcp_bindgen.runtime.log_format import JsonFormatter
from mcp_bindgen.runtime.logs import TextFormatter
from mcp_bindgen.runtime.redaction import without_secrets
from tests.harness.effort import each

SECRET = "q7Zk-2vXw"
JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"


@each(
    "text",
    [
        f"Client(client_secret='{SECRET} b', name='x')",
        f'{{"token": "a\\"{SECRET}"}}',
        f"password: {SECRET}",
        f"DPoP: {JWT}",
        f"claims of {JWT} are",
        f"client_assertion={SECRET}&code_verifier={SECRET}",
        f"[(b'x-api-key', b'{SECRET}')]",
        f"redis://:{SECRET}@host/0?password={SECRET}",
    ],
)
def test_credentials_are_left_out(text: str) -> None:
    found = without_secrets(text)
    assert SECRET not in found
    assert JWT[10:] not in found
    assert "..." in found


@each("text", ["the token is expired", "the answer: 42", "Tool 'a' took 3 s", "next_key=4", "eyJ is a prefix"])
def test_other_texts_stay(text: str) -> None:
    assert without_secrets(text) == text


def record(message: str, fields: Any = None) -> logging.LogRecord:
    found = logging.LogRecord("mine", logging.INFO, "x.py", 1, message, (), None)
    found.fields = fields
    return found


class Options:
    def __str__(self) -> str:
        return f"Options(token='{SECRET}')"


def test_members_of_json_records_have_no_credentials() -> None:
    fields = {
        "api_key": SECRET,
        "headers": {"authorization": SECRET, "x": [f"Bearer {SECRET * 2}", Options(), 1, None]},
    }
    shown = json.loads(JsonFormatter().format(record("m", {**fields, "tool": "find"})))
    assert shown["headers"] == {"authorization": "...", "x": ["Bearer ...", "Options(token='...')", 1, None]}
    assert (shown["api_key"], shown["tool"]) == ("...", "find")


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028"])
def test_no_text_of_a_record_looks_like_another_record_or_steers_the_terminal(end: str) -> None:
    text = TextFormatter("%(levelname)s %(name)s: %(message)s").format(record(f"a{end}ERROR mine: \x1b[2J"))
    assert text == "INFO mine: a\n  ERROR mine: \\x1b[2J"

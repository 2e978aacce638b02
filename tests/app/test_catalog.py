"""The table of the kinds of entries agrees with every revision."""

from __future__ import annotations

import pytest
from pydantic.alias_generators import to_snake

from mcp_bindgen.app.catalog import KINDS, Entries
from mcp_bindgen.runtime.bindings import installed_revisions
from mcp_bindgen.runtime.model.base import fields_of
from mcp_bindgen.runtime.protocol.methods import RequestMethod


@pytest.mark.parametrize("name", installed_revisions())
@pytest.mark.parametrize("place", KINDS.values(), ids=KINDS)
def test_kinds_of_entries_have_the_methods_and_members_of_each_revision(name: str, place: Entries) -> None:
    revision = installed_revisions()[name].bindings.REVISION
    listed, used = revision.methods[place.listed], revision.methods[place.used]
    assert isinstance(listed, RequestMethod)
    assert listed.items == to_snake(place.member)
    assert listed.capabilities["client"] == used.capabilities["client"] == ("server", place.capability)
    assert to_snake(place.key) in fields_of(getattr(revision.types, place.definition))
    assert place.changed in revision.methods
    if place.kind != "template":
        assert place.key in fields_of(used.params)

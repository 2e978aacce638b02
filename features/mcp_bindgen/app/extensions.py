"""The parts of a contract's server that extensions of the protocol are about, in the revisions that have these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcp_bindgen.extensions.apps.metadata import resource_uri
from mcp_bindgen.extensions.skills.folder import Skills, page
from mcp_bindgen.runtime.bindings import extension_of
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS, InvalidParams, ProtocolError
from mcp_bindgen.runtime.protocol.uris import canonical

from .features import Feature
from .handlers import BoundContract


class AppsFeature(Feature):
    """Declares MCP Apps; what is told of them follows from the entries of tools and resources."""

    extension = "apps"

    @classmethod
    def is_in(cls, contract: BoundContract) -> bool:
        """Return whether a contract has tools that apps show."""
        return any(resource_uri(tool.entry) is not None for tool in contract.handlers["tool"].values())


class SkillsFeature(Feature):
    """Answers `skills/list`, `skills/get` and `resources/directory/read`; the files themselves are resources."""

    extension = "skills"

    @classmethod
    def is_in(cls, contract: BoundContract) -> bool:
        """Return whether a contract has skills."""
        return contract.skills is not None

    @property
    def _skills(self) -> Skills:
        assert self.contract.skills is not None
        return self.contract.skills

    async def list_skills(self, params: Any, ctx: Any) -> Any:
        """Return a page of the skills; raise `InvalidParams` for a cursor that is none."""
        return self._page("skills/list", "skills", self._skills.entries.values(), params)

    async def get_skill(self, params: Any, ctx: Any) -> Any:
        """Return a skill; raise `ProtocolError` (-32602) if there is none."""
        skill = self._skills.entries.get(canonical(params.uri))
        if skill is None:
            raise ProtocolError(INVALID_PARAMS, "No skill is served there", {"uri": params.uri})
        return self._result("skills/get", {"skill": skill})

    async def read_resource_directory(self, params: Any, ctx: Any) -> Any:
        """Return a page of the direct children of a folder; raise `ProtocolError` (-32602) if there is none."""
        children = self._skills.directories.get(canonical(params.uri))
        if children is None:
            raise ProtocolError(INVALID_PARAMS, "No directory is served there", {"uri": params.uri})
        return self._page("resources/directory/read", "resources", children, params)

    def _page(self, method: str, member: str, entries: Iterable[dict[str, Any]], params: Any) -> Any:
        try:
            shown, following = page(entries, params.cursor)
        except LookupError:
            raise InvalidParams(method, [{"path": "params.cursor", "problem": "there is no such page"}]) from None
        return self._result(method, {member: shown, **({} if following is None else {"nextCursor": following})})

    def _result(self, method: str, wire: Any) -> Any:
        bindings: Any = extension_of(self.package, SkillsFeature.extension)  # other features have theirs
        return jsonrpc.typed_result(bindings.methods.METHODS[method], wire)

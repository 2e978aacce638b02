"""Serve and load skills, as the extension `io.modelcontextprotocol/skills` says.

`Skills` takes a folder of skills for servers to offer. `load_skill` is for hosts: it verifies what they read. Needs
`mcp-bindgen[skills]`.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .folder import BadSkill as BadSkill, SkillFile as SkillFile, Skills as Skills
    from .folder import page as page
    from .loading import LoadedSkill as LoadedSkill, SkillEntry as SkillEntry, SkillRefused as SkillRefused
    from .loading import load_skill as load_skill

_MODULES = {
    "folder": ["BadSkill", "SkillFile", "Skills", "page"],
    "loading": ["LoadedSkill", "SkillEntry", "SkillRefused", "load_skill"],
}

__getattr__ = lazy_modules(__name__, _MODULES)

from .folder import BadSkill as BadSkill
from .folder import SkillFile as SkillFile
from .folder import Skills as Skills
from .folder import page as page
from .loading import LoadedSkill as LoadedSkill
from .loading import SkillEntry as SkillEntry
from .loading import SkillRefused as SkillRefused
from .loading import load_skill as load_skill

"""Real git repositories that tests build commit by commit."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

PATH = "schema/draft/schema.json"


class Repo:
    """A repository in its own folder; successive commits are one day apart, from 2026-01-01."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._days = 0
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Run git and return its output; only the configuration of the repository applies."""
        day = f"2026-01-{max(self._days, 1):02}T12:00:00Z"
        person = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": day}
        variables = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in person.items()}
        plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**plain, **variables, **nothing},
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, subject: str, schema: Any, path: str = PATH) -> str:
        """Commit a schema, or its deletion if it is None; return the short hash that reports show."""
        self._days += 1
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if schema is None:
            file.unlink()
        else:
            file.write_text(schema if isinstance(schema, str) else json.dumps(schema, indent=2), "utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")[:10]

    def at(self, revision: str, path: str = PATH) -> str:
        """Return the source specification of a file in a commit or in a range of commits."""
        return f"git:{self.folder}@{revision}:{path}"

"""Stage the pages, build the site with Zensical, and add files for readers that are programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .atlas import atlas
from .markdown import Pages
from .programs import descriptions, program_files
from .reference import reference
from .sources import ROOT, handwritten

STAGED = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
ASSETS = ROOT / "website" / "assets"
MERMAID = ROOT / "website" / "node_modules" / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js"


def pages() -> Pages:
    """Return all pages."""
    generated = {**reference(), **atlas()}
    return {**handwritten(generated), **generated}


def stage() -> Pages:
    """Write the pages and the assets to `build/pages`; unchanged files keep their dates."""
    found = pages()
    about = descriptions(found)
    files = {STAGED / name: _with_facts(name, text, about[name]).encode() for name, text in found.items()}
    files |= {STAGED / "assets" / path.name: path.read_bytes() for path in (*ASSETS.iterdir(), MERMAID)}
    for path in [path for path in STAGED.rglob("*") if path.is_file()] if STAGED.is_dir() else []:
        if path not in files:
            path.unlink()
    for path, content in files.items():
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return found


def _with_facts(name: str, text: str, description: str) -> str:
    quoted = description.replace("\\", "\\\\").replace('"', '\\"')
    return f'---\ndescription: "{quoted}"\nmarkdown: {name}\n---\n{text}'


def build() -> int:
    """Build `build/site`; return the exit code."""
    found = stage()
    shutil.rmtree(SITE, ignore_errors=True)
    done = _zensical("build", "--strict", "--clean")
    if done == 0:
        for name, text in program_files(found).items():
            path = SITE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return done


def serve() -> int:
    """Serve the site on loopback until it is interrupted."""
    stage()
    return _zensical("serve")


def _zensical(*arguments: str) -> int:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "zensical", *arguments], cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, check=False
    ).returncode


def built(name: str) -> Path:
    """Return the HTML file of a page."""
    stem = name.removesuffix(".md")
    return SITE / name.replace(".md", ".html") if stem.endswith("index") else SITE / stem / "index.html"

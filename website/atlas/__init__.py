"""Protocol atlas: pages on each revision, method and definition, generated from the protocol model."""

from __future__ import annotations

from ..markdown import Pages
from .indexes import index_pages
from .model import Atlas, relative_links, store
from .subjects import subject_pages


def atlas() -> Pages:
    """Return the pages of the atlas."""
    found = Atlas(store())
    return relative_links({**index_pages(found), **subject_pages(found)})

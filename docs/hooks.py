"""MkDocs calls this for each page. Two pages of *Project* are files in the repository root, shown as they are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Page -> file in the root that it shows.
SHOWN = {"project/contributing.md": "CONTRIBUTING.md", "project/changelog.md": "CHANGELOG.md"}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:  # noqa: ANN401 - MkDocs' own
    """Return the text of a page; a page of SHOWN has the text of its file in the root."""
    file = SHOWN.get(page.file.src_uri)
    return markdown if file is None else shown(file)


def shown(file: str) -> str:
    """Return a file of the root as a page of docs/project/."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pages = {root_file: Path(page).name for page, root_file in SHOWN.items()}

    def from_here(match: re.Match[str]) -> str:
        target = match[1]
        if target in pages:
            return pages[target]
        if target.startswith("docs/") and target.endswith(".md"):
            return f"../{target.removeprefix('docs/')}"
        return f"{project['urls']['Source']}/blob/main/{target}"

    return LINK.sub(from_here, (ROOT / file).read_text(encoding="utf-8"))

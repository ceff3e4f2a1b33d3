"""The native parts of kit, and README as a package index shows it; everything else is in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
# Targets of Markdown's links and of HTML's: pages are shown, pictures are loaded.
LINK = re.compile(r"(?P<image>!?)(?P<before>\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?P<target>[^)\s]+)")
TAG = re.compile(r"(?P<before><(?P<tag>img|source|a)\b[^>]*?\b(?:src|srcset|href)=\")(?P<target>[^\"]+)")
FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def with_absolute_links(text: str, source: str, revision: str) -> str:
    """Return Markdown whose relative links lead into the repository: an index has no files beside a README.

    Args:
        text: of README.md.
        source: address of the repository.
        revision: tag or branch that has the files.
    """
    raw = source.replace("https://github.com/", "https://raw.githubusercontent.com/")

    def absolute(target: str, *, is_picture: bool) -> str:
        if re.match(r"[a-z]+:", target):
            return target
        if target.startswith("#"):
            return f"{source}/blob/{revision}/README.md{target}"
        return f"{raw}/{revision}/{target}" if is_picture else f"{source}/blob/{revision}/{target}"

    def link(match: re.Match[str]) -> str:
        # A badge is a picture in a link: its own target lies within.
        before = LINK.sub(link, match["before"])
        return f"{match['image']}{before}{absolute(match['target'], is_picture=bool(match['image']))}"

    def tag(match: re.Match[str]) -> str:
        return match["before"] + absolute(match["target"], is_picture=match["tag"] != "a")

    parts = FENCED.split(text)  # code stays as it is
    parts[::2] = [TAG.sub(tag, LINK.sub(link, part)) for part in parts[::2]]
    return "".join(parts)


def readme() -> str:
    """Return README.md with links to the files of this version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = re.search(r'__version__ = "(.*)"', (ROOT / "kit/version.py").read_text(encoding="utf-8"))
    assert version is not None
    return with_absolute_links(
        (ROOT / "README.md").read_text(encoding="utf-8"), project["urls"]["Source"], f"v{version[1]}"
    )


if __name__ == "__main__":
    setup(
        platforms=["Linux"],
        long_description=readme(),
        long_description_content_type="text/markdown",
        cffi_modules=["native/build_clock.py:ffibuilder"],
        ext_modules=[
            Extension(
                "kit._stamp",
                sources=["native/stamp.c", "native/clock_source.c"],
                include_dirs=["native"],
                depends=["native/clock.h", "native/clock_read.h"],
                extra_compile_args=["-O2", "-Wall", "-Wextra", "-Werror=implicit-function-declaration"],
                py_limited_api=True,
            )
        ],
        # Both extensions keep to the stable ABI of 3.11, so one wheel serves every later Python.
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )

"""Messages name pages by their address: an installed Steadykit has no `docs/`."""

import ast
import re

import pytest
from kit_process import REPOSITORY

from kit.documentation import DOCUMENTATION, page

FILES = sorted((REPOSITORY / "kit").rglob("*.py"))
PAGE = re.compile(r"docs/([\w/-]+)(\.md|\b)")


def shown_texts(tree):
    """What users may see: texts, and the docstrings that `kit --help` and `help(kit.measure)` print."""
    hidden = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            is_command = isinstance(node, ast.FunctionDef) and node.decorator_list
            hidden |= set() if is_command else {id(node.body[0].value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            yield node.value


def test_no_message_names_a_file_of_the_repository():
    named = []
    for file in FILES:
        for text in shown_texts(ast.parse(file.read_text())):
            left = re.sub(r"https?://\S+", "", text)
            named += [f"{file.name}: {match[0]}" for match in PAGE.finditer(left)]
    assert named == []


def test_every_page_that_is_named_exists():
    named = set()
    for file in FILES:
        text = file.read_text()
        named |= set(re.findall(re.escape(DOCUMENTATION) + r"([\w/-]+\.md)", text))
        named |= set(re.findall(r"page\([\"']([\w/-]+\.md)", text))
    assert len(named) > 5
    assert [name for name in named if not (REPOSITORY / "docs" / name).is_file()] == []


@pytest.mark.parametrize("key", ["Documentation"])
def test_the_address_is_the_projects_own(key):
    assert f'{key} = "{page("index.md")}"' in (REPOSITORY / "pyproject.toml").read_text()

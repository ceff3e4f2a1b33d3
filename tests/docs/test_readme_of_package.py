"""README as a package index shows it: every link leads into the repository, code stays, metadata have it."""

import re
import runpy
import subprocess
import sys
from email import message_from_string
from pathlib import Path

import pytest

from kit.version import __version__

ROOT = Path(__file__).parents[2]
SOURCE = "https://github.com/a/b"
RAW = "https://raw.githubusercontent.com/a/b"


@pytest.fixture(scope="module")
def setup_module_names():
    return runpy.run_path(str(ROOT / "setup.py"), run_name="setup_py")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[a](docs/x.md#y)", f"[a]({SOURCE}/blob/v1/docs/x.md#y)"),
        ("[a](#below)", f"[a]({SOURCE}/blob/v1/README.md#below)"),
        ("[a](https://x.org/y) [b](mailto:c@d.e)", "[a](https://x.org/y) [b](mailto:c@d.e)"),
        ("![p](docs/p.svg)", f"![p]({RAW}/v1/docs/p.svg)"),
        ("[![p](docs/p.svg)](LICENSE)", f"[![p]({RAW}/v1/docs/p.svg)]({SOURCE}/blob/v1/LICENSE)"),
        ('<img alt="p" src="docs/p.svg">', f'<img alt="p" src="{RAW}/v1/docs/p.svg">'),
        ('<a href="docs/x.md">', f'<a href="{SOURCE}/blob/v1/docs/x.md">'),
        ("```sh\n[a](docs/x.md)\n```\n", "```sh\n[a](docs/x.md)\n```\n"),
    ],
)
def test_relative_links_become_absolute(setup_module_names, text, wanted):
    assert setup_module_names["with_absolute_links"](text, SOURCE, "v1") == wanted


def test_the_readme_that_is_packed_has_no_relative_link_and_each_leads_to_a_file(setup_module_names):
    text = setup_module_names["readme"]()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)\s]+)", prose) + re.findall(r"(?:src|srcset|href)=\"([^\"]+)", prose)
    assert [target for target in targets if not target.startswith("https://")] == []
    in_repository = re.compile(
        rf"https://(?:github\.com/steadykit/steadykit/blob|raw[^/]*/steadykit/steadykit)/v{__version__}/([^#]+)"
    )
    files = [match[1] for target in targets if (match := in_repository.match(target))]
    assert files
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_metadata_have_the_readme_the_addresses_and_the_one_version(tmp_path):
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    metadata = message_from_string((tmp_path / "steadykit.egg-info/PKG-INFO").read_text())
    assert metadata["Version"] == __version__
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "](docs/" not in metadata.get_payload()
    addresses = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} == {*addresses}
    assert all(address.startswith(addresses["Source"]) for address in addresses.values())


def test_every_file_names_the_same_repository_and_none_repeats_the_version():
    project = (ROOT / "pyproject.toml").read_text()
    (source,) = re.findall(r'^Source = "(.*)"', project, re.MULTILINE)
    files = [
        ROOT / "CITATION.cff", ROOT / "SECURITY.md", ROOT / "mkdocs.yml", ROOT / "docs/project/changelog.md",
        ROOT / "docs/project/contributing.md", *(ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"),
    ]  # fmt: skip
    for file in files:
        text = file.read_text()
        assert {*re.findall(r"https://github\.com/[\w.-]+/[\w.-]+", text)} <= {source}, file
        assert __version__ not in text, f"{file}: the version is in kit/version.py only"
    assert __version__ not in project

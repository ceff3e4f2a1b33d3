import re

import pytest

from kit.version import __version__


def test_the_image_carries_the_version_of_the_kit(root):
    assert f"ARG KIT_VERSION={__version__}\n" in (root / "Dockerfile.cpu").read_text()


@pytest.mark.parametrize("target", ["cpu", "gpu", "tpu"])
def test_no_frontend_image_is_pulled(root, target):
    # A `# syntax=` line needs an image registry before the build has begun.
    assert not re.search(r"^#\s*syntax\s*=", (root / f"Dockerfile.{target}").read_text(), re.MULTILINE)


def test_all_that_is_copied_is_let_through_to_the_build(root):
    let_through = re.findall(r"^!(\S+)", (root / ".dockerignore").read_text(), re.MULTILINE)
    copied = []
    for line in re.findall(r"^COPY (?!--from)(.*)$", (root / "Dockerfile.cpu").read_text(), re.MULTILINE):
        copied += [word for word in line.split()[:-1] if not word.startswith("--")]
    assert copied
    assert [path for path in copied if path.split("/")[0] not in let_through] == []

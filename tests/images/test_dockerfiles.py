import re

import pytest

from kit.version import __version__

TARGETS = pytest.mark.parametrize("target", ["cpu", "gpu", "tpu"])


@TARGETS
def test_the_image_carries_the_version_of_the_kit(root, target):
    assert f"ARG KIT_VERSION={__version__}\n" in (root / f"Dockerfile.{target}").read_text()


@TARGETS
def test_the_base_image_is_pinned_by_digest(root, target):
    pinned = r"^ARG BASE_IMAGE=\S+@sha256:[0-9a-f]{64}$"
    assert re.search(pinned, (root / f"Dockerfile.{target}").read_text(), re.MULTILINE)


@TARGETS
def test_no_frontend_image_is_pulled(root, target):
    # A `# syntax=` line needs an image registry before the build has begun.
    assert not re.search(r"^#\s*syntax\s*=", (root / f"Dockerfile.{target}").read_text(), re.MULTILINE)


@TARGETS
def test_all_that_is_copied_is_let_through_to_the_build(root, target):
    let_through = re.findall(r"^!(\S+)", (root / ".dockerignore").read_text(), re.MULTILINE)
    copied = []
    for line in re.findall(r"^COPY (?!--from)(.*)$", (root / f"Dockerfile.{target}").read_text(), re.MULTILINE):
        copied += [word for word in line.split()[:-1] if not word.startswith("--")]
    assert copied
    assert [path for path in copied if path.split("/")[0] not in let_through] == []

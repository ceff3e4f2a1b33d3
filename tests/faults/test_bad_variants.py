"""Variants that cannot be measured as they say: one line on standard error and exit 2, before anything is measured."""

import sys

import pytest
from click.testing import CliRunner
from refusals import refusal

from kit.cli import app

OTHER_KIT = f"""#!/bin/sh
exec {sys.executable} "$@" | sed 's/"kit":"[^"]*"/"kit":"0.0.1"/'
"""
WITHOUT_FRAMEWORK = f"""#!/bin/sh
exec {sys.executable} "$@" | sed 's/"version":"[^"]*"/"version":null/'
"""
NO_KIT = "#!/bin/sh\necho 'No module named kit' >&2\nexit 1\n"
OLDER = "#!/bin/sh\necho 'Unknown option: -P\nusage: python [option]' >&2\nexit 2\n"
NO_ANSWER = "#!/bin/sh\necho hello\n"


def script(folder, text):
    path = folder / "python"
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (OTHER_KIT, "has kit 0.0.1, and this is kit"),
        (WITHOUT_FRAMEWORK, "variant new: torch is not installed for"),
        (NO_KIT, "No module named kit"),
        (OLDER, "it is older than Python 3.11"),
        (NO_ANSWER, "not from this kit"),
    ],
    ids=["another kit", "no framework", "no kit", "an older Python", "no answer"],
)
def test_an_interpreter_that_cannot(tmp_path, text, says):
    refused(tmp_path, says, f"new:python={script(tmp_path, text)}")


@pytest.mark.parametrize(
    ("variants", "says"),
    [
        (["new:python=/gone/bin/python"], "No such file"),
        (["new:env=LD_PRELOAD=libnobody-has-this.so.7"], "libnobody-has-this.so.7, which did not load"),
        (["new:env=LD_PRELOAD=/gone/libtcmalloc_minimal.so.4"], "Ubuntu: libtcmalloc-minimal4), or"),
        (["new:env=A=1", "new:env=A=2"], "two variants have this name"),
        (["new"], "sets nothing"),
    ],
)
def test_a_variant_that_is_none(tmp_path, variants, says):
    refused(tmp_path, says, *variants)


def test_two_who_set_threads(tmp_path):
    refused(tmp_path, "OMP_NUM_THREADS and --threads both", "new:env=OMP_NUM_THREADS=1", more=("--threads", "1"))


def refused(folder, says, *variants, more=()):
    words = ["run", "--quick", "--backend", "torch", "--data", "synthetic", "--out", str(folder / "run.json"), *more]
    named = [word for variant in variants for word in ("--variant", variant)]
    assert says in refusal(CliRunner().invoke(app, [*words, *named], standalone_mode=False))
    assert not (folder / "run.json").exists()

"""`kit data`: what is here, what is fetched, and one line where it cannot be had."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from kit_process import invoke
from mirror import NOBODY_LISTENS, no_network, serve  # noqa: F401 - fixtures

from kit.errors import KitError
from kit.workloads.datasets import DataFile, Dataset, Samples
from kit.workloads.workload_catalog import DATASETS

ROWS = {"train": 5, "test": 2}
CONTENTS = {f"{split}.txt": split.encode() * rows for split, rows in ROWS.items()}
TINY = Dataset(
    name="tiny",
    sample_shape=(1,),
    dtype="float32",
    classes=1,
    sizes=ROWS,
    files={
        split: (DataFile(name, (hashlib.sha256(content).hexdigest(),)),)
        for split, (name, content) in zip(ROWS, CONTENTS.items(), strict=True)
    },
    read=lambda split, contents: Samples(np.zeros((ROWS[split], 1), np.float32), np.zeros(ROWS[split], np.uint8)),
)


@pytest.fixture
def folder(tmp_path, monkeypatch, no_network):  # noqa: F811 - pytest's own
    """Where the one data set that there is goes."""
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    for name in list(DATASETS):
        monkeypatch.delitem(DATASETS, name)
    monkeypatch.setitem(DATASETS, "tiny", replace(TINY, mirrors=(NOBODY_LISTENS,)))
    return tmp_path / "tiny"


def kit(*words):
    return invoke("data", *words)


def refused(*words):
    """The one line that `kit data` ends with."""
    ended = kit(*words).exception
    assert isinstance(ended, KitError) and ended.exit_code == 2 and "\n" not in str(ended)
    return str(ended)


@pytest.mark.parametrize("names", [(), ("tiny",), ("tiny", "tiny")])
def test_fetch_gets_and_checks(folder, serve, monkeypatch, names):  # noqa: F811 - pytest's own
    mirror = serve(CONTENTS)
    monkeypatch.setitem(DATASETS, "tiny", replace(TINY, mirrors=(mirror.url,)))
    (line,) = kit("fetch", *names).stdout.splitlines()
    assert str(folder) in line and "5 train" in line and "2 test" in line and "checksum is right" in line
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENTS
    (row,) = json.loads(kit("fetch", *names, "--json").stdout)
    assert mirror.asked == list(CONTENTS)  # the second time nothing was missing
    assert (row["here"], row["samples"], row["checksum_known"]) == (True, ROWS, True)
    assert kit("--json", "fetch").stdout == kit("--json").stdout == kit("fetch", "--json").stdout


def test_what_is_not_here_is_said_with_what_fetches_it(folder):
    shown = kit()
    assert shown.exit_code == 0 and "`kit data fetch tiny`" in shown.stdout and str(folder) in shown.stdout
    (row,) = json.loads(kit("--json").stdout)
    assert (row["here"], row["samples"], row["checksum_known"]) == (False, None, None)
    assert not folder.exists()


def test_what_cannot_be_had_is_one_line(folder):
    assert "train.txt cannot be downloaded" in refused("fetch")
    assert "'nope'; choose from tiny" in refused("fetch", "nope")


def test_a_file_that_is_wrong_is_one_line(folder):
    folder.mkdir()
    for name in CONTENTS:
        (folder / name).write_bytes(b"other")
    assert refused("fetch").startswith(f"{folder / 'train.txt'} has the wrong content")
    assert "wrong content" in kit().stdout

"""The raw steps beside a profile: the very ones it was written with, or one line."""

import csv
import hashlib
import io
import json
import zipfile

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profile_builder import group, member, profile
from refusals import refused

from kit.cli.app import app
from kit.profile.schema import Sidecar
from kit.profile.store import launch_id, pack_steps, read_steps, timed_steps, write_profile


def beside(folder, data, **fields):
    """The path of a profile whose sidecar has these bytes, and the profile."""
    built = profile(rounds=1, cycles=1)
    known = {"file": "run.json.steps.npz", "sha256": hashlib.sha256(data).hexdigest(), "steps": 3}
    built.sidecar = Sidecar(**known | fields)
    (folder / "run.json.steps.npz").write_bytes(data)
    return folder / "run.json", built


def archive(**arrays):
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    return packed.getvalue()


GOOD = {"names": np.array(["a launch"]), "a0": np.arange(3)}
int64s = st.integers(-(2**63), 2**63 - 1)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(series=st.dictionaries(st.text("abc/#\u00e9", min_size=1), st.lists(int64s, max_size=30), max_size=4))
def test_whatever_is_packed_is_unpacked(tmp_path_factory, series):
    path = tmp_path_factory.mktemp("packed") / "run.json"
    built = profile(rounds=1, cycles=1)
    built.sidecar, data = pack_steps(path, series)
    path.with_name(built.sidecar.file).write_bytes(data)
    assert {name: steps.tolist() for name, steps in read_steps(path, built).items()} == series


def shown(path, *words):
    result = CliRunner().invoke(app, ["show", str(path), *words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_steps_are_a_tidy_table_with_rounds_and_cycles_from_one(tmp_path):
    path, built = tmp_path / "run.json", profile(group("g", member("torch")), rounds=2, cycles=2)
    launches = built.cells[0].launches
    steps = {launch_id(launch): np.arange(3 + sum(launch.blocks.raw_steps())) + launch.round for launch in launches}
    write_profile(path, built, steps)
    rows = [*csv.DictReader(io.StringIO(shown(path, "--steps", "--format", "csv")))]
    assert [*rows[0].values()] == [built.cells[0].key, "1", "", "first", "0"]
    assert [int(row["step_ns"]) for row in rows] == [step for series in steps.values() for step in series]
    kinds = list(dict.fromkeys((row["round"], row["cycle"], row["kind"]) for row in rows))
    of_a_round = [("", "first"), ("", "warmup"), ("1", "lead_in"), ("1", "step"), ("2", "lead_in"), ("2", "step")]
    assert kinds == [(number, *kind) for number in "12" for kind in of_a_round]
    timed = [int(row["step_ns"]) for row in rows if row["kind"] == "step" and row["round"] == "1"]
    assert timed == timed_steps(launches[0], steps[launch_id(launches[0])]).tolist()
    document = json.loads(shown(path, "--steps", "--json"))
    assert [launch["round"] for launch in document["steps"]] == [1, 2]
    assert [launch["step_ns"] for launch in document["steps"]] == [series.tolist() for series in steps.values()]
    with pytest.raises(click.UsageError, match="--format csv or --format json"):
        shown(path, "--steps")


def test_a_sidecar_that_is_missing_or_another_is_refused(tmp_path):
    path, built = beside(tmp_path, archive(**GOOD))
    assert "a launch" in read_steps(path, built)
    sidecar = path.with_name(built.sidecar.file)
    sidecar.write_bytes(archive(**GOOD, more=np.arange(2)))
    assert "SHA-256" in refused(read_steps, path, built)
    sidecar.unlink()
    assert "keep it next to its profile" in refused(read_steps, path, built)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "x/../../outside", "..", "", "a\x00b"])
def test_a_folder_in_its_name_is_not_followed(tmp_path, name):
    (tmp_path / "outside").write_bytes(archive(**GOOD))
    (tmp_path / "in").mkdir()
    refused(read_steps, *beside(tmp_path / "in", archive(**GOOD), file=name))


def zipped(content):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("names.npy", content)
    return packed.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"",
        archive(a0=np.arange(3)),
        archive(names=GOOD["names"]),
        archive(names=np.array(3), a0=np.arange(3)),
        archive(names=np.array(["a"], object), a0=np.arange(3)),
        archive(names=GOOD["names"], a0=np.arange(3.0)),
        archive(names=GOOD["names"], a0=np.zeros((2, 2), np.int64)),
        archive(**GOOD)[:-30],
        zipped(b"\x93NUMPY\x01\x00\xff\xff{'descr': '<i8'"),
        zipped(b"plain text"),
    ],
    ids=lambda data: f"{len(data)} B",
)
def test_what_is_no_archive_of_steps_is_one_line(tmp_path, data):
    refused(read_steps, *beside(tmp_path, data))

"""The raw steps beside a profile: the very ones it was written with, or one line."""

import csv
import hashlib
import io
import json
import tracemalloc
import zipfile

import click
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit_process import invoke
from profile_builder import group, member, profile, raw_steps, write
from refusals import refused

from kit.profile.schema import Sidecar
from kit.profile.store import launch_id, pack_steps, read_profile, read_steps, timed_steps, write_profile


def tiny():
    """A profile with one launch of four steps: the first, a lead-in, and two of its block."""

    def change(launch):
        launch.warmup_steps, launch.blocks.steps = 0, [2]

    return profile(group("g", member("torch", change=change)), rounds=1, cycles=1)


def beside(folder, data, built=None, **fields):
    """The path of a profile whose sidecar has these bytes, and the profile."""
    built = built or tiny()
    known = {"file": "run.json.steps.npz", "sha256": hashlib.sha256(data).hexdigest(), "steps": 4}
    built.sidecar = Sidecar(**known | fields)
    (folder / "run.json.steps.npz").write_bytes(data)
    return folder / "run.json", built


def archive(**arrays):
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    return packed.getvalue()


(NAME,) = raw_steps(tiny())
GOOD = {"names": np.array([NAME]), "a0": np.arange(4)}


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(numbers=st.lists(st.integers(0, 10**9), min_size=4, max_size=4))
def test_whatever_is_packed_is_unpacked(tmp_path_factory, numbers):
    path, built = tmp_path_factory.mktemp("packed") / "run.json", tiny()
    built.sidecar, data = pack_steps(path, {NAME: np.array(numbers)})
    path.with_name(built.sidecar.file).write_bytes(data)
    assert {name: steps.tolist() for name, steps in read_steps(path, built).items()} == {NAME: numbers}


def shown(path, *words):
    result = invoke("show", str(path), *words)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_steps_are_a_tidy_table_with_rounds_and_cycles_from_one(tmp_path):
    path, built = tmp_path / "run.json", profile(group("g", member("torch")), rounds=2, cycles=2)
    launches = built.cells[0].launches
    for launch in launches:
        launch.warmup_steps = 2
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
    assert NAME in read_steps(path, built)
    sidecar = path.with_name(built.sidecar.file)
    sidecar.write_bytes(archive(**GOOD, more=np.arange(2)))
    assert "SHA-256" in refused(read_steps, path, built)
    sidecar.unlink()
    assert "next to its profile" in refused(read_steps, path, built)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "x/../../outside", "..", "", "a\x00b"])
def test_a_folder_in_its_name_is_not_followed(tmp_path, name):
    (tmp_path / "outside").write_bytes(archive(**GOOD))
    (tmp_path / "in").mkdir()
    refused(read_steps, *beside(tmp_path / "in", archive(**GOOD), file=name))


def zipped(names_npy, steps_npy=None, **fields):
    """A zip of two members, as they are; `fields` of the second one's entry."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("names.npy", names_npy)
        if steps_npy is not None:
            entry = zipfile.ZipInfo("a0.npy")
            entry.compress_type = fields.get("compress_type", zipfile.ZIP_STORED)
            file.writestr(entry, steps_npy)
    return packed.getvalue()


def npy(array):
    saved = io.BytesIO()
    np.save(saved, array)
    return saved.getvalue()


def encrypted():
    """A member that says that it needs a password, in both of its entries."""
    data = bytearray(archive(**GOOD))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.rindex(signature) + offset] |= 1
    return bytes(data)


def says_less(array):
    """A member that expands beyond the size that its entries give."""
    data = bytearray(archive(names=GOOD["names"], a0=array))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rindex(signature) + offset
        data[at : at + 4] = len(npy(GOOD["a0"])).to_bytes(4, "little")
    return bytes(data)


NAMES = npy(GOOD["names"])
ODD = {
    "text": b"hello",
    "nothing": b"",
    "no names": archive(a0=np.arange(4)),
    "no steps": archive(names=GOOD["names"]),
    "names are a number": archive(names=np.array(3), a0=np.arange(4)),
    "names are objects": archive(names=np.array([NAME], object), a0=np.arange(4)),
    "another launch": archive(names=np.array(["a launch"]), a0=np.arange(4)),
    "a launch twice": archive(names=np.array([NAME, NAME]), a0=np.arange(4), a1=np.arange(4)),
    "a second launch": archive(names=np.array([NAME, "b"]), a0=np.arange(4), a1=np.arange(4)),
    "more than its launches": archive(**GOOD, a1=np.arange(4)),
    "floats": archive(names=GOOD["names"], a0=np.arange(4.0)),
    "unsigned": archive(names=GOOD["names"], a0=np.arange(4, dtype=np.uint64)),
    "two axes": archive(names=GOOD["names"], a0=np.zeros((2, 2), np.int64)),
    "fewer steps": archive(names=GOOD["names"], a0=np.arange(3)),
    "more steps": archive(names=GOOD["names"], a0=np.arange(5)),
    "many more steps": archive(names=GOOD["names"], a0=np.zeros(1_000_000, np.int64)),
    "a step longer than its launch": archive(names=GOOD["names"], a0=np.arange(4) * 10**18),
    "a negative step": archive(names=GOOD["names"], a0=np.arange(-1, 3)),
    "cut": archive(**GOOD)[:-30],
    "header without an end": zipped(b"\x93NUMPY\x01\x00\xff\xff{'descr': '<i8'"),
    "header of another form": zipped(NAMES, b"\x93NUMPY\x03\x00\xff\xff\xff\xff" + b"(" * 200),
    "header that claims more": zipped(NAMES, npy(np.arange(4)).replace(b"(4,)", b"(9,)")),
    "no header": zipped(b"plain text", b"plain text"),
    "encrypted": encrypted(),
    "damaged": archive(**GOOD).replace(b"PK\x03\x04", b"PK\x03\x05"),
    "packed in another way": zipped(NAMES, npy(np.arange(4)), compress_type=zipfile.ZIP_LZMA),
    "expands beyond what it says": says_less(np.zeros(1_000, np.int64)),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_archive_of_these_steps_is_one_line(tmp_path, name):
    assert "use the original file" in refused(read_steps, *beside(tmp_path, ODD[name])) or name == "many more steps"


def test_a_large_one_is_refused_before_it_is_read(tmp_path):
    path, built = beside(tmp_path, archive(**GOOD))
    with path.with_name(built.sidecar.file).open("r+b") as file:
        file.truncate(2 << 30)
    assert "the limit is" in refused(read_steps, path, built)


def test_memory_is_limited_by_the_counts_of_the_profile(tmp_path):
    """A member of 100 MB that fits into a small file is never unpacked."""
    data = archive(names=GOOD["names"], a0=np.zeros(12_500_000, np.int64))
    path, built = beside(tmp_path, data)
    tracemalloc.start()
    try:
        refused(read_steps, path, built)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(data) + (1 << 20)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("steps", [0, 3, 5, 2**50])
def test_a_profile_says_of_its_sidecar_what_its_launches_say(tmp_path, steps):
    path, built = beside(tmp_path, archive(**GOOD), steps=steps)
    assert "sidecar.steps" in refused(read_profile, write(path, built))

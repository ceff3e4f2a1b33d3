"""A sidecar from elsewhere: it names no other file, and inflates to no more than it was said to."""

import hashlib
import io
import random
import tracemalloc
import zipfile

import numpy as np
import pytest
from fuzz.mutations import HOSTILE_TEXTS
from fuzz.seeds import archive
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profile_builder import MS, build_cell, build_profile, build_result

from kit.profile.schema import Sidecar
from kit.profile.sidecar import INLINE_STEPS_MAX, SidecarError, attach_steps
from kit.profile.step_archive import (
    INFLATION_MAX,
    StepArchiveError,
    json_of_steps,
    largest_archive_b,
    pack,
    unpack,
)
from kit.profile.store import read_profile, write_profile

NAMES = ("cell0.launch0", "cell0.launch1")
IN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def zipped(entries, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in entries:
            file.writestr(name, content)
    return buffer.getvalue()


def refused(data, names=NAMES):
    with pytest.raises(StepArchiveError) as error:
        unpack(data, names)
    assert "\n" not in str(error.value)
    return str(error.value)


def sidecar_of(path):
    return path.with_name("run.json.0a1b2c3d.steps.npz")


def with_sidecar(tmp_path, data, **fields):
    path = tmp_path / "run.json"
    profile = build_profile([build_result(build_cell(), [MS, MS])])
    given = {"file": sidecar_of(path).name, "sha256": hashlib.sha256(data).hexdigest(), "steps": 10**6} | fields
    profile.sidecar = Sidecar(**given)
    return path, profile


@pytest.mark.parametrize("steps", ["measured", "counted", "constant", "coarse clock", "random"])
def test_whatever_is_packed_is_unpacked(steps):
    generator = np.random.default_rng(0)
    series = {
        "measured": generator.normal(2e6, 2e4, 30_000).astype(np.int64),
        "counted": np.arange(30_000),
        "constant": np.full(30_000, MS),
        "coarse clock": generator.integers(1, 4, 30_000) * 10**6,
        "random": generator.integers(-(2**63), 2**63 - 1, 30_000),
    }[steps]
    data = pack({NAMES[0]: series, NAMES[1]: series[:5]})
    assert series.nbytes <= INFLATION_MAX * len(data)
    assert len(data) <= largest_archive_b(2, series.size + 5)
    found = unpack(data, NAMES)
    assert [*found] == [*NAMES]
    assert np.array_equal(found[NAMES[0]], series)
    assert np.array_equal(found[NAMES[1]], series[:5])


@IN_FOLDER
@given(lengths=st.lists(st.integers(0, 300), max_size=5), value=st.integers(-(2**63), 2**63 - 1))
def test_any_series_is_within_the_readers_bound(lengths, value):
    series = {f"cell0.launch{number}": np.full(length, value) for number, length in enumerate(lengths)}
    data = pack(series)
    assert len(data) <= largest_archive_b(len(series), sum(lengths))
    assert {name: array.tolist() for name, array in unpack(data, series).items()} == {
        name: array.tolist() for name, array in series.items()
    }


def test_a_run_with_a_coarse_clock_reads_its_own_sidecar(tmp_path):
    profile = build_profile([build_result(build_cell(), [MS, MS])])
    profile.cells[0].launches[0].step_ns = [MS] * (INLINE_STEPS_MAX + 1)
    path = tmp_path / "run.json"
    write_profile(path, profile)
    read = read_profile(path)
    attach_steps(path, read)
    assert read.cells[0].launches[0].step_ns.tolist() == [MS] * (INLINE_STEPS_MAX + 1)


@pytest.mark.parametrize("steps", [10**6, 10**8])
def test_a_bomb_is_refused_before_it_inflates(tmp_path, steps):
    data = zipped([(f"{NAMES[0]}.npy", npy(np.zeros(steps, np.int64)))])
    path, profile = with_sidecar(tmp_path, data, steps=steps)
    sidecar_of(path).write_bytes(data)
    tracemalloc.start()
    with pytest.raises(SidecarError, match="would inflate to"):
        attach_steps(path, profile)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * len(data) + 200_000


def test_a_bomb_that_lies_about_its_size_inflates_no_further(tmp_path):
    size, said = 50_000_000, 2000
    data = zipped([(f"{NAMES[0]}.npy", npy(np.zeros(size // 8, np.int64)))])
    true_size = (size + 128).to_bytes(4, "little")
    assert data.count(true_size) == 2
    lying = data.replace(true_size, said.to_bytes(4, "little"))
    tracemalloc.start()
    refused(lying)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * len(data) + 300_000


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_cannot_be_bounded_are_refused(compression):
    assert "never uses" in refused(zipped([(f"{NAMES[0]}.npy", npy(np.arange(5)))], compression))


def test_thousands_of_entries_are_not_listed():
    assert "more entries" in refused(zipped([(f"{number}", b"") for number in range(2000)]))


def test_a_header_that_asks_for_more_than_is_there():
    content = npy(np.arange(4)).replace(b"(4,)", b"(4000000000,)"[:4] + b"", 1)
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (4000000000000,), }"
    content = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117) + b"\n" + bytes(32)
    assert "has 4 steps and its header says 4000000000000" in refused(zipped([(f"{NAMES[0]}.npy", content)], 0))


@pytest.mark.parametrize(
    "array", [np.zeros(3, object), np.zeros(3, ">i8"), np.zeros(3, np.int32), np.zeros((1, 3), np.int64), np.array("x")]
)
def test_arrays_of_another_kind_are_refused(array):
    refused(zipped([(f"{NAMES[0]}.npy", npy(array))], 0))


@IN_FOLDER
@given(seed=st.integers(0, 2**32), cut=st.floats(0, 1), changes=st.integers(0, 6))
def test_a_damaged_archive_is_one_line(seed, cut, changes):
    generator = random.Random(seed)
    data = bytearray(archive())
    for _ in range(changes):
        data[generator.randrange(len(data))] = generator.randrange(256)
    data = bytes(data[: int(len(data) * cut)]) if generator.random() < 0.3 else bytes(data)
    try:
        found = unpack(data, NAMES)
    except StepArchiveError as error:
        assert "\n" not in str(error)
        return
    assert all(array.dtype == np.int64 and array.ndim == 1 for array in found.values())


@IN_FOLDER
@given(name=st.text() | st.sampled_from(HOSTILE_TEXTS))
def test_only_a_file_beside_the_profile_is_opened(tmp_path, name):
    """Whatever it is called: a file outside, which is there, must not be found."""
    outside = tmp_path / "passwd"
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    outside.write_bytes(archive())
    path, profile = with_sidecar(folder, archive(), file=name)
    with pytest.raises(SidecarError) as error:
        attach_steps(path, profile)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("name", ["../passwd", "../../../../../../etc/passwd", "/etc/passwd", "x/../../passwd"])
def test_a_path_does_not_leave_the_folder(tmp_path, name):
    (tmp_path / "passwd").write_bytes(archive())
    folder = tmp_path / "in"
    folder.mkdir()
    path, profile = with_sidecar(folder, archive(), file=name)
    with pytest.raises(SidecarError, match="No such file"):
        attach_steps(path, profile)


def test_a_sidecar_larger_than_its_steps_is_not_read(tmp_path):
    path, profile = with_sidecar(tmp_path, b"", steps=3)
    with sidecar_of(path).open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(SidecarError, match="too large"):
        attach_steps(path, profile)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_steps_in_json_are_the_steps(values):
    assert bytes(json_of_steps(np.array(values, np.int64))) == str(values).replace(" ", "").encode()


def test_a_long_series_in_json_has_no_seams():
    assert bytes(json_of_steps(np.arange(10_000))) == str([*range(10_000)]).replace(" ", "").encode()

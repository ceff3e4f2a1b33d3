"""What is written is read back; everything else is refused in one line that names the file."""

import errno
import re
from typing import get_args

import jsonschema
import msgspec
import numpy as np
import pytest
import refusals
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profile_builder import profile, raw_steps, write

from kit.errors import KitError
from kit.profile import store
from kit.profile.schema import SCHEMA, LaunchPart, Turns
from kit.profile.store import (
    profile_digest,
    read_profile,
    read_steps,
    write_atomically,
    write_profile,
)


def small():
    return profile(rounds=2, cycles=3)


@pytest.fixture
def written(tmp_path):
    return write(tmp_path / "run.json", small())


def refused(path):
    line = refusals.refused(read_profile, path)
    assert str(path) in line
    return line


def edited(path, change, *, sealed=False):
    plain = msgspec.json.decode(path.read_bytes())
    change(plain)
    if sealed:
        plain["digest"] = profile_digest(plain)
    path.write_bytes(msgspec.json.encode(plain))
    return path


def test_a_part_of_a_launch_adds_what_it_measured_a_zero_too():
    launch = LaunchPart(warmup_steps=7, python="3.11")
    launch.add(LaunchPart(peak_device_memory_b=0))
    assert (launch.warmup_steps, launch.python, launch.peak_device_memory_b) == (7, "3.11", 0)


def test_what_is_written_is_read_back_with_every_step_of_every_launch(tmp_path):
    path, built = tmp_path / "run.json", small()
    write_profile(path, built, raw_steps(built))
    read = read_profile(path)
    assert read == built
    steps_read = read_steps(path, read)
    assert steps_read.keys() == raw_steps(built).keys()
    assert all(np.array_equal(steps_read[name], steps) for name, steps in raw_steps(built).items())
    assert read.sidecar.steps == sum(map(len, steps_read.values()))
    assert {entry.name for entry in tmp_path.iterdir()} == {"run.json", read.sidecar.file}


def test_a_profile_written_anew_takes_the_old_sidecar_with_it_only_when_it_is_there(tmp_path, monkeypatch):
    path, built = tmp_path / "run.json", small()
    write_profile(path, built, raw_steps(built))
    old = read_profile(path)
    fewer = profile(rounds=1, cycles=2)

    def cut_off(where, data, **_):
        if where == path:
            raise OSError(errno.EIO, "cut off between sidecar and profile")
        write_atomically(where, data)

    with monkeypatch.context() as patched:
        patched.setattr(store, "write_atomically", cut_off)
        with pytest.raises(OSError, match="cut off"):
            write_profile(path, fewer, raw_steps(fewer))
    assert read_steps(path, read_profile(path)).keys() == raw_steps(built).keys()
    write_profile(path, fewer, raw_steps(fewer))
    assert read_steps(path, read_profile(path)).keys() == raw_steps(fewer).keys()
    assert not (tmp_path / old.sidecar.file).exists()


def test_the_file_satisfies_the_published_json_schema(written, request):
    published = msgspec.json.decode((request.config.rootpath / "docs/reference/profile.schema.json").read_bytes())
    jsonschema.validate(msgspec.json.decode(written.read_bytes()), published)


def test_its_page_has_the_schema_that_is_written_and_each_kind_of_turns(request):
    page = (request.config.rootpath / "docs/reference/profile.md").read_text()
    assert re.findall(r"steadykit\.profile/[\d.]+", page) == [SCHEMA]
    assert {*get_args(Turns)} <= {*re.findall("`([a-z]+)`", re.search(r"`turns` are.*", page)[0])}


def test_an_edited_number_is_found_and_white_space_and_the_order_of_keys_do_not_matter(written):
    plain = msgspec.json.decode(written.read_bytes())
    written.write_bytes(msgspec.json.format(msgspec.json.encode(dict(reversed(plain.items())))))
    read_profile(written)
    edited(written, lambda plain: plain["cells"][0]["launches"][0].update(warmup_steps=98))
    assert "digest does not match" in refused(written)


def test_a_newer_minor_with_unknown_fields_and_codes_is_read(written):
    def change(plain):
        plain.update(schema="steadykit.profile/3.9", novelty={"a": 1})
        plain["cells"][0]["launches"][0]["notes"] = [{"code": "from_the_future", "values": {"x": 1}, "more": []}]

    read = read_profile(edited(written, change, sealed=True))
    assert read.cells[0].launches[0].notes[0].code == "from_the_future"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda launch: launch.update(blocks="many"), "$.cells[0].launches[0].blocks"),
        (lambda launch: launch["blocks"]["median_ns"].pop(), "differ in length"),
        (lambda launch: launch["blocks"]["counters"]["process.cpu_ns"].append(1), "differ in length"),
        (lambda launch: launch.update(warmup_steps=2**63), "warmup_steps"),
        (lambda launch: launch.update(warmup_steps=10**300), "not a valid profile"),
        (lambda launch: launch.pop("group"), "group"),
    ],
)
def test_what_is_wrong_inside_is_named(written, change, where):
    line = refused(edited(written, lambda plain: change(plain["cells"][0]["launches"][0]), sealed=True))
    assert "not a valid profile" in line and where in line


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(position=st.integers(min_value=0), value=st.integers(0, 255))
def test_no_changed_byte_passes_unseen(tmp_path, position, value):
    path = tmp_path / "run.json"
    if not path.exists():
        write(path, profile(rounds=1, cycles=2))
    data, damaged = bytearray(path.read_bytes()), tmp_path / "damaged.json"
    data[position % len(data)] = value
    damaged.write_bytes(data)
    try:
        # Whatever still reads says the same as before: only the form of the JSON has changed.
        assert read_profile(damaged) == read_profile(path)
    except KitError as error:
        assert str(error).isprintable()

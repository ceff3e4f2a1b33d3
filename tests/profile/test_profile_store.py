"""What is written is read back; everything else is refused in one line that names the file."""

import errno
import re
from typing import get_args

import jsonschema
import msgspec
import numpy as np
import pytest
import refusals
from profile_builder import profile, raw_steps, write

from kit.profile import store
from kit.profile.launch import LaunchPart, Turns
from kit.profile.schema import SCHEMA
from kit.profile.store import (
    FILE_MAX_B,
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


@pytest.mark.parametrize("planted", [b"NaN", b"-Infinity", b"1e999", b'"\\ud800"', b"[" * 50_000, b"9" * 5000])
def test_values_that_no_profile_has_are_refused_in_one_line(written, planted):
    data = written.read_bytes()
    for content in (planted, data[:-2] + b',"more":' + planted + b"}"):
        written.write_bytes(content)
        refused(written)


def test_every_truncation_is_one_line(written):
    data = written.read_bytes()
    for length in range(0, len(data) - 2, max(1, len(data) // 50)):
        written.write_bytes(data[:length])
        refused(written)
    written.write_bytes(data[: len(data) // 2])
    assert "truncated" in refused(written)


def test_what_is_no_file_is_one_line(tmp_path):
    assert "No such file" in refused(tmp_path / "none.json")
    assert "Is a directory" in refused(tmp_path)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(FILE_MAX_B + 1)
    assert "and the limit is" in refused(tmp_path / "large")

import errno
import hashlib
import io
import math
import os
import stat
from array import array
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profile_builder import build_blank_launch, build_cell, build_launch, build_profile, six_cells

from kit.profile.atomic import write_atomically
from kit.profile.canonical import canonical_json, profile_digest
from kit.profile.finite import fail_if_not_finite
from kit.profile.journal import journal_path
from kit.profile.json_schema import json_schema
from kit.profile.launch import Launch
from kit.profile.schema import SCHEMA, Profile
from kit.profile.sidecar import INLINE_STEPS_MAX, SidecarError, attach_steps, sidecar_path
from kit.profile.store import ProfileError, read_profile, write_profile


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "run.json"
    write_profile(path, build_profile(six_cells()))
    return path


def edit(path, change):
    plain = msgspec.json.decode(path.read_bytes())
    change(plain)
    return plain


def message(path):
    with pytest.raises(ProfileError) as error:
        read_profile(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


def test_what_is_written_is_read_back(written):
    profile = read_profile(written)
    assert profile.schema == SCHEMA
    expected = build_profile(six_cells())
    expected.digest = profile.digest
    assert msgspec.to_builtins(profile) == msgspec.to_builtins(expected)


def test_the_file_satisfies_the_published_json_schema(written):
    jsonschema.validate(msgspec.json.decode(written.read_bytes()), msgspec.json.decode(json_schema()))


def test_the_published_json_schema_is_the_current_one(request):
    published = request.config.rootpath / "docs" / "profile.schema.json"
    assert published.read_bytes() == json_schema(), "run: python -m kit.profile.json_schema > docs/profile.schema.json"


def test_the_file_has_the_mode_that_the_umask_leaves(written):
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(written.stat().st_mode) == 0o666 & ~mask


def test_an_edited_number_is_found(written):
    plain = edit(written, lambda p: p["cells"][0]["launches"][0].update(warmup_steps=98))
    written.write_bytes(msgspec.json.encode(plain))
    assert "digest does not match" in message(written)


def test_white_space_and_key_order_do_not_matter(written):
    plain = edit(written, lambda p: None)
    written.write_bytes(msgspec.json.encode(dict(reversed(plain.items()))))
    read_profile(written)


def test_every_truncation_is_one_line(written):
    data = written.read_bytes()
    for length in range(0, len(data) - 2, max(1, len(data) // 50)):
        written.write_bytes(data[:length])
        message(written)
    written.write_bytes(data[: len(data) // 2])
    assert "truncated" in message(written)


def test_a_newer_major_is_refused_by_name(written):
    plain = edit(written, lambda p: p.update(schema="steadykit.profile/2.0"))
    written.write_bytes(msgspec.json.encode(plain))
    assert "steadykit.profile/2.0 is newer" in message(written)


def test_a_newer_minor_with_fields_we_do_not_know_is_read(written):
    def change(plain):
        plain.update(schema="steadykit.profile/1.9", novelty={"a": 1})
        plain["digest"] = profile_digest(plain)

    plain = edit(written, change)
    written.write_bytes(msgspec.json.encode(plain))
    assert read_profile(written).schema == "steadykit.profile/1.9"


def test_a_wrong_type_is_named_by_its_path(written):
    plain = edit(written, lambda p: p["cells"][0].update(launches="many"))
    written.write_bytes(msgspec.json.encode(plain))
    assert "$.cells[0].launches" in message(written)


@pytest.mark.parametrize("content", [b"", b"hello", b"[]", b"3", b'{"schema": 4}', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_profile_is_one_line(tmp_path, content):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    message(path)


def test_a_missing_file_is_one_line(tmp_path):
    assert "No such file" in message(tmp_path / "none.json")
    assert "cannot be read" in message(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(position=st.integers(min_value=0), value=st.integers(0, 255))
def test_no_changed_byte_passes_unseen(written, position, value):
    data = bytearray(written.read_bytes())
    position %= len(data)
    changed = bytes(data[:position]) + bytes([value]) + bytes(data[position + 1 :])
    damaged = written.with_name("damaged.json")
    damaged.write_bytes(changed)
    try:
        same = read_profile(damaged)
    except ProfileError:
        return
    # Whatever still reads must say the same as before: only the form of the JSON has changed.
    assert canonical_json(msgspec.to_builtins(same)) == canonical_json(msgspec.to_builtins(read_profile(written)))


def test_many_steps_go_to_a_sidecar_that_the_profile_can_prove(tmp_path):
    path = tmp_path / "run.json"
    profile = build_profile(six_cells())
    launch = profile.cells[0].launches[0]
    launch.step_ns = list(range(1, INLINE_STEPS_MAX + 2))
    write_profile(path, profile)
    read = read_profile(path)
    assert read.sidecar is not None
    assert read.cells[0].launches[0].step_ns is None
    attach_steps(path, read)
    assert list(read.cells[0].launches[0].step_ns) == list(range(1, INLINE_STEPS_MAX + 2))

    sidecar = path.with_name(read.sidecar.file)
    sidecar.write_bytes(sidecar.read_bytes()[:-1])
    with pytest.raises(SidecarError, match="SHA-256"):
        attach_steps(path, read_profile(path))
    sidecar.unlink()
    with pytest.raises(SidecarError, match="keep it beside its profile"):
        attach_steps(path, read_profile(path))


def many(path, steps):
    profile = build_profile(six_cells())
    profile.cells[0].launches[0].step_ns = array("q", range(1, steps + 1))
    write_profile(path, profile)
    return profile.sidecar


def attached(path):
    profile = read_profile(path)
    attach_steps(path, profile)
    return len(profile.cells[0].launches[0].step_ns)


def test_a_profile_that_is_written_anew_leaves_the_sidecar_of_the_old_one_until_it_is_there(tmp_path, monkeypatch):
    path, more = tmp_path / "run.json", INLINE_STEPS_MAX + 5
    old = many(path, INLINE_STEPS_MAX + 1)

    def cut_off(where, data):
        if where == path:
            raise OSError(errno.EIO, "cut off between sidecar and profile")
        write_atomically(where, data)

    with monkeypatch.context() as patched:
        patched.setattr("kit.profile.store.write_atomically", cut_off)
        with pytest.raises(ProfileError, match="cut off"):
            many(path, more)
    assert len(list(tmp_path.iterdir())) == 3
    assert attached(path) == INLINE_STEPS_MAX + 1
    new = many(path, more + 1)
    assert attached(path) == more + 1
    assert old.file != new.file == f"run.json.{new.sha256[:8]}.steps.npz"
    assert {entry.name for entry in tmp_path.iterdir()} == {"run.json", new.file}


def test_a_copy_of_the_earlier_profile_keeps_its_sidecar(tmp_path):
    path, copy = tmp_path / "run.json", tmp_path / "copy.json"
    old = many(path, INLINE_STEPS_MAX + 1)
    os.mkfifo(tmp_path / "fifo.json")
    copy.write_bytes(path.read_bytes())
    many(path, INLINE_STEPS_MAX + 2)
    assert attached(copy) == INLINE_STEPS_MAX + 1
    copy.unlink()
    many(path, INLINE_STEPS_MAX + 3)
    assert not (tmp_path / old.file).exists()
    assert len([*tmp_path.glob("*.steps.npz")]) == 1


def test_only_regular_files_called_as_this_profiles_sidecar_are_removed(tmp_path):
    path = tmp_path / "run.json"
    others = [
        "run.json.0a1b2c3.steps.npz",
        "run.json.0a1b2c3G.steps.npz",
        "run_json.0a1b2c3d.steps.npz",
        "run.json.npz",
    ]
    others += ["other.json.0a1b2c3d.steps.npz", "run.json.0a1b2c3d.steps.npz.bak", "run.json.0a1b2c3d.journal"]
    for name in [*others, "run.json.steps.npz", "run.json.0a1b2c3d.steps.npz"]:
        (tmp_path / name).touch()
    (tmp_path / "run.json.00000000.steps.npz").mkdir()
    (tmp_path / "run.json.11111111.steps.npz").symlink_to(tmp_path / others[0])
    own = many(path, INLINE_STEPS_MAX + 1).file
    left = {entry.name for entry in tmp_path.iterdir()}
    stays = {"run.json", own, "run.json.00000000.steps.npz", "run.json.11111111.steps.npz"}
    assert left == stays | set(others)


def test_a_sidecar_without_a_hash_in_its_name_is_read(tmp_path):
    path = tmp_path / "run.json"
    own = many(path, INLINE_STEPS_MAX + 1).file
    (tmp_path / own).rename(tmp_path / "run.json.steps.npz")
    plain = edit(path, lambda plain: plain["sidecar"].update(file="run.json.steps.npz"))
    plain["digest"] = profile_digest(plain)
    path.write_bytes(msgspec.json.encode(plain))
    assert attached(path) == INLINE_STEPS_MAX + 1


@pytest.mark.parametrize(
    "steps", [[3, 2, 1], array("q", [3, 2, 1]), np.array([3, 2, 1])], ids=["list", "array", "NumPy"]
)
def test_few_steps_stay_in_the_profile_however_they_are_kept(tmp_path, steps):
    profile = build_profile(six_cells())
    profile.cells[0].launches[0].step_ns = steps
    write_profile(tmp_path / "run.json", profile)
    assert read_profile(tmp_path / "run.json").cells[0].launches[0].step_ns == [3, 2, 1]


@pytest.fixture
def with_sidecar(tmp_path):
    path = tmp_path / "run.json"
    profile = build_profile(six_cells())
    profile.cells[0].launches[0].step_ns = list(range(INLINE_STEPS_MAX + 1))
    write_profile(path, profile)
    return path, profile


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (b"hello", "not a NumPy archive"),
        (b"", "not a NumPy archive"),
        ({"cell0.launch0": np.zeros(3, np.int64)}, "has 3 steps"),
        ({}, "has 0 steps"),
        ({"cell0.launch0": np.zeros(INLINE_STEPS_MAX + 1)}, "1-dimensional float64"),
        ({"cell0.launch0": np.zeros((INLINE_STEPS_MAX + 1, 1), np.int64)}, "2-dimensional int64"),
        (np.zeros(3, np.int64), "not a NumPy archive"),
    ],
    ids=["text", "empty", "short", "without", "floats", "table", "npy"],
)
def test_a_sidecar_with_the_right_sha256_and_the_wrong_contents(with_sidecar, contents, expected):
    path, profile = with_sidecar
    buffer = io.BytesIO()
    if isinstance(contents, bytes):
        buffer.write(contents)
    elif isinstance(contents, dict):
        np.savez(buffer, **contents)
    else:
        np.save(buffer, contents)
    data = buffer.getvalue()
    path.with_name(profile.sidecar.file).write_bytes(data)
    profile.sidecar = msgspec.structs.replace(profile.sidecar, sha256=hashlib.sha256(data).hexdigest())
    with pytest.raises(SidecarError, match=expected) as error:
        attach_steps(path, profile)
    assert "\n" not in str(error.value)


def test_names_that_differ_after_a_dot_have_sidecars_of_their_own():
    names = ["res-v1.0", "res-v1.1", "a.json", "a.txt", "a"]
    assert len({sidecar_path(Path(name), "0" * 64) for name in names}) == len(names)


@pytest.mark.timeout(20)
def test_what_has_no_end_is_not_read(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert "not a regular file" in message(fifo)
    assert "not a regular file" in message(Path("/dev/zero"))


def test_a_folder_that_is_gone_is_one_line_with_the_way_on(tmp_path):
    path = tmp_path / "gone" / "run.json"
    with pytest.raises(ProfileError, match=r"No such file or directory; .*kit run --resume --out"):
        write_profile(path, build_profile(six_cells()))


def test_the_longest_name_that_the_file_system_takes_is_written(tmp_path):
    path = tmp_path / ("n" * 255)
    write_profile(path, build_profile([]))
    assert read_profile(path).cells == []
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_by_its_path(tmp_path, value):
    path = tmp_path / "run.json"
    profile = build_profile(six_cells())
    parity = profile.cells[1].launches[0].parity
    profile.cells[1].launches[0].parity = msgspec.structs.replace(parity, losses=[2.0, value])
    with pytest.raises(ProfileError, match=r"\$\.cells\[1\]\.launches\[0\]\.parity\.losses\[1\] is"):
        write_profile(path, profile)
    assert not path.exists()


def test_a_launch_keeps_all_but_the_field_that_is_not_finite():
    cell = build_cell()
    launch, blank = build_launch(cell, step_ns=[1, 2, 3]), build_blank_launch("")
    launch.parity = msgspec.structs.replace(launch.parity, losses=[math.nan])
    fail_if_not_finite(launch, blank)
    assert launch.parity is None
    assert launch.step_ns == [1, 2, 3]
    assert "parity.losses[0] is nan" in launch.failure.reason
    assert msgspec.json.decode(msgspec.json.encode(launch), type=Launch) == launch


def test_the_decoder_takes_no_text_for_a_number():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"schema": SCHEMA, "id": 3}, Profile)


def test_a_run_that_has_not_ended_is_not_called_missing(tmp_path):
    path = tmp_path / "run.json"
    journal_path(path).touch()
    assert message(path) == (
        f"{path}: its run has not ended yet, or was killed: `kit run --resume --out {path}` goes on with it"
    )

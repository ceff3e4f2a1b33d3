"""Whatever a file holds: a profile, or one error of one printable line. Never another exception."""

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profile_builder import group, member, profile, write

from kit.errors import KitError
from kit.profile.schema import Profile
from kit.profile.store import canonical_json, profile_digest, read_profile

IN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
TEXTS = ["", "../../etc/passwd", "\x1b[2J", "\u202egnp", "a\nb", "\ud800", "x" * 10_000, "NaN"]
NUMBERS = [-(2**63), 2**63 - 1, 2**64, 10**40, -1, 0, 1e308, -0.0, 5e-324]

texts = st.text() | st.sampled_from(TEXTS)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(NUMBERS)
any_json = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


def plain_profile():
    return msgspec.to_builtins(profile(group("mlp train", member("torch"), member("jax")), rounds=1, cycles=2))


def slots(value, holders):
    """Every container with each of its keys or indices."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in [*items]:
        holders.append((value, key))
        slots(inner, holders)
    return holders


SLOTS = len(slots(plain_profile(), []))


@IN_FOLDER
@given(data=st.binary() | any_json.map(lambda value: json.dumps(value).encode()))
def test_anything(tmp_path, data):
    path = tmp_path / "hostile.json"
    path.write_bytes(data)
    with pytest.raises(KitError):
        read_profile(path)


@IN_FOLDER
@given(changes=st.lists(st.tuples(st.integers(0, SLOTS - 1), st.just(...) | any_json), min_size=1, max_size=3))
def test_a_real_profile_with_wrong_values_and_a_digest_that_holds(tmp_path, changes):
    plain = plain_profile()
    for index, value in changes:
        holders = slots(plain, [])
        parent, key = holders[index % len(holders)]
        if value is ...:
            del parent[key]
        else:
            parent[key] = value
    path = tmp_path / "hostile.json"
    try:
        path.write_bytes(canonical_json(plain | {"digest": profile_digest(plain)}))
    except UnicodeEncodeError:
        path.write_text(json.dumps(plain))
    try:
        assert isinstance(read_profile(path), Profile)
    except KitError as error:
        assert str(error).isprintable() and path.name in str(error)


@IN_FOLDER
@given(position=st.integers(min_value=0), value=st.integers(0, 255))
def test_no_changed_byte_passes_unseen(tmp_path, position, value):
    path = tmp_path / "hostile.json"
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

"""Whatever a file holds: a profile, or one error of one printable line. Never another exception, never a hang."""

import json
import random
import zlib
from pathlib import Path

import msgspec
import pytest
from fuzz.chain import exercise
from fuzz.mutations import HOSTILE_NUMBERS, HOSTILE_TEXTS, every_place, mutated, sealed
from fuzz.seeds import RECORDED, built, journal, recorded, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.errors import KitError
from kit.profile.brief import ProfileBrief
from kit.profile.briefs import read_brief
from kit.profile.journal import journal_path, read_journal
from kit.profile.regular_file import read_regular
from kit.profile.schema import Profile
from kit.profile.store import ProfileError, read_profile

pytestmark = pytest.mark.timeout(120)
IN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
SEEDS = [recorded(1, 1), built(), small()]
FILES = [RECORDED.read_bytes(), *map(sealed, SEEDS)]

texts = st.text() | st.sampled_from(HOSTILE_TEXTS)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(HOSTILE_NUMBERS)
any_json = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)


def read_or_refuse(path):
    """Both readers, which have to agree; the profile, or null where both refuse it with one line."""
    answers = []
    for read, kind in ((read_profile, Profile), (read_brief, ProfileBrief)):
        try:
            answers.append(read(path))
            assert isinstance(answers[-1], kind)
        except KitError as error:
            assert isinstance(error, ProfileError)
            assert str(error).isprintable()
            assert path.name in str(error)
            answers.append(None)
    assert answers[0] is None or answers[1] is not None
    return answers[0]


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ProfileError) as error:
        read_profile(path)
    assert str(error.value).isprintable()
    assert read_or_refuse(path) is None
    return str(error.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "hostile.json"


@IN_FOLDER
@given(data=st.binary())
def test_any_bytes(path, data):
    refused(path, data)


@IN_FOLDER
@given(value=any_json)
def test_any_json(path, value):
    refused(path, json.dumps(value).encode())


@IN_FOLDER
@given(value=any_json, schema=st.sampled_from(["steadykit.profile/1.0", "steadykit.profile/1.999999"]))
def test_any_json_that_says_it_is_a_profile(path, value, schema):
    plain = {**(value if isinstance(value, dict) else {"cells": value}), "schema": schema}
    try:
        path.write_bytes(sealed(plain))
    except UnicodeEncodeError:
        return
    assert read_or_refuse(path) is None


@IN_FOLDER
@given(
    data=st.sampled_from(FILES),
    cut=st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=5),
    inserted=st.sampled_from([b"", b"\x00", b"\xff\xfe", b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b'"\\ud800"']),
)
def test_a_real_profile_flipped_cut_and_spliced(path, data, cut, flips, inserted):
    damaged = bytearray(data[: int(len(data) * cut)])
    for place, value in flips if damaged else ():
        damaged[int(place * len(damaged))] = value
    middle = len(damaged) // 2
    path.write_bytes(bytes(damaged[:middle] + inserted + damaged[middle:]))
    read_or_refuse(path)


@IN_FOLDER
@given(plain=st.sampled_from(SEEDS), seed=st.integers(0, 2**32), changes=st.integers(1, 6))
def test_a_real_profile_with_wrong_values_and_a_digest_that_holds(path, plain, seed, changes):
    path.write_bytes(sealed(mutated(plain, random.Random(seed), changes)))
    read_or_refuse(path)


@pytest.mark.parametrize("value", [1, "text", None, True, [], {}, 1.5, [[]], -1], ids=repr)
def test_a_wrong_type_at_every_place_of_a_profile(path, value):
    """Every place in turn: neither reader may fall over, and what is read can be shown and compared."""
    plain = small()
    for parent, name in [*every_place(plain)]:
        kept, parent[name] = parent[name], value
        path.write_bytes(sealed(plain))
        read_or_refuse(path)
        parent[name] = kept


@settings(IN_FOLDER, max_examples=25)
@given(plain=st.sampled_from(SEEDS), seed=st.integers(0, 2**32), changes=st.integers(1, 3))
def test_what_can_be_read_can_be_shown_and_compared(path, plain, seed, changes):
    other = path.with_name("other.json")
    if not other.exists():
        other.write_bytes(sealed(built()))
    path.write_bytes(sealed(mutated(plain, random.Random(seed), changes)))
    exercise(path, other)


def with_value(change):
    plain = built()
    change(plain)
    return sealed(plain)


def set_all(plain, name, value):
    """Everywhere that a member `name` stands with a number or with null."""
    for parent, member in [*every_place(plain)]:
        if member == name and (parent[member] is None or isinstance(parent[member], int | float)):
            parent[member] = value


ABSURD = {
    "negative times": lambda plain: [set_all(plain, name, -5) for name in ("median_ns", "duration_ns", "begin_ns")],
    "no time at all": lambda plain: [set_all(plain, name, 0) for name in ("median_ns", "value", "low", "high")],
    "negative estimates": lambda plain: [set_all(plain, name, -1.5) for name in ("value", "low", "high")],
    "zero batch": lambda plain: set_all(plain, "batch", 0),
    "negative counts": lambda plain: [set_all(plain, name, -3) for name in ("launches", "steps", "count", "round")],
    "largest integers": lambda plain: [set_all(plain, name, 2**63 - 1) for name in ("median_ns", "steps", "memory_b")],
    "largest floats": lambda plain: [set_all(plain, name, 1.7e308) for name in ("value", "low", "high", "load_1min")],
    "smallest floats": lambda plain: [set_all(plain, name, 5e-324) for name in ("value", "low", "high")],
    "infinite ratios": lambda plain: [set_all(plain, "low", 5e-324), set_all(plain, "high", 1.7e308)],
    "ratios of medians": lambda plain: plain["cells"][0]["launch_summaries"][0].update(median_ns=2**63 - 1),
    "no losses": lambda plain: [set_all(plain, "tolerance", 0.0), set_all(plain, "max_relative_difference", 1e308)],
    "no launches": lambda plain: [cell.update(launches=[]) for cell in plain["cells"]],
    "no summaries": lambda plain: [cell.update(launch_summaries=[]) for cell in plain["cells"]],
    "no cells": lambda plain: plain.update(cells=[]),
    "every round the same": lambda plain: set_all(plain, "round", 0),
    "the same cell twice": lambda plain: plain.update(cells=plain["cells"][:1] * 2),
    "a sidecar elsewhere": lambda plain: plain.update(
        sidecar={"file": "../../etc/passwd", "sha256": "0" * 64, "steps": 10}
    ),
    "a sidecar no file can be": lambda plain: plain.update(sidecar={"file": "a\0b", "sha256": "", "steps": -1}),
    "no names": lambda plain: [
        parent.update({name: ""})
        for parent, name in [*every_place(plain)]
        if isinstance(parent, dict) and isinstance(parent[name], str) and name in ("key", "workload", "backend", "name")
    ],
}


@pytest.mark.parametrize("change", ABSURD.values(), ids=ABSURD)
def test_absurd_values_are_shown_and_compared(path, change):
    path.write_bytes(with_value(change))
    other = path.with_name("other.json")
    other.write_bytes(sealed(built()))
    exercise(path, other, path)


def test_integers_beyond_64_bits_are_refused_by_their_path(path):
    for number in (2**63, -(2**63) - 1, 10**400):
        message = refused(path, with_value(lambda plain, n=number: plain["identity"].update(memory_b=n)))
        assert "$.identity.memory_b" in message


@pytest.mark.parametrize("brackets", ["[]", ['{"a":', "}"]], ids=["lists", "objects"])
def test_nesting_up_to_and_beyond_the_interpreters_limit(path, brackets):
    """Just below the depth at which decoding gives up, encoding for the digest would."""
    opening, closing = brackets
    text = sealed(small()).decode().rstrip()
    for depth in (100, *range(800, 1002), 5000, 200_000):
        nested = opening * depth + ("0" if opening != "[" else "") + closing * depth
        path.write_text(f'{text[:-1]},"zzz":{nested}}}')
        read_or_refuse(path)


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999", "nan", "0x10", "1.", ".5", "+1", "00"])
def test_numbers_that_json_does_not_have(path, token):
    text = sealed(small()).decode()
    refused(path, text.replace('"memory_b":', f'"memory_b":{token},"x":').encode())


@pytest.mark.parametrize("token", ['"\\ud800"', '"\\udc00\\ud800"', '"\0"', '"\x1b"', "'x'"])
def test_strings_that_json_does_not_have(path, token):
    refused(path, sealed(small()).decode().replace('"id":', f'"id":{token},"x":').encode())


def test_a_name_that_stands_twice_counts_once(path):
    """The later one, in both readers; and the digest of what counts must hold."""
    plain = small()
    text = sealed(plain).decode()
    path.write_text(text.replace('"kit":', '"kit":"0.0.0","kit":', 1))
    twice = read_or_refuse(path)
    assert twice is None or twice.kit == plain["kit"]


def test_the_reasons_given_are_printable_whatever_they_quote(path):
    evil = "\x1b[2Jx\n\u202e"
    for change in (
        lambda plain: plain["cells"][0].update(status=evil),
        lambda plain: plain["identity"]["cpu"].update(caches={evil: "x"}),
        lambda plain: plain.update(schema=evil),
    ):
        refused(path, with_value(change))


@IN_FOLDER
@given(seed=st.integers(0, 2**32), changes=st.integers(1, 5))
def test_a_journal_with_damaged_and_forged_lines(tmp_path, seed, changes):
    generator = random.Random(seed)
    data = journal()
    for _ in range(changes):
        data = generator.choice((flipped, cut, forged))(data, generator)
    path = journal_path(tmp_path / "run.json")
    path.write_bytes(data)
    try:
        kept = read_journal(path)
    except KitError as error:
        assert str(error).isprintable()
        return
    assert kept.ended_bytes <= len(data)


def flipped(data, generator):
    place = generator.randrange(len(data) or 1)
    return data[:place] + bytes([generator.randrange(256)]) + data[place + 1 :]


def cut(data, generator):
    return data[: generator.randrange(len(data) + 1)]


def forged(data, generator):
    """A line with a checksum that holds, and anything behind it."""
    lines = data.split(b"\n")
    sound = [line for line in lines if len(line) > 10] or [b"00000000 H{}"]
    kind, payload = sound[0][9:10], generator.choice(sound)[10:]
    try:
        record = msgspec.json.encode(mutated(msgspec.json.decode(payload), generator))
    except (ValueError, TypeError, AttributeError, RecursionError):
        record = generator.choice([b"{}", b"[" * 2000, b'"\xff"', b'{"cell_key":"\xff"}', b""])
    record = generator.choice([kind, b"L", b"H", b"?", b""]) + record
    place = generator.randrange(len(lines) + 1)
    return b"\n".join([*lines[:place], b"%08x %s" % (zlib.crc32(record), record), *lines[place:]])


def test_a_file_larger_than_any_profile_is_not_read(path):
    with path.open("wb") as file:
        file.truncate(2**40)
    for read in (read_profile, read_brief):
        with pytest.raises(ProfileError, match="too large"):
            read(path)


def test_a_file_of_the_kernels_without_a_size_is_not_read():
    with pytest.raises(OSError, match="more bytes than its size says"):
        read_regular(Path("/proc/self/status"))

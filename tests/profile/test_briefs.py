"""Reading in brief says what reading whole says, or leaves it to reading whole."""

import hashlib
import itertools
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profile_builder import build_cell, build_failed, build_identity, build_profile, six_cells

from kit.profile import briefs as reading
from kit.profile.brief import ProfileRead, launches_of, read_of
from kit.profile.briefs import FILES_AHEAD, read_brief, read_briefs
from kit.profile.canonical import canonical_json, digest_proven_by, profile_digest
from kit.profile.schema import Profile
from kit.profile.sharing import Sharing
from kit.profile.store import ProfileError, read_profile, write_profile

RECORDED = Path(__file__).parent / "recorded" / "schema-1.0.json"
RECORDED_1_1 = RECORDED.with_name("schema-1.1.json")


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "run.json"
    write_profile(path, build_profile([*six_cells(), build_failed(build_cell("jax", "lstm"))]))
    return path


@pytest.fixture
def whole(monkeypatch):
    """Paths that were read whole."""
    paths = []

    def read(path):
        paths.append(path)
        return read_profile(path)

    monkeypatch.setattr(reading, "read_profile", read)
    return paths


def plain(brief):
    return msgspec.to_builtins(brief)


def whole_brief(profile):
    return Sharing().brief_of(read_of(profile))


def test_a_written_profile_is_read_in_brief(written, whole):
    assert plain(read_brief(written)) == plain(whole_brief(read_profile(written)))
    assert whole == []


def test_what_is_decoded_is_only_what_a_profile_has_under_the_same_names():
    profile, brief = plain(read_profile(RECORDED)), plain(msgspec.json.decode(RECORDED.read_bytes(), type=ProfileRead))

    def check(part, of):
        if isinstance(part, dict):
            for name, value in part.items():
                check(value, of[name])
        elif isinstance(part, list):
            for value, other in zip(part, of, strict=True):
                check(value, other)
        else:
            assert part == of

    check(brief, profile)


def test_a_profile_of_schema_1_0_stays_readable(whole):
    brief = read_brief(RECORDED)
    assert brief.schema == "steadykit.profile/1.0"
    assert len(brief.cells) == 12
    assert launches_of(brief.cells[0]).planted_pct == (0.0,)
    assert whole == [RECORDED]  # its members are not in canonical order
    assert read_profile(RECORDED).cells[0].launches[0].observer is None


def test_a_profile_of_schema_1_1_stays_readable_and_its_missing_numbers_have_no_reason(whole):
    brief = read_brief(RECORDED_1_1)
    assert brief.schema == "steadykit.profile/1.1"
    assert whole == []
    summaries = [summary for result in read_profile(RECORDED_1_1).cells for summary in result.launch_summaries]
    assert [summary.median_ns is None for summary in summaries] == [False] * 3 + [True] * 3
    assert {summary.reason for summary in summaries} == {None}


def test_many_are_read_in_their_order_and_share_what_they_repeat(tmp_path, whole):
    paths = [tmp_path / f"{number}.json" for number in range(2 * FILES_AHEAD + 3)]
    for number, path in enumerate(paths):
        fields = {"recompiles": number % 3, "accuracy": number / 100}
        identity = build_identity(hostname_sha256="ab"[number % 2] * 64)
        write_profile(path, build_profile(six_cells(**fields), id=f"run-{number}", identity=identity))
    found = read_briefs(paths)
    assert whole == []
    assert [brief.id for brief in found] == [f"run-{number}" for number in range(len(paths))]
    assert [plain(brief) for brief in found] == [plain(whole_brief(read_profile(path))) for path in paths]
    assert len({id(brief.identity) for brief in found}) == 2
    assert len({id(brief.cells[0].cell) for brief in found}) == 1
    assert len({id(launches_of(brief.cells[0]).parity) for brief in found}) == 1


def test_who_claims_the_name_of_another_changes_nothing_of_it(tmp_path):
    """Equal hashes in two profiles of unequal machines and cells: each keeps its own."""
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, model, jitter in zip(paths, ("One CPU", "Other CPU"), (0.001, 0.3), strict=True):
        cells = six_cells(jitter=jitter, data="mnist" if model == "One CPU" else "synthetic")
        write_profile(path, build_profile(cells, identity=build_identity(model, hardware_sha256="same", sha256="same")))
    for path, brief in zip(paths, read_briefs(paths), strict=True):
        assert plain(brief) == plain(whole_brief(read_profile(path)))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b'"warmup_steps":100', b'"warmup_steps":98 '),
        lambda data: data.replace(b"steadykit.profile/1", b"steadykit.profile/2"),
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"[]",
        lambda data: b'{"digest":1}',
        lambda data: b"[" * 100_000,
        lambda data: data.replace(b'"medi', b'"\xff\xfe'),
    ],
)
def test_what_reading_whole_refuses_is_refused_in_its_words(written, change):
    changed = change(written.read_bytes())
    assert changed != written.read_bytes()
    written.write_bytes(changed)
    with pytest.raises(ProfileError) as expected:
        read_profile(written)
    with pytest.raises(ProfileError) as found:
        read_brief(written)
    assert str(found.value) == str(expected.value)


def test_the_first_that_is_no_profile_is_named(written, tmp_path):
    with pytest.raises(ProfileError, match="none"):
        read_briefs([written] * 20 + [tmp_path / "none.json", tmp_path / "neither.json"])


def test_a_file_larger_than_a_buffer_is_read_whole(written, whole, monkeypatch):
    monkeypatch.setattr(reading, "BUFFER_B", written.stat().st_size // 2)
    assert plain(read_brief(written)) == plain(whole_brief(read_profile(written)))
    assert whole == [written]


def test_another_layout_is_read_whole(written, whole):
    data = written.read_bytes()
    written.write_bytes(msgspec.json.format(data))
    pretty = plain(read_brief(written))
    assert whole == [written]
    written.write_bytes(data)
    assert pretty == plain(read_brief(written))


def prove(data):
    return digest_proven_by(data, len(data))


def test_the_digest_is_that_of_decoding(written):
    data = written.read_bytes()
    assert prove(data) == profile_digest(msgspec.json.decode(data)) == read_profile(written).digest
    assert prove(data.rstrip()) == prove(data)
    assert digest_proven_by(bytearray(data + b"rest of the buffer"), len(data)) == prove(data)


def test_text_that_looks_like_a_digest_is_not_taken_for_one(tmp_path, whole):
    path = tmp_path / "run.json"
    looks = f'","digest":"{"0" * 64}","'
    identity = build_identity("a" + looks)
    write_profile(path, build_profile(six_cells(), id=looks, identity=identity))
    assert read_brief(path).id == looks
    assert whole == []


def test_a_member_of_that_name_further_in_is_hashed_like_any_other(tmp_path):
    path = tmp_path / "run.json"
    identity = build_identity(packages={"a": "1", "digest": "0" * 64})
    write_profile(path, build_profile(six_cells(), identity=identity))
    assert plain(read_brief(path)) == plain(whole_brief(read_profile(path)))


def self_hashed(members):
    """A file of these members, any of them twice, with a digest over its own bytes: only its author can make one."""
    encoded = [canonical_json(name) + b":" + canonical_json(value) for name, value in members]
    body = b"{" + b",".join(encoded)
    digest = hashlib.sha256(body + b"}").hexdigest()
    return body + b',"digest":"' + digest.encode() + b'"}'


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_a_name_given_twice_is_read_as_reading_whole_reads_it(written, data):
    """The later one counts, whether decoded in brief or whole."""
    profile = msgspec.json.decode(written.read_bytes())
    del profile["digest"]
    other = msgspec.json.decode(canonical_json(build_profile(six_cells(launches=3), id="other")))
    members = list(profile.items())
    for name in data.draw(st.lists(st.sampled_from(sorted(profile)), max_size=3)):
        members.insert(data.draw(st.integers(0, len(members))), (name, other[name]))
    file = self_hashed(members)
    assert prove(file) is not None
    path = written.with_name("twice.json")
    path.write_bytes(file)
    expected = msgspec.json.decode(file)
    assert plain(read_brief(path)) == plain(whole_brief(msgspec.convert(expected, Profile)))


def test_two_digests_are_left_to_reading_whole(written):
    """Whichever of them fits the bytes: what counts is the later one, over everything but that name."""
    data = written.read_bytes().rstrip()
    proven = prove(data)
    member = f',"digest":"{proven}"'.encode()
    forged = ("0" * 64).encode()
    for changed in (
        data[:-1] + b',"digest":"' + forged + b'"}',
        b'{"digest":"' + forged + b'",' + data[1:],
        data.replace(member, member + b',"digest":"' + forged + b'"'),
    ):
        written.write_bytes(changed)
        try:
            expected = read_profile(written)
        except ProfileError:
            with pytest.raises(ProfileError):
                read_brief(written)
        else:
            assert plain(read_brief(written)) == plain(whole_brief(expected))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(position=st.integers(min_value=0), value=st.integers(0, 255))
def test_no_changed_byte_passes_unseen(written, position, value):
    data = bytearray(written.read_bytes())
    data[position % len(data)] = value
    damaged = written.with_name("damaged.json")
    damaged.write_bytes(data)
    try:
        found = read_brief(damaged)
    except ProfileError:
        return
    assert plain(found) == plain(read_brief(written))


def test_few_bytes_make_no_large_brief():
    """A launch, a summary or a cell that leaves out what every file has is not one."""
    for where, part in itertools.product(("launches", "launch_summaries"), (b'{"round":0}', b"{}")):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(
                b'{"cells":[{"' + where.encode() + b'":[' + b",".join([part] * 10) + b"]}]}", type=ProfileRead
            )

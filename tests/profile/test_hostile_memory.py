"""Reading a file takes at most ten times its size in memory, whatever it holds."""

import tracemalloc

import msgspec
import pytest
from fuzz.mutations import sealed
from fuzz.seeds import RECORDED, journal, small
from profile_builder import build_cell, build_launch, build_profile, six_cells

from kit.errors import KitError
from kit.profile.briefs import BUFFER_B, read_brief
from kit.profile.canonical import profile_digest
from kit.profile.density import SMALL_B, too_dense
from kit.profile.journal import Journal, journal_path, read_journal
from kit.profile.journal_line import LAUNCH, line_of
from kit.profile.sidecar import INLINE_STEPS_MAX
from kit.profile.store import read_profile, write_profile

FILE_B = 400_000
TIMES = 10
# What the first reading allocates once, whatever it reads.
ONCE_B = 300_000


def repeated(piece, brackets="[]"):
    """JSON of about `FILE_B`; `piece` of a number that counts."""
    width = len(piece(10**5).encode()) + 1
    return brackets[0] + ",".join(map(piece, range(10**5, 10**5 + FILE_B // width))) + brackets[1]


# What takes the most memory for its length in the file; from the densest, which has to be refused, to what passes.
DENSE = {
    "empty lists": repeated(lambda _: "[]"),
    "empty objects": repeated(lambda _: "{}"),
    "lists": repeated(lambda _: "[0]"),
    "wide lists": repeated(lambda n: f"[{n}0000000000]"),
    "objects": repeated(lambda _: '{"a":0}'),
    "long objects": repeated(lambda n: f'{{"a":{n}{n}{n}{n}{n}}}'),
    "digits": repeated(lambda _: "0"),
    "negative digits": repeated(lambda _: "-9"),
    "four digits": repeated(lambda n: f"{n % 9000 + 1000}"),
    "five digits": repeated(lambda n: f"{n % 90000 + 10000}"),
    "six digits": repeated(lambda n: f"{n % 900000 + 100000}"),
    "short floats": repeated(lambda _: "1.5"),
    "floats that grow": repeated(lambda n: f"{n % 9 + 1}e15"),
    "longer floats that grow": repeated(lambda n: f"{n % 90 + 10}1e13"),
    "short strings": repeated(lambda _: '"ab"'),
    "strings": repeated(lambda n: f'"{n}{n}"'),
    "wide strings": repeated(lambda n: f'"{n}\U0001f600"'),
    "longer wide strings": repeated(lambda n: f'"{n}{n}{n}\U0001f600"'),
    "members": repeated(lambda n: f'"{n:x}":0', "{}"),
    "longer members": repeated(lambda n: f'"{n}{n}":"{n}"', "{}"),
}
PLACES = {
    "unknown": lambda plain: plain.update(zzz="@"),
    "losses": lambda plain: plain["cells"][0]["launches"][0]["parity"].update(losses="@"),
    "reasons": lambda plain: plain["cells"][0]["summary"].update(reasons="@"),
}


def file_with(json, place, *, canonical):
    plain = small()
    PLACES[place](plain)
    data = msgspec.json.encode(plain).replace(b'"@"', json.encode())
    decoded = msgspec.json.decode(data)
    if canonical:
        return sealed(decoded)
    digest = profile_digest(decoded).encode()
    return data.replace(b'"digest":""', b'"digest":"%s"' % digest)


def peak_b(read, path):
    """Highest traced memory while reading, and whether the file was read."""
    tracemalloc.start()
    try:
        kept = read(path)
    except KitError as error:
        kept = None
        assert str(error).isprintable()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, kept is not None


@pytest.mark.parametrize("canonical", [True, False], ids=["canonical", "as it comes"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", DENSE)
def test_reading_takes_at_most_ten_times_the_size(tmp_path, name, place, canonical):
    path = tmp_path / "dense.json"
    path.write_bytes(file_with(DENSE[name], place, canonical=canonical))
    size = path.stat().st_size
    for read, more in ((read_profile, 0), (read_brief, BUFFER_B)):
        peak, _ = peak_b(read, path)
        assert peak <= TIMES * size + more + ONCE_B, f"{peak / size:.1f} times"


@pytest.mark.parametrize("filling", [b"\n", b"a\n", b"ab\n", b"00000000 \n", b"\n\n", b"x"])
def test_a_journal_of_short_lines(tmp_path, filling):
    path = journal_path(tmp_path / "run.json")
    path.write_bytes(filling * (FILE_B // len(filling)))
    peak, read = peak_b(read_journal, path)
    assert peak <= TIMES * FILE_B + ONCE_B
    assert not read


@pytest.mark.parametrize("line_b", [SMALL_B // 4, 2 * SMALL_B], ids=["short lines", "long lines"])
@pytest.mark.parametrize("name", ["digits", "four digits", "short floats", "short strings", "wide strings"])
def test_a_journal_of_dense_lines_whose_checksums_hold(tmp_path, name, line_b):
    """None of the short ones would be refused alone."""
    path = journal_path(tmp_path / "run.json")
    plain = msgspec.to_builtins(build_launch(build_cell(), 0, step_ns=[1]))
    if "strings" in name:
        plain["warnings"] = "@"
    else:
        plain["parity"]["losses"] = "@"
    dense = repeated_to(line_b, DENSE[name])
    line = line_of(LAUNCH, msgspec.json.encode(plain).replace(b'"@"', dense))
    path.write_bytes(journal() + line * (4 * FILE_B // line_b))
    peak, read = peak_b(read_journal, path)
    assert peak <= TIMES * path.stat().st_size + ONCE_B
    assert not read or name in ("four digits", "short floats")


def repeated_to(size_b, dense):
    """A list of the items of `dense`, about so long."""
    items = dense[1:-1]
    copies = -(-size_b // len(items))
    return b"[%s]" % ",".join([items] * copies)[:size_b].rpartition(",")[0].encode()


@pytest.mark.parametrize("json", [DENSE["empty lists"], DENSE["digits"], DENSE["short strings"]])
def test_a_small_file_is_read_in_a_few_megabytes(tmp_path, json):
    path = tmp_path / "small.json"
    data = file_with(json[: SMALL_B // 2].rpartition(",")[0] + "]", "unknown", canonical=True)
    assert len(data) < SMALL_B
    path.write_bytes(data)
    for read in (read_profile, read_brief):
        peak, kept = peak_b(read, path)
        assert kept
        assert peak < 32 * SMALL_B


def test_profiles_are_far_from_refused(tmp_path):
    """The recorded one, and one with as many of the shortest steps as a profile of this size keeps in itself."""
    profile = build_profile(six_cells(launches=20))
    launches = [launch for result in profile.cells for launch in result.launches]
    for launch in launches:
        launch.step_ns = [21_000 + step % 999 for step in range(INLINE_STEPS_MAX // len(launches))]
    path = tmp_path / "short.json"
    write_profile(path, profile)
    assert path.stat().st_size > SMALL_B
    assert read_profile(path).cells[0].launches[0].step_ns is not None
    assert not too_dense(RECORDED.read_bytes() * 2)


def test_a_journal_of_short_steps_is_far_from_refused(tmp_path):
    path = journal_path(tmp_path / "run.json")
    path.write_bytes(journal())
    kept, _ = Journal.reopen(path)
    for round in range(3):
        kept.add(build_launch(build_cell(), round, step_ns=[21_000 + step % 999 for step in range(20_000)]))
    kept.close()
    assert path.stat().st_size > SMALL_B
    assert len(read_journal(path).launches) == 5

import os
import resource
import signal
from pathlib import Path

import pytest
from profile_builder import build_header, build_launch, build_profile, build_run_plan, six_cells

from kit.engines.assemble import assemble_profile
from kit.engines.continuation import Continuation
from kit.engines.schedule import round_requests
from kit.profile.journal import HEADER_COPIES, Journal, JournalError, journal_path, read_journal
from kit.profile.journal_line import record_of
from kit.profile.launch import Failure


@pytest.fixture
def path(tmp_path):
    return journal_path(tmp_path / "run.json")


@pytest.fixture
def header():
    profile = build_profile(six_cells())
    cells = [result.cell for result in profile.cells]
    return build_header(profile, build_run_plan(cells, launches=2))


def requests_of(header):
    return [r for round in range(2) for r in round_requests(header.plan, round, lambda cell: header.plan.steps)]


def assemble(header, launches):
    return assemble_profile(header, launches, None, interrupted=bool(Continuation(header.plan).rest_of_round(launches)))


def answer(request):
    return build_launch(request.cell, request.round, step_ns=[5_000_000] + [1_000_000] * 120, warmup_steps=20)


def filled(path, header, count):
    journal = Journal.create(path, header)
    launches = [answer(request) for request in requests_of(header)[:count]]
    for launch in launches:
        journal.add(launch)
    journal.close()
    return launches


def test_launches_come_back_as_they_were(path, header):
    launches = filled(path, header, 3)
    assert read_journal(path)[:2] == (header, launches)


def test_a_second_run_into_the_same_file_is_refused(path, header):
    Journal.create(path, header).close()
    with pytest.raises(JournalError, match="--resume"):
        Journal.create(path, header)


def test_a_damaged_line_in_the_middle_costs_only_its_own_launch(path, header):
    launches = filled(path, header, 4)
    lines = path.read_bytes().split(b"\n")
    second = 2 * (HEADER_COPIES + 1)
    lines[second] = lines[second][:-9] + b"#" + lines[second][-8:]
    path.write_bytes(b"\n".join(lines))
    size = path.stat().st_size
    journal, kept = Journal.reopen(path)
    assert kept.launches == [launches[0], *launches[2:]]
    assert kept.damaged == 1
    assert path.stat().st_size == size, "nothing sound may leave the disk"
    journal.add(launches[1])
    journal.close()
    assert read_journal(path).launches == [launches[0], *launches[2:], launches[1]]


def test_only_one_run_writes_a_journal(path, header):
    journal = Journal.create(path, header)
    with pytest.raises(JournalError, match="another kit run is writing it"):
        Journal.reopen(path)
    with pytest.raises(JournalError, match="another kit run is writing it"):
        Journal.create(path, header)
    journal.close()
    with pytest.raises(JournalError, match="an unfinished run is kept there"):
        Journal.create(path, header)
    reopened, _ = Journal.reopen(path)
    with pytest.raises(JournalError, match="another kit run is writing it"):
        Journal.reopen(path)
    reopened.remove()
    with pytest.raises(JournalError, match="no unfinished run"):
        Journal.reopen(path)


def limit_files_to(size_b):
    """Return a function that lifts the limit: what a full disk does, without one (EFBIG for ENOSPC)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_b, before[1]))

    def lift():
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)

    return lift


def test_a_disk_that_fills_up_is_one_line_and_costs_only_the_launch_it_met(path, header):
    launches = filled(path, header, 2)
    journal, _ = Journal.reopen(path)
    lift = limit_files_to(path.stat().st_size + 100)
    try:
        with pytest.raises(JournalError, match=r"File too large; .*--resume --out .*run\.json`") as error:
            journal.add(launches[1])
    finally:
        lift()
        journal.close()
    assert "\n" not in str(error.value)
    reopened, kept = Journal.reopen(path)
    reopened.close()
    assert kept.launches == launches
    assert kept.damaged == 1


def test_a_journal_that_replaced_the_removed_one_is_not_removed_with_it(path, header):
    first = Journal.create(path, header)
    path.unlink()
    launches = filled(path, header, 2)
    first.remove()
    assert read_journal(path).launches == launches
    again, _ = Journal.reopen(path)
    again.remove()
    assert not path.exists()
    first = Journal.create(path, header)
    path.unlink()
    first.remove()


def test_a_journal_that_was_removed_is_noticed_at_the_next_launch(path, header):
    journal = Journal.create(path, header)
    path.unlink()
    with pytest.raises(JournalError, match="has been removed"):
        journal.add(answer(requests_of(header)[0]))
    journal.close()


def test_a_journal_that_is_no_file_is_not_called_missing(path):
    path.mkdir()
    with pytest.raises(JournalError, match="cannot be resumed"):
        read_journal(path)
    with pytest.raises(JournalError, match="cannot be resumed: Is a directory"):
        Journal.reopen(path)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(JournalError, match="not a regular file") as error:
        Journal.reopen(path)
    assert "user" not in str(error.value), "no other user could read it"


@pytest.mark.parametrize("name", [".", "/", "..", "", "x/.."])
def test_a_folder_has_no_journal(name):
    with pytest.raises(JournalError, match="a folder, not a profile") as error:
        journal_path(Path(name))
    assert str(error.value).isprintable()


def test_a_line_that_no_kit_writes_is_refused_and_none_is_written(path, header, monkeypatch):
    launches = filled(path, header, 2)
    monkeypatch.setattr("kit.profile.journal.LINE_MAX_B", 10_000)
    monkeypatch.setattr("kit.profile.journal_line.LINE_MAX_B", 10_000)
    journal, _ = Journal.reopen(path)
    with pytest.raises(JournalError, match="9,000 steps, too many for one launch"):
        journal.add(build_launch(header.plan.cells[0], 1, step_ns=[10**6] * 9000, steps=9000))
    journal.close()
    assert read_journal(path).launches == launches
    with path.open("ab") as file:
        file.truncate(2**40)
    with pytest.raises(JournalError, match="a line has more than 10,000 bytes"):
        read_journal(path)


def test_a_journal_that_grows_while_it_is_read_ends_where_it_ended(path, header, monkeypatch):
    launches = filled(path, header, 2)

    def growing(line):
        with path.open("ab") as file:
            file.write(b"more\n")
        return record_of(line)

    monkeypatch.setattr("kit.profile.journal.record_of", growing)
    assert read_journal(path)[1:3] == (launches, 0)


def test_a_torn_last_line_costs_only_that_launch_and_is_written_over(path, header):
    launches = filled(path, header, 3)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 7)
    journal, kept = Journal.reopen(path)
    assert kept.launches == launches[:2]
    assert kept.damaged == 1
    journal.add(launches[2])
    journal.close()
    assert read_journal(path).launches == launches


def test_a_flipped_bit_is_found(path, header):
    launches = filled(path, header, 2)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    assert read_journal(path).launches == launches[:1]


def test_no_journal_and_a_damaged_header_say_what_to_do(path, header):
    with pytest.raises(JournalError, match="no unfinished run"):
        read_journal(path)
    for content in (b"", b"nonsense", b"nonsense\n"):
        path.write_bytes(content)
        with pytest.raises(JournalError, match="no copy of its header is sound") as error:
            read_journal(path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("bit", range(8))
def test_one_flipped_bit_anywhere_costs_at_most_one_launch_and_never_the_header(path, header, bit):
    launches = filled(path, header, 4)
    whole = path.read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    for at in {*range(0, len(whole), 997), *ends, 0, 7, 8, 9}:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        kept = read_journal(path)
        assert kept.header == header
        assert len(kept.launches) >= len(launches) - 1
        assert all(launch in launches for launch in kept.launches)
        # A copy of the header that is lost costs nothing, and nothing is said of it.
        assert kept.damaged >= len(launches) - len(kept.launches)


def test_a_journal_cut_off_anywhere_keeps_the_launches_before(path, header):
    launches = filled(path, header, 3)
    whole = path.read_bytes()
    for size in range(whole.index(b"\n") + 1, len(whole) + 1, 499):
        path.write_bytes(whole[:size])
        kept = read_journal(path)
        assert kept.launches == launches[: len(kept.launches)]
        assert len(kept.launches) == max(0, whole[:size].count(b"}\n") - HEADER_COPIES)


def test_a_journal_that_cannot_be_begun_leaves_nothing(path, header):
    lift = limit_files_to(100)
    try:
        with pytest.raises(JournalError, match="cannot be written: File too large; choose another --out"):
            Journal.create(path, header)
    finally:
        lift()
    assert not list(path.parent.iterdir())


def test_an_unfinished_run_gives_a_profile_that_says_so(header):
    launches = [answer(request) for request in requests_of(header)[:1]]
    profile = assemble(header, launches)
    assert profile.interrupted
    assert {cell.status for cell in profile.cells} == {"incomplete"}
    assert len(profile.cells) == len({request.cell.key for request in requests_of(header)})


def test_a_finished_run_with_a_failed_cell_was_not_interrupted(header):
    launches = [answer(request) for request in requests_of(header)]
    broken = requests_of(header)[0].cell.key
    kept = [launch for launch in launches if launch.cell_key != broken or launch.round == 0]
    kept[0].failure = Failure(phase="build", reason="planted")
    assert kept[0].cell_key == broken
    assert len(kept) < len(launches)
    assert not assemble(header, kept).interrupted
    assert assemble(header, kept[:-1]).interrupted


def test_sensors_are_said_once_unless_a_launch_saw_others(header):
    seen = header.sensors
    launches = [answer(request) for request in requests_of(header)[:2]]
    launches[0].sensors, launches[1].sensors = seen, seen[:1]
    profile = assemble(header, launches)
    kept = {launch.cell_key: launch.sensors for cell in profile.cells for launch in cell.launches}
    assert profile.sensors == seen
    assert kept == {launches[0].cell_key: [], launches[1].cell_key: seen[:1]}

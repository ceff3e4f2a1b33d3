import pytest
from profile_builder import build_identity, build_launch, build_profile, six_cells

from kit.engines.assemble import assemble_profile
from kit.engines.schedule import schedule
from kit.profile.journal import Journal, JournalError, JournalHeader, journal_path, read_journal


@pytest.fixture
def path(tmp_path):
    return journal_path(tmp_path / "run.json")


@pytest.fixture
def header():
    profile = build_profile(six_cells())
    cells = [result.cell for result in profile.cells]
    return JournalHeader(
        id=profile.id,
        created=profile.created,
        kit=profile.kit,
        identity=build_identity(),
        state_before=profile.state.before,
        sensors=profile.sensors,
        suite=profile.suite,
        requests=schedule(cells, launches=2, plan=profile.suite.plan, data="mnist", seed=0, cpus=[0, 1]),
    )


def answer(request):
    return build_launch(request.cell, request.round, step_ns=[5_000_000] + [1_000_000] * 120, warmup_steps=20)


def filled(path, header, count):
    journal = Journal.create(path, header)
    launches = [answer(request) for request in header.requests[:count]]
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


def test_a_torn_last_line_costs_only_that_launch_and_is_written_over(path, header):
    launches = filled(path, header, 3)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 7)
    journal, _, kept = Journal.reopen(path)
    assert kept == launches[:2]
    journal.add(launches[2])
    journal.close()
    assert read_journal(path)[1] == launches


def test_a_flipped_bit_is_found(path, header):
    launches = filled(path, header, 2)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    assert read_journal(path)[1] == launches[:1]


def test_no_journal_and_a_damaged_header_say_what_to_do(path, header):
    with pytest.raises(JournalError, match="no unfinished run"):
        read_journal(path)
    path.write_bytes(b"nonsense\n")
    with pytest.raises(JournalError, match="remove it to begin anew"):
        read_journal(path)


def test_an_unfinished_run_gives_a_profile_that_says_so(header):
    launches = [answer(request) for request in header.requests[:1]]
    profile = assemble_profile(header, launches, None)
    assert profile.interrupted
    assert {cell.status for cell in profile.cells} == {"incomplete"}
    assert len(profile.cells) == len({request.cell.key for request in header.requests})

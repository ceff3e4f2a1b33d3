"""A run and its journal, with a planted program for a worker."""

import os
import shutil
import signal

import msgspec
import pytest

from kit.engines.assemble import assemble_profile
from kit.engines.interrupts import interrupts_held_back
from kit.engines.prepare import prepare
from kit.engines.resumable import COUNTERS, WHY_NO_COUNTERS, NotResumableError, check_resumable
from kit.engines.run import Run, to_ns, usable_cpus
from kit.errors import KitError
from kit.fingerprint.identity import hashed
from kit.profile.journal import Journal, JournalError, journal_path, read_journal
from kit.profile.store import read_profile, write_profile
from kit.suites.suite import Measure, load_suite
from kit.workloads.data.dataset import Resolved
from kit.workloads.data.errors import DataError


class Watcher:
    def __init__(self, at_the_end=lambda: None):
        self.seen, self.at_the_end = [], at_the_end

    def begins(self, request):
        pass

    def ended(self, launch, duration_s, expected):
        self.seen.append(launch.round)
        self.at_the_end()


@pytest.fixture
def header(plant, torch_cell):
    plant("")
    measure = Measure(warmup_s=1, warmup_steps_min=3, steady_s=1, steps_min=20, steps_max=5000, launches=3)
    return prepare(
        msgspec.structs.replace(load_suite("quick"), measure=measure),
        [torch_cell],
        skipped=[],
        data=Resolved("synthetic", None),
        seed=0,
        cpus=usable_cpus(),
        clock="monotonic_raw",
    )


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "run.json"


def test_a_budget_that_ends_the_run_leaves_it_to_be_resumed(header, path):
    first = Watcher()
    profile = Run.begin(path, header).conduct(first, budget_s=1e-9)
    assert first.seen == [0]
    assert profile.interrupted
    assert read_profile(path).interrupted
    assert journal_path(path).exists()

    second, resumed = Watcher(), Run.resume(path)
    assert sum(resumed.expected.values()) == 2
    profile = resumed.conduct(second, None)
    assert second.seen == [1, 2]
    assert not profile.interrupted
    assert not journal_path(path).exists()
    # What the counters grew by while nothing ran is not the run's.
    for counter in COUNTERS:
        assert getattr(profile.state.before, counter) is None
        assert profile.state.before.reasons[counter] == WHY_NO_COUNTERS


def test_a_run_whose_journal_is_gone_goes_on_from_its_interrupted_profile(header, path, monkeypatch):
    # The raw steps of this profile are in its sidecar.
    monkeypatch.setattr("kit.profile.sidecar.INLINE_STEPS_MAX", 2)
    Run.begin(path, header).conduct(Watcher(), budget_s=1e-9)
    kept = read_journal(journal_path(path)).launches
    journal_path(path).unlink()
    resumed = Run.resume(path)
    plan = msgspec.structs.replace(header.plan, steady_s_min=resumed.header.plan.steady_s_min)
    assert resumed.header == msgspec.structs.replace(
        header, plan=plan, state_before=resumed.header.state_before, sensors=resumed.header.sensors
    )
    assert [launch.step_ns for launch in resumed.finished] == [launch.step_ns for launch in kept]
    second = Watcher()
    assert not resumed.conduct(second, None).interrupted
    assert second.seen == [1, 2]


@pytest.mark.parametrize("whose", ["its own", "another run's"])
def test_a_launch_whose_line_is_damaged_comes_back_from_the_interrupted_profile(header, path, whose):
    Run.begin(path, header).conduct(Watcher(), budget_s=1e-9)
    (launch,) = read_journal(journal_path(path)).launches
    data = journal_path(path).read_bytes()
    journal_path(path).write_bytes(data[:-99] + b"#" + data[-98:])
    if whose == "another run's":
        profile = read_profile(path)
        profile.id = "another"
        write_profile(path, profile)
    resumed = Run.resume(path)
    resumed.journal.close()
    back = [launch] if whose == "its own" else []
    assert [one.step_ns for one in resumed.finished] == [one.step_ns for one in back]
    assert resumed.damaged == 1 - len(back)
    assert len(read_journal(journal_path(path)).launches) == len(back), "on disk before anything else runs"


def test_a_resume_that_is_refused_leaves_no_journal_that_was_not_there(header, path, monkeypatch):
    Run.begin(path, header).conduct(Watcher(), budget_s=1e-9)
    journal_path(path).unlink()
    monkeypatch.setattr("kit.engines.resumable.__version__", "0.0.1")
    with pytest.raises(NotResumableError, match=r"the kit was .* and is 0\.0\.1 now"):
        Run.resume(path)
    assert not journal_path(path).exists()


def test_a_resume_without_its_data_is_refused_and_can_be_tried_again(header, path, tmp_path, monkeypatch):
    """Every cell would fail, and a cell that has failed gets no more launches."""
    plan = msgspec.structs.replace(header.plan, data="mnist")
    Run.begin(path, msgspec.structs.replace(header, plan=plan)).conduct(Watcher(), budget_s=1e-9)
    before = journal_path(path).read_bytes()
    monkeypatch.setenv("KIT_DATA", str(tmp_path / "mistyped"))
    monkeypatch.setattr("kit.workloads.data.mnist.MIRRORS", ())
    with pytest.raises(DataError, match="mistyped") as error:
        Run.resume(path)
    assert "\n" not in str(error.value)
    assert journal_path(path).read_bytes() == before
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_when_all_is_measured_ends_nothing(header, path, monkeypatch, number):
    def interrupted(*arguments, **fields):
        os.kill(os.getpid(), number)
        return assemble_profile(*arguments, **fields)

    monkeypatch.setattr("kit.engines.run.assemble_profile", interrupted)
    running, profile = Run.begin(path, header), None
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        profile = running.conduct(Watcher(), None)
    assert not profile.interrupted
    assert read_profile(path).id == profile.id
    assert not journal_path(path).exists()


def test_a_second_interrupt_waits_for_the_profile_of_the_first(header, path, monkeypatch):
    def interrupted(*arguments, **fields):
        os.kill(os.getpid(), signal.SIGINT)
        return assemble_profile(*arguments, **fields)

    monkeypatch.setattr("kit.engines.run.assemble_profile", interrupted)
    running = Run.begin(path, header)
    with pytest.raises(KeyboardInterrupt):
        running.conduct(Watcher(lambda: signal.raise_signal(signal.SIGINT)), None)
    assert read_profile(path).interrupted
    assert journal_path(path).exists()


def test_a_complete_profile_is_not_run_again(header, path):
    Run.begin(path, header).conduct(Watcher(), None)
    with pytest.raises(JournalError, match="no unfinished run"):
        Run.resume(path)
    assert not journal_path(path).exists()


def test_an_interrupted_profile_that_is_damaged_is_one_line(header, path):
    Run.begin(path, header).conduct(Watcher(), budget_s=1e-9)
    journal_path(path).unlink()
    path.write_bytes(path.read_bytes().replace(b'"seed":0', b'"seed":1'))
    with pytest.raises(KitError, match="edited or damaged") as error:
        Run.resume(path)
    assert "\n" not in str(error.value)


def test_a_phase_limit_that_is_no_number_begins_nothing(header, path, monkeypatch):
    monkeypatch.setenv("KIT_PHASE_LIMIT_S", "soon")
    with pytest.raises(KitError, match="KIT_PHASE_LIMIT_S is 'soon'"):
        Run.begin(path, header)
    assert not journal_path(path).exists()


def test_a_folder_that_is_removed_is_one_line(header, path):
    running = Run.begin(path, header)
    with pytest.raises(KitError, match="removed while the run wrote it"):
        running.conduct(Watcher(lambda: shutil.rmtree(path.parent, ignore_errors=True)), None)


def test_a_profile_that_cannot_be_written_leaves_the_journal(header, path):
    running = Run.begin(path, header)
    with pytest.raises(KitError, match=r"--resume --out .*run\.json"):
        # A folder of that name, not empty, cannot be replaced by a file: root may write anywhere.
        running.conduct(Watcher(lambda: (path / "x").mkdir(parents=True, exist_ok=True)), None)
    running.journal.close()
    shutil.rmtree(path)
    resumed = Run.resume(path)
    assert sum(resumed.expected.values()) == 0
    assert not resumed.conduct(Watcher(), None).interrupted
    assert len(read_profile(path).cells[0].launches) == 3


def test_a_run_goes_on_only_where_it_began(header):
    cpus = usable_cpus()
    check_resumable(header, cpus)
    with pytest.raises(NotResumableError, match=r"usable CPUs was .* is \[0, 99\] now"):
        check_resumable(header, [0, 99])
    with pytest.raises(NotResumableError, match=r"the kit was 0\.0\.1"):
        check_resumable(msgspec.structs.replace(header, kit="0.0.1"), cpus)

    software = msgspec.structs.replace(header.identity.software, kernel="1.0")
    elsewhere = hashed(msgspec.structs.replace(header.identity, software=software))
    with pytest.raises(NotResumableError, match=r"software\.kernel was 1\.0 when it began") as error:
        check_resumable(msgspec.structs.replace(header, identity=elsewhere), cpus)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("engine", "refused"), [(None, True), ("docker", False)])
def test_only_a_container_may_change_its_name(header, monkeypatch, engine, refused):
    contained = msgspec.structs.replace(header.identity.container, engine=engine)
    here = msgspec.structs.replace(header.identity, container=contained)
    monkeypatch.setattr("kit.engines.resumable.identity", lambda _pythons: hashed(here))
    before = hashed(msgspec.structs.replace(here, hostname_sha256="another"))
    begun = msgspec.structs.replace(header, identity=before)
    if refused:
        with pytest.raises(NotResumableError, match="hostname"):
            check_resumable(begun, usable_cpus())
    else:
        check_resumable(begun, usable_cpus())


def test_a_refused_resume_lets_the_journal_go(header, path):
    Journal.create(journal_path(path), msgspec.structs.replace(header, kit="0.0.1")).close()
    for _ in range(2):
        with pytest.raises(NotResumableError):
            Run.resume(path)


@pytest.mark.parametrize(("seconds", "expected_ns"), [(0.25, 250_000_000), (3, 3 * 10**9), (1e300, int(1e300) * 10**9)])
def test_a_budget_of_any_size_is_nanoseconds(seconds, expected_ns):
    assert to_ns(seconds) == expected_ns


def test_another_runs_profile_is_not_overwritten(header, path):
    """Its journal removed, a second run may begin, and complete, in the place of the first."""

    def second_run():
        if journal_path(path).exists():
            journal_path(path).unlink()
            other = msgspec.structs.replace(header, id="another run")
            Run.begin(path, other).conduct(Watcher(), None)

    first = Run.begin(path, header)
    with pytest.raises(JournalError, match="has been removed"):
        first.conduct(Watcher(second_run), None)
    assert read_profile(path).id == "another run"
    assert not read_profile(path).interrupted
    assert first.path == path.with_name(f"run-{header.id[:8]}.json")
    kept = read_profile(first.path)
    assert kept.interrupted
    assert [launch.round for cell in kept.cells for launch in cell.launches] == [0, 1]

"""A self-test and its file, with a planted program for a worker."""

import signal
from collections import Counter

import msgspec
import pytest

from kit.engines.selftest import SelfTest, SelfTestError, judge_kept
from kit.engines.selftest_begin import begin
from kit.engines.selftest_plan import KINDS, SelfTestPlan
from kit.profile.host_band import keep_band
from kit.profile.journal import Journal, read_journal
from kit.profile.schema import HostBand

# The launch that was asked for, with steps at a level of its own: a machine that is as even as can be.
ENDING = """
launch.cell_key = {key!r}
launch.planted_slowdown_pct = asked["planted_slowdown_pct"]
step_ns = round(2e6 * (1 + (hash((asked["round"], 7)) % 100) / 1e5))
launch.step_ns = [step_ns + i % 3 for i in range(40)] + [
    round(step_ns * (1 + launch.planted_slowdown_pct / 100)) + i % 3 for i in range(120)
]
launch.warmup_steps, launch.steps = 40, 160
launch.started = "2026-01-01T00:00:%02d+00:00" % (asked["round"] % 60)
(folder / "launch.json").write_bytes(msgspec.json.encode(launch))
"""
KEY = "mlp/torch/cpu/infer/b16/float32/eager/device/x1"


class Watcher:
    def __init__(self, at_the_end=lambda ended: None):
        self.ended_count, self.expected, self.at_the_end = 0, None, at_the_end

    def begins(self, request):
        pass

    def ended(self, launch, duration_s, expected):
        self.ended_count += 1
        self.expected = expected
        self.at_the_end(self.ended_count)


@pytest.fixture
def begun(plant, tmp_path, monkeypatch):
    plant(ENDING.format(key=KEY))
    monkeypatch.setenv("KIT_STATE", str(tmp_path / "state"))

    def start(rounds=3, name="kept.launches"):
        running, _ = begin(
            workload="mlp",
            backend="torch",
            task="infer",
            batch=16,
            rounds=rounds,
            data="synthetic",
            seed=0,
            out=str(tmp_path / name),
        )
        return running

    return start


def test_every_round_has_each_plant_once_and_two_that_are_not_slowed(begun):
    running = begun()
    requests = SelfTestPlan(running.header.plan).still_to_do([])
    for round in range(3):
        own = [request.planted_slowdown_pct for request in requests if request.round == round]
        assert sorted(own) == sorted(KINDS)
    # Forwards, then backwards.
    order = [request.planted_slowdown_pct for request in requests]
    assert order[5:10] == order[:5][::-1]
    running.file.close()


def test_launches_are_kept_and_judged_again_alike(begun):
    running, watcher = begun(), Watcher()
    running.conduct(watcher)
    assert watcher.ended_count == 15
    assert watcher.expected == {KEY: 0}
    answer = running.answer()
    assert not running.failed
    for count in answer.launches:
        assert count.finished == count.steady == (6 if count.planted_slowdown_pct == 0 else 3)
        if count.planted_slowdown_pct:
            assert count.measured.value == pytest.approx(1 + count.planted_slowdown_pct / 100, abs=1e-4)
    assert answer.rules[0].real["+3 %"].slower == answer.rules[0].real["+3 %"].comparisons
    assert judge_kept(running.path) == (answer, 0)


def test_an_interrupted_self_test_goes_on_with_what_is_missing(begun):
    def interrupt(ended):
        if ended == 7:
            raise KeyboardInterrupt

    running = begun()
    with pytest.raises(KeyboardInterrupt):
        running.conduct(Watcher(interrupt))
    assert len(read_journal(running.path).launches) == 7
    # A line that cannot be read back costs its launch, and that one is run again.
    lines = running.path.read_bytes().split(b"\n")
    place = next(place for place, line in enumerate(lines) if b'"step_ns":[' in line)
    lines[place] = lines[place][:-5]
    running.path.write_bytes(b"\n".join(lines))

    resumed = SelfTest.resume(running.path)
    assert resumed.damaged == 1
    assert resumed.expected == {KEY: 9}
    resumed.conduct(Watcher())
    kept = Counter((launch.round, launch.planted_slowdown_pct) for launch in resumed.finished)
    assert kept == Counter((round, kind) for round in range(3) for kind in KINDS)


def test_the_interrupt_between_file_and_memory_is_held_back(begun, monkeypatch):
    """A launch that is on disk is also in the answer, whenever SIGINT comes."""
    add = Journal.add

    def interrupted_add(journal, launch):
        signal.raise_signal(signal.SIGINT)
        add(journal, launch)

    monkeypatch.setattr(Journal, "add", interrupted_add)
    running = begun()
    with pytest.raises(KeyboardInterrupt):
        running.conduct(Watcher())
    assert len(running.finished) == len(read_journal(running.path).launches) == 1


def test_a_file_that_is_removed_is_one_line(begun):
    running = begun()
    with pytest.raises(SelfTestError, match=r"has been removed .* begin anew") as error:
        running.conduct(Watcher(lambda ended: running.path.unlink(missing_ok=True)))
    assert "\n" not in str(error.value)


def test_a_cell_that_fails_from_the_start_is_given_up(begun, plant, tmp_path):
    running = begun(name="failing.launches")
    plant("os.kill(os.getpid(), signal.SIGKILL)")
    watcher = Watcher()
    running.conduct(watcher)
    assert watcher.ended_count == 1
    assert watcher.expected == {KEY: 0}
    assert running.failed
    answer = running.answer()
    assert answer.failed == 1
    assert answer.host_band is None


def test_files_that_are_none_of_ours_are_refused(begun, tmp_path, header_of_a_run):
    with pytest.raises(SelfTestError, match="no self-test is kept there"):
        judge_kept(tmp_path / "nothing")
    with pytest.raises(SelfTestError, match="unfinished run of a suite"):
        judge_kept(header_of_a_run)
    with pytest.raises(SelfTestError, match="unfinished run of a suite"):
        SelfTest.resume(header_of_a_run)
    running = begun()
    running.file.close()
    with pytest.raises(SelfTestError, match="is there already"):
        begun()
    with pytest.raises(SelfTestError, match=r"\.journal are those of unfinished runs"):
        begun(name="run.json.journal")
    with pytest.raises(SelfTestError, match="no such folder"):
        begun(name="missing/kept.launches")
    with pytest.raises(SelfTestError, match="none of its launches had ended"):
        judge_kept(running.path)


@pytest.fixture
def header_of_a_run(begun, tmp_path):
    running = begun(name="other.launches")
    running.file.close()
    suite = msgspec.structs.replace(running.header.suite, name="quick")
    Journal.create(tmp_path / "run.json.journal", msgspec.structs.replace(running.header, suite=suite)).close()
    return tmp_path / "run.json.journal"


def test_a_known_band_goes_into_the_next_run(begun):
    first = begun(name="first.launches")
    first.file.close()
    assert first.header.host_band is None
    band = HostBand(
        band=0.02,
        taken="2026-01-01T00:00:00Z",
        cell_key=KEY,
        launches=10,
        hardware_sha256=first.header.identity.hardware_sha256,
    )
    keep_band(band)
    second = begun(name="second.launches")
    second.file.close()
    assert second.header.host_band == band

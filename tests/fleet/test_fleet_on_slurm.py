"""`kit fleet` on two real Slurm nodes: a slow one, one that is drained, and what is left is resumed."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from fleet_runs import command, fleet, start_lost_nodes, state_of, suite, waited

from kit.compare.fleet_nodes import reduce_node
from kit.profile.store import read_profile
from kit.stats.estimate import ROUNDS_FOR_VERDICT

CPU_GROUP = Path("/sys/fs/cgroup/cpu")
# Less than a busy neighbour leaves of a CPU.
QUARTER = 25_000


@pytest.fixture
def quarter_of_a_cpu():
    """A control group with a quarter of a CPU, for whoever writes its process there."""
    v1 = CPU_GROUP.is_dir()
    group = (CPU_GROUP if v1 else CPU_GROUP.parent) / "kit-fleet-test"
    try:
        group.mkdir(exist_ok=True)
        if v1:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text(str(QUARTER))
        else:
            (group / "cpu.max").write_text(f"{QUARTER} 100000")
    except OSError as error:
        pytest.skip(f"no control group with a quota can be made: {error}")
    yield group
    group.rmdir()


@pytest.fixture
def drained(slurm):
    """n2, drained; given back at the end."""
    change = ["scontrol", "update", "nodename=n2"]
    subprocess.run([*change, "state=drain", "reason=fan"], check=True)
    yield lambda: subprocess.run([*change, "state=resume"], check=True)
    subprocess.run([*change, "state=resume"], check=False, capture_output=True)


@pytest.mark.slow
def test_a_node_with_a_quarter_of_its_cpu_is_slow_and_the_quota_is_the_reason(slurm, place, quarter_of_a_cpu):
    """Each node has a CPU of its own, as two machines have."""
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("two nodes that run at once need two CPUs")
    started = command(place, f"[ $SLURMD_NODENAME = n1 ] || echo $$ > {quarter_of_a_cpu}/cgroup.procs")
    done = fleet(place, *suite("--partition", "all", "--out", "out"), *started, "--json")
    assert "2 of 2 nodes measured" in done.stderr
    profiles = [read_profile(place / "out" / name) for name in ("n1.json", "n2.json")]
    assert [profile.label for profile in profiles] == ["n1", "n2"]
    judged = json.loads(done.stdout)
    verdicts = {node["name"]: node["versus"]["verdict"] for node in judged["nodes"]}
    if done.returncode == 0:
        # Beside other programs a cycle does not count, and a node with one round of each profile is not called slow.
        assert verdicts in ({"n1": "unresolved", "n2": "unresolved"}, {"n1": "faster", "n2": "slower"})
        profiles = [read_profile(path) for path in (place / "out").glob("n?*.json")]
        counted = [len(rounds) for profile in profiles for rounds in reduce_node("", profile).rounds.values()]
        assert min(counted) < ROUNDS_FOR_VERDICT
        return
    assert (done.returncode, verdicts) == (1, {"n1": "faster", "n2": "slower"}), done.stderr
    slow = judged["nodes"][0]
    assert sorted(slow["profiles"]) == ["n2", "n2+again"] and slow["said_again"], "it was measured once more"
    assert read_profile(place / "out/n2+again.json").label == "n2"
    assert "throttled" in [finding["code"] for finding in slow["findings"]]
    differing = {fact["kind"]: fact["values"][1][0] for fact in slow["differs"]}
    assert differing["container.cpu_limit"] == 0.25


@pytest.mark.slow
def test_a_drained_node_is_named_the_other_measured_and_resume_measures_the_rest(drained, place):
    words = suite("--out", "out")
    done = fleet(place, *words)
    assert done.returncode == 3, done.stderr
    assert "n2" in done.stdout and "drained" in done.stdout and "fan" in done.stdout
    first = (place / "out/n1.json").read_bytes()
    again = fleet(place, *words)
    assert again.returncode == 2 and "--resume" in again.stderr
    drained()
    # For a moment after that Slurm takes it for one that does not answer (idle*), and blocks jobs.
    assert waited(lambda: state_of("n2") == "idle")
    done = fleet(place, *words, "--resume", "--retries", "1", "--format", "jsonl")
    assert done.returncode in (0, 1), done.stdout
    assert {json.loads(line)["node"] for line in done.stdout.splitlines()} == {"n1", "n2"}
    assert (place / "out/n1.json").read_bytes() == first


@pytest.mark.slow  # until Slurm calls the node down
def test_a_node_that_is_lost_is_named_and_resumed(slurm, place):
    (place / "waits").touch()
    started = command(place, f"[ $SLURMD_NODENAME = n2 ] && [ -e {place}/waits ] && touch {place}/begun && sleep 300")
    words = suite("--out", "out")
    lose = threading.Thread(target=lose_n2, args=(place / "begun",))
    lose.start()
    try:
        done = fleet(place, *words, *started)
    finally:
        lose.join()
        start_lost_nodes()
    assert done.returncode == 3, done.stderr
    assert "down" in done.stdout and (place / "out/n1.json").exists()
    (place / "waits").unlink()
    assert waited(lambda: state_of("n2") == "idle")
    assert fleet(place, *words, *started, "--resume").returncode in (0, 1)
    assert (place / "out/n2.json").exists()


def lose_n2(begun):
    """Kill the daemon of n2 once its job has begun."""
    assert waited(begun.exists)
    os.kill(int(Path("/run/slurmd.n2.pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize(
    ("words", "line"),
    [(("--partition", "gpu"), "choose from all"), (("--nodes", "n[1-3]"), "n3"), (("--out", "/proc/x"), "/proc/x")],
    ids=str,
)
def test_what_slurm_has_not_is_one_line(slurm, place, words, line):
    done = fleet(place, *suite(), *words)
    assert done.returncode == 2
    assert line in done.stderr and done.stderr.count("\n") <= 2

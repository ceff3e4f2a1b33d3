"""Which cause is named of several: each is planted in counters and found; what has no cause has no finding."""

import numpy as np
import pytest
from profile_builder import group, member, profile

from kit.audit.audit import findings_of as audit
from kit.compare.notes import read_run
from kit.profile.cell import Variant
from kit.profile.fields import reason

TCMALLOC = Variant(name="tcmalloc", env={"LD_PRELOAD": "libtcmalloc_minimal.so.4"})
# Per step of 20 ms, two CPUs in use.
CALM = {
    "process.cpu_ns": 36e6,
    "process.user_ns": 35e6,
    "process.system_ns": 1e6,
    "process.minor_faults": 1,
    "machine.busy_ns": 36.5e6,
    "machine.steal_ns": 0,
    "cgroup.throttled_ns": 0,
}


def planted(backend="torch", /, changes=(), **more):
    return member(backend, more.pop("step_ms", 20.0), "cnn", counters=CALM | dict(changes), **more)


def found(*members, **more):
    return audit(read_run("", profile(group("cnn train", *members), **more)))


def codes(*members, **more):
    return [(finding.code, finding.cell_key.split("/")[1]) for finding in found(*members, **more)]


def test_a_calm_group_and_a_profile_without_counters_have_no_finding():
    assert codes(planted("tensorflow"), planted("torch"), planted("jax")) == []
    built = profile()
    for result in built.cells:
        for launch in result.launches:
            launch.blocks.counters = {}
            launch.threads = launch.recompiles = None
    assert audit(read_run("", built)) == []


FAULTS = {"process.user_ns": 18e6, "process.system_ns": 18e6, "process.minor_faults": 8000}


def test_page_faults_have_the_allocator_as_remedy_unless_the_cell_has_another_one():
    (finding,) = found(planted("tensorflow"), planted("jax", FAULTS))
    assert finding.remedy.values["variant"].endswith("libtcmalloc_minimal.so.4")
    (finding,) = found(planted("jax", FAULTS, variant="tcmalloc"), planted("jax"), variants=[TCMALLOC])
    assert (finding.code, finding.remedy) == ("page_faults", None)
    # A host on which faults cost nothing, and too few ticks to know.
    for user_ns, system_ns, faults in ((34e6, 2e6, 8000), (0.1e6, 0.1e6, 1)):
        changes = {"process.user_ns": user_ns, "process.system_ns": system_ns, "process.minor_faults": faults}
        assert codes(planted("jax", changes), rounds=3) == []


def test_a_bimodal_cell_is_found_and_its_neighbors_are_not():
    rounds = {"slow": 1.9, "slow_rounds": (1, 4, 6)}
    others = planted("tensorflow"), planted("jax")
    for cycles in (None, range(5)):
        assert codes(*others, planted("torch", **rounds, slow_cycles=cycles)) == [("bimodal", "torch")]
    (finding,) = found(planted("torch", **rounds))
    assert finding.code == "bimodal"
    assert finding.values["slow_step_ns"] / finding.values["fast_step_ns"] == pytest.approx(1.9, rel=0.3)
    assert finding.values["slow_share_pct"] == pytest.approx(100 * 3 / 8)


def test_slow_blocks_in_which_others_had_the_cpus_are_contention_and_no_mode():
    def contended_in_slow_rounds(launch):
        if launch.round in (1, 4, 6):
            shares(busy=1.0, cell=0.5)(launch)

    torch = planted("torch", slow=1.9, slow_rounds=(1, 4, 6), change=contended_in_slow_rounds)
    assert codes(planted("tensorflow"), torch, planted("jax")) == [("cycles_left_out", "torch")]


def test_page_faults_that_part_the_modes_are_said_in_the_same_finding():
    def in_slow_rounds(launch):
        slow, steps = launch.round in (1, 4, 6), launch.blocks.steps
        launch.blocks.counters["process.minor_faults"] = [(9968 if slow else 0) * (count + 1) for count in steps]

    split = {"process.user_ns": 24e6, "process.system_ns": 12e6}
    torch = planted("torch", split, slow=1.9, slow_rounds=(1, 4, 6), change=in_slow_rounds)
    (finding,) = found(planted("tensorflow"), torch)
    assert finding.code == "bimodal_page_faults"
    assert (finding.values["slow_faults_per_step"], finding.values["fast_faults_per_step"]) == (pytest.approx(9968), 0)
    assert finding.remedy.code == "try_variant"


def test_drift_of_the_machine_is_no_mode_and_no_stall():
    for seed in range(5):
        assert codes(planted("tensorflow"), planted("torch"), drift=0.3, seed=seed) == []


def shares(busy, cell, steal=0.0, blocks=slice(None)):
    """Counters as shares of the two CPUs' time in the chosen blocks; calm in the others."""

    def change(launch):
        for name, share in (("machine.busy_ns", busy), ("process.cpu_ns", cell), ("machine.steal_ns", steal)):
            values = np.array(launch.blocks.counters[name])
            values[blocks] = np.rint(2 * share * np.array(launch.blocks.span_ns))[blocks]
            launch.blocks.counters[name] = values.tolist()

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (shares(busy=1.0, cell=0.55), ["contention"]),
        (shares(busy=0.75, cell=0.75, steal=0.24), ["contention"]),
        (shares(busy=1.0, cell=0.97), []),
        (shares(busy=0.85, cell=0.6), []),  # a CPU was idle: nobody waited
        (shares(busy=1.0, cell=0.5, blocks=slice(0, 6)), ["cycles_left_out"]),
        (shares(busy=1.0, cell=0.5, blocks=slice(0, 1)), []),
    ],
)
def test_contention_is_time_of_others_while_no_cpu_was_idle(change, expected):
    assert [finding.code for finding in found(planted("torch", change=change))] == expected


def test_contention_says_whose_time_it_was():
    (finding,) = found(planted("torch", change=shares(busy=0.8, cell=0.55, steal=0.2)))
    assert (finding.values["contention_pct"], finding.values["steal_pct"]) == pytest.approx((45, 20), abs=1)


def test_throttling_comes_before_what_it_explains():
    throttled = {"cgroup.throttled_ns": 30e6, "process.cpu_ns": 10e6}
    assert codes(planted("torch", throttled, stall=0.3)) == [("throttled", "torch")]


def test_failed_launches_and_unread_counters_are_left_out():
    def unread(launch):
        for values in launch.blocks.counters.values():
            values[::2] = [None] * 6

    built = planted("jax", FAULTS, change=unread, failed_rounds={1: reason("killed", signal=9)})
    (finding,) = found(built, planted("torch", failed_rounds={n: reason("killed", signal=9) for n in range(8)}))
    assert finding.values["faults_per_step"] == pytest.approx(8000, rel=1e-3)


SLOWED = reason("device_throttled", share_pct=80.0, causes="software power cap")


def test_a_throttled_device_names_its_cap_where_it_has_one():
    def noted(*notes):
        return found(planted("jax", device="gpu", launch={"notes": list(notes)}))

    capped = reason("power_capped", cap_w=230.0, default_w=700.0)
    (finding,) = noted(SLOWED, capped)
    assert (finding.values["share_pct"], finding.remedy.code) == (80.0, "raise_power_cap")
    assert [finding.remedy.code for finding in noted(SLOWED)] == ["cool_board"]
    nonsense = [reason("device_throttled", share_pct="much"), reason("power_capped", gpu=1), reason("device_shared")]
    assert {finding.code for finding in noted(*nonsense)} == {"device_throttled", "device_shared"}
    # A cap that slowed nothing is recorded, and is no finding.
    assert noted(capped) == []

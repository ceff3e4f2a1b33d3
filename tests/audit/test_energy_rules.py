"""Rules on joules: each planted in the energy entries of launches, and quiet without it."""

import profile_builder as b
import pytest
from asking import asked, outcomes

from kit.profile.fields import reason
from kit.profile.instruments import Energy

S = 1_000_000_000
SOUND = {
    "sensor": "rapl.package-0", "joules_j": 950.0, "window_ns": 10 * S, "samples": 10_000, "block_ns": 11 * S,
    "tier": "device_counter", "updates": 400, "error_fraction": 0.01, "begin_ns": 5 * S, "steps": 500,
    "idle_before_w": 20.0, "idle_after_w": 20.5,
}  # fmt: skip


def entry(**changes):
    return Energy(**(SOUND | changes))


def refused(code, **values):
    return entry(joules_j=None, window_ns=None, reason=reason(code, **values))


def findings(rule, *entries, device="cpu", rounds=3, **launch):
    """What one rule finds in a member whose every launch has these entries, and what it lacked."""
    exact = {"sd": 0.0, "noise": 0.0, "device": device, "launch": {"energy": list(entries), **launch}}
    planted, other = b.member("torch", **exact), b.member("jax", **exact)
    built = b.profile(b.group("mlp train", planted, other), rounds=rounds, cycles=3, drift=0.0)
    reported, missing = outcomes(rule, built)
    return [finding.severity for finding in reported], missing


BOARD = {"sensor": "nvml.0.energy", "device_id": "0000:01:00.0"}
CLOCKS_UP = BOARD | {"idle_before_w": 72.0, "idle_after_w": 106.0}
POWER = BOARD | {"sensor": "nvml.0.power", "tier": "integrated_power"}
PSYS = {"sensor": "rapl.psys", "joules_j": 1500.0}
NODE = {"sensor": "cray.node.energy", "joules_j": 1500.0}
CALM = entry(**CLOCKS_UP, idle_processes=0)
GAP = refused("energy_gap", gap_s=3.0, most_s=1.0)


def warming(c_per_s):
    return entry(**BOARD, warming_c_per_s=c_per_s)


@pytest.mark.parametrize(
    ("rule", "severity", "device", "planted", "sound"),
    [
        ("few_updates", "warning", "gpu", [entry(**BOARD, updates=62)], [entry(**BOARD)]),
        ("sensor_broken", "warning", "cpu", [refused("constant_power", readings=100, power_w=90.0)], [entry()]),
        ("counter_reset", "warning", "cpu", [refused("counter_reset")], [entry()]),
        # Bursts of 2 ms a step, and a long block of 11 s whose steps take 2.1 and 2.02 ms.
        ("sustained_differs", "warning", "gpu", [entry(**BOARD, steps=5238)], [entry(**BOARD, steps=5446)]),
        (
            "counter_against_integral", "warning", "gpu",
            [entry(**BOARD), entry(**POWER, joules_j=1030.0)], [entry(**BOARD), entry(**POWER, joules_j=960.0)],
        ),
        (
            "part_larger_than_whole", "bad", "cpu",
            [entry(), entry(**PSYS | {"joules_j": 800.0})], [entry(), entry(**PSYS)],
        ),
        (
            "part_larger_than_whole", "bad", "cpu",
            [entry(), entry(**NODE | {"joules_j": 800.0})],
            # The same processors by RAPL, together and one by one.
            [entry(), entry(sensor="cray.cpu.energy"), entry(sensor="cray.cpu0.energy"), entry(**NODE)],
        ),
        ("no_idle", "note", "cpu", [entry(idle_before_w=None, idle_after_w=None)], [entry()]),
        ("idle_not_idle", "warning", "cpu", [entry(idle_after_w=45.0)], [entry()]),
        # A board whose clocks stay up behind its last process; others' work on it, and a rise that no clock explains.
        ("idle_not_idle", "warning", "gpu", [entry(**CLOCKS_UP, idle_processes=1)], [CALM]),
        ("idle_not_idle", "warning", "gpu", [entry(**CLOCKS_UP | {"idle_after_w": 250.0}, idle_processes=0)], [CALM]),
        # A slope that one whole degree of a sensor may make is none.
        ("device_still_warming", "warning", "gpu", [warming(0.25)], [warming(0.13)]),
        ("device_still_warming", "warning", "gpu", [warming(-0.4)], [warming(0.0)]),
        (
            "modelled_beside_measured", "bad", "cpu",
            [entry(), entry(sensor="rapl.package-1", tier="modelled")],
            # A platform's meter beside a package's model is in no figure.
            [entry(tier="modelled"), entry(**PSYS)],
        ),
    ],
)  # fmt: skip
def test_a_plant_is_found_and_nothing_without_it(rule, severity, device, planted, sound):
    assert set(findings(rule, *planted, device=device)[0]) == {severity}
    assert findings(rule, *sound, device=device) == ([], [])


@pytest.mark.parametrize("rule", ["few_updates", "sensor_broken", "no_idle", "modelled_beside_measured"])
def test_rules_on_joules_do_not_apply_where_there_are_none(rule):
    for entries in ([], [GAP]):
        built = b.profile(b.group("g", *(b.member(name, launch={"energy": entries}) for name in ("torch", "jax"))))
        (outcome,) = asked([rule], built).rules
        assert outcome.outcome == "not_applicable"


@pytest.mark.parametrize("odd", [{"joules_j": -5.0}, {"window_ns": -10 * S}, {"block_ns": 0}, {"steps": -1}], ids=str)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_no_rule_breaks_on_odd_joules(odd, device):
    name = "nvml.0.energy" if device == "gpu" else "rapl.package-0"
    members = [
        b.member(backend, device=device, launch={"energy": [entry(sensor=name, **odd)]}) for backend in ("torch", "jax")
    ]
    built = b.profile(b.group("mlp train", *members), rounds=8, cycles=3)
    asked(None, built)


def test_a_board_without_a_temperature_is_not_checked_and_a_cpu_needs_none():
    assert findings("device_still_warming", entry(**BOARD), device="gpu")[1] == ["not_recorded"]
    assert findings("device_still_warming", entry()) == ([], [])


def test_why_there_are_no_joules_is_given_once():
    assert findings("no_joules", GAP) == ([], ["energy_gap"])
    assert findings("no_joules")[1] != [] and findings("no_joules", entry()) == ([], [])


def test_the_fewest_updates_count_of_the_sensors_that_the_figure_is_of():
    member = b.member("torch", device="gpu", launch={"energy": [entry(**BOARD, updates=120)]})
    built = b.profile(b.group("g", member), rounds=3)
    built.cells[0].launches[0].energy = [entry(**BOARD, updates=51), entry(sensor="nvml.0.power", updates=5)]
    assert [finding.values["updates"] for finding in outcomes("few_updates", built)[0]] == [51]


def test_the_scope_of_a_package_is_more_than_a_member_with_some_of_its_cpus():
    assert findings("scope_larger_than_worker", entry())[1] == []
    built = b.profile(b.group("mlp train", b.member("torch", launch={"energy": [entry()]})))
    cpus = built.identity.integer("cpu.cores_logical")
    for launch in built.cells[0].launches:
        launch.threads.cpus[:] = [0]
    assert [finding.values["of_cpus"] for finding in outcomes("scope_larger_than_worker", built)[0]] == [cpus]

"""What the host did to all that ran on it: planted in counters, identity and state, and quiet without."""

import profile_builder as b
import pytest
from asking import outcomes
from msgspec.structs import replace

from kit.profile.schema import StateSpan

# Per step of 2 ms.
CALM = {
    "machine.swapped_in_b": 0,
    "machine.swapped_out_b": 0,
    "process.major_faults": 0,
    "pressure.memory_some_ns": 0,
    "pressure.memory_full_ns": 0,
    "pressure.cpu_some_ns": 0.2e6,
}


def machine(counters=(), *, cpu=(), limit=None, before=(), after=()):
    member = b.member("torch", 2.0, counters=CALM | dict(counters))
    built = b.profile(b.group("mlp train", member), rounds=3, cycles=4)
    lists = {"core": ["0", "1"], "node": ["0-1"]} | dict(cpu)
    cpus = {f"cpu.{kind}.{index}": text for kind, texts in lists.items() for index, text in enumerate(texts)}
    built.identity = b.identity(facts=cpus | {"container.cpu_limit": limit})
    known = {"core_throttled": 5, "package_throttled": 5, "numa_misses": 5, "clock_synchronized": True}
    states = [b.changed(built.state.before, known | dict(fields)) for fields in (before, after)]
    built.state = StateSpan(before=states[0], after=states[1])
    return built


PLANTS = [
    ("swapped", "warning", {"counters": {"machine.swapped_in_b": 1 << 14, "process.major_faults": 4}}),
    ("memory_pressure", "warning", {"counters": {"pressure.memory_some_ns": 0.1e6}}),
    ("cpu_pressure", "note", {"counters": {"pressure.cpu_some_ns": 1.6e6}}),
    ("quota_below_threads", "warning", {"limit": 1.5}),
    ("numa_remote", "note", {"cpu": {"node": ["0", "1"]}}),
    ("numa_remote", "warning", {"cpu": {"node": ["0-1", "2-3"]}, "after": {"numa_misses": 20_005}}),
    ("smt_shared", "note", {"cpu": {"core": ["0-1"]}}),  # two threads on one core
    ("smt_shared", "note", {"cpu": {"core": ["0,2", "1,3"]}}),  # the other halves are others'
    ("cpu_throttled", "warning", {"after": {"core_throttled": 9}}),
    ("clock_not_synchronized", "note", {"before": {"clock_synchronized": False}}),
]


@pytest.mark.parametrize(("rule", "severity", "plant"), PLANTS)
def test_a_plant_is_found_and_nothing_without_it(rule, severity, plant):
    assert outcomes(rule, machine()) == ([], [])
    (finding,), _ = outcomes(rule, machine(**plant))
    assert finding.severity == severity


@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, *_ in PLANTS))
def test_what_an_older_profile_lacks_is_no_pass(rule):
    old = b.profile(b.group("mlp train", b.member("torch")), rounds=3, cycles=4)
    findings, missing = outcomes(rule, old)
    # Without a quota there is nothing that threads could be above.
    assert (findings, missing) == ([], [] if rule == "quota_below_threads" else ["not_recorded"])


def test_what_nodes_borrow_in_a_long_run_is_a_rate():
    nodes = {"node": ["0-1", "2-3"]}

    def after(seconds):
        built = machine(cpu=nodes, after={"numa_misses": 20_005})
        ends = {"before": 0, "after": seconds * 1_000_000_000}
        built.state = StateSpan(
            **{end: replace(getattr(built.state, end), raw_ns=raw_ns) for end, raw_ns in ends.items()}
        )
        return outcomes("numa_remote", built)

    assert [finding.severity for finding in after(60)[0]] == ["warning"]
    assert after(3600) == ([], [])


def test_evidence_is_what_was_planted():
    (swapped,), _ = outcomes("swapped", machine({"machine.swapped_out_b": 1 << 14}))
    assert swapped.values["out_b"] / swapped.values["blocks_s"] == pytest.approx((1 << 14) / 0.002, rel=0.2)
    (shared,), _ = outcomes("smt_shared", machine(cpu={"core": ["0,2", "1,3"]}))
    assert (shared.values["cores"], shared.values["others_cpus"]) == (2, 2)
    (heat,), _ = outcomes("cpu_throttled", machine(after={"core_throttled": 9}))
    assert heat.values == {"cores": 4, "packages": 0}

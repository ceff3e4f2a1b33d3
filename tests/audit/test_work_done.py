"""Steps that did not do their work, and fits that wait for their input: planted, and silent without the plant."""

import numpy as np
import profile_builder as b
import pytest
from asking import asked
from msgspec.structs import replace

from kit.profile.schema import Fit

RULES = ("above_ceiling", "input_bound")
TRAIN_FLOPS = 3 * b.MLP_FLOPS - 2 * 128 * 784 * 512


def operation(name, step_ms, backend="torch", **parameters):
    return b.member(backend, step_ms, name, task="infer", batch=1, parameters=parameters)


def product(gflop_s, backend="torch", **cell):
    member = operation("matmul", 2e3 / gflop_s, backend, n=1000)
    member.cell = replace(member.cell, **cell)
    return b.group(f"matmul {backend}", member)


def empty(step_ms, backend="torch"):
    return b.group(f"empty {backend}", operation("empty", step_ms, backend))


def outcome(*groups, **more):
    audited = asked(RULES, b.profile(*groups, rounds=3, cycles=3, drift=0.0, **more))
    codes = [(finding.code, finding.severity, finding.cell_key.split("/")[0]) for finding in audited.findings]
    return codes, [missing.reason.code for missing in audited.not_checked], audited.findings


@pytest.mark.parametrize(
    ("share", "severity"), [(0.5, None), (1.2, None), (2.0, "warning"), (4.0, "bad"), (1e4, "bad")]
)
def test_a_network_faster_than_the_fastest_product_did_not_compute(share, severity):
    step_ms = TRAIN_FLOPS / (share * 200e9) * 1e3
    codes, missing, findings = outcome(b.group("g", b.member("torch", step_ms)), product(200.0))
    assert codes == ([("above_ceiling", severity, "mlp")] if severity else []) and missing == []
    if severity:
        assert findings[0].values["reached_gflop_s"] == pytest.approx(share * 200, rel=0.05)
        assert findings[0].values["operation"] == "matmul 1000, float32"


@pytest.mark.parametrize(("share", "is_said"), [(4.0, False), (1e4, True)])
def test_beside_others_a_product_shows_only_what_is_far_above_it(share, is_said):
    network = b.group("g", b.member("torch", TRAIN_FLOPS / (share * 200e9) * 1e3))
    slowed = product(200.0)
    slowed.members[0].change = b.beside_others(0.6)
    codes, missing, _ = outcome(network, slowed)
    assert (codes, missing) == (([("above_ceiling", "bad", "mlp")], []) if is_said else ([], ["ceilings_disturbed"]))
    # One quiet block shows what the machine reaches.
    slowed.members[0].change = b.beside_others(0.6, lambda _: (0, 1), slow=2.0)
    assert outcome(network, slowed)[0] == [("above_ceiling", "bad", "mlp")]


def test_the_ceiling_is_the_fastest_framework_and_of_the_same_precision():
    fast = b.group("g", b.member("jax", TRAIN_FLOPS / 900e9 * 1e3))
    assert outcome(fast, product(200.0, "jax"))[0] == [("above_ceiling", "bad", "mlp")]
    assert outcome(fast, product(200.0, "jax"), product(950.0, "torch"))[0] == []
    # Of another device, or in another precision, nothing is known.
    for other in ({"device": "gpu"}, {"precision": "bfloat16"}):
        assert outcome(fast, product(950.0, **other))[:2] == ([], ["ceilings_not_measured"])


def test_winograd_may_compute_a_convolution_with_a_quarter_of_the_products():
    flops = 3 * 2 * 128 * (26 * 26 * 32 * 9 + 24 * 24 * 64 * 9 * 32 + 9216 * 128 + 1280)
    for share, is_above in ((3.0, False), (10.0, True)):
        member = b.member("torch", flops / (share * 200e9) * 1e3, "cnn")
        assert bool(outcome(b.group("g", member), product(200.0))[0]) == is_above


def own(step_ms):
    return b.group("own", b.member("program", step_ms, "mine", precision="own", compile_mode="own", feed="own"))


@pytest.mark.parametrize(("step_ms", "is_shorter"), [(0.0006, True), (0.002, False), (3.0, False)])
def test_a_program_shorter_than_half_the_quickest_dispatch_ran_nothing(step_ms, is_shorter):
    codes, missing, _ = outcome(own(step_ms), empty(0.0016), empty(0.1, "tensorflow"))
    assert codes == ([("shorter_than_dispatch", "warning", "mine")] if is_shorter else [])
    # What a longer one computes is not known.
    assert missing == ([] if is_shorter else ["work_not_known"])


def test_a_network_is_held_to_its_own_frameworks_dispatch():
    quick = b.group("g", b.member("tensorflow", 0.01, "mlp", batch=1, task="infer"))
    ceilings = (product(1e6), empty(0.0016), empty(0.1, "tensorflow"))
    assert outcome(quick, *ceilings)[0] == [("shorter_than_dispatch", "bad", "mlp")]
    assert outcome(quick, *ceilings[:2])[0] == []


def test_without_a_ceiling_or_known_work_it_could_not_be_checked():
    assert outcome(b.group("g", b.member("torch", 1e-3)))[:2] == ([], ["ceilings_not_measured"])
    # Of a program only a dispatch could tell.
    assert outcome(own(3.0), product(200.0))[:2] == ([], ["ceilings_not_measured"])
    assert outcome(b.group("g", b.member("torch", 3.0, "somebodys_net")), product(200.0))[1] == ["work_not_known"]


def fits(ratio, rounds):
    def waits(launch):
        steps_ns = np.divide(launch.blocks.duration_ns, launch.blocks.steps)
        references = [steps_ns[0] / ratio, *(steps_ns / ratio)]
        launch.fit = Fit(epochs=1, updates=100, reference_ns=references, test_ns=None)

    plan = b.group("g", b.member("torch", 3.0, task="fit", feed="host", noise=0.0, change=waits))
    return asked(RULES, b.profile(plan, rounds=rounds, cycles=3, drift=0.0)).findings


@pytest.mark.parametrize(
    ("ratio", "rounds", "severity"), [(1.05, 3, None), (1.15, 3, "note"), (1.5, 3, "warning"), (1.5, 1, "note")]
)
def test_a_fit_that_waits_for_its_input_is_found(ratio, rounds, severity):
    findings = [finding for finding in fits(ratio, rounds) if finding.code == "input_bound"]
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])
    if findings:
        assert findings[0].values["input_pct"] == pytest.approx(100 * (1 - 1 / ratio), rel=0.02)
        assert findings[0].remedy.code == "resident_batches"

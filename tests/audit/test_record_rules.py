"""Rules on what was computed, on the record itself, and on machines of one kind: each planted, and quiet without it."""

import msgspec
import profile_builder as b
import pytest

from kit.audit.audit import audit
from kit.audit.rule import Audited, all_rules
from kit.profile.identity import Accelerator
from kit.profile.launch import Failure, Parity
from kit.profile.reason import reason

BY_NAME = {rule.name: rule for rule in all_rules()}


def findings(*profiles, rule):
    """What one rule finds, and what it lacked."""
    labelled = [Audited(f"host{place}", built) for place, built in enumerate(profiles)]
    result = audit(labelled, [BY_NAME[rule]])
    return result.findings, [missing.reason.code for missing in result.not_checked]


def launches(built):
    return [launch for result in built.cells for launch in result.launches]


def with_losses(*, odd=0.0):
    """Three frameworks that compute alike, or the last by `odd` otherwise."""
    built = b.profile(b.group("mlp train", *(b.member(backend) for backend in ("tensorflow", "torch", "jax"))))
    for place, result in enumerate(built.cells):
        factor = 1 + odd * (place == 2)
        result.launches[0].parity = Parity(losses=[factor, 0.5 * factor], weights_sha256="w", batches_sha256="b")
    return built


def test_parity_names_the_odd_cell_and_is_no_pass_without_losses():
    assert findings(with_losses(), rule="parity") == ([], [])
    ((finding,), _) = findings(with_losses(odd=1e-3), rule="parity")
    assert (finding.severity, "/jax/" in finding.cell_key) == ("bad", True)
    partly = with_losses()
    partly.cells.append(b.profile(b.group("g", b.member("torch", workload="cnn"))).cells[0])
    partly.cells[-1].launches[0].parity = None
    assert findings(partly, rule="parity") == ([], ["no_parity"])
    unproved = b.profile(b.group("mlp train", b.member("torch")))
    assert findings(unproved, rule="parity") == ([], ["no_parity"])


def diverged(built):
    built.cells[0].launches[1].failure = Failure(phase="steady", reason=reason("output_not_finite"))


def lost_a_cell(built):
    for launch in built.cells[0].launches:
        launch.failure = Failure(phase="build", reason=reason("out_of_device_memory", type="E", message="m"))


def measured_nothing(built):
    built.cells.clear()


def used_more_cpus(built):
    threads = launches(built)[0].threads
    launches(built)[0].threads = msgspec.structs.replace(threads, cpus=list(range(999)))


def started_a_day_late(built):
    built.cells[0].launches[0].started = "2031-01-01T00:00:00.000+00:00"


def used_another_board(built):
    board = Accelerator(kind="gpu", model="H100", memory_b=1, driver="1", uuid_sha256=None, device_id="0000:01:00.0")
    built.identity = msgspec.structs.replace(built.identity, accelerators=[board])
    launches(built)[0].device_ids = ["0000:FF:00.0"]


def lost_its_sampler(built):
    launches(built)[0].marks.append(reason("sampler_failed", exit_code=-9, error=""))


def sampled_dearly(built):
    launches(built)[0].sensors = b.sampled(**{"sampler.cpu": (2.0, 3.0, "%")})


def test_a_sampler_that_has_an_idle_cpu_of_its_own_takes_nothing_from_a_step():
    def found(busy_cpus):
        built = b.profile()
        for launch in launches(built):
            launch.threads = msgspec.structs.replace(launch.threads, cpus=[0, 1, 2, 3])
            busy_ns = [round(busy_cpus * span_ns) for span_ns in launch.blocks.span_ns]
            launch.blocks.counters |= {"machine.busy_ns": busy_ns, "machine.steal_ns": [0] * len(busy_ns)}
        sampled_dearly(built)
        return [finding.code for finding in findings(built, rule="sampler_cost")[0]]

    assert found(1.5) == []
    assert found(3.6) == ["sampler_cost"]


@pytest.mark.parametrize(
    ("rule", "plant", "severity"),
    [
        ("loss_not_finite", diverged, "bad"),
        ("missing_cell", lost_a_cell, "warning"),
        ("empty_input", measured_nothing, "bad"),
        ("identity_contradicts_itself", used_more_cpus, "bad"),
        ("identity_contradicts_itself", started_a_day_late, "bad"),
        ("identity_contradicts_itself", used_another_board, "bad"),
        ("sampling_gaps", lost_its_sampler, "warning"),
        ("sampler_cost", sampled_dearly, "note"),
    ],
)
def test_a_plant_is_found_and_nothing_without_it(rule, plant, severity):
    assert findings(b.profile(), rule=rule)[0] == []
    planted = b.profile()
    plant(planted)
    assert [finding.severity for finding in findings(planted, rule=rule)[0]] == [severity]


def fleet(*steps_ms):
    """A profile of each machine."""
    return [
        b.profile(
            b.group("mlp train", b.member("torch", step_ms)),
            rounds=3,
            cycles=3,
            seed=place,
            id=f"run{place}",
            identity=msgspec.structs.replace(b.identity(), hostname_sha256=f"host{place}"),
        )
        for place, step_ms in enumerate(steps_ms)
    ]


def test_the_machine_without_a_cell_is_named():
    whole = fleet(2.0, 2.1, 1.9, 2.0)
    assert findings(*whole, rule="missing_in_fleet") == ([], [])
    lost_a_cell(whole[2])
    ((finding,), _) = findings(*whole, rule="missing_in_fleet")
    assert (finding.profile, finding.values["have"]) == ("host2", 3)
    # Of another suite nobody expects the same cells.
    other = fleet(2.0, 2.1, 1.9, 2.0)
    other[2] = b.profile(b.group("g", b.member("jax", 2.0)), identity=other[2].identity)
    assert findings(*other, rule="missing_in_fleet")[0] == []


def on_machine(built, name):
    built.identity = msgspec.structs.replace(built.identity, hostname_sha256=name)


def test_a_file_without_a_cell_beside_another_of_its_machine_lacks_none():
    whole = fleet(2.0, 2.1, 1.9, 2.0, 2.0)
    on_machine(whole[4], "host0")
    lost_a_cell(whole[4])
    assert findings(*whole, rule="missing_in_fleet") == ([], [])
    few = fleet(2.0, 2.1, 1.9, 2.0)
    few[3] = b.profile(b.group("g", b.member("jax", 2.0)), identity=few[3].identity)
    lost_a_cell(few[0])
    assert findings(*few, rule="missing_in_fleet") == ([], ["no_fleet"])

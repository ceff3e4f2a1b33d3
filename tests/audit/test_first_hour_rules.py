"""The first hour's rules: each planted in a made profile, and quiet without it; and what the whole table says."""

import json

import profile_builder as b
import pytest
from asking import outcomes
from click.testing import CliRunner
from msgspec.structs import replace

from kit.cli import app
from kit.profile.cell import Variant
from kit.profile.fields import reason
from kit.profile.instruments import SensorReport, SensorResponse
from kit.profile.schema import DeviceEvents

MS = 1_000_000
EXACT = {"sd": 0.0, "noise": 0.0, "device": "gpu"}
FULL = reason("lack_of_device_memory", cell="mlp/jax", share_pct=30.0)
HELD = reason("exclusive_device", device="gpu")


def pipelined(launch, latency=1.25):
    """Make its blocks those of an accelerator: 10 steps a wait, and a step that is waited for takes longer."""
    count = len(launch.blocks.cycle)
    launch.blocks.per_wait, launch.blocks.waited_steps = [10] * count, [5] * count
    launch.blocks.median_ns = [round(latency * ns) for ns in launch.blocks.median_ns]


def timed(**fields):
    """A profile of cells of 2 ms a step on a GPU, with these fields in each launch."""
    latency = fields.pop("latency", 1.25)
    members = [b.member(name, **EXACT, launch=fields, change=lambda launch: pipelined(launch, latency))
               for name in ("torch", "jax")]  # fmt: skip
    return b.profile(b.group("mlp train", *members), rounds=3, cycles=3, drift=0.0)


def clocks(device_ns):
    return DeviceEvents(steps=100, host_ns=2.0 * MS, device_ns=device_ns)


@pytest.mark.parametrize(
    ("rule", "severity", "planted", "sound"),
    [
        ("wait_too_long", "warning", {"empty_wait_ns": MS // 4}, {"empty_wait_ns": MS // 10}),
        ("step_above_latency", "warning", {"latency": 0.7}, {"latency": 0.9}),
        ("device_clock", "bad", {"device_events": clocks(1.9 * MS)}, {"device_events": clocks(1.99 * MS)}),
        ("targets_on_host", "warning", {"settings": {"targets": "CPU:0"}}, {"settings": {"targets": "cuda:0"}}),
        ("not_in_turns", "warning", {"turns": "sequential", "turns_reason": FULL}, {"turns_reason": None}),
        ("not_in_turns", "note", {"turns": "sequential", "turns_reason": HELD}, {"turns_reason": None}),
    ],
)
def test_what_is_planted_in_each_launch_is_found(rule, severity, planted, sound):
    findings, missing = outcomes(rule, timed(**planted))
    assert ([finding.severity for finding in findings], missing) == ([severity] * 2, [])
    assert outcomes(rule, timed(**sound)) == ([], [])


def test_a_wait_that_was_not_measured_is_no_pass():
    assert outcomes("wait_too_long", timed()) == ([], ["not_recorded"])


def beside(alone_ms, *, turns="blocks", rounds=4):
    together = [b.member(name, device="gpu", launch={"turns": turns}) for name in ("torch", "jax", "tensorflow")]
    alone = b.member("torch", alone_ms, device="gpu", variant="alone")
    groups = b.group("mlp train", *together), b.group("mlp train alone", alone)
    variants = [Variant(name="default"), Variant(name="alone")]
    return b.profile(*groups, rounds=rounds, cycles=4, drift=0.0, variants=variants)


@pytest.mark.parametrize("alone_ms", [1.6, 2.5])
def test_a_step_beside_others_that_differs_from_one_alone_is_found(alone_ms):
    ((finding,), missing) = outcomes("turns_cost", beside(alone_ms))
    assert (finding.values["others"], "/torch/" in finding.cell_key, missing) == (2, True, [])
    assert finding.values["difference_pct"] == pytest.approx(100 * (2.0 / alone_ms - 1), abs=4)


def test_a_step_beside_others_needs_rounds_in_turns_and_the_same_cell_alone():
    assert outcomes("turns_cost", beside(2.1)) == ([], [])
    assert outcomes("turns_cost", beside(1.0, rounds=2)) == ([], ["too_few_rounds"])
    assert outcomes("turns_cost", beside(1.0, turns="sequential")) == ([], ["too_few_rounds"])
    faster = beside(1.0)
    faster.suite = replace(faster.suite, variants=[Variant(name="alone", env={"XLA_FLAGS": "--fast"})])
    assert outcomes("turns_cost", faster) == ([], [])


def on_both(away, **changes):
    members = [b.member("torch", launch={"parity": b.losses(shift)} | changes, device=device)
               for device, shift in (("cpu", 0.0), ("gpu", away))]  # fmt: skip
    return b.profile(b.group("mlp train", *members), rounds=1, cycles=2)


def test_losses_on_the_device_are_held_to_those_on_the_cpu():
    assert outcomes("parity_with_cpu", on_both(5e-4)) == ([], [])
    ((finding,), _) = outcomes("parity_with_cpu", on_both(5e-3))
    assert (finding.severity, "/gpu/" in finding.cell_key) == ("bad", True)
    assert finding.values["difference"] == pytest.approx(5e-3, rel=0.01)
    assert outcomes("parity_with_cpu", on_both(0.0, parity=None)) == ([], ["no_parity"])
    assert outcomes("parity_with_cpu", timed()) == ([], [])


def sensor(name, **fields):
    quantity, unit = (name, "J" if name == "energy" else "W" if name == "power" else "%")
    return SensorReport(
        name=f"nvml.0.{name}", quantity=quantity, unit=unit, scope="", source="", status="measured", device_id="x",
        **{"update_period_ns": 100 * MS} | fields,
    )  # fmt: skip


ALLOWED = {"report": {"lag_max_ns": 1500 * MS}}


def responded(name="energy", *, lag_ms=60, period_ms=100, read_ms=3.0, report=None, **fields):
    """A profile with the response of one sensor, of such a lag and such a period, read every 20 ms."""
    at_ns = [20 * MS * index for index in range(200)]
    shown = {"delay_ns": 0, "window_ns": 2 * lag_ms * MS, "lag_ns": lag_ms * MS, "period_ns": period_ms * MS}
    known = shown | {"at_ns": at_ns, "values": [float(at // (period_ms * MS)) for at in at_ns]} | fields
    made = SensorResponse(sensor=f"nvml.0.{name}", device_id="x", cell="matmul", read_ns=round(read_ms * MS), **known)
    built = timed()
    built.sensors, built.responses = [sensor(name, **report or {})], [made]
    return built


@pytest.mark.parametrize(
    ("rule", "planted", "sound"),
    [
        ("sensor_lag", {"lag_ms": 500}, {"lag_ms": 140}),
        ("sensor_lag", {"lag_ms": 1600, **ALLOWED}, {"lag_ms": 500, **ALLOWED}),
        ("sensor_period", {"period_ms": 200}, {"period_ms": 120}),
        ("sensor_period", {"name": "utilization", "period_ms": 200}, {"name": "utilization"}),
        ("sensor_reads", {"read_ms": 11.0}, {"read_ms": 4.0}),
    ],
)  # fmt: skip
def test_a_sensors_response_is_held_to_what_joules_assume(rule, planted, sound):
    ((finding,), missing) = outcomes(rule, responded(**planted))
    assert missing == []
    assert finding.about == ("" if rule == "sensor_reads" else f"nvml.0.{planted.get('name', 'energy')}")
    assert outcomes(rule, responded(**sound)) == ([], [])


def test_a_sensor_that_did_not_respond_is_no_pass():
    lost = responded(lag_ns=None, reason=reason("readings_lost", lost=9, readings=10), values=[None] * 200)
    assert outcomes("sensor_lag", lost) == ([], ["readings_lost"])
    assert outcomes("sensor_period", lost) == ([], ["value_did_not_change"])
    for rule in ("sensor_lag", "sensor_period", "sensor_reads"):
        assert outcomes(rule, timed()) == ([], [])


def table(path, built):
    """Exit code and statuses by rule of `kit selftest --from`, and what it prints."""
    built.suite = replace(built.suite, name="first-hour")
    b.write(path, built)
    options = {"catch_exceptions": False, "standalone_mode": False}
    code, printed = (CliRunner().invoke(app, ["selftest", "--from", str(path), *words], **options)
                     for words in (["--json"], []))  # fmt: skip
    statuses = {}
    for check in json.loads(code.stdout):
        statuses.setdefault(check["rule"], []).append(check["status"])
    return code.return_value, statuses, printed.stdout


def test_the_table_has_what_passed_failed_and_could_not_be_checked(tmp_path):
    code, statuses, printed = table(tmp_path / "hour.json", responded(lag_ms=60))
    assert code == 0
    assert statuses["sensor_lag"] == statuses["step_above_latency"] == ["pass"]
    assert statuses["wait_too_long"] == statuses["turns_cost"] == ["not_checked"]
    assert "nvml.0.energy shows a load 60.0 ms late" in " ".join(printed.split()), "a pass has its number"
    code, statuses, printed = table(tmp_path / "slow.json", responded(lag_ms=500))
    assert (code, statuses["sensor_lag"]) == (1, ["fail"])
    assert "FAIL" in printed and "KIT_GPU_FILE" in printed


def test_a_fit_is_there_for_its_losses_alone(tmp_path):
    built = timed(empty_wait_ns=MS // 10)
    fit = b.member("torch", **EXACT, task="fit", launch={"empty_wait_ns": MS})
    fitted = b.profile(b.group("mlp fit", fit), rounds=1, cycles=1)
    built.cells, built.groups = built.cells + fitted.cells, built.groups + fitted.groups
    _, statuses, _ = table(tmp_path / "hour.json", built)
    assert statuses["wait_too_long"] == ["pass"]

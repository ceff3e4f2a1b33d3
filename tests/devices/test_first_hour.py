"""The first hour on hardware: planted boards, sensors and members come out as they were planted."""

import json
import math
import os

import numpy as np
import pytest
from kit_process import kit
from plain_backend import copied_kit

from kit.profile.identity import Accelerator
from kit.profile.launch import Blocks, Launch
from kit.profile.reason import reason
from kit.profile.sensor import Energy, SensorReport, SensorSummary
from kit.runner.hardware import check as checking
from kit.runner.hardware.alone import _wait
from kit.runner.hardware.check import until_decided
from kit.runner.hardware.first_hour import _ranks
from kit.runner.hardware.load import _energy, _throttled
from kit.runner.hardware.response import Readings, Responses, response_of
from kit.stats.estimate import over_rounds

BOARDS = """
from kit.devices.catalog import DEVICES
from kit.runner.hardware import boards
checks = boards.board_checks(DEVICES["gpu"].states())
"""
SENSORS = """
from kit.sensors.nvml import open_sampled
boards.PERIOD_LIMIT_S = 0.5
checks += boards.sensor_checks(open_sampled())
"""
PRINTED = """
for check in checks:
    print(check.code, check.subject.replace(" ", ""), check.status)
"""


def statuses(printed):
    return {tuple(line.split()[:2]): line.split()[2] for line in printed.splitlines()}


def test_healthy_boards_pass_and_what_a_sensor_does_not_show_is_not_checked(in_nvml_process):
    checks = statuses(in_nvml_process(BOARDS + SENSORS + PRINTED, NVML_CAP_W="700", NVML_BOARDS="2"))
    for board in ("gpu0", "gpu1"):
        for code in ("board_power_cap", "board_slices", "board_exclusive", "board_processes"):
            assert checks[code, board] == "pass"
    assert checks["sensor_reads", "sampler"] == "pass"
    assert checks["sensor_period", "nvml.0.energy"] == "pass"
    # The stand-in's power is the same for ever: how often it is fresh cannot be seen.
    assert checks["sensor_period", "nvml.0.power"] == "not_checked"


@pytest.mark.parametrize(
    ("wrong", "settings", "code"),
    [
        ("", {"NVML_CAP_W": "230"}, "board_power_cap"),
        ("mig", {}, "board_slices"),
        ("exclusive", {}, "board_exclusive"),
        ("", {"NVML_PROCESSES": "1"}, "board_processes"),
    ],
)
def test_a_board_that_is_bounded_fails_by_name(in_nvml_process, wrong, settings, code):
    checks = statuses(in_nvml_process(BOARDS + PRINTED, wrong, **{"NVML_CAP_W": "700"} | settings))
    assert [of for (of, _), status in checks.items() if status == "fail"] == [code]


def launch(**fields):
    return Launch(cell_key="mlp/plain/gpu", group="selftest", round=0, process="plain", started="", **fields)


def energy(sensor, joules_j):
    why = None if joules_j else reason("device_shared", processes=1)
    window_ns = 10**10 if joules_j else None
    return Energy(
        sensor=sensor, joules_j=joules_j, window_ns=window_ns, samples=1, block_ns=10**10, device_id="x", reason=why
    )


@pytest.mark.parametrize(
    ("joules_j", "status"), [(2000.0, "pass"), (1960.0, "pass"), (1000.0, "fail"), (None, "not_checked")]
)
def test_a_counter_is_held_to_the_integral_of_power(joules_j, status):
    entries = [energy("nvml.0.energy", joules_j), energy("nvml.0.power", 2000.0)]
    assert [check.status for check in _energy("plain", launch(energy=entries))] == [status]


def test_a_wait_is_held_to_its_share_of_the_steps_that_it_is_for():
    def status(wait_ns):
        blocks = Blocks(
            cycle=[0], begin_ns=[0], span_ns=[1], lead_in=[0], steps=[100], duration_ns=[10**7], median_ns=[1]
        )
        blocks.per_wait = [10]
        return _wait("plain", launch(blocks=blocks, empty_wait_ns=wait_ns)).status

    assert (status(9_000), status(90_000), status(None)) == ("pass", "fail", "not_checked")


@pytest.mark.parametrize(("step_ns", "status"), [(900, "pass"), (2000, "fail")])
def test_a_step_that_is_not_waited_for_takes_no_longer_than_one_that_is(step_ns, status):
    def of(backend, duration_ns):
        lists = {"cycle": [0], "begin_ns": [0], "span_ns": [1], "lead_in": [0], "median_ns": [1000]}
        blocks = Blocks(steps=[100], duration_ns=[100 * duration_ns], **lists)
        return Launch(cell_key=f"mlp/{backend}/gpu", group="g", round=0, process="p", started="", blocks=blocks)

    check = _ranks([of("jax", 500), of("torch", step_ns)])
    assert (check.status, check.values["by_step"]) == (status, "jax, torch")
    assert _ranks([of("jax", 500)]).status == "not_checked"


class OneBoard:
    """What the checks ask of a bench."""

    boards = (
        Accelerator(
            name="gpu 0", power_cap_w=700.0, power_cap_default_w=700.0, device_id="x",
        ),
    )  # fmt: skip

    class plan:  # noqa: N801
        sensors = (
            SensorReport(
                name="nvml.0.power", quantity="power", unit="W", scope="", source="", status="measured", device_id="x"
            ),
        )


@pytest.mark.parametrize(
    ("causes", "highest_w", "status"),
    [
        ("software power cap", 700.0, "pass"),
        ("software power cap", 200.0, "fail"),
        ("software power cap, hardware slowdown", 700.0, "fail"),
    ],
)
def test_a_load_may_bring_a_board_to_its_cap_and_nothing_else_may_slow_it(causes, highest_w, status):
    slowed = launch(
        notes=[reason("device_throttled", share_pct=80.0, causes=causes)],
        sensors={"nvml.0.power": SensorSummary(mean=150.0, max=highest_w, unit="W", samples=9)},
    )
    assert _throttled(OneBoard, "plain", slowed).status == status
    assert _throttled(OneBoard, "plain", launch()).status == "not_checked"


@pytest.mark.parametrize(
    ("ratio", "sd", "status", "blocks"),
    [
        (1.0, 0.001, "pass", 12), (1.05, 0.001, "fail", 24),
        # Noise that twelve blocks do not resolve, and one that no look does.
        (1.0, 0.04, "pass", 96), (1.0, 0.4, "not_checked", 96),
    ],
)  # fmt: skip
def test_blocks_are_doubled_until_a_ratio_is_decided(ratio, sd, status, blocks):
    rng, asked = np.random.default_rng(1), []

    def more(count):
        asked.append(12 * count)
        return over_rounds(rng.normal(math.log(ratio), sd, 12 * count))

    check = until_decided("bursts", "plain", more, 2.0)
    assert (check.status, check.values["blocks"]) == (status, sum(asked))
    assert sum(asked) <= blocks
    if status == "not_checked":
        assert check.reason.code == "undecided"
        assert check.reason.values["needed_s"] >= check.reason.values["taken_s"]


def test_what_disturbs_one_look_alone_fails_no_check():
    looks = iter([1.3, 1.0, 1.0, 1.0])

    def measured(times):
        return over_rounds(np.random.default_rng(times).normal(math.log(next(looks)), 0.001, 12 * times))

    check = until_decided("bursts", "plain", measured, 2.0)
    assert (check.status, check.reason.code) == ("not_checked", "not_seen_again")


def test_a_check_that_takes_too_long_is_left_undecided(monkeypatch):
    clock = iter(range(0, 1000, 30))
    monkeypatch.setattr(checking.time, "monotonic", lambda: next(clock))
    check = until_decided("bursts", "plain", lambda times: over_rounds([0.1, -0.1] * times), 2.0)
    assert (check.reason.code, check.reason.values["taken_s"]) == ("undecided", 30)


@pytest.fixture(scope="module")
def first_hour(tmp_path_factory, nvml_folder):
    """Run the whole of it on the stand-ins: exit code, the table, and the record."""
    folder = tmp_path_factory.mktemp("first_hour")
    copied_kit(folder, "gpu")
    load = folder / "load"

    def run(wrong="", **settings):
        out = folder / "hardware.json"
        out.unlink(missing_ok=True)
        load.write_bytes(bytes(65536))
        environment = {"PYTHONPATH": os.fspath(folder), "LD_LIBRARY_PATH": str(nvml_folder), "NVML_STAND_IN": wrong}
        words = ("selftest", "--device", "gpu", "--backend", "plain", "--data", "synthetic", "--out", out)
        done = kit(folder, *words, **HEALTHY | {"NVML_LOAD": str(load)} | environment | settings)
        assert "Traceback" not in done.stderr
        assert done.stdout.count("\n") > 20
        return done.returncode, done.stdout, json.loads(out.read_text())

    return run


# Its power moves by itself, as that of a board does.
HEALTHY = {
    "NVML_CAP_W": "700", "NVML_WATTS": "600", "NVML_RIPPLE_PCT": "1", "NVML_RIPPLE_MS": "1300",
    "NVML_POWER_PERIOD_MS": "100", "PLAIN_STEP_S": "0.001",
}  # fmt: skip


def by_status(record, status):
    return {check["code"] for check in record["checks"] if check["status"] == status}


@pytest.mark.slow
def test_a_healthy_board_passes_and_its_response_is_as_planted(first_hour):
    planted = {"NVML_DELAY_MS": "60", "NVML_POWER_WINDOW_MS": "150", "NVML_ENERGY_PCT": "98", "NVML_IDLE_WATTS": "100"}
    code, _, record = first_hour(**planted)
    assert (code, by_status(record, "fail")) == (0, set()), record["checks"]
    # One framework has no order, the stand-in is as utilized as ever; what a busy machine leaves undecided says so.
    undecided = [check for check in record["checks"] if check["status"] == "not_checked" and check["code"] != "ranks"]
    assert {check["reason"]["code"] for check in undecided} <= {"undecided", "value_did_not_change"}, undecided
    assert by_status(record, "pass") >= {
        "sensor_lag",
        "sensor_gain",
        "energy_counter",
        "board_throttled",
        "sensor_period",
    }
    responses = {response["sensor"]: response for response in record["responses"]}
    counter, power, clock = (responses[f"nvml.0.{name}"] for name in ("energy", "power", "frequency"))
    assert counter["delay_ns"] == pytest.approx(6e7, abs=5e7)
    assert (counter["gain"], counter["load"]) == pytest.approx((0.98, 588), rel=0.02)
    assert counter["before"] == pytest.approx(98, rel=0.1)
    assert power["lag_ns"] == pytest.approx(7.5e7, abs=5e7)
    assert (clock["before"], clock["load"]) == pytest.approx((345, 1755), rel=0.01)
    assert len(power["at_ns"]) == len(power["values"]) > 100


@pytest.mark.slow
def test_each_planted_fault_fails_by_its_name(first_hour):
    code, _, record = first_hour(
        "power_capped",
        NVML_WATTS="200", NVML_CAP_W="400", NVML_POWER_PERIOD_MS="250", NVML_WINDOW_MS="1000", NVML_ENERGY_PCT="80",
        NVML_PROCESSES="1", PLAIN_NEEDS_SHARE="0.5", PLAIN_TARGETS="cpu:0", PLAIN_DEVICE_PACE="0.9",
    )  # fmt: skip
    assert code == 1
    failed = by_status(record, "fail")
    assert failed >= {
        "board_power_cap", "board_throttled", "board_processes", "sensor_period", "sensor_lag", "sensor_gain",
        "members_together", "targets", "device_clock",
    }  # fmt: skip
    (lag,) = [check for check in record["checks"] if check["code"] == "sensor_lag" and "energy" in check["subject"]]
    # Half of the window is the lag that joules allow for. Beside other programs the fit trades window for delay.
    assert lag["values"]["lag_ns"] == pytest.approx(5e8, abs=1.5e8)
    assert lag["values"]["window_ns"] == pytest.approx(1e9, rel=0.5)
    (gain,) = [check for check in record["checks"] if check["code"] == "sensor_gain"]
    assert gain["values"]["gain"] == pytest.approx(0.8, rel=0.06)


@pytest.mark.slow
def test_a_board_that_vanishes_under_load_costs_its_checks_alone(first_hour):
    _, shown, record = first_hour(NVML_LOST_AT_LOAD="4")
    lost = [check for check in record["checks"] if check["code"] == "sensor_lag"]
    assert {check["reason"]["code"] for check in lost} == {"readings_lost"}
    assert "readings failed" in shown
    assert by_status(record, "pass") >= {"wait", "parity"}
    kept = next(response for response in record["responses"] if response["sensor"] == "nvml.0.energy")
    assert None in kept["values"] and any(kept["values"])


def test_a_sensor_slower_than_the_load_is_said_to_be():
    at_ns = list(range(0, 24_000_000_000, 20_000_000))
    values = [float(at // 3_000_000_000) for at in at_ns]
    report = SensorReport(
        name="nvml.0.energy", quantity="energy", unit="J", scope="", source="", status="measured", counter=True
    )
    loads = [(begin * 10**9, (begin + 4) * 10**9) for begin in (3, 10, 17)]
    slow = response_of(report, "matmul/plain", loads, Readings(at_ns, values), None)
    (check,) = Responses([slow]).checks()
    assert (check.status, check.reason.code) == ("not_checked", "sensor_slower_than_load")
    assert slow.values == values

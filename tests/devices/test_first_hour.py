"""The first hour on hardware: planted boards, sensors and members come out as they were planted."""

import json
import math
import os

import numpy as np
import pytest
from kit_process import kit
from plain_backend import copied_kit

from kit.profile.launch import Blocks, Launch
from kit.profile.reason import reason
from kit.profile.sensor import Energy
from kit.runner.hardware.alone import _energy, _throttled, _wait
from kit.runner.hardware.check import within
from kit.runner.hardware.first_hour import _ranks

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
    why = None if joules_j else reason("board_shared", processes=1)
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


def test_a_board_that_was_slowed_fails():
    slowed = launch(marks=[reason("board_throttled", share_pct=80.0, causes="software power cap")])
    assert _throttled("plain", slowed).status == "fail"
    assert _throttled("plain", launch()).status == "not_checked"


@pytest.mark.parametrize(
    ("ratio", "sd", "status"), [(1.0, 0.001, "pass"), (1.05, 0.001, "fail"), (1.0, 0.1, "not_checked")]
)
def test_a_ratio_is_told_only_where_its_interval_says_so(ratio, sd, status):
    logs = np.random.default_rng(1).normal(math.log(ratio), sd, 12).tolist()
    assert within("bursts", "plain", logs, 2.0).status == status


@pytest.fixture(scope="module")
def first_hour(tmp_path_factory, nvml_folder):
    """Run the whole of it on the stand-ins: exit code, and checks by code."""
    folder = tmp_path_factory.mktemp("first_hour")
    copied_kit(folder, "gpu")

    def run(wrong="", **settings):
        out = folder / "hardware.json"
        out.unlink(missing_ok=True)
        environment = {"PYTHONPATH": os.fspath(folder), "LD_LIBRARY_PATH": str(nvml_folder), "NVML_STAND_IN": wrong}
        words = ("selftest", "--device", "gpu", "--backend", "plain", "--data", "synthetic", "--out", out)
        done = kit(folder, *words, **{"NVML_CAP_W": "700"} | environment | settings)
        assert "Traceback" not in done.stderr
        record = json.loads(out.read_text())
        assert "could be checked" not in done.stderr and done.stdout.count("\n") > 20
        return done.returncode, {check["code"]: check["status"] for check in record["checks"]}

    return run


@pytest.mark.slow
def test_all_of_it_runs_on_stand_ins_and_finds_what_was_planted(first_hour):
    code, checks = first_hour("power_capped", NVML_ENERGY_PCT="50", NVML_RIPPLE_PCT="3", PLAIN_NEEDS_SHARE="0.5")
    assert code == 1
    assert {check for check, status in checks.items() if status == "fail"} >= {
        "board_throttled", "energy_counter", "members_together",
    }  # fmt: skip
    assert {check for check, status in checks.items() if status == "pass"} >= {
        "board_power_cap", "board_slices", "board_exclusive", "board_processes", "sensor_reads", "wait",
    }  # fmt: skip

"""Boards below pynvml: what a stand-in plants reaches sensors and state, and there the rules find it."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import msgspec
import profile_builder as b
import pytest
from asking import outcomes

from kit.profile.facts import Accelerator, device_facts
from kit.profile.instruments import SensorReport, SensorSummary
from kit.profile.schema import StateSpan

BUS = "0000:65:00.0"
LOOK = """
import sys, time, msgspec
from kit.fingerprint.machine_state import state
from kit.sensors.sources import probe_all
from kit.sensors.sources import now_ns
from kit.sensors.sampler import Sampling
reports = probe_all()
sampling = Sampling.start(reports)
sampling.wait_for_first()
begin = now_ns()
time.sleep(2.3)
seen = sampling.stop().summaries([(begin, now_ns())])
sys.stdout.write(msgspec.json.encode((seen, state().accelerators(), reports)).decode())
"""
Looked = tuple[dict[str, SensorSummary], list[Accelerator], list[SensorReport]]
FINE = {"NVML_CAP_W": "700", "NVML_BUSY_PCT": "97"}
BOARDS = {
    "fine": FINE,
    "broken": {
        "NVML_REASONS": "72",  # hardware slowdown, and by heat
        "NVML_THERMAL_VIOLATION_PCT": "10", "NVML_CAP_W": "500", "NVML_BUSY_PCT": "100", "NVML_TENSOR_PCT": "0",
        "NVML_FP32_PCT": "0", "NVML_DRAM_PCT": "0", "NVML_PCIE_WIDTH": "8", "NVML_ECC_ERRORS": "3",
        "NVML_REMAPPED": "2", "NVML_REMAP_FAILED": "1",
    },
    "at its cap": {"NVML_CAP_W": "210", "NVML_POWER_VIOLATION_PCT": "60"},
    "slow below its cap": FINE | {"NVML_STAND_IN": "power_capped", "NVML_CLOCK_MHZ": "900"},
    "idle, in slices": FINE | {"NVML_STAND_IN": "mig", "NVML_BUSY_PCT": "0"},
    "of few answers": FINE | {"NVML_STAND_IN": "no_gpm", "NVML_BUSY_PCT": "100"},
}  # fmt: skip


@pytest.fixture(scope="module")
def looked(nvml_folder):
    """What a sampler and a look at the machine see of each board."""

    def look(settings):
        environment = os.environ | {"LD_LIBRARY_PATH": str(nvml_folder)} | settings
        done = subprocess.run(
            [sys.executable, "-c", LOOK], env=environment, capture_output=True, timeout=60, check=True
        )
        return msgspec.json.decode(done.stdout, type=Looked)

    with ThreadPoolExecutor() as pool:
        return dict(zip(BOARDS, pool.map(look, BOARDS.values()), strict=True))


@pytest.fixture
def on(looked):
    """A profile of a cell on such a board."""
    return lambda name: profile_on(*looked[name])


def profile_on(seen, states, reports=(), **more):
    launch = {"sensors": seen, "device_ids": [BUS]}
    members = [b.member(backend, device="gpu", launch=launch, **more) for backend in ("torch", "jax")]
    built = b.profile(b.group("mlp train", *members), rounds=4, sensors=list(reports))
    built.state = StateSpan(before=b.changed(built.state.before, device_facts(states)), after=None)
    built.identity = b.identity(accelerators=[Accelerator(name="gpu 0", model="H100", device_id=BUS)])
    return built


PLANTS = [
    ("hardware_slowdown", "broken", "bad"),
    ("device_throttled", "broken", "warning"),
    ("gpu_full_but_not_computing", "broken", "bad"),
    ("cap_below_default", "broken", "warning"),
    ("pcie_narrow", "broken", "warning"),
    ("ecc", "broken", "bad"),
    ("power_capped", "at its cap", "note"),
    ("power_capped", "slow below its cap", "bad"),
    ("mig", "idle, in slices", "note"),
    ("device_declared_not_used", "idle, in slices", "bad"),
]


@pytest.mark.parametrize(("rule", "board", "severity"), PLANTS)
def test_what_a_board_has_is_found_and_nothing_of_a_fine_one(on, rule, board, severity):
    assert outcomes(rule, on("fine")) == ([], [])
    findings, missing = outcomes(rule, on(board))
    assert ({finding.severity for finding in findings}, missing) == ({severity}, [])


def test_evidence_is_what_was_planted(on):
    ((narrow,), _) = outcomes("pcie_narrow", on("broken"))
    assert narrow.values == {"board": "gpu 0", "lanes": 8, "of_lanes": 16}
    ((slow, _), _) = outcomes("hardware_slowdown", on("broken"))
    assert slow.values == {"share_pct": 100.0, "causes": "hardware slowdown, hardware thermal slowdown"}
    ((capped, _), _) = outcomes("power_capped", on("at its cap"))
    assert capped.values["share_pct"] == pytest.approx(60, rel=0.05)
    assert (capped.values["power_w"], capped.values["cap_w"]) == (pytest.approx(200, rel=0.05), 210.0)
    state = on("broken").state.before.accelerators()[0]
    assert (state.remapped_rows, state.remap_pending, state.remap_failed) == (2, False, True)


def test_a_board_that_does_not_tell_what_it_computes_is_no_pass(on):
    assert outcomes("gpu_full_but_not_computing", on("of few answers")) == ([], ["nvml_no_gpm"])


def board(**fields):
    return Accelerator(**{"name": "gpu 0", "device_id": BUS} | fields)


SECOND_BUS = "0000:66:00.0"


def capped(*launches):
    """A profile whose launches read so on each board: W, MHz, percent of the time held back by the cap, highest W."""
    ids = (BUS, SECOND_BUS)[: len(launches[0])]
    sensors = [
        b.sensor(f"nvml.{index}.{name}", device_id=bus, sampled=True)
        for index, bus in enumerate(ids)
        for name in ("power", "frequency", "throttled.software_power_cap")
    ]
    boards = [board(power_cap_w=400.0, clock_max_mhz=1980.0, device_id=bus) for bus in ids]
    built = profile_on({}, boards, sensors)
    for result in built.cells:
        for launch, readings in zip(result.launches, launches * len(result.launches), strict=False):
            launch.device_ids, shown = list(ids), {}
            for index, (power_w, clock_mhz, share_pct, *highest) in enumerate(readings):
                shown[f"nvml.{index}.power"] = (power_w, *(highest or [power_w]), "W")
                shown[f"nvml.{index}.frequency"] = (clock_mhz, clock_mhz, "MHz")
                for name in ("throttled", "throttled.software_power_cap"):
                    shown[f"nvml.{index}.{name}"] = (share_pct, share_pct, "%")
            launch.sensors = b.sampled(**shown)
    return built


AT_CAP, SLOW = (390.0, 1390.0, 60.0), (150.0, 700.0, 60.0)


@pytest.mark.parametrize(
    ("launches", "severity"),
    [
        ([[AT_CAP]], "note"),
        ([[AT_CAP, SLOW]], "bad"),
        ([[AT_CAP], [AT_CAP], [SLOW]], "bad"),
        # One that was not held back draws little for another reason.
        ([[AT_CAP], [(100.0, 600.0, 0.0)]], "note"),
        # One that draws the least, at its rated clock, hides no other.
        ([[(300.0, 700.0, 60.0)], [(100.0, 1980.0, 60.0)]], "bad"),
        ([[(390.0, 1390.0, 1.0)]], None),
        # Bursts to the cap: an H100's mean was 435 of 700 W.
        ([[(250.0, 1390.0, 60.0, 395.0)]], "note"),
        ([[(250.0, 1390.0, 60.0, 330.0)]], "bad"),
    ],
)
def test_each_launch_on_each_board_is_judged_by_its_own_cap_power_and_clock(launches, severity):
    findings, missing = outcomes("power_capped", capped(*launches))
    assert ({finding.severity for finding in findings}, missing) == ({severity} - {None}, [])

"""What the verbs that look at this machine say."""

import json

import pytest
from kit_process import invoke as kit

from kit.cli.run_and_selftest import parse_request
from kit.runner import examine
from kit.suites.plan import plan_of


def test_a_dry_run_says_what_would_be_measured_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Data of its own would have to be fetched.
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    words = ("run", "quick", "--backend", "jax", "--backend", "torch", "--dry-run", "--out", "run.json")
    first, _, *groups = kit(*words).stdout.splitlines()
    assert "8 cells in 4 groups, 6 rounds of 4 cycles, about" in first
    assert groups[0].split("  ") == ["mlp train", "jax (baseline), torch"]
    planned = json.loads(kit(*words, "--json").stdout)
    assert (planned["suite"], planned["rounds"], len(planned["groups"])) == ("quick", 6, 4)
    assert planned["estimated_s"] > 60 and planned["foreseen_by"] is None and not planned["estimate_is_least"]
    bounded = json.loads(kit(*words, "--json", "--budget", "1").stdout)
    assert bounded["estimated_s"] == pytest.approx(planned["estimated_s"] / planned["rounds"], abs=1)
    assert not list(tmp_path.iterdir())


def planned(*words):
    """The cells of each group that options plan, and what was said before it."""
    lines = []
    plan = plan_of(parse_request([*words, "--task", "infer", "--workload", "mlp"]), lines.append)
    by_key = {cell.key: cell for cell in plan.cells}
    return [[by_key[key] for key in group.cells] for group in plan.groups], lines


@pytest.mark.parametrize("words", [["--batch", "32,64"], ["--batch", "32", "--batch", "64"]])
def test_a_comma_list_is_a_repeated_option_and_is_compared(words):
    groups, (line,) = planned(*words, "--backend", "torch")
    assert [[cell.batch for cell in cells] for cells in groups] == [[32, 64]]
    assert "comparing batch, because" in line


@pytest.mark.parametrize(
    ("words", "sizes", "phrase"),
    [
        (["--backend", "torch,jax", "--batch", "1,8,64"], [2, 2, 2], "comparing backend at each batch"),
        (["--backend", "jax,torch", "--threads", "1,2"], [2, 2], "comparing backend at each threads"),
        (["--backend", "torch,jax", "--batch", "1,8", "--dtype", "float32,bfloat16"], [2] * 4, "each batch, precision"),
        (["--backend", "torch,tensorflow", "--compile-mode", "eager,compile,graph"], [4], "backend, compile_mode"),
        (["--backend", "torch,jax", "--variant", "a:env=A=1"], [2, 2], "comparing variant at each backend"),
        (["--batch", "32,64"], [2, 2, 2], "comparing batch at each backend"),
        (["--backend", "torch,jax"], [2], None),
        (["--backend", "torch,jax", "--batch", "1,8", "--compare", "batch"], [2, 2], None),
    ],
)
def test_frameworks_that_are_named_are_compared_and_what_is_not_is_said_before(words, sizes, phrase):
    groups, lines = planned(*words)
    assert [len(cells) for cells in groups] == sizes
    assert (phrase is None and not lines) or phrase in lines[0]
    if phrase and "at each" in lines[0]:
        together, _ = planned(*words, "--compare", lines[0].rpartition("--compare ")[2])
        assert len({cells[0].key for cells in together}) == 1  # parts of one group, with its baseline


def test_clock_prints_the_certificate():
    assert "null interval" in kit("clock").stdout
    assert json.loads(kit("clock", "--json").stdout)["source"] == "monotonic_raw"


def test_doctor_says_what_is_not_here_and_what_would_mend_it(monkeypatch, tmp_path):
    for name in ("TORCH", "TENSORFLOW"):
        monkeypatch.setenv(f"KIT_PYTHON_{name}", "/nowhere/python")
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    findings = json.loads(kit("doctor", "--json").stdout)
    torch = next(finding for finding in findings["backends"] if finding["subject"] == "torch")
    assert not torch["here"] and "KIT_PYTHON_TORCH" in torch["detail"]
    assert not findings["data"][0]["here"] and "kit data fetch" in findings["data"][0]["detail"]
    assert any(finding["here"] for finding in findings["clocks"])
    assert all(finding["reason"] for finding in findings["sensors"] if finding["status"] == "unavailable")
    shown = kit("doctor")
    assert "Frameworks" in shown.stdout and shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 100
    sensors = shown.stdout.partition("\nSensors\n")[2]
    assert sensors.index("rapl.energy") < sensors.index("process.cpu_ns")


def test_a_data_folder_that_is_not_there_stands_in_doctor(monkeypatch):
    monkeypatch.setenv("KIT_DATA", "/nowhere")
    monkeypatch.setattr(examine, "_backend", lambda name: examine.ExaminedBackend(subject=name, here=False, detail=""))
    findings = json.loads(kit("doctor", "--json").stdout)
    assert all("/nowhere" in data["detail"] for data in findings["data"]) and findings["sensors"]

"""A worker sees the devices of its cells and no other, even if it opens all that it sees."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from profile_builder import cell
from real_worker import spec_of

from kit.devices import DEVICES
from kit.errors import KitError
from kit.profile.cell import Variant
from kit.runner import target

# A framework opens all devices that it sees, whichever it is asked to use.
OPENS_ALL = """
import json, os
from kit.sensors import nvml
seen = [nvml.pci_bus_ids(count) for count in (2, 1)]
print(json.dumps([next(filter(None, seen), []), os.environ.get("JAX_PLATFORMS")]))
"""
START = """
import subprocess, sys
from profile_builder import cell
from real_worker import spec_of
from kit.runner.target import command_of
spec = spec_of(cell(device=sys.argv[1], devices=int(sys.argv[2])))
spec = spec._replace(variant=type(spec.variant)(name="v", python=sys.argv[3]))
command = command_of(spec, 0)
pipe = subprocess.PIPE
with subprocess.Popen(command.words, env=command.environment, stdin=pipe, stdout=pipe, text=True) as worker:
    sys.stdout.write(worker.stdout.readline())
    worker.stdin.close()
"""
TESTS = Path(__file__).parents[1]
FIRST, SECOND = "0000:65:00.0", "0000:66:00.0"


@pytest.fixture
def seen_by_worker(in_nvml_process, tmp_path):
    """Which of two GPUs a worker sees, the JAX platforms that it gets, and whether it has opened a driver."""
    program, python, log = tmp_path / "program.py", tmp_path / "python", tmp_path / "log"
    program.write_text(OPENS_ALL)

    def look(device, devices=1, **environment):
        # This interpreter runs the program as the worker, and the supervisor before it as it is.
        line = f'[ "$4" = kit.worker ] && exec {sys.executable} {program}\nexec {sys.executable} "$@"'
        python.write_text(f"#!/bin/sh\n{line}\n")
        python.chmod(0o755)
        code = f"import sys; sys.argv = ['', {device!r}, {devices}, {str(python)!r}]\n{START}"
        paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(TESTS)])
        given = {"NVML_BOARDS": "2", "CUDA_STAND_IN_LOG": str(log), "PYTHONPATH": paths} | environment
        boards, platforms = json.loads(in_nvml_process(code, **given))
        return boards, platforms, log.exists()

    return look


def test_a_cpu_worker_opens_no_board_and_no_platform_but_the_cpus(seen_by_worker):
    assert seen_by_worker("cpu") == ([], "cpu", False)
    assert seen_by_worker("cpu", CUDA_VISIBLE_DEVICES="1", JAX_PLATFORMS="cpu,cuda") == ([], "cpu,cuda", False)


@pytest.mark.parametrize(
    ("environment", "devices", "boards"),
    [
        ({}, 1, [FIRST]),
        ({}, 2, [FIRST, SECOND]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, 1, [SECOND]),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, 1, [SECOND]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-stand-in-1"}, 1, [SECOND]),
        # Indices in an order that is not NVML's are left to CUDA.
        ({"CUDA_VISIBLE_DEVICES": "1,0", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, 1, [SECOND]),
        # CUDA shows one slice of a GPU, which the GPU's UUID does not name.
        ({"CUDA_VISIBLE_DEVICES": "1,0", "NVML_STAND_IN": "mig"}, 1, [SECOND]),
        ({"CUDA_VISIBLE_DEVICES": ""}, 1, []),
        ({"NVML_BOARDS": "1"}, 2, [FIRST, SECOND]),
    ],
)
def test_a_gpu_worker_sees_the_first_boards_that_it_may(seen_by_worker, environment, devices, boards):
    seen, platforms, _ = seen_by_worker("gpu", devices, **environment)
    assert (seen, platforms) == (boards, None)


def test_a_rank_is_shown_its_own_board_and_refused_where_there_is_none():
    gpu = DEVICES["gpu"]
    assert gpu.shown_to_rank(1, {"CUDA_VISIBLE_DEVICES": "3,2"}) == {"CUDA_VISIBLE_DEVICES": "2"}
    with pytest.raises(KitError, match="CUDA_VISIBLE_DEVICES=0"):
        gpu.shown_to_rank(1, {"CUDA_VISIBLE_DEVICES": "0"})


def test_a_worker_in_a_container_is_given_the_same(monkeypatch):
    image = SimpleNamespace(python=lambda backend: "python")
    monkeypatch.setattr(target, "local_engine", lambda: None)
    monkeypatch.setattr(target, "need_image", lambda client, digest: image)
    monkeypatch.setattr(target, "for_kind", lambda client, options: options)
    monkeypatch.setattr(target, "with_devices", lambda client, device, options: options)
    spec = spec_of(cell(device="cpu"))._replace(variant=Variant(name="v", image="x", image_digest="sha256:1"))
    options = json.loads(target.command_of(spec, 0).words[-1])
    hidden = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert hidden.items() <= next(field.items() for field in options if isinstance(field, dict) and field)


def test_what_one_process_may_hold_is_looked_for_on_the_boards_that_are_used(in_nvml_process):
    code = "from kit.devices import DEVICES\nprint([DEVICES['gpu'].is_exclusive(count) for count in (1, 2)])"
    second = {"NVML_BOARDS": "2", "NVML_EXCLUSIVE": "1"}
    assert in_nvml_process(code, "exclusive", **second) == "[False, True]\n"
    assert in_nvml_process(code, "exclusive", CUDA_VISIBLE_DEVICES="1", **second) == "[True, True]\n"

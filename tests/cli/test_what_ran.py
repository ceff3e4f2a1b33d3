"""What a launch of a program records of what ran: the framework of its results, threads and their CPUs, caches."""

import os

import pytest
from kit_process import kit
from small_suite import measure

from kit.audit.audit import audit
from kit.audit.subject import MeasuredRun
from kit.compare.compare import compare_within
from kit.profile.store import read_profile

SUITE = 'name = "ran"\ntitle = "What ran"\n[cells]\nbatches = [64]\ntasks = ["infer"]\n[programs]\n'
PROGRAMS = """
import os

def torch_net(batch):
    import torch
    net, x = torch.nn.Linear(512, 1024), torch.rand(256, 512)
    def step():
        with torch.inference_mode():
            return net(x)
    return torch, step

def torch_alone(batch, device):
    return torch_net(batch)[1]

def one_thread(batch, device):
    torch, step = torch_net(batch)
    torch.set_num_threads(1)
    return step

def one_thread_in_its_step(batch, device):
    torch, step = torch_net(batch)
    def step_with_one():
        torch.set_num_threads(1)
        return step()
    return step_with_one

def one_thread_in_its_pool(batch, device):
    os.environ["NPROC"] = "1"
    return jax_beside_torch(batch, device)

def bound_by_the_program(batch, device):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    return torch_net(batch)[1]

def bound_by_psutil(batch, device):
    import psutil
    psutil.Process().cpu_affinity(psutil.Process().cpu_affinity()[-1:])
    return torch_net(batch)[1]

def jax_beside_torch(batch, device):
    import torch, jax, jax.numpy as jnp
    f, x = jax.jit(lambda x: jnp.tanh(x @ x.T)), jnp.ones((256, 512))
    return lambda: f(x)

def keras_on_torch(batch, device):
    os.environ["KERAS_BACKEND"] = "torch"
    import jax, keras, numpy as np
    net, x = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(64)]), np.ones((batch, 64), np.float32)
    return lambda: net(x)

def two_frameworks(batch, device):
    import torch, jax.numpy as jnp
    a, b = torch.ones(batch, 64), jnp.ones((batch, 64))
    return lambda: {"torch": a * 2, "jax": [b * 2]}

def numpy_alone(batch, device):
    import torch, numpy as np
    x = np.ones((batch, 256), np.float32)
    return lambda: (x @ x.T, 1.0)

def a_number(batch, device):
    import torch
    net, x = torch.nn.Linear(64, 64), torch.rand(batch, 64)
    return lambda: float(net(x).sum())
"""


def ran(folder, *names, **measured):
    """Return the profile of a run of these programs, and their first launches by name."""
    (folder / "programs.py").write_text(PROGRAMS)
    programs = "".join(f'{name}.path = "programs.py:{name}"\n' for name in names)
    suite = SUITE + programs + measure(energy_s=0, **measured)
    (folder / "ran.toml").write_text(suite)
    done = kit(folder, "run", "ran.toml", "--out", "run.json", "--no-energy")
    assert done.returncode == 0, done.stderr
    profile = read_profile(folder / "run.json")
    return profile, {result.cell.workload: result.launches[0] for result in profile.cells}


def codes(profile):
    """The findings on cells, by rule and by program."""
    findings = audit([MeasuredRun("run", profile)]).findings
    return {(finding.code, finding.cell_key.partition("/")[0]) for finding in findings}


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_framework_is_that_of_the_results_and_all_that_are_loaded_are_recorded(tmp_path):
    pytest.importorskip("torch"), pytest.importorskip("jax"), pytest.importorskip("keras")
    names = ("jax_beside_torch", "keras_on_torch", "two_frameworks", "numpy_alone", "a_number")
    _, launches = ran(tmp_path, *names)
    of_results = {
        name: [known.split()[0] for known in launch.backend_version.split(", ")] for name, launch in launches.items()
    }
    assert of_results == {
        "jax_beside_torch": ["jax"], "keras_on_torch": ["torch"], "two_frameworks": ["torch", "jax"],
        "numpy_alone": ["numpy"], "a_number": ["torch"],
    }  # fmt: skip
    loaded = {name: set(launch.frameworks) for name, launch in launches.items()}
    assert loaded["jax_beside_torch"] >= {"jax", "torch", "jaxlib", "numpy"}
    assert loaded["keras_on_torch"] >= {"keras", "torch", "jax"} and loaded["numpy_alone"] >= {"numpy", "torch"}
    assert launches["two_frameworks"].threads.reason.code == "threads_of_several_frameworks"
    assert launches["numpy_alone"].threads.reported is None


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="threads need two CPUs")
def test_threads_are_those_that_hold_in_the_blocks_and_so_are_their_cpus(tmp_path):
    pytest.importorskip("torch"), pytest.importorskip("jax")
    cpus = sorted(os.sched_getaffinity(0))
    bound = ("bound_by_the_program", "bound_by_psutil")
    held_back = ("one_thread", "one_thread_in_its_step", "one_thread_in_its_pool")
    # The kernel's ticks show which threads computed, if they have computed for long enough.
    profile, launches = ran(tmp_path, "torch_alone", *held_back, *bound, cycles=4, block_s=0.5)
    reported = {name: launch.threads.reported for name, launch in launches.items()}
    assert reported == dict.fromkeys(held_back, 1) | dict.fromkeys(("torch_alone", *bound), len(cpus))
    placed = {name: [alike.cpus for alike in launches[name].threads.placement] for name in ("torch_alone", *bound)}
    assert placed == {"torch_alone": [cpus], bound[0]: [cpus[:1]], bound[1]: [cpus[-1:]]}
    findings = codes(profile)
    assert {name for code, name in findings if code == "program_binds_threads"} == {*bound}
    assert any(code == "threads_differ" for code, _ in findings)
    rows = {row.name: row for row in compare_within("run", profile).rows}
    assert [rows[name].kept_apart for name in ("one_thread", *bound)] == ["", "bound_threads", "bound_threads"]


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="threads need two CPUs")
@pytest.mark.parametrize("variable", ["GOMP_CPU_AFFINITY", "OMP_PLACES"])
def test_a_variable_that_binds_threads_is_named(tmp_path, variable):
    pytest.importorskip("torch")
    cpu = sorted(os.sched_getaffinity(0))[0]
    value = f"{{{cpu}}}" if variable == "OMP_PLACES" else str(cpu)
    words = ("run", "--quick", "--backend", "torch", "--workload", "mlp", "--task", "infer", "--data", "synthetic")
    done = kit(tmp_path, *words, "--rounds", "1", "--no-energy", "--out", "run.json", **{variable: value})
    assert done.returncode == 0, done.stderr
    (finding,) = [
        finding
        for finding in audit([MeasuredRun("run", read_profile(tmp_path / "run.json"))]).findings
        if finding.code == "threads_bound"
    ]
    assert finding.values["variables"] == f"{variable}={value}"
    assert (finding.values["cpus"], finding.remedy.values["unset"]) == (1, f"env -u {variable} ")


CACHES = """
import os

def jax_step(batch):
    import jax, jax.numpy as jnp
    f, x = jax.jit(lambda x: jnp.tanh(x @ x.T)), jnp.ones((batch, 64))
    return lambda: f(x)

def by_variable(batch, device):
    return jax_step(batch)

def by_its_code(batch, device):
    import jax
    jax.config.update("jax_compilation_cache_dir", os.path.abspath("by_code"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    return jax_step(batch)

def switched_on_by_its_code(batch, device):
    import jax
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_compilation_cache_dir", os.path.abspath("switched_on"))
    return jax_step(batch)

def by_inductor(batch, device):
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.abspath("inductor")
    import torch
    import torch._inductor.config
    x = torch.ones(batch, 64)
    return lambda: x * 2
"""


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_program_compiles_anew_or_is_said_to_keep_its_compilations(tmp_path):
    pytest.importorskip("torch"), pytest.importorskip("jax")
    (tmp_path / "caches.py").write_text(CACHES)
    names = ("by_variable", "by_its_code", "switched_on_by_its_code", "by_inductor")
    programs = "".join(f'{name}.path = "caches.py:{name}"\n' for name in names)
    (tmp_path / "ran.toml").write_text(SUITE + programs + measure(1, energy_s=0))
    given = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "given"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "given_too"),
    }
    done = kit(tmp_path, "run", "ran.toml", "--out", "run.json", "--no-energy", **given)
    assert done.returncode == 0, done.stderr
    assert "JAX_COMPILATION_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR is ignored: every round compiles anew" in done.stderr
    profile = read_profile(tmp_path / "run.json")
    launches = {result.cell.workload: result.launches[0] for result in profile.cells}
    assert {name: launch.compile_cache for name, launch in launches.items()} == {
        "by_variable": None, "by_its_code": None, "switched_on_by_its_code": "jax_compilation_cache_dir",
        "by_inductor": "TORCHINDUCTOR_CACHE_DIR",
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} & {"given", "given_too", "by_code"} == set()
    # Of what was given that is recorded which the worker had, and nothing that Steadykit has set.
    assert set(launches["by_variable"].environment) - {*os.environ} == {*given} - {"TORCHINDUCTOR_CACHE_DIR"}
    rows = {row.name: row for row in compare_within("run", profile).rows}
    marked = {name for name in names if any(mark.code == "keeps_compilations" for mark in rows[name].marks)}
    assert marked == {"switched_on_by_its_code", "by_inductor"}

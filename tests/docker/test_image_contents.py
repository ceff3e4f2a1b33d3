import pytest

from kit.version import __version__

pytestmark = pytest.mark.docker


def python(run, code, **options):
    ended = run("-c", code, entrypoint="python", **options)
    assert ended.status == 0, ended.stderr
    return ended.stdout.strip()


def test_it_runs_without_a_network_as_nobody_in_particular(run):
    assert __version__ in run("--version").stdout
    assert run("-u", entrypoint="id").stdout.strip() == "1000"


def test_no_gpu_runtime_is_in_it(run):
    code = "import importlib.metadata as m; print(*sorted(d.name.lower() for d in m.distributions()))"
    installed = set(python(run, code).split())
    assert {"torch", "jax", "flax", "tensorflow-cpu"} <= {name.replace("_", "-") for name in installed}
    assert {name for name in installed if name.startswith(("nvidia", "cuda", "triton"))} <= {"nvidia-ml-py"}


def test_torch_compiles_as_a_user_without_a_name(run):
    code = "import torch; print(torch.compile(lambda x: x.sin() + 1)(torch.zeros(3)).tolist())"
    assert python(run, code, user="54321:54321") == "[1.0, 1.0, 1.0]"


def test_tcmalloc_is_there_for_variants_that_ask_for_it(run):
    code = "import ctypes; ctypes.CDLL('libtcmalloc_minimal.so.4'); print('loaded')"
    assert python(run, code) == "loaded"

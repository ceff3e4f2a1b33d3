import pytest

from kit.version import __version__

pytestmark = pytest.mark.docker


def python(run, code, **options):
    ended = run("-c", code, entrypoint="python", **options)
    assert ended.status == 0, ended.stderr
    return ended.stdout.strip()


def test_help_and_version_need_no_network(run):
    ended = run("--help")
    assert (ended.status, ended.stderr) == (0, "")
    assert "compare" in ended.stdout
    assert __version__ in run("--version").stdout


def test_it_is_labelled_and_says_which_image_it_is(client, image):
    config = client.images.get(image).attrs["Config"]
    assert config["Labels"]["org.opencontainers.image.version"] == __version__
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert f"KIT_IMAGE=steadykit:cpu-{__version__}" in config["Env"]


def test_it_runs_as_nobody_in_particular(client, image, run):
    assert client.images.get(image).attrs["Config"]["User"] == "1000:1000"
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

"""Every environment variable of Steadykit: its name, who sets it, its default and what it does.

The code takes the names from here, and `docs/generate.py` writes docs/reference/environment.md from it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

# Of frameworks' variables these are none. Terraform's share TensorFlow's prefix, and some are credentials. The
# Makefile's TORCH_INDEX says where PyTorch was installed from. The others are labels of images, and places.
NOT_OF_FRAMEWORKS = (
    "TF_VAR_", "TF_HTTP_", "TF_CLI_", "TF_CLOUD_", "TORCH_INDEX",
    "NVIDIA_REQUIRE_", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_PRODUCT_NAME", "NVIDIA_BUILD_ID",
    "CUDA_VERSION", "CUDA_DRIVER_VERSION", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT",
)  # fmt: skip

SetBy = Literal["you", "variant", "kit"]


class Variable(NamedTuple):
    """What the reference says of a variable; Markdown."""

    name: str
    set_by: SetBy
    default: str  # what holds where it is not set
    does: str


VARIABLES: list[Variable] = []


def _variable(name: str, set_by: SetBy, default: str, does: str) -> str:
    """Add a variable to the reference; return its name."""
    VARIABLES.append(Variable(name, set_by, default, does))
    return name


DATA = _variable("KIT_DATA", "you", "`steadykit` in the user's cache folder",
    "Names the folder that holds one folder for each data set. The folder must exist.")  # fmt: skip
ENGINE = _variable("KIT_ENGINE", "you", "Docker, or Podman where Docker does not answer",
    "Chooses the container engine: `docker` or `podman`.")  # fmt: skip
PYTHON_PREFIX = _variable("KIT_PYTHON_", "you", "the Python that runs `kit`",
    "Names the Python interpreter for the workers of one framework. The framework's name in upper case follows: "
    "`KIT_PYTHON_TENSORFLOW`, `KIT_PYTHON_TORCH`, `KIT_PYTHON_JAX`, and `KIT_PYTHON_PROGRAM` for user programs.",
)  # fmt: skip
PHASE_LIMIT_S = _variable("KIT_PHASE_LIMIT_S", "you", "900",
    "Sets how many seconds one phase of a worker can take. After that Steadykit ends the worker, and the launch fails.",
)  # fmt: skip
GPU_FILE = _variable("KIT_GPU_FILE", "you", "an allowance of 1.5 s",
    "Names the file that `kit selftest --device gpu` wrote. The energy of that GPU then allows for the sensor lag that "
    "the self-test measured.")  # fmt: skip
POWERCAP_ROOT = _variable("KIT_POWERCAP_ROOT", "you", "`/sys/class/powercap`",
    "Names the folder of the kernel's energy counters. `kit launch --rapl` sets it in the container.")  # fmt: skip

FRAMEWORK_DEFAULTS = _variable("KIT_FRAMEWORK_DEFAULTS", "variant", "0",
    "With 1, Steadykit leaves the cuDNN search and the GPU memory as the framework sets them.")  # fmt: skip
PROCESS_EACH = _variable("KIT_PROCESS_EACH", "variant", "0",
    "With 1, each device has its own process, even where one process can drive all devices.")  # fmt: skip
NO_ALL_REDUCE = _variable("KIT_NO_ALL_REDUCE", "variant", "0",
    "With 1, devices do not average their gradients. The difference to a normal step is the cost of communication; the "
    "trained weights are of no use.")  # fmt: skip
COLLECTIVE_PACK_B = _variable("KIT_COLLECTIVE_PACK_B", "variant", "0: one pack for all gradients",
    "Sets the bytes in one pack of gradients in TensorFlow. TensorFlow can average a pack while it computes later "
    "gradients.")  # fmt: skip
TORCH_OPTIMIZER = _variable("KIT_TORCH_OPTIMIZER", "variant", "PyTorch chooses",
    "Chooses the implementation of PyTorch's optimizer: `foreach` or `fused`.")  # fmt: skip
TORCH_LAYOUT = _variable("KIT_TORCH_LAYOUT", "variant", "`channels_first` on a GPU but for bfloat16",
    "Chooses how PyTorch keeps images and the weights of convolutions in memory: `channels_last` or `channels_first`.",
)  # fmt: skip
JAX_DONATE = _variable("KIT_JAX_DONATE", "variant", "1",
    "With 0, a training step in JAX does not donate its state, so that XLA writes the new state into new memory.",
)  # fmt: skip
COMPILE_CACHE = _variable("KIT_COMPILE_CACHE", "variant", "a folder of the run",
    "Set to nothing, it makes a variant of `kit run --reuse-compiled` compile in every round, to compare the two.",
)  # fmt: skip

# All values of those that have no others.
CHOICES = {
    **dict.fromkeys((FRAMEWORK_DEFAULTS, PROCESS_EACH, NO_ALL_REDUCE, JAX_DONATE), ("0", "1")),
    TORCH_OPTIMIZER: ("foreach", "fused"),
    TORCH_LAYOUT: ("channels_last", "channels_first"),
}

IMAGE = _variable("KIT_IMAGE", "kit", "", "Names the container image, for the profile.")
IMAGE_DIGEST = _variable("KIT_IMAGE_DIGEST", "kit", "", "Gives the digest of the container image, for the profile.")
REVISION = _variable("KIT_REVISION", "kit", "", "Gives the git revision of Steadykit in an image, for the profile.")
COMMAND = _variable("KIT_COMMAND", "kit", "", "Gives the command that messages name for resuming a run.")
FLEET_PLAN = _variable("KIT_FLEET_PLAN", "kit", "", "Names the file of a fleet's plan to ReFrame.")

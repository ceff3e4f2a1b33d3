"""A user program: it brings its own framework."""

from kit.backends.entry import BackendEntry
from kit.backends.jax.about import ENTRY as JAX
from kit.backends.tensorflow.about import ENTRY as TENSORFLOW
from kit.backends.torch.about import ENTRY as TORCH
from kit.profile.cell import OWN

ENTRY = BackendEntry(
    name="program",
    title="program",
    rank=9,
    module="numpy",  # every interpreter that runs workers has it
    distributions=("numpy",),
    packages=(),
    compile_modes=(OWN,),
    precisions=(OWN,),
    feeds=(OWN,),
    # Which of them it reads is its own affair.
    decided_by=(*TENSORFLOW.decided_by, *TORCH.decided_by, *JAX.decided_by),
    environment_prefixes=(*TENSORFLOW.environment_prefixes, *TORCH.environment_prefixes, *JAX.environment_prefixes),
    environment={**TENSORFLOW.environment, **JAX.environment},
    compile_cache={**TENSORFLOW.compile_cache, **JAX.compile_cache, **TORCH.compile_cache},
    compile_anew={**TENSORFLOW.compile_anew, **JAX.compile_anew, **TORCH.compile_anew},
    start_s=1.0,  # a program without a framework; a run says "at least"
    sharing={**TENSORFLOW.sharing, **JAX.sharing},
    builds_workloads=False,
)

# These axes have one value in a suite of user programs.
OWN_AXES = {
    "backends": [ENTRY.name],
    "compile_modes": list(ENTRY.compile_modes),
    "precisions": list(ENTRY.precisions),
    "feeds": list(ENTRY.feeds),
}

"""A backend that starts at once: the faults are not a framework's."""

from kit.backends.entry import BackendEntry

ENTRY = BackendEntry(
    name="plain",
    title="Plain NumPy",
    rank=9,
    module="numpy",
    distributions=("numpy",),
    packages=("numpy",),
    compile_modes=("eager",),
    data_parallel={"cpu": "ranks"},
)

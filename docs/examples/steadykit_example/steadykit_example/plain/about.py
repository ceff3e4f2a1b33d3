"""NumPy as a backend: what Steadykit knows before it imports the backend."""

from kit.backends.entry import BackendEntry

ENTRY = BackendEntry(
    name="plain",
    title="Plain NumPy",
    rank=8,
    module="numpy",
    distributions=("numpy",),
    packages=("numpy",),
    compile_modes=("eager",),
)

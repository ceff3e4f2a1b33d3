"""A worker whose TPUs are JAX' forced host devices, all but the first.

They run the real program on a device of their own, asynchronously. KIT_TEST_PLACE is what they say they are.

Usage: ``python host_as_tpu.py``, as ``python -m kit.worker``.
"""

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"

import jax

from kit.backends.program import backend
from kit.worker.__main__ import main

HOST = jax.devices, jax.local_devices


def devices(backend=None):
    return HOST[0]("cpu")[1:] if backend == "tpu" else HOST[0](backend)


def local_devices(*, backend=None):
    return HOST[1](backend="cpu")[1:] if backend == "tpu" else HOST[1](backend=backend)


jax.devices, jax.local_devices = devices, local_devices
backend._KINDS["cpu"] = os.environ["KIT_TEST_PLACE"]

sys.exit(main())

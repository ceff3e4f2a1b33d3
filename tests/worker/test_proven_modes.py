"""A switch in the environment under which another mode runs than the cell's, by a real worker."""

import pytest
from real_worker import GROUP, block_of, cell, launch_of, spec_of, worker_of

from kit.compare.contradictions import against_mode, is_shown, lower_precision

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


@pytest.mark.parametrize(
    ("backend", "mode", "variables", "against", "lowered"),
    [
        ("torch", "compile", {"TORCHDYNAMO_DISABLE": "1"}, "compiler_off", {}),
        ("torch", "eager", {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16"}, None, {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16"}),
        (
            "tensorflow", "graph", {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"},
            "compiled_nonetheless", {},
        ),
        (
            "jax", "jit", {"JAX_DEFAULT_MATMUL_PRECISION": "bfloat16"},
            None, {"jax_default_matmul_precision": "bfloat16"},
        ),
    ],
)  # fmt: skip
def test_a_launch_shows_what_ran_instead(backend, mode, variables, against, lowered):
    asked = cell(backend, compile_mode=mode)
    with worker_of(spec_of(asked, proves=True, env=variables)) as worker:
        worker.build(asked.key, GROUP)
        worker.warm_up(asked.key, GROUP)
        worker.add(asked.key, GROUP, *block_of(worker, asked.key, 0, 0.05))
        worker.conclude(asked.key)
        worker.finish()
        launch = launch_of(worker, asked)
    assert launch.failure is None
    assert is_shown(asked, launch)
    shown = against_mode(asked, launch)
    assert against == (None if shown is None else shown.code)
    assert lower_precision(asked, launch) == lowered
    assert launch.recompiles.count in (0, None)

"""The recommended loops do the work of the kit's networks: as many parameters, outputs of their shape, a falling loss.

What is compared is printed: `python -m pytest -s tests/bench/check_recommended_loops.py`. Three minutes.
"""

import importlib

import numpy as np
import pytest
from bench_recommended_loop import LOOPS, NETWORKS
from recommended.sizes import PARAMETERS

from kit.backends.backend_catalog import load
from kit.workloads.made_data import synthetic
from kit.workloads.seeded_arrays import batch_pool, initial_weights
from kit.workloads.workload_catalog import DATASETS, workload

# A loss that is read as a number needs no gradient any more.
pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad"),
]

BATCH = 32
# On one batch, over and over; Adadelta at its rate of 0.001 is by far the slowest.
STEPS, ADADELTA_STEPS = 40, 150


@pytest.fixture(scope="module", params=NETWORKS)
def network(request):
    """Return a network and a batch of it."""
    named = workload(request.param, PARAMETERS.get(request.param, {}))
    data = synthetic(DATASETS[named.data])
    return named, batch_pool(named, data, data.load("test"), BATCH, seed=0)[0]


@pytest.mark.parametrize(("backend", "loop"), [(backend, loop) for backend, loops in LOOPS.items() for loop in loops])
def test_a_recommended_loop_does_the_same_work(backend, loop, network):
    kit_network, batch = network
    load(backend)
    loops_module = importlib.import_module(f"recommended.{backend}_loops")
    train, infer = (loops_module.loops(kit_network.name, task)[loop] for task in ("train", "infer"))
    resident = loops_module.put(batch.inputs, batch.targets)
    shape = tuple(infer.step(resident).shape)
    steps = ADADELTA_STEPS if kit_network.name == "cnn" else STEPS
    losses = [float(train.step(resident)) for _ in range(steps)]
    ends = np.mean(losses[: steps // 4]), np.mean(losses[-steps // 4 :])
    print(f"\n{backend} {kit_network.name} {loop}: {train.parameters} parameters, loss {ends[0]:.4f} to {ends[1]:.4f}")
    *_, last = kit_network.placed_layers()
    assert (
        train.parameters
        == infer.parameters
        == sum(weights.size for weights in initial_weights(kit_network, 0).values())
    )
    # Of tokens, an answer needs the logits of the last alone.
    assert shape == (BATCH, *last.layer.output_shape(last.input_shape)[-1:])
    assert np.isfinite(losses).all()
    assert ends[1] < ends[0]

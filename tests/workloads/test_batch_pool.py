from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.workloads.datasets import MNIST, Samples
from kit.workloads.seeded_arrays import POOL_BATCHES, Epochs, HostBatch, batch_pool, pool_sha256, scoring_batches
from kit.workloads.workload_catalog import WORKLOADS

MLP, CNN = WORKLOADS["mlp"], WORKLOADS["cnn"]
SAMPLES = 1000


def numbered(samples: int):
    """Images that carry their own number in the first two pixels, and labels that go with it."""
    images = np.random.default_rng(0).integers(0, 256, (samples, 28, 28), dtype=np.uint8)
    images[:, 0, 0], images[:, 0, 1] = np.arange(samples) // 256, np.arange(samples) % 256
    return Samples(images, (np.arange(samples) % 10).astype(np.uint8))


NUMBERED = numbered(SAMPLES)


def pool_of(workload, batch, seed=0, samples=NUMBERED):
    return batch_pool(workload, MNIST, samples, batch, seed=seed)


def numbers(batches: list[HostBatch]) -> list[int]:
    """Which samples are in the batches."""
    flat = np.concatenate([batch.inputs.reshape(len(batch.targets), -1) for batch in batches])
    pixels = np.rint(flat[:, :2] * 255).astype(int)
    return (pixels[:, 0] * 256 + pixels[:, 1]).tolist()


@pytest.mark.parametrize("workload", [MLP, CNN], ids=["mlp", "cnn"])
@pytest.mark.parametrize("cut", [lambda w: pool_of(w, 7), lambda w: scoring_batches(w, MNIST, NUMBERED, 7)])
def test_a_batch_is_what_the_contract_says(workload, cut):
    for batch in cut(workload):
        assert batch.inputs.shape == (7, *workload.input_shape) and batch.targets.shape == (7,)
        assert batch.inputs.dtype == np.float32 and batch.targets.dtype == np.int32
        assert all(array.flags.c_contiguous and array.flags.writeable for array in batch)
        assert all(array.ctypes.data % 64 == 0 for array in batch)
        assert batch.inputs.min() >= 0 and batch.inputs.max() <= 1


@given(batch=st.integers(1, SAMPLES), seed=st.integers(0, 2**32))
def test_no_sample_is_in_a_pool_twice(batch, seed):
    pool = pool_of(MLP, batch, seed)
    assert len(pool) == min(POOL_BATCHES, SAMPLES // batch)
    chosen = numbers(pool)
    assert len(set(chosen)) == len(chosen) == len(pool) * batch
    targets = np.concatenate([batch.targets for batch in pool])
    np.testing.assert_array_equal(targets, NUMBERED.targets[chosen])
    pixels = np.concatenate([batch.inputs.reshape(-1, 28, 28) for batch in pool])
    np.testing.assert_array_equal(pixels, NUMBERED.inputs[chosen].astype(np.float32) / np.float32(255))


def test_the_seed_decides_and_the_hash_sees_it():
    pools = [pool_of(MLP, 32, seed) for seed in (5, 5, 6)]
    hashes = [pool_sha256(pool) for pool in pools]
    assert hashes[0] == hashes[1] != hashes[2]
    assert numbers(pools[0]) != sorted(numbers(pools[0]))


def test_the_same_pool_on_every_machine():
    """NumPy may change `permutation` between versions (NEP 19). Then old and new profiles ran on other batches."""
    images = np.arange(50 * 784, dtype=np.uint32).astype(np.uint8).reshape(50, 28, 28)
    labels = (np.arange(50) % 10).astype(np.uint8)
    sha256 = pool_sha256(pool_of(MLP, 8, 0, Samples(images, labels))[:4])
    assert sha256 == "2777c9931905d49e4ec3c8760179096cd8472f3b2c430b8ca49bd45a3c3a0b47"


def test_scoring_is_in_order_and_fills_the_last_batch_up():
    batches = scoring_batches(MLP, MNIST, NUMBERED, 128)
    assert [len(batch.targets) for batch in batches] == [128] * 8
    assert numbers(batches) == [*range(1000), *range(24)]


def test_each_epoch_has_every_batch_once_in_an_order_of_its_own():
    epochs = Epochs(MLP, MNIST, NUMBERED, 7, seed=3)
    assert epochs.steps == 142
    orders = [epochs.order(epoch) for epoch in range(3)]
    assert all(sorted(order) == list(range(142)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert Epochs(MLP, MNIST, NUMBERED, 7, seed=3).order(1) == orders[1]
    chosen = numbers([epochs.host_batch(place) for place in orders[0]])
    assert len(set(chosen)) == 994
    # The batches that steps cycle through are the first of an epoch's.
    np.testing.assert_array_equal(epochs.host_batch(0).inputs, pool_of(MLP, 7, 3)[0].inputs)


def test_ranks_gather_parts_of_the_same_batches():
    whole = Epochs(MLP, MNIST, NUMBERED, 8, seed=3)
    parts = [Epochs(MLP, MNIST, NUMBERED, 8, seed=3, part=part, parts=2) for part in range(2)]
    assert [part.order(1) for part in parts] == [whole.order(1)] * 2
    assert numbers([part.host_batch(5) for part in parts]) == numbers([whole.host_batch(5)])


def test_a_rank_gathers_no_more_than_its_part():
    gathered = []

    class Watched:
        def __getitem__(self, chosen):
            gathered.append(len(chosen))
            return NUMBERED.inputs[chosen]

    samples = Samples(Watched(), NUMBERED.targets)
    assert len(Epochs(MLP, MNIST, samples, 8, seed=3, part=1, parts=2).host_batch(5).targets) == 4
    assert gathered == [4]

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.workloads.catalog import WORKLOADS
from kit.workloads.data.batches import (
    POOL_BATCHES,
    HostBatch,
    batch_pool,
    evaluation_batches,
    pool_sha256,
    samples_in,
)
from kit.workloads.data.errors import DataError

MLP, CNN = WORKLOADS["mlp"], WORKLOADS["cnn"]
SAMPLES = 1000


def numbered(samples: int):
    """Images that carry their own number in the first two pixels, and labels that go with it."""
    images = np.random.default_rng(0).integers(0, 256, (samples, 28, 28), dtype=np.uint8)
    images[:, 0, 0], images[:, 0, 1] = np.arange(samples) // 256, np.arange(samples) % 256
    return images, (np.arange(samples) % 10).astype(np.uint8)


IMAGES, LABELS = numbered(SAMPLES)


def numbers(batches: list[HostBatch]) -> list[int]:
    """Which samples are in the batches."""
    flat = np.concatenate([batch.inputs.reshape(len(batch.targets), -1) for batch in batches])
    pixels = np.rint(flat[:, :2] * 255).astype(int)
    return (pixels[:, 0] * 256 + pixels[:, 1]).tolist()


@pytest.mark.parametrize("workload", [MLP, CNN], ids=["mlp", "cnn"])
@pytest.mark.parametrize(
    "cut", [lambda w: batch_pool(w, IMAGES, LABELS, 7, 5, 0), lambda w: evaluation_batches(w, IMAGES, LABELS, 7)]
)
def test_a_batch_is_what_the_contract_says(workload, cut):
    for batch in cut(workload):
        assert batch.inputs.shape == (7, *workload.input_shape) and batch.targets.shape == (7,)
        assert batch.inputs.dtype == np.float32 and batch.targets.dtype == np.int32
        assert all(array.flags.c_contiguous and array.flags.writeable for array in batch)
        assert all(array.ctypes.data % 64 == 0 for array in batch)
        assert batch.inputs.min() >= 0 and batch.inputs.max() <= 1


@given(batch=st.integers(1, SAMPLES), pool_batches=st.integers(1, 80), seed=st.integers(0, 2**32))
def test_no_sample_is_in_a_pool_twice(batch, pool_batches, seed):
    pool = batch_pool(MLP, IMAGES[:, :, :], LABELS, batch, pool_batches, seed)
    assert len(pool) == min(pool_batches, SAMPLES // batch)
    chosen = numbers(pool)
    assert len(set(chosen)) == len(chosen) == len(pool) * batch
    targets = np.concatenate([batch.targets for batch in pool])
    np.testing.assert_array_equal(targets, LABELS[chosen])


def test_inputs_are_the_pixels_over_255():
    (batch,) = batch_pool(CNN, IMAGES, LABELS, 100, 1, 3)
    chosen = numbers([batch])
    np.testing.assert_array_equal(batch.inputs[..., 0], IMAGES[chosen].astype(np.float32) / np.float32(255))


def test_both_networks_get_the_same_numbers_in_their_own_shape():
    for flat, image in zip(
        batch_pool(MLP, IMAGES, LABELS, 9, 4, 1), batch_pool(CNN, IMAGES, LABELS, 9, 4, 1), strict=True
    ):
        np.testing.assert_array_equal(flat.inputs, image.inputs.reshape(9, 784))


def test_the_seed_decides_and_the_hash_sees_it():
    pools = [batch_pool(MLP, IMAGES, LABELS, 32, 8, seed) for seed in (5, 5, 6)]
    hashes = [pool_sha256(pool) for pool in pools]
    assert hashes[0] == hashes[1] != hashes[2]
    assert numbers(pools[0]) != sorted(numbers(pools[0]))


def test_the_hash_sees_every_target_and_every_input():
    pool = batch_pool(MLP, IMAGES, LABELS, 4, 2, 0)
    before = pool_sha256(pool)
    pool[1].targets[3] += 1
    changed = pool_sha256(pool)
    pool[1].targets[3] -= 1
    pool[0].inputs[0, 500] += np.float32(0.001)
    assert len({before, changed, pool_sha256(pool)}) == 3


def test_the_same_pool_on_every_machine():
    """NumPy may change `permutation` between versions (NEP 19). Then old and new profiles ran on other batches."""
    images = np.arange(50 * 784, dtype=np.uint32).astype(np.uint8).reshape(50, 28, 28)
    labels = (np.arange(50) % 10).astype(np.uint8)
    assert (
        pool_sha256(batch_pool(MLP, images, labels, 8, 4, 0))
        == "2777c9931905d49e4ec3c8760179096cd8472f3b2c430b8ca49bd45a3c3a0b47"
    )


def test_a_smaller_pool_begins_as_a_larger_one():
    small, large = (numbers(batch_pool(MLP, IMAGES, LABELS, 16, count, 0)) for count in (3, POOL_BATCHES))
    assert large[: len(small)] == small


def test_evaluation_is_in_order_and_leaves_out_the_remainder():
    batches = evaluation_batches(MLP, IMAGES, LABELS, 128)
    assert len(batches) == 7 and samples_in(batches) == 896
    assert numbers(batches) == list(range(896))
    assert samples_in(evaluation_batches(MLP, IMAGES, LABELS, 1000)) == 1000


@pytest.mark.parametrize("batch", [0, -1, 1001])
@pytest.mark.parametrize(
    "cut",
    [
        lambda batch: batch_pool(MLP, IMAGES, LABELS, batch, 4, 0),
        lambda batch: evaluation_batches(MLP, IMAGES, LABELS, batch),
    ],
)
def test_a_batch_that_cannot_be_filled(batch, cut):
    with pytest.raises(DataError, match=f"^batch {batch}: expected 1 to 1000, the number of samples"):
        cut(batch)

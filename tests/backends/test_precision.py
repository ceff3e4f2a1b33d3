"""bfloat16 computes in bfloat16 and keeps its weights in float32; tf32 is the framework's switch."""

import numpy as np
import pytest
import small_workloads as small

pytestmark = pytest.mark.frameworks

# bfloat16 keeps 8 bits: a rounding is up to 2e-3 of a value near 1, and some dozen follow one another here.
FEW_ROUNDINGS = 5e-2
ONE_ROUNDING = 1e-5  # less than this and nothing was rounded: float32 itself parts by 1e-6


@pytest.mark.parametrize("of", small.SEQUENCES, ids=lambda of: of.name)
def test_bfloat16_is_near_float32_and_not_it(exercised, of):
    away = np.abs(exercised.arrays[f"bfloat16/{of.name}"] - exercised.arrays[f"sequences/{of.name}"])
    assert ONE_ROUNDING < away.max() < FEW_ROUNDINGS


@pytest.mark.parametrize("of", small.TRAINED_IN_BFLOAT16, ids=lambda of: of.name)
def test_training_in_bfloat16_keeps_small_updates(exercised, of):
    whole, rounded = (exercised.arrays[f"{name}/train/{of.name}"] for name in ("float32", "bfloat16"))
    assert ONE_ROUNDING < np.abs(rounded - whole).max() < FEW_ROUNDINGS
    # A loss of bfloat16 itself would have eight bits.
    assert (rounded.astype(np.float32).view(np.uint32) & 0xFFFF).any()


@pytest.mark.parametrize("name", ["tensorflow", "torch"])
def test_tf32_is_on_when_asked_for_and_off_again(exercise_of, name):
    assert exercise_of(name).facts["tf32"] == [True, False]

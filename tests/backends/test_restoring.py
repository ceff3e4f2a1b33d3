"""Weights and optimizer state are put back before each block: at new addresses, exactly, and without a compilation."""

import numpy as np
import pytest
import small_workloads as small

from kit.backends.backend_catalog import CATALOG

pytestmark = pytest.mark.frameworks

# Every rule on a network without state of its own; each kind of layer under one rule.
CASES = [("small_mlp", "rmsprop"), ("small_lstm", "adam")]
MORE = [*(("small_mlp", rule) for rule in small.RULES), *((name, "adam") for name in small.NETWORKS)]
CASES += [pytest.param(*case, marks=pytest.mark.slow) for case in MORE if case not in CASES]


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_the_same_steps_run_again_from_new_addresses(exercised, name, rule):
    mode = CATALOG[exercised.name].compile_modes[0]
    (first, *again), is_new, compiled = exercised.answer("restored", name, rule, mode)
    assert len(set(first.tolist())) == small.STEPS, "training changes the loss"
    for losses in again:
        np.testing.assert_array_equal(losses, first)
    assert all(map(all, is_new)) and is_new[0]
    assert len({made.count for made in compiled}) == 1


@pytest.mark.parametrize(("backend", "mode"), [("torch", "compile"), ("tensorflow", "eager"), ("tensorflow", "xla")])
def test_no_mode_compiles_again(exercise_of, backend, mode):
    (first, *again), is_new, compiled = exercise_of(backend).answer("restored", "small_mlp", "rmsprop", mode)
    for losses in again:
        np.testing.assert_array_equal(losses, first)
    assert all(map(all, is_new)) and is_new[0]
    assert {made.count for made in compiled} == {None if mode == "eager" else 1}

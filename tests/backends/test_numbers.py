"""Each backend's layers, losses, update rules, dropout and precisions against plain NumPy in float64."""

import math

import numpy as np
import numpy_reference as reference
import pytest
import small_workloads as small

from kit.workloads.parity_proof import PARITY_TOLERANCE
from kit.workloads.seeded_arrays import initial_weights

pytestmark = pytest.mark.frameworks

# float32 keeps 1.2e-7; a small network loses less than ten of those.
FLOAT32_TOLERANCE = 2e-6
# bfloat16 keeps 8 bits: a rounding is up to 2e-3 of a value near 1, and some dozen follow one another here.
FEW_ROUNDINGS = 5e-2
# Less than this and nothing was rounded to bfloat16: float32 itself differs by 1e-6.
ROUNDED = 1e-5


@pytest.mark.parametrize(("name", "feed"), [*((name, "device") for name in small.NETWORKS), ("small_cnn", "host")])
def test_outputs_are_those_of_the_formulas(exercised, name, feed):
    network, weights = small.NETWORKS[name], small.moved_weights(small.NETWORKS[name])
    by_hand = [reference.forward(network, weights, batch.inputs) for batch in small.random_batches(network)]
    if network.takes_tokens:
        by_hand = [logits[:, -1] for logits in by_hand]
    outputs, _ = exercised.answer("outputs", name, "float32", feed)
    assert outputs.dtype == np.float32
    np.testing.assert_allclose(outputs, by_hand, atol=FLOAT32_TOLERANCE)


@pytest.mark.parametrize("name", ["small_resnet", "small_gpt"])
def test_training_begins_with_the_loss_of_the_formula(exercised, name):
    network = small.NETWORKS[name]
    by_hand = reference.loss(network, small.moved_weights(network), small.random_batches(network)[0])
    losses = exercised.answer("losses", name)
    assert losses[0] == pytest.approx(by_hand, rel=FLOAT32_TOLERANCE)
    assert len(set(losses)) == small.STEPS


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_decoding_goes_on_as_reading_all_of_it_would(exercised, precision):
    """Each step's logits are those of a whole sequence; behind the last place its first one is written again."""
    network, (steps, _) = small.SMALL_GPT, exercised.answer("decoded", precision)
    weights, sequence = small.moved_weights(network), small.random_batches(network)[0].inputs[:, : network.prompt]
    answered = network.input_shape[0] - network.prompt
    assert len(steps) > answered
    logits = reference.forward(network, weights, sequence)[:, -1]
    for step in steps[:answered]:
        sequence = np.concatenate([sequence, logits.argmax(-1)[:, None]], axis=1)
        logits = reference.forward(network, weights, sequence)[:, -1]
        np.testing.assert_allclose(step, logits, atol=FLOAT32_TOLERANCE if precision == "float32" else FEW_ROUNDINGS)
        if precision == "bfloat16":
            assert np.abs(step - logits).max() > ROUNDED
            logits = step
    if precision == "float32":
        # The token that came last stands at the first place, and sees the prompt alone.
        first = np.concatenate([sequence[:, : network.prompt], logits.argmax(-1)[:, None]], axis=1)
        logits = reference.forward(network, weights, first)[:, -1]
        np.testing.assert_allclose(steps[answered], logits, atol=FLOAT32_TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), [("tensorflow", "xla"), ("torch", "compile")])
def test_a_compiler_answers_as_the_default_mode_does_and_once_for_all_places(exercise_of, name, mode):
    exercised = exercise_of(name)
    written, taken_s = exercised.answer("decoded", "float32", mode)
    np.testing.assert_allclose(written, exercised.answer("decoded", "float32")[0], atol=FLOAT32_TOLERANCE)
    read, _ = exercised.answer("outputs", "small_gpt", "float32", "device", mode)
    np.testing.assert_allclose(read, exercised.answer("outputs", "small_gpt")[0], atol=FLOAT32_TOLERANCE)
    # A compilation takes hundreds of times as long as a step; behind the last place, places come again.
    answered = small.SMALL_GPT.input_shape[0] - small.SMALL_GPT.prompt
    assert min(taken_s[1:answered]) < 20 * min(taken_s[answered:])


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_numbers_of_answers_are_found(exercised, precision):
    numbers, weights = exercised.answer("state_numbers", precision)
    assert numbers == weights


@pytest.mark.parametrize("rule", small.RULES)
def test_losses_follow_the_rule(exercised, rule):
    network = small.small_mlp(rule)
    by_rule = reference.ReferenceMlp(network, initial_weights(network, 0), exercised.name)
    by_hand = np.array([by_rule.step(*batch) for batch in small.random_batches(network)])
    losses, *_ = exercised.answer("rule", rule)
    assert np.max(np.abs(losses - by_hand)) < FLOAT32_TOLERANCE * np.max(np.abs(by_hand))


@pytest.mark.parametrize(
    ("rule", "pair", "agree"),
    [
        ("sgd", ("torch", "tensorflow"), True),
        ("sgd", ("torch", "jax"), True),
        ("adadelta", ("torch", "tensorflow"), True),
        ("adadelta", ("torch", "jax"), True),
        ("rmsprop", ("tensorflow", "jax"), True),
        ("rmsprop", ("torch", "jax"), False),
        ("adam", ("torch", "jax"), True),
        ("adam", ("torch", "tensorflow"), False),
    ],
)
def test_which_frameworks_have_one_formula(exercise_of, rule, pair, agree):
    a, b = (exercise_of(name).answer("rule", rule)[0] for name in pair)
    assert (np.max(np.abs(a - b) / b) <= PARITY_TOLERANCE) == agree


def test_training_from_the_host_begins_with_the_loss_of_the_formula(exercised, exercise_of):
    network = small.SMALL_AUTOENCODER
    losses = exercised.answer("losses", network.name, "float32", "host")
    by_hand = reference.loss(network, small.moved_weights(network), small.random_batches(network)[0])
    assert losses[0] == pytest.approx(by_hand, rel=FLOAT32_TOLERANCE)
    from_device = exercise_of("torch").answer("losses", network.name)
    np.testing.assert_allclose(losses, from_device, rtol=FLOAT32_TOLERANCE)


def test_dropout(exercised):
    """Dropout drops in training, scales what it keeps, and is off everywhere else.

    One feature of 1 goes through dropout into logits (k, 0) with target 0. It is dropped with probability r, else it is
    1 / (1 - r), so the mean loss tends to r ln 2 + (1 - r) ln(1 + exp(-k / (1 - r))).
    """
    losses, *logits = exercised.answer("dropout")
    rate, if_kept = small.DROPOUT_RATE, math.log1p(math.exp(-small.DROPOUT_KERNEL / (1 - small.DROPOUT_RATE)))
    expected = rate * math.log(2) + (1 - rate) * if_kept
    standard_error = (math.log(2) - if_kept) * math.sqrt(rate * (1 - rate) / small.DROPOUT_BATCH)
    assert len(set(losses)) == 3, "each step drops anew, also after a prediction"
    # One false alarm in two million draws; the seeds are fixed besides.
    assert np.max(np.abs(losses - expected)) < 5 * standard_error
    for array in logits:  # of a prediction and of inference: with dropout on, a quarter would be (0, 0)
        np.testing.assert_array_equal(array, np.broadcast_to([small.DROPOUT_KERNEL, 0.0], array.shape))


@pytest.mark.parametrize("name", ["small_cnn", "small_rnn", "small_lstm", "small_transformer", "small_gpt"])
def test_bfloat16_is_near_float32_and_keeps_small_updates(exercised, exercise_of, name):
    rounded, whole = exercised.answer("losses", name, "bfloat16"), exercise_of("torch").answer("losses", name)
    assert ROUNDED < np.abs(rounded - whole).max() < FEW_ROUNDINGS
    # A loss that is computed in bfloat16 has eight bits.
    assert (rounded.astype(np.float32).view(np.uint32) & 0xFFFF).any()


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_every_operation_runs_in_its_precisions_and_leaves_finite_numbers(exercised, device):
    shapes = {"matmul": (64, 64), "triad": (1 << 18,), "copy_in": (1 << 24,), "copy_out": (1 << 24,), "empty": None}
    for name, shape in shapes.items():
        array, output_device, compiled, settings = exercised.answer("operation", device, name, "float32")
        assert array.shape == shape or name == "empty" or (name, exercised.name) == ("triad", "tensorflow")
        assert np.isfinite(array).all()
        assert (output_device, compiled) == ("cpu", 1) and settings, "a CPU stands in the GPU's place"
    # Products of numbers between 0 and 1, 64 at a time.
    whole, rounded = (exercised.answer("operation", device, "matmul", p)[0] for p in ("float32", "bfloat16"))
    assert all(product.min() > 0 and 10 < product.mean() < 22 for product in (whole, rounded))
    assert not np.array_equal(whole, rounded)

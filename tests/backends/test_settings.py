"""Settings that a variant chooses: they take effect, losses stay, and what cannot be is refused in one line."""

import numpy as np
import pytest

from kit.workloads.parity_proof import PARITY_TOLERANCE

pytestmark = pytest.mark.frameworks

# What a variant sets for PyTorch -> foreach and fused of its optimizer; whether weights and inputs are channels last.
TORCH = {
    (): (None, None, True, True),
    (("KIT_TORCH_OPTIMIZER", "foreach"),): (True, None, True, True),
    (("KIT_TORCH_OPTIMIZER", "fused"),): (None, True, True, True),
    (("KIT_TORCH_LAYOUT", "channels_first"),): (None, None, False, False),
    (("KIT_TORCH_LAYOUT", "channels_last"), ("KIT_TORCH_OPTIMIZER", "fused")): (None, True, True, True),
}
REFUSED = [
    ("torch", "KIT_TORCH_OPTIMIZER", "fussed", "choose from foreach, fused; did you mean fused?"),
    ("torch", "KIT_TORCH_LAYOUT", "last", "choose from channels_last, channels_first"),
    ("jax", "KIT_JAX_DONATE", "no", "choose from 0, 1"),
]


@pytest.mark.parametrize("variables", TORCH)
def test_pytorch_computes_the_same_with_what_a_variant_chooses(exercise_of, variables):
    torch = exercise_of("torch")
    losses, settings, effect = torch.answer("chosen", variables)
    np.testing.assert_allclose(losses, torch.answer("chosen", ())[0], rtol=PARITY_TOLERANCE)
    assert effect == TORCH[variables]
    assert {name: value for name, value in settings.items() if name.startswith("KIT_TORCH_")} == dict(variables)


@pytest.mark.parametrize(("variables", "is_last"), [((), False), ((("KIT_TORCH_LAYOUT", "channels_last"),), True)])
def test_on_a_gpu_images_are_channels_first_unless_a_variant_chooses(exercise_of, variables, is_last):
    losses, settings, (*_, kernel, inputs) = exercise_of("torch").answer("chosen", variables, "adam", "gpu")
    np.testing.assert_allclose(losses, exercise_of("torch").answer("chosen", ())[0], rtol=PARITY_TOLERANCE)
    assert (kernel, inputs) == (is_last, is_last)
    assert ("KIT_TORCH_LAYOUT" in settings) == bool(variables)


@pytest.mark.parametrize(("variables", "is_donated"), [((), True), ((("KIT_JAX_DONATE", "0"),), False)])
def test_jax_computes_the_same_without_donation_and_then_keeps_its_first_state(exercise_of, variables, is_donated):
    losses, settings, deleted = exercise_of("jax").answer("chosen", variables)
    np.testing.assert_allclose(losses, exercise_of("jax").answer("chosen", ())[0], rtol=PARITY_TOLERANCE)
    assert set(deleted) == {is_donated}
    assert settings.get("KIT_JAX_DONATE") == dict(variables).get("KIT_JAX_DONATE")


@pytest.mark.parametrize(("backend", "variable", "value", "line"), REFUSED)
def test_a_value_that_is_none_is_refused_with_the_choices(exercise_of, backend, variable, value, line):
    assert exercise_of(backend).answer("refused_choice", ((variable, value),)) == f"{variable}={value}: {line}"


def test_an_optimizer_without_a_fused_form_is_refused_in_one_line(exercise_of):
    refusal = exercise_of("torch").answer("refused_choice", (("KIT_TORCH_OPTIMIZER", "fused"),), "rmsprop")
    assert "has no fused RMSprop here" in refusal
    assert refusal.endswith("leave KIT_TORCH_OPTIMIZER out") and "\n" not in refusal

import pytest
from profile_builder import MS, build_cell, build_result

from kit.profile.launch import Parity
from kit.profile.parity import PARITY_TOLERANCE
from kit.stats.parity_verdict import parity_verdicts, same_losses


def result(backend, shift=0.0, cell_fields=None, **launch_fields):
    return build_result(build_cell(backend, **(cell_fields or {})), [MS], loss_shift=shift, **launch_fields)


def verdict_of(first, *others):
    return parity_verdicts([first, *others])[first.key]


def test_losses_within_tolerance_agree():
    verdict = verdict_of(
        result("torch"), result("jax", PARITY_TOLERANCE / 4), result("tensorflow", -PARITY_TOLERANCE / 2)
    )
    assert verdict.agrees is True
    assert verdict.max_relative_difference == pytest.approx(PARITY_TOLERANCE / 2, rel=1e-3)
    assert len(verdict.against) == 2
    assert (verdict.tolerance, verdict.steps) == (PARITY_TOLERANCE, 20)


def test_losses_beyond_tolerance_disagree():
    assert verdict_of(result("torch"), result("jax", 0.01)).agrees is False


def test_of_three_only_the_odd_one_out_disagrees():
    cells = [result("tensorflow"), result("torch"), result("jax", 0.01)]
    verdicts = parity_verdicts(cells)
    tensorflow, torch, jax = (verdicts[cell.key] for cell in cells)
    assert [verdict.agrees for verdict in (tensorflow, torch, jax)] == [True, True, False]
    assert tensorflow.against == [cells[1].key] and tensorflow.max_relative_difference <= PARITY_TOLERANCE
    assert cells[2].key in tensorflow.reason
    assert jax.against == [cells[0].key, cells[1].key] and jax.max_relative_difference > PARITY_TOLERANCE


def test_without_a_majority_nobody_agrees():
    halves = [result("tensorflow"), result("torch"), result("jax", 0.01)]
    halves.append(result("torch", 0.01, {"compile_mode": "compile"}))
    assert {verdict.agrees for verdict in parity_verdicts(halves).values()} == {False}


def test_a_pair_is_judged_on_its_own():
    def proof(backend, shift=0.0, **launch_fields):
        return result(backend, shift, **launch_fields).launches[0].parity

    odd = proof("jax", 0.01)
    assert same_losses(proof("torch"), proof("tensorflow")) is True
    assert same_losses(odd, proof("torch")) is False
    assert same_losses(odd, odd) is True
    assert same_losses(proof("torch"), None) is None
    assert same_losses(proof("jax", float("nan")), proof("torch")) is False


def test_a_loss_that_is_not_finite_never_agrees():
    broken = result("jax", float("nan"))
    assert verdict_of(result("torch"), broken).agrees is False
    assert verdict_of(broken, result("torch")).max_relative_difference is None


def test_compile_modes_of_one_backend_are_compared_too():
    eager, compiled = result("torch"), result("torch", 0.01, {"compile_mode": "compile"})
    assert verdict_of(eager, compiled).against == [compiled.key]


@pytest.mark.parametrize("other", [{"task": "infer"}, {"batch": 64}, {"workload": "cnn"}, {"feed": "host"}])
def test_other_work_is_nobody_to_compare_with(other):
    verdict = verdict_of(result("torch"), result("jax", 0.5, other))
    assert (verdict.agrees, verdict.against) == (None, [])
    assert verdict.reason


@pytest.mark.parametrize(
    ("change", "word"),
    [({"weights_sha256": "x"}, "weights"), ({"batches_sha256": "x"}, "batches"), ({"losses": [1.0]}, "numbers")],
)
def test_different_starting_points_decide_nothing(change, word):
    fields = {"losses": [2.3 / (1 + step) for step in range(20)], "weights_sha256": "a" * 64} | change
    fields = {"batches_sha256": "b" * 64} | fields
    verdict = verdict_of(result("torch"), result("jax", parity=Parity(**fields)))
    assert verdict.agrees is None
    assert word in verdict.reason


def test_cells_without_losses_say_so():
    verdict = verdict_of(result("torch", parity=None), result("jax"))
    assert verdict.agrees is None
    assert "no launch of this cell" in verdict.reason

"""Rules on what was computed and on the record itself: each planted, and quiet without it."""

import profile_builder as b
import pytest
from asking import outcomes

from kit.profile.launch import Failure, Parity
from kit.profile.reason import reason


def launches(built):
    return [launch for result in built.cells for launch in result.launches]


def with_losses(*, odd=0.0):
    """Three frameworks that compute alike, or the last by `odd` otherwise."""
    built = b.profile(b.group("mlp train", *(b.member(backend) for backend in ("tensorflow", "torch", "jax"))))
    for place, result in enumerate(built.cells):
        factor = 1 + odd * (place == 2)
        result.launches[0].parity = Parity(losses=[factor, 0.5 * factor], weights_sha256="w", batches_sha256="b")
    return built


def test_parity_names_the_odd_cell_and_is_no_pass_without_losses():
    assert outcomes("parity", with_losses()) == ([], [])
    ((finding,), _) = outcomes("parity", with_losses(odd=1e-3))
    assert (finding.severity, "/jax/" in finding.cell_key) == ("bad", True)
    partly = with_losses()
    partly.cells.append(b.profile(b.group("g", b.member("torch", workload="cnn"))).cells[0])
    partly.cells[-1].launches[0].parity = None
    assert outcomes("parity", partly) == ([], ["no_parity"])
    unproved = b.profile(b.group("mlp train", b.member("torch")))
    assert outcomes("parity", unproved) == ([], ["no_parity"])


def diverged(built):
    built.cells[0].launches[1].failure = Failure(phase="steady", reason=reason("output_not_finite"))


def lost_a_cell(built):
    for launch in built.cells[0].launches:
        launch.failure = Failure(phase="build", reason=reason("out_of_device_memory", type="E", message="m"))


def measured_nothing(built):
    built.cells.clear()


def lost_its_sampler(built):
    launches(built)[0].notes.append(reason("sampler_failed", exit_code=-9, error=""))


@pytest.mark.parametrize(
    ("rule", "plant", "severity"),
    [
        ("loss_not_finite", diverged, "bad"),
        ("missing_cell", lost_a_cell, "warning"),
        ("empty_input", measured_nothing, "bad"),
        ("sampling_gaps", lost_its_sampler, "warning"),
    ],
)
def test_a_plant_is_found_and_nothing_without_it(rule, plant, severity):
    assert outcomes(rule, b.profile())[0] == []
    planted = b.profile()
    plant(planted)
    assert [finding.severity for finding in outcomes(rule, planted)[0]] == [severity]

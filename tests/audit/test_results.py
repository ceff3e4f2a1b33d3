"""Losses of cells that should compute the same: the odd one is found, and nothing where they agree or are unknown."""

import profile_builder as b
from asking import outcomes

from kit.profile.schema import Parity


def with_losses(*, odd=0.0):
    """Three frameworks that compute alike, or the last by `odd` otherwise."""
    built = b.profile(b.group("mlp train", *(b.member(backend) for backend in ("tensorflow", "torch", "jax"))))
    for result, factor in zip(built.cells, (1, 1, 1 + odd), strict=True):
        result.launches[0].parity = Parity(losses=[factor, 0.5 * factor], weights_sha256="w", batches_sha256="b")
    return built


def test_parity_names_the_odd_cell_and_is_no_pass_without_losses():
    assert outcomes("parity", with_losses()) == ([], [])
    ((finding,), _) = outcomes("parity", with_losses(odd=1e-3))
    assert (finding.severity, "/jax/" in finding.cell_key) == ("bad", True)
    partly = with_losses()
    partly.cells.append(b.profile(b.group("g", b.member("torch", workload="cnn"))).cells[0])
    partly.cells[-1].launches[0].parity = None
    unproved = b.profile(b.group("mlp train", b.member("torch")))
    assert outcomes("parity", partly) == outcomes("parity", unproved) == ([], ["no_parity"])


def test_a_plain_record_has_no_finding():
    for rule in ("loss_not_finite", "missing_cell", "empty_input", "sampling_gaps"):
        assert outcomes(rule, b.profile())[0] == []

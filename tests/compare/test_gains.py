"""What a device gains over another of the same profile, whose losses are not to the last digit its own."""

import profile_builder as b
import pytest

from kit.compare.gains import gains, places_of


@pytest.mark.parametrize(("away", "blocked"), [(1e-4, None), (0.01, "arithmetic")])
def test_a_gpu_may_round_otherwise_than_the_cpu_beside_it_and_not_compute_otherwise(away, blocked):
    losses = [2.3 / (1 + step) * (1 + away) for step in range(20)]
    parity = b.Parity(losses=losses, weights_sha256="a" * 64, batches_sha256="b" * 64)
    gpu = b.member("torch", 0.5, device="gpu", launch={"parity": parity})
    profile = b.profile(b.group("g", b.member("torch", 2.0), gpu), compare=["device"], drift=0)
    (gain,) = gains(places_of([("run", profile)], None))
    assert (gain.blocked and gain.blocked.kind) == blocked
    assert gain.gain_pct == (None if blocked else pytest.approx(400, rel=0.05))

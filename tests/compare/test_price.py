"""Prices at reading time: planted step times and joules, and what a million samples of them cost."""

import contextlib
import csv
import io

import profile_builder as b
import pytest
from kit_process import invoke

PER_HOUR, PER_KWH = 3.6, 0.36
OF_TIME = 2e-3 / 128 * 1e6 / 3600 * PER_HOUR
OF_ENERGY = 1.32e-3 * 1e6 / 3.6e6 * PER_KWH  # 12 J in 10 s of a block of 11 s with 10,000 samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("priced")
    joules = {"energy": b.energy(12.0, error_fraction=0.02)}
    torch, jax = b.member("torch", 2.0, sd=0.002, launch=joules), b.member("jax", 1.0, sd=0.002, launch=joules)
    b.write(made / "joules.json", b.profile(b.group("mlp train", torch, jax), drift=0.0))
    b.write(made / "none.json", b.profile(b.group("mlp train", b.member("torch", 2.0)), rounds=3))
    gpu = b.member("torch", 0.1, sd=0.002, device="gpu", workload="mlp")
    b.write(made / "gpu.json", b.profile(b.group("mlp train", gpu), id="gpu", identity=b.identity("Other"), drift=0.0))
    return made


def kit(folder, *words):
    with contextlib.chdir(folder):
        return invoke("compare", *words)


def costs(folder, *words):
    result = kit(folder, *words, "--format", "csv")
    assert result.exception is None, result.exception
    rows = csv.DictReader(io.StringIO(result.stdout))
    return {(row["member"], row["device"]): row.get("cost_per_million") for row in rows}


@pytest.mark.parametrize(
    ("prices", "of_time", "of_energy"),
    [
        (["--price-hour", PER_HOUR], OF_TIME, 0.0),
        (["--price-kwh", PER_KWH], 0.0, OF_ENERGY),
        (["--price-kwh", 0], 0.0, 0.0),
        (["--price-hour", PER_HOUR, "--price-kwh", PER_KWH], OF_TIME, OF_ENERGY),
    ],
)
def test_a_million_samples_cost_their_time_and_their_joules(folder, prices, of_time, of_energy):
    priced = costs(folder, "joules.json", *prices)
    assert float(priced["torch", "cpu"]) == pytest.approx(of_time + of_energy, rel=0.01)
    assert float(priced["jax", "cpu"]) == pytest.approx(of_time / 2 + of_energy, rel=0.01)


def test_each_platform_has_the_price_that_names_it(folder):
    both = "joules.json", "gpu.json"
    priced = costs(folder, *both, "--price-hour", "cpu=3.6", "--price-hour", "gpu.json=36")
    assert float(priced["torch", "cpu"]) == pytest.approx(OF_TIME, rel=0.01)
    assert float(priced["torch", "gpu"]) == pytest.approx(OF_TIME / 20 * 10, rel=0.01)
    assert costs(folder, *both, "--price-hour", "3.6", "--price-hour", "gpu=36") == priced
    # A cost of one part beside costs of two would look cheaper.
    assert not costs(folder, *both, "--price-hour", "gpu=36", "--price-kwh", "0.3")["torch", "cpu"]

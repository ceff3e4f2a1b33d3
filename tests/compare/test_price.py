"""Prices at reading time: planted step times and joules, and what a million samples of them cost."""

import contextlib
import csv
import io
import json

import profile_builder as b
import pytest
from click.testing import CliRunner

from kit.cli.app import app

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
        return CliRunner().invoke(app, ["compare", *words], standalone_mode=False)


def rows(folder, *words):
    result = kit(folder, *words, "--format", "csv")
    assert result.exception is None, result.exception
    return {(row["member"], row["cell"] if "cell" in row else row["device"]): row for row in csv_rows(result.stdout)}


def csv_rows(text):
    return list(csv.DictReader(io.StringIO(text)))


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
    costs = rows(folder, "joules.json", *map(str, prices))
    torch, jax = costs["torch", "cpu"], costs["jax", "cpu"]
    assert float(torch["cost_per_million"]) == pytest.approx(of_time + of_energy, rel=0.01)
    assert float(jax["cost_per_million"]) == pytest.approx(of_time / 2 + of_energy, rel=0.01)
    table = kit(folder, "joules.json", *map(str, prices)).stdout
    assert "cost/1M" in table
    assert "a million samples at" in " ".join(table.split())


def test_each_platform_has_the_price_that_names_it(folder):
    costs = rows(folder, "joules.json", "gpu.json", "--price-hour", "cpu=3.6", "--price-hour", "gpu.json=36")
    assert float(costs["torch", "cpu"]["cost_per_million"]) == pytest.approx(OF_TIME, rel=0.01)
    assert float(costs["torch", "gpu"]["cost_per_million"]) == pytest.approx(OF_TIME / 20 * 10, rel=0.01)
    mixed = rows(folder, "joules.json", "gpu.json", "--price-hour", "3.6", "--price-hour", "gpu=36")
    assert mixed["torch", "cpu"]["cost_per_million"] == costs["torch", "cpu"]["cost_per_million"]
    # A cost of one part beside costs of two would look cheaper.
    parts = rows(folder, "joules.json", "gpu.json", "--price-hour", "gpu=36", "--price-kwh", "0.3")
    assert not parts["torch", "cpu"].get("cost_per_million")
    table = kit(folder, "joules.json", "gpu.json", "--price-hour", "cpu=3.6").stdout
    assert table.count("cost/1M ") == 1


def test_without_a_price_nothing_is_said_of_cost(folder):
    assert "cost" not in kit(folder, "joules.json").stdout
    document = json.loads(kit(folder, "joules.json", "--json").stdout)
    assert "cost_per_million" not in document["groups"][0]["rows"][0]["numbers"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["joules.json", "--price-hour", "-1"], "'-1' is not a price"),
        (["joules.json", "--price-hour", "nan"], "'nan' is not a price"),
        (["joules.json", "--price-hour", "inf"], "'inf' is not a price"),
        (["joules.json", "--price-kwh", "cpu="], "'cpu=' is not a price"),
        (["joules.json", "--price-hour", "tpu=1"], "'tpu', which is no side, profile or device; choose from cpu"),
        (["none.json", "--price-kwh", "0.3"], "--price-kwh needs joules"),
        (["joules.json", "--price-hour", "1", "--table", "five-nets"], "leave out"),
    ],
)
def test_what_is_wrong_with_a_price_is_one_line(folder, words, says):
    error = kit(folder, *words).exception
    words = getattr(error, "message", str(error))
    assert says in words
    assert "\n" not in words
    assert error.exit_code == 2

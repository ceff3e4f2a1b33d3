"""What a user asks `kit compare` for: another metric, rows, columns, tables and a filter."""

import contextlib
import csv
import io
import json

import profile_builder as b
import pytest
from kit_process import invoke


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sweep of batches in two frameworks that took turns, on two hosts; jax is faster at batch 64 alone."""
    made = tmp_path_factory.mktemp("asked")
    for host in ("a", "b"):
        members = [
            b.member(backend, 2.0 * batch / 32 / speed, batch=batch, sd=0.004, noise=0.004)
            for backend, batch, speed in (("torch", 32, 1), ("torch", 64, 1), ("jax", 32, 1), ("jax", 64, 1.5))
        ]
        more = {"compare": ["batch", "backend"], "label": f"on {host}", "id": host, "seed": ord(host)}
        identity = b.identity(hostname_sha256=host * 64)
        b.write(made / f"{host}.json", b.profile(b.group("g", *members), identity=identity, drift=0.0, **more))
    apart = [b.group(f"g{batch}", b.member("torch", 2.0, batch=batch)) for batch in (32, 64)]
    b.write(made / "apart.json", b.profile(*apart, id="apart"))
    return made


def kit(folder, *words):
    names = [str(folder / word) if word.endswith(".json") else word for word in words]
    return invoke("compare", *names)


def records(folder, *words):
    result = kit(folder, *words, "--format", "csv")
    assert result.exception is None, result.exception
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_frameworks_stand_side_by_side_with_a_row_for_each_batch(folder):
    rows = {
        (row["member"], row["side"]): row
        for row in records(folder, "a.json", "--rows", "batch", "--columns", "backend")
    }
    assert list(rows) == [("batch 32", "torch"), ("batch 32", "jax"), ("batch 64", "torch"), ("batch 64", "jax")]
    fast, same = rows["batch 64", "jax"], rows["batch 32", "jax"]
    assert fast["verdict"] == "faster" and float(fast["ratio"]) == pytest.approx(1 / 1.5, rel=0.02)
    assert same["verdict"] != "faster" and int(same["comparisons"]) == 2
    turned = records(folder, "a.json", "--rows", "batch", "--columns", "backend", "--baseline", "jax")
    assert [row["verdict"] for row in turned if row["name"] == "batch 64 · torch"] == ["slower"]


def test_hosts_are_rows_and_runs_of_one_row_are_counted_together(folder):
    rows = records(folder, "a.json", "b.json", "--rows", "label", "--columns", "backend", "--filter", "batch=64")
    assert {row["member"] for row in rows} == {"on a", "on b"}
    assert [row["verdict"] for row in rows if row["side"] == "jax"] == ["faster"] * 2
    both = records(folder, "a.json", "b.json", "--columns", "backend", "--rows", "batch", "--split", "suite")
    (fast,) = [row for row in both if row["name"] == "batch 64 · jax"]
    assert (fast["unit"], fast["profiles"]) == ("run", "a b")


def test_beside_a_failed_baseline_the_next_row_with_a_number_is_the_baseline(tmp_path):
    members = [b.member("tensorflow", failed_rounds=b.DEAD), b.member("torch", 2.0), b.member("jax", 1.0)]
    b.write(tmp_path / "run.json", b.profile(b.group("g", *members)))
    document = json.loads(kit(tmp_path, "run.json", "--json").stdout)
    rows = {row["name"]: row for row in document["groups"][0]["rows"]}
    assert document["groups"][0]["baseline"] == "torch" and rows["jax"]["versus"]["verdict"] == "faster"
    assert rows["tensorflow"]["failure"]["code"] == "out_of_memory"


def test_the_table_of_frameworks_at_each_batch_names_the_command_that_makes_the_batches_rows(tmp_path):
    groups = [
        b.group(
            f"g{batch}", *(b.member(backend, 2.0 * speed, batch=batch) for backend, speed in (("jax", 1), ("torch", 2)))
        )
        for batch in (8, 64)
    ]
    b.write(tmp_path / "run.json", b.profile(*groups))
    with contextlib.chdir(tmp_path):
        lines = invoke("compare", "run.json").stdout.splitlines()
        (command,) = [line.removeprefix("side by side: kit ") for line in lines if line.startswith("side by side")]
        rows = list(csv.DictReader(io.StringIO(invoke(*command.split(), "--format", "csv").stdout)))
    assert [(row["member"], row["side"], row["verdict"]) for row in rows if row["side"] == "torch"] == [
        ("batch 8", "torch", "slower"),
        ("batch 64", "torch", "slower"),
    ]

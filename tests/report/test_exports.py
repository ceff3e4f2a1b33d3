"""`kit export`: what each consumer reads, planted values, and what is refused."""

import json
import subprocess
import sys
from itertools import pairwise

import profile_builder as b
import pytest
from kit_process import REPOSITORY, kit
from msgspec.structs import replace

import kit as kit_of_python
from kit.cli.compare_and_audit import run_comparison
from kit.profile.schema import Phase
from kit.profile.store import read_profile, write_profile

REFERENCE = REPOSITORY / "profiles/reference"
FIVE_NETS = REFERENCE / "cpu-epyc-2-vcpu-five-nets.json"
COMMIT = "0123456789" * 4
# Bencher's own: services/console/public/bmf.json of bencherdev/bencher, with the lengths that its API accepts.
NUMBERS = {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")}
FIGURES = {"type": "object", "properties": NUMBERS, "required": ["value"], "additionalProperties": False}
BMF = {
    "type": "object",
    "propertyNames": {"minLength": 1, "maxLength": 1024},
    "patternProperties": {".+": {"type": "object", "patternProperties": {".+": FIGURES}}},
}


@pytest.fixture
def written(tmp_path):
    """A profile of torch at 2 ms and JAX at 1 ms."""
    profile = b.profile(b.group("mlp", b.member("torch", 2.0), b.member("jax", 1.0)), rounds=4, cycles=4, drift=0.0)
    write_profile(tmp_path / "run.json", profile)
    return profile


def exported(folder, *words):
    done = kit(folder, "export", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bencher_reads_times_in_nanoseconds_with_their_interval(written, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(exported(tmp_path, "bmf", "run.json"))
    jsonschema.validate(document, BMF)
    jsonschema.validate(json.loads(exported(tmp_path, "bmf", FIVE_NETS)), BMF)
    latency = next(figures["latency"] for name, figures in document.items() if "/jax/" in name)
    assert latency["value"] == pytest.approx(1e6, rel=0.02)
    assert latency["lower_value"] <= latency["value"] <= latency["upper_value"]


def test_the_github_action_reads_numbers_with_units(written, tmp_path):
    benchmarks = json.loads(exported(tmp_path, "github-benchmark", "run.json"))
    assert all(isinstance(entry["value"], int | float) and entry["unit"] for entry in benchmarks)
    jax = next(entry for entry in benchmarks if "/jax/" in entry["name"] and entry["unit"] == "ms")
    assert jax["value"] == pytest.approx(1.0, rel=0.02) and jax["range"].startswith("± ")


def names_of(format_name, folder, path):
    if format_name == "asv":
        exported(folder, "asv", path, "--commit", COMMIT, "--out", f"{path}.asv")
        (results,) = (folder / f"{path}.asv").glob("*/*-steadykit.json")
        known = json.loads(results.read_text())["results"]
        return [row for _, (rows,), *_ in known.values() for row in rows]
    document = json.loads(exported(folder, format_name, path))
    return list(document) if format_name == "bmf" else [entry["name"] for entry in document]


@pytest.mark.parametrize("format_name", ["bmf", "github-benchmark", "asv"])
def test_a_benchmark_keeps_its_name_when_a_batch_or_a_device_is_added(tmp_path, format_name):
    members = [(device, batch) for device in ("cpu", "gpu") for batch in (64, 256)]
    seen: set[str] = set()
    for count in range(1, len(members) + 1):
        groups = [
            b.group(f"mlp {device} {batch}", b.member("torch", 2.0, device=device, batch=batch))
            for device, batch in members[:count]
        ]
        b.write(tmp_path / f"{count}.json", b.profile(*groups, rounds=3, cycles=4, drift=0.0))
        names = names_of(format_name, tmp_path, f"{count}.json")
        assert len({*names}) == len(names) >= count, "each row has a name of its own"
        assert seen < {*names}, "what was there before keeps its name"
        seen = {*names}


def test_a_trace_has_every_block_where_it_ran(tmp_path):
    profile = read_profile(FIVE_NETS)
    events = json.loads(exported(tmp_path, "trace", FIVE_NETS))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    launches = [launch for result in profile.cells for launch in result.launches]
    blocks = [event for event in slices if event["name"] == "block"]
    assert sorted(event["dur"] for event in blocks) == sorted(
        span_ns / 1e3 for launch in launches for span_ns in launch.blocks.span_ns
    )
    rounds = [event for event in slices if event["name"].startswith("round ")]
    assert len(rounds) == len({launch.round for launch in launches})
    # Each slice lies in its round, and rounds follow each other.
    ends = [(event["ts"], event["ts"] + event["dur"]) for event in rounds]
    assert all(before[1] <= after[0] for before, after in pairwise(ends))
    assert all(any(begin - 1 <= event["ts"] <= end + 1 for begin, end in ends) for event in slices)
    assert {event["name"] for event in events if event["ph"] == "C"} >= {"contention"}
    assert all(event["ts"] >= 0 for event in slices)


def overlapping(events):
    """Slices that overlap another one of their thread in part: Perfetto drops them."""
    dropped, stacks = [], {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        end, stack = event["ts"] + event["dur"], stacks.setdefault(event["tid"], [])
        while stack and stack[-1] <= event["ts"] + 1e-3:  # a nanosecond: stamps are floating-point microseconds
            stack.pop()
        if stack and end > stack[-1] + 1e-3:
            dropped.append(event)
        else:
            stack.append(end)
    return dropped


@pytest.mark.parametrize("name", sorted(path.stem for path in REFERENCE.glob("*.json")))
def test_no_slice_of_a_trace_overlaps_another_in_part(tmp_path, name):
    events = json.loads(exported(tmp_path, "trace", REFERENCE / f"{name}.json"))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert not overlapping(slices)
    stops = [event for event in slices if event["name"] == "stopped"]
    blocks = [event for event in slices if event["name"] == "block"]
    for stop in stops:
        inside = [block for block in blocks if block["tid"] == stop["tid"] and abs(block["ts"] - stop["ts"]) < 60e6]
        assert all(
            block["ts"] + block["dur"] <= stop["ts"] + 1e-3 or block["ts"] >= stop["ts"] + stop["dur"] - 1e-3
            for block in inside
        ), "a process is not stopped while a block of it runs"
    assert min(event["tid"] for event in events if "tid" in event) >= 1


def test_a_span_of_ranks_that_ends_late_is_cut_where_the_next_begins(tmp_path):
    """Its beginning is rank 0's, and its length that of the slowest rank."""
    phases = [Phase(name="first_step", begin_ns=1_000_000, duration_ns=900_000)]
    phases.append(Phase(name="warmup", begin_ns=1_800_000, duration_ns=500_000))
    profile = b.profile(b.group("mlp", b.member("torch", 2.0, launch={"phases": phases})), rounds=1, cycles=4)
    b.write(tmp_path / "run.json", profile)
    events = json.loads(exported(tmp_path, "trace", "run.json"))["traceEvents"]
    by_name = {event["name"].split()[0]: event for event in events if event["ph"] == "X"}
    assert by_name["first_step"]["dur"] == pytest.approx(800) and by_name["warmup"]["dur"] == pytest.approx(500)
    assert not overlapping([event for event in events if event["ph"] == "X"])


def test_parquet_has_the_rows(written, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for level, rows in (("cells", 2), ("blocks", 2 * 4 * 4)):
        exported(tmp_path, "parquet", "run.json", "--level", level, "--out", f"{level}.parquet")
        table = parquet.read_table(tmp_path / f"{level}.parquet")
        steps_ns = [
            ns
            for ns, name in zip(*(table[key].to_pylist() for key in ("step_ns", "backend")), strict=True)
            if name == "jax"
        ]
        assert table.num_rows == rows and sum(steps_ns) / len(steps_ns) == pytest.approx(1e6, rel=0.05)


@pytest.mark.parametrize("level", ["cells", "launches", "blocks"])
def test_a_column_of_parquet_has_one_type_whatever_a_profile_has(tmp_path, level):
    """Readers of several files refuse a column that is a number here, and there another one or null."""
    arrow = pytest.importorskip("pyarrow")
    types, tables = {}, []
    for path in sorted(REFERENCE.glob("*.json")):
        table = kit_of_python.load(path).to_columns(level).to_arrow()
        types |= {field.name: field.type for field in table.schema if field.name not in types}
        assert {field.name: field.type for field in table.schema}.items() <= types.items()
        tables.append(table)
    assert not any(arrow.types.is_null(known) for known in types.values())
    assert arrow.concat_tables(tables, promote_options="default").num_rows == sum(table.num_rows for table in tables)


def test_asv_has_the_times_of_each_commit_and_keeps_earlier_ones(written, tmp_path):
    later = replace(written, id="run-2", created="2026-02-01T00:00:00+00:00")
    write_profile(tmp_path / "later.json", later)
    exported(tmp_path, "asv", "run.json", "--commit", COMMIT, "--out", "asv/results")
    exported(tmp_path, "asv", "later.json", "--commit", COMMIT[::-1], "--out", "asv/results")
    results = sorted((tmp_path / "asv/results").glob("*/*-steadykit.json"))
    assert {file.name for file in results} == {f"{commit[:8]}-steadykit.json" for commit in (COMMIT, COMMIT[::-1])}
    document = json.loads(results[0].read_text())
    (times,) = document["results"].values()
    by_row = dict(zip(times[1][0], times[0], strict=True))
    by_backend = {row.split("/")[1]: step_s for row, step_s in by_row.items()}
    assert by_backend == {"torch": pytest.approx(2e-3, rel=0.02), "jax": pytest.approx(1e-3, rel=0.02)}
    # Another suite at the same commit is added.
    other = b.profile(b.group("cnn", b.member("torch", 4.0, "cnn")), rounds=3, drift=0.0)
    write_profile(tmp_path / "other.json", other)
    exported(tmp_path, "asv", "other.json", "--commit", COMMIT, "--out", "asv/results")
    document = json.loads(results[0].read_text())
    assert len(document["results"]) == 2
    benchmarks = json.loads((tmp_path / "asv/results/benchmarks.json").read_text())
    assert benchmarks.keys() == {*document["results"], "version"}


@pytest.mark.slow
def test_asv_publishes_it(written, tmp_path):
    pytest.importorskip("asv")
    (tmp_path / "repo").mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path / "repo")]
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    exported(tmp_path, "asv", "run.json", "--commit", commit, "--out", "results")
    settings = {"version": 1, "project": "x", "repo": "repo", "branches": ["main"], "environment_type": "virtualenv"}
    (tmp_path / "asv.conf.json").write_text(json.dumps(settings | {"results_dir": "results", "html_dir": "html"}))
    done = subprocess.run(
        [sys.executable, "-m", "asv", "publish"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (graph,) = (tmp_path / "html/graphs").rglob("arch*/**/mlp*.json")
    ((_, steps_s),) = json.loads(graph.read_text())
    assert sorted(steps_s) == pytest.approx([1e-3, 2e-3], rel=0.02)


def test_rows_that_others_disturbed_are_counted_where_the_format_has_no_mark(tmp_path):
    profile = REFERENCE / "cpu-epyc-2-vcpu-dblstm-har-quick.json"
    rows = run_comparison(profile).rows
    disturbed = sum(bool(row.value("is_disturbed")) for row in rows)
    assert disturbed
    for format_name, warning in (("bmf", f" {disturbed} of {len(rows)} rows"), ("github-benchmark", "")):
        done = kit(tmp_path, "export", format_name, profile)
        assert done.returncode == 0 and json.loads(done.stdout)
        assert warning in done.stderr and bool(warning) == bool(done.stderr)

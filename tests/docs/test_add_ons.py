"""The steps of docs/reference/add-ons.md work: a network, its data, a backend, a rule, a metric, a field, a format."""

import csv
import gzip
import re
import shlex

import numpy as np
import profile_builder as b
import pytest
from kit_process import REPOSITORY, copy_kit, kit

from kit.profile.store import read_profile
from kit.workloads.parity_proof import PARITY_STEPS

PLAIN = REPOSITORY / "tests/faults/planted/backends/plain/backend.py"
PAGE = (REPOSITORY / "docs/reference/add-ons.md").read_text()
BLOCK = re.compile(r"```python\n# (kit/[^\s,]+)(?:, )?([^\n]*)\n(.*?)```", re.DOTALL)
FORMAT, METRIC, FIELD = (
    re.search(rf"```python\n# an entry of {name}\n(.*?)```", PAGE, re.DOTALL)[1]
    for name in ("WRITERS", "METRICS", "RUN_FIELDS")
)
# Where an entry goes: a file of the kit, the line that opens its table, and the entry.
ENTRIES = (
    ("compare/metrics", "_METRICS = [\n", METRIC),
    ("compare/axes", "RUN_FIELDS: ", FIELD),
    ("report/formats", "WRITERS: ", FORMAT),
)


def put(tree, path, where, text):
    """Put a block of the page where it says."""
    file = tree / path
    if not where:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    elif where == "an entry of NETWORKS":
        file.write_text(file.read_text().rpartition("]")[0] + text + "]\n")
    elif where == "at its end":
        file.write_text(file.read_text() + "\n\n" + text)
    elif where == "in the place of GAUGES":
        return  # tests/sensors/test_linux.py
    elif where == "among the imports":
        file.write_text(file.read_text().replace("\nfrom kit.", f"\n{text}from kit.", 1))
    else:
        assert where == "a case of _translate"
        file.write_text(file.read_text().replace("        case _:\n", f"{text}        case _:\n", 1))


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    """Run a command of a kit that has all that the page adds, and the page's data set; a profile lies beside it."""
    folder = tmp_path_factory.mktemp("added")
    copy_kit(folder)
    for path, where, text in BLOCK.findall(PAGE):
        put(folder, path, where, text)
    for file, opening, entry in ENTRIES:
        written = folder / f"kit/{file}.py"
        before, opened, rest = written.read_text().partition(opening)
        line, after = ("", rest) if opened.endswith("\n") else rest.split("\n", 1)
        written.write_text(f"{before}{opened}{line}{chr(10) if line else ''}{entry}{after}")
    put(folder, "kit/backends/plain/__init__.py", "", "")
    # The page leaves open what a backend computes.
    put(folder, "kit/backends/plain/backend.py", "", PLAIN.read_text().replace('"mlp"', '"elman"'))
    (folder / "data/signals").mkdir(parents=True)
    for split, rows in (("train", 20), ("test", 10)):
        content = (np.arange(rows * 13, dtype="<f4") % 2).tobytes()
        (folder / "data/signals" / f"{split}.gz").write_bytes(gzip.compress(content))
    faulting = b.member("torch", 2.0, counters={"process.major_faults": 3})
    b.write(folder / "a.json", b.profile(b.group("mlp train", b.member("tensorflow", 4.0), faulting)))

    def run(*words):
        return kit(folder, *words, PYTHONPATH=str(folder), KIT_DATA=str(folder / "data"))

    run.folder = folder
    return run


def launch_of(added, *words):
    done = added(*words)
    assert done.returncode == 0, done.stderr
    (result,) = read_profile(added.folder / words[-1]).cells
    return result.launches[0]


@pytest.mark.parametrize(("verb", "title"), [("compare", "mlp train"), ("show", "Launches")])
def test_the_documented_format_is_one_entry_and_every_table_has_it(added, verb, title):
    shown = added(verb, "a.json", "--format", "titles")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert title in shown.stdout.splitlines()


@pytest.mark.parametrize("name", ["text", "markdown", "json"])
def test_the_documented_rule_is_one_file_and_every_format_has_its_finding(added, name):
    """It has no sentence there: its code is shown."""
    shown = added("compare", "a.json", "--why", "--format", name).stdout
    assert "major_faults" in shown or "major-faults" in shown or "major faults" in shown
    asked = added("audit", "a.json", "--rule", "major-faults")
    assert asked.returncode == 1 and "torch" in asked.stdout


def test_the_documented_metric_and_field_are_one_entry_each(added):
    asked = added("compare", "a.json", "--metric", "warmup", "--format", "csv")
    rows = csv.DictReader(asked.stdout.splitlines())
    assert [(float(row["warmup_ns"]) > 0, row["verdict"]) for row in rows] == [(True, ""), (True, "same")]
    shown = added("compare", "a.json", "--rows", "kernel", "--split", "backend")
    assert shown.returncode == 0 and "6.1.0" in shown.stdout


@pytest.mark.slow
def test_a_network_its_data_and_a_backend_are_a_file_each(added):
    words = ("--backend", "plain", "--workload", "elman", "--batch", "4", "--task", "infer", "--rounds", "1")
    launch = launch_of(added, "run", "--quick", *words, "--out", "run.json")
    assert launch.gave_number
    assert (launch.data.name, len(launch.parity.losses)) == ("signals", PARITY_STEPS)


@pytest.mark.slow
@pytest.mark.frameworks
def test_the_networks_of_the_page_are_measured_by_its_commands(added):
    pytest.importorskip("torch")
    commands = re.findall(r"^    kit (run --workload (?:wide|elman) .*torch.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        # What is printed last is the profile.
        *words, out = shlex.split(command)
        assert launch_of(added, *words[:1], "--task", "train", *words[1:], out).gave_number

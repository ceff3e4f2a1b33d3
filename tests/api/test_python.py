"""The Python interface: what profiles hold as frames, comparisons, and programs that are measured."""

import json
import os
import re
import subprocess
import sys
import threading

import numpy as np
import profile_builder as b
import pytest
from kit_process import REPOSITORY

import kit
from kit.profile.store import launch_id, write_profile

PAGE = REPOSITORY / "docs/reference/python.md"
REFERENCE = REPOSITORY / "profiles/reference"


@pytest.fixture
def written(tmp_path):
    """A profile of torch at 2 ms and JAX at 1 ms, with raw steps."""
    profile = b.profile(b.group("mlp", b.member("torch", 2.0), b.member("jax", 1.0)), rounds=3, cycles=4, drift=0.0)
    steps = {}
    for result in profile.cells:
        for launch in result.launches:
            sizes = [launch.warmup_steps + 1, *launch.blocks.raw_steps()]
            steps[launch_id(launch)] = np.arange(1, sum(sizes) + 1, dtype=np.int64)
    write_profile(tmp_path / "run.json", profile, steps)
    return tmp_path / "run.json", profile, steps


def test_each_level_has_a_row_for_each_of_its_things(written):
    path, profile, steps = written
    profiles = kit.load(path)
    launches = [launch for result in profile.cells for launch in result.launches]
    assert [profiles[0].id, len(profiles), profiles.labels] == [profile.id, 1, ["run"]]
    cells = profiles.to_columns()
    assert cells["backend"] == ["torch", "jax"]
    assert cells["step_ns"] == pytest.approx([2e6, 1e6], rel=0.05)
    assert len(profiles.to_columns("launches")["cell"]) == len(launches)
    blocks = profiles.to_columns("blocks")
    assert len(blocks["cell"]) == sum(len(launch.blocks.cycle) for launch in launches)
    assert blocks["duration_ns"][0] == launches[0].blocks.duration_ns[0] and blocks["round"][0] == 1
    raw = profiles.to_columns("steps")
    assert raw["step_ns"] == [step_ns for launch in launches for step_ns in steps[launch_id(launch)].tolist()]
    assert raw["kind"].count("first") == len(launches) and raw["cycle"][0] is None
    assert {len(values) for values in raw.values()} == {len(raw["step_ns"])}


@pytest.mark.parametrize("level", ["cells", "launches", "blocks", "steps"])
def test_pandas_polars_and_pyarrow_take_the_columns(level):
    columns = kit.load(REFERENCE / "cpu-epyc-2-vcpu-cnn-batch.json").to_columns(level)
    for module in ("pandas", "polars"):
        library = pytest.importorskip(module)
        assert library.DataFrame(columns).shape == (len(columns["cell"]), len(columns))
    arrow = pytest.importorskip("pyarrow")
    assert arrow.table(columns).column_names == list(columns)


def test_a_comparison_is_that_of_the_command(written):
    compared = kit.load(written[0]).compare(metric="latency", baseline="jax")
    columns = compared.to_columns()
    assert dict(zip(columns["name"], columns["verdict"], strict=True)) == {"jax": None, "torch": "slower"}
    assert columns["ratio"][columns["name"].index("torch")] == pytest.approx(2.0, rel=0.05)
    assert "PyTorch" in str(compared) and "<table" in compared._repr_html_()
    assert compared.plot()._repr_png_().startswith(b"\x89PNG")  # what a notebook asks for
    assert kit.load(written[0]).compare(rows="backend", filter="backend=torch").to_columns()["name"] == ["torch"]


def test_what_cannot_be_is_one_line(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written[0]
    (tmp_path / "own.py").write_text("def program(batch, device):\n    return lambda: 1.0\n")
    lock = threading.Lock()
    huge = bytes(300 << 20)
    wrong = [
        kit.load,
        lambda: kit.load([path]),
        lambda: kit.load(path).to_columns("rounds"),
        lambda: kit.load(path).compare().plot("pie"),
        lambda: kit.measure({}),
        lambda: kit.measure("own.py"),
        lambda: kit.measure({"none": lambda: 1.0}),
        lambda: kit.measure({"locked": lambda batch, device: lock}),
        lambda: kit.measure({"running": (number for number in range(3))}),
        lambda: kit.measure({"huge": lambda batch, device: huge}),
        lambda: kit.measure({"a b": "model.py"}),
        lambda: kit.measure({"gone": "gone.py"}),
        lambda: kit.measure({"own": "own.py"}, rounds=0),
        lambda: kit.measure({"own": "own.py"}, batch=[64, 0]),
        lambda: kit.measure({"own": "own.py"}, batch="64"),
        lambda: kit.measure({"own": "own.py"}, batch=64.0),
        lambda: kit.measure({"own": "own.py"}, variants=["old"]),
        lambda: kit.measure({"own": "own.py"}, until_precision_pct=0.0),
    ]
    for attempt in wrong:
        with pytest.raises(kit.KitError) as refused:
            attempt()
        assert "\n" not in str(refused.value)
    assert {file.name for file in tmp_path.iterdir() if "run.json" not in file.name} == {"own.py"}


def program(batch, device):
    return lambda: 1.0


class Model:
    def forward(self, x):
        return x

    def __call__(self, *arguments, **named):
        return self.forward(*arguments, **named)


BY_NAME = "kit.measure() takes programs by their names, and got"
EXAMPLE = 'give kit.measure({"old": old, "new": new})'
WRITE_NET = "and a program is a function; write def net(batch, device), which returns a step"


@pytest.mark.parametrize(
    ("programs", "line"),
    [
        (program, f'{BY_NAME} program; give kit.measure({{"program": program}})'),
        ([program], f"{BY_NAME} list; {EXAMPLE}"),
        ({}, f"{BY_NAME} nothing; {EXAMPLE}"),
        ({"net": Model}, f"program net is a class, {WRITE_NET}"),
        ({"net": Model()}, f"program net is a model (Model), {WRITE_NET}"),
        (
            {"a": lambda: 1.0},
            "program a() does not accept batch, device; write def a(batch, device), which returns a step",
        ),
    ],
)
def test_what_is_no_dictionary_of_programs_is_told_what_would_be(programs, line):
    with pytest.raises(kit.KitError) as refused:
        kit.measure(programs)
    assert str(refused.value) == line


def test_a_profile_that_changed_is_not_compared_as_what_was_loaded(written, tmp_path):
    profiles = kit.load(written[0])
    b.write(written[0], b.profile(b.group("mlp", b.member("torch", 3.0), b.member("jax", 1.0)), rounds=3))
    with pytest.raises(kit.KitError, match="changed"):
        profiles.compare()


def in_python(code, folder, **environment):
    here = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=here, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_lazy_and_all_names_are_there(tmp_path):
    code = "import json, kit, sys; before = [*sys.modules]; [getattr(kit, name) for name in kit.__all__]; "
    code += "print(json.dumps(before))"
    heavy = {"numpy", "scipy", "matplotlib", "click", "torch", "jax", "tensorflow", "msgspec"}
    assert heavy.isdisjoint(json.loads(in_python(code, tmp_path)))
    with pytest.raises(AttributeError):
        kit.nothing  # noqa: B018


MEASURED = """
import json, os, tempfile
import numpy as np
import kit

def times(factor):
    def program(batch, device):
        size = 128 * factor
        x, weights = np.ones((batch, size), np.float32), np.ones((size, size), np.float32)
        return lambda: x @ weights
    return program

profiles = kit.measure({"file": "own.py", "small": times(1), "large": times(4)}, rounds=1, batch=256, threads=1,
                       quick=1, energy_s=0, label=None, out="run.json")
columns = profiles.to_columns()
print(json.dumps([columns["workload"], columns["step_ns"], os.listdir(tempfile.gettempdir())]))
"""


def test_functions_are_measured_in_turns_and_leave_nothing(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "own.py").write_text(
        "import numpy as np\ndef program(batch, device):\n    return lambda: np.ones(10**6)\n"
    )
    names, times_ns, left = json.loads(in_python(MEASURED, tmp_path, TMPDIR=str(tmp_path / "tmp")))
    step_ns = dict(zip(names, times_ns, strict=True))
    assert step_ns.keys() == {"file", "small", "large"}
    # It has sixteen times the products.
    assert step_ns["large"] > 3 * step_ns["small"]
    assert left == []
    written = json.loads((tmp_path / "run.json").read_text())
    assert {launch["turns"] for result in written["cells"] for launch in result["launches"]} == {"blocks"}


@pytest.mark.slow
def test_a_notebooks_cell_reaches_the_worker_with_its_source(tmp_path):
    pytest.importorskip("tensorflow")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    # AutoGraph reads the source of a function with an `if`.
    cells = [
        "import kit",
        "def factory(batch, device):\n"
        "    import tensorflow as tf\n"
        "    x = tf.ones((batch, 64))\n"
        "    @tf.function\n"
        "    def step(x):\n"
        "        if tf.reduce_sum(x) > 0:\n"
        "            return x @ tf.transpose(x)\n"
        "        return x\n"
        "    return lambda: step(x)\n",
        "profiles = kit.measure({'a': factory, 'b': factory}, rounds=2, batch=64, quick=True, energy_s=0)",
        "profiles.compare()",
        "print([launch.failure for cell in profiles[0].cells for launch in cell.launches if launch.failure])",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    (tmp_path / "kernel").mkdir()
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    table, printed = notebook.cells[3].outputs[-1], notebook.cells[4].outputs[-1]
    assert "<table" in table["data"]["text/html"] and printed["text"].strip() == "[]"


@pytest.mark.slow
def test_the_pages_examples_run(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    profile = b.profile(b.group("mlp", b.member("torch", 2.0), b.member("jax", 1.0)), rounds=3, cycles=4, drift=0.0)
    write_profile(tmp_path / "run.json", profile)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert all(f"kit.{name}" in PAGE.read_text() for name in kit.__all__)
    # One round shows that the example runs; beside other tests three take minutes.
    assert "rounds=3" in "".join(blocks)
    printed = in_python("\n".join(blocks).replace("rounds=3", "rounds=1"), tmp_path)
    assert "nothing.json" in printed and "large" in printed


NO_TEXTS = [3, 2.5, True, b"batch", ["batch", 3], {"batch": 1}, object()]


@pytest.mark.parametrize("wrong", NO_TEXTS, ids=lambda wrong: type(wrong).__name__)
def test_an_argument_of_a_wrong_type_is_one_line(written, wrong):
    profiles = kit.load(written[0])
    calls = [
        *(lambda name=name: profiles.compare(**{name: wrong}) for name in ("rows", "columns", "split", "metric")),
        *(lambda name=name: profiles.compare(**{name: wrong}) for name in ("baseline", "filter", "meter")),
        lambda: profiles.to_columns(wrong),
        lambda: profiles.to_dataframe(wrong),
        lambda: profiles.compare().plot(wrong),
        lambda: profiles.compare().plot(title=wrong),
        lambda: kit.load(wrong),
        *(lambda name=name: kit.measure({"a": "a.py"}, **{name: wrong}) for name in ("device", "task", "label", "out")),
        lambda: kit.measure({"a": "a.py"}, batch=wrong),
        lambda: kit.measure({wrong if isinstance(wrong, (int, bytes)) else 3: "a.py"}),
    ]
    for call in calls:
        with pytest.raises(kit.KitError) as error:
            call()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("rounds", "3", "a whole number"),
        ("rounds", True, "a whole number"),
        ("rounds", np.int64(3), "(numpy.int64); give a whole number"),
        ("budget_s", "3", "a number"),
        ("threads", 2.0, "a whole number"),
        ("quick", "yes", "True or False"),
        ("task", 3, "'train' or 'infer' or 'decode' or 'fit'"),
        ("out", "a\0b", "leave out the zero character"),
    ],
)
def test_the_line_says_what_to_give(name, wrong, right):
    with pytest.raises(kit.KitError) as error:
        kit.measure({"a": "a.py"}, **{name: wrong})
    assert str(error.value).startswith(f"{name} is ") and right in str(error.value)


def test_a_plot_has_the_title_that_was_given(written):
    pytest.importorskip("matplotlib")
    figure = kit.load(written[0]).compare().plot("times", title="Before the update")
    assert "Before the update" in [text.get_text() for text in figure.findobj(lambda part: hasattr(part, "get_text"))]

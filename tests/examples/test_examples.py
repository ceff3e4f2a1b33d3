"""docs/examples: each file runs as its first lines say, with two samples a batch and one short round."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec

import pytest
from kit_process import REPOSITORY, kit
from small_suite import measure

from kit.backends.program.backend import PARTS
from kit.cli.compare_and_audit import run_comparison
from kit.profile.store import read_profile

EXAMPLES = REPOSITORY / "docs/examples"
BATCH = 2
# The command line replaces the batch and the program.
SHORT = """
name = "short"
title = "Short"
[cells]
batches = [1]
[programs]
replaced.path = "replaced.py"
""" + measure(block_s=0.05, share='["task"]')
# Each file, and the packages without which it cannot run. The tutorials' own are in tests/cli/test_run_programs.py.
NEEDS = {
    "transformers_encoders": ("torch", "transformers"),
    "transformers_resnet": ("torch", "transformers"),
    "language_model": ("torch", "transformers"),
    "torch_compile": ("torch",),
    "attention_kernels": ("torch",),
    "flax_module": ("flax",),
    "keras_application": ("tensorflow", "torch", "jax"),
}


def documented(name):
    """Return the words after `kit run` in an example's first lines."""
    (command,) = re.findall(r"^kit run ((?:.*\\\n)*.*)$", (EXAMPLES / f"{name}.py").read_text(), re.MULTILINE)
    return shlex.split(command.replace("\\\n", ""))


def steps(folder, name, *more):
    """Run an example as it says; return its launches by program and task, or by variant and task."""
    for package in NEEDS[name]:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install -r docs/examples/requirements.txt")
    words = [re.sub(rf"^{name}\.py", str(EXAMPLES / f"{name}.py"), word) for word in documented(name)]
    if "--batch" in words:
        del words[(index := words.index("--batch")) : index + 2]
    (folder / "short.toml").write_text(SHORT)
    done = kit(folder, "run", "short.toml", *words, *more, "--batch", BATCH, "--out", "run.json")
    assert done.returncode == 0, done.stderr
    profile = read_profile(folder / "run.json")
    assert all(len(group.cells) > 1 for group in profile.groups)
    launches = {}
    for result in profile.cells:
        (launch,) = result.launches
        assert launch.gave_number
        key = result.cell.variant if name == "keras_application" else result.cell.workload
        launches[key, result.cell.task] = launch
    return launches


def test_every_example_is_run():
    written = {file.stem for file in EXAMPLES.glob("*.py")} - {"jax_tutorial", "tensorflow_tutorial", "torch_tutorial"}
    assert written == {*NEEDS}
    page = (REPOSITORY / "docs/how-to/examples.md").read_text(encoding="utf-8")
    assert [name for name in sorted(written) if f"{name}.py" not in page] == []


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.parametrize("name", ["transformers_encoders", "transformers_resnet"])
def test_transformers_train_and_infer(tmp_path, name):
    assert {task for _, task in steps(tmp_path, name)} == {"train", "infer"}


@pytest.mark.slow
@pytest.mark.frameworks
def test_a_decoded_token_takes_less_than_a_prompt(tmp_path):
    if "tokens" not in PARTS:
        pytest.skip("this kit takes no tokens of a step")
    launches = steps(tmp_path, "language_model")
    prefill, decode = launches["prefill", "train"], launches["decode", "train"]
    assert (prefill.tokens, decode.tokens) == (BATCH * 128, BATCH)


@pytest.mark.slow
@pytest.mark.frameworks
def test_only_what_is_compiled_takes_long_to_compile(tmp_path):
    steps(tmp_path, "torch_compile")
    compile_ns = {row.name: row.value("compile_ns") for row in run_comparison(tmp_path / "run.json").rows}
    assert min(compile_ns["compiled"], compile_ns["max_autotune"]) > 2 * compile_ns["eager"]


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.parametrize("name", ["attention_kernels", "flax_module"])
def test_kernels_and_ways_to_jit_run(tmp_path, name):
    assert len(steps(tmp_path, name)) >= 2


@pytest.mark.slow
@pytest.mark.frameworks
def test_keras_runs_on_the_backend_of_the_variant(tmp_path):
    launches = steps(tmp_path, "keras_application", "--task", "infer")  # three compile long enough in one task
    backends = {variant: launch.backend_version.split()[0] for (variant, _), launch in launches.items()}
    assert backends == {"tensorflow": "tensorflow", "torch": "torch", "jax": "jax"}

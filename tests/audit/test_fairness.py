"""What one framework was given, or obeyed, and another was not: planted in launches, quiet where all are alike."""

import profile_builder as b
import pytest
from asking import asked

from kit.profile.cell import Variant
from kit.profile.schema import Threads

OMP1 = Variant(name="omp1", env={"OMP_NUM_THREADS": "1"})


def threads(reported=2, used=None, requested=2):
    return Threads(requested=requested, reported=reported, reason=None, cpus=[0, 1], used=used)


def cell(backend, environment=(), of_threads=None, **more):
    launch = {"environment": None if environment is None else dict(environment)} | more.pop("launch", {})
    return b.member(backend, launch=launch | {"threads": of_threads or threads()}, **more)


def outcomes(*members, rule=None, **more):
    """What a rule finds, by default all four, and what it lacked."""
    built = b.profile(b.group("mlp train", *members), rounds=3, cycles=3, **more)
    names = [rule] if rule else ["variable_binds_one", "threads_differ", "precision_differs", "allocator_differs"]
    result = asked(names, built)
    return result.findings, [missing.reason.code for missing in result.not_checked]


def omp1(backend, obeys, used):
    environment = OMP1.env if obeys else {}
    return cell(backend, environment, threads(1 if obeys else None, used), variant="omp1")


def test_equals_are_compared_quietly():
    assert outcomes(cell("torch"), cell("tensorflow"), cell("jax")) == ([], [])


def test_a_variable_that_one_framework_obeys_explains_its_threads():
    members = [omp1("torch", True, 1), omp1("tensorflow", False, 5), omp1("jax", False, 4)]
    (finding,), _ = outcomes(*members, variants=[OMP1])
    assert (finding.code, finding.severity, "/torch/" in finding.cell_key) == ("variable_binds_one", "warning", True)
    assert finding.values == {
        "variable": "OMP_NUM_THREADS", "value": "1", "set_by": "variant omp1",
        "obeys": "torch", "ignores": "tensorflow, jax", "threads": "torch 1, tensorflow 5, jax 4",
    }  # fmt: skip
    # A thread more in a pool that ignores it holds nobody back.
    members = [omp1("torch", True, 8), omp1("tensorflow", False, 9)]
    (finding,), _ = outcomes(*members, rule="variable_binds_one", variants=[OMP1])
    assert finding.severity == "note"


def test_each_framework_with_an_allocator_of_its_own_is_named():
    members = [cell("torch", {"A_MALLOC": "1"}), cell("jax", {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"})]
    findings, _ = outcomes(*members, rule="allocator_differs")
    assert {finding.cell_key.split("/")[1] for finding in findings} == {"torch", "jax"}


def test_a_variable_that_changed_no_threads_is_a_note_with_who_set_it():
    flags = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    facts = {"environment.XLA_FLAGS": flags["XLA_FLAGS"], "environment_set_by.XLA_FLAGS": "container"}
    (finding,), _ = outcomes(cell("torch"), cell("jax", flags), identity=b.identity(facts=facts))
    assert (finding.severity, finding.values["set_by"]) == ("note", "container")


def test_variants_of_one_framework_differ_on_purpose():
    assert outcomes(cell("torch"), omp1("torch", True, 1), variants=[OMP1]) == ([], [])


def test_what_an_older_profile_lacks_is_no_pass():
    old = [cell(backend, None, threads(None)) for backend in ("torch", "jax")]
    assert outcomes(*old) == ([], ["not_recorded"] * 3)


def test_what_a_program_of_ones_own_reads_is_not_known():
    members = [cell("program", workload=name, device="cpu") for name in ("mine", "yours")]
    assert outcomes(*members, rule="variable_binds_one") == ([], ["own_programs_read_what_they_like"])


@pytest.mark.parametrize(
    ("torch", "jax", "listed"),
    [
        (threads(2), threads(2), None),
        (threads(1), threads(2), "torch 1, jax 2"),
        (threads(None, 1), threads(2, 5), "torch 1, jax 5"),
        (threads(None, 2), threads(2, 5), None),  # pools differ in who waits
        # One was asked for: what hands work over to it is no second one that computes.
        (threads(1, 1, 1), threads(None, 2, 1), None),
        (threads(1, 1, 1), threads(1, 2, 1), None),
        (threads(2, 1), threads(2, 2), "torch 1, jax 2"),
    ],
)
def test_threads_reported_else_used(torch, jax, listed):
    findings, _ = outcomes(cell("torch", {}, torch), cell("jax", {}, jax), rule="threads_differ")
    assert [finding.values["threads"] for finding in findings] == ([listed] if listed else [])
    # Who has equal numbers is not told to give equal numbers.
    are_equal = torch.reported == jax.reported
    assert all((finding.remedy is None) == are_equal for finding in findings)


@pytest.mark.parametrize(
    ("torch", "jax", "expected"),
    [
        ("highest", "highest", False),
        ("highest", "None", True),  # JAX' own default is less
        ("high (NVIDIA_TF32_OVERRIDE=0)", "None (NVIDIA_TF32_OVERRIDE=0)", False),
        ("high", "tensorfloat32", False),
    ],
)
def test_float32_in_full_by_one_alone(torch, jax, expected):
    settings = {"torch": {"float32_matmul_precision": torch}, "jax": {"jax_default_matmul_precision": jax}}
    members = [
        cell(name, device="gpu", precision="default", launch={"settings": given}) for name, given in settings.items()
    ]
    findings, missing = outcomes(*members, rule="precision_differs")
    assert (len(findings), missing) == (int(expected), [])
    assert outcomes(cell("torch", device="gpu"), cell("jax", device="gpu"), rule="precision_differs")[1]


@pytest.mark.parametrize(
    ("torch", "jax", "expected"),
    [
        ({"LD_PRELOAD": "libtcmalloc.so"}, {"LD_PRELOAD": "libtcmalloc.so"}, []),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, {}, ["PYTORCH_ALLOC_CONF=expandable_segments:True"]),
        ({"LD_PRELOAD": "libtcmalloc.so", "OMP_PROC_BIND": "true"}, {}, ["LD_PRELOAD=libtcmalloc.so"]),
    ],
)
def test_an_allocator_for_one_alone(torch, jax, expected):
    findings, _ = outcomes(cell("torch", torch), cell("jax", jax), rule="allocator_differs")
    assert [finding.values["settings"] for finding in findings] == expected

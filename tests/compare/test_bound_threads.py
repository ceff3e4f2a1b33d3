"""Threads that have fewer CPUs than they are: how many CPUs they can use, no verdict beside cells that have enough."""

import msgspec
import profile_builder as b
import pytest
from kit_process import invoke

from kit.compare.bound_threads import bound_threads
from kit.compare.compare import compare, compare_within
from kit.compare.fail_if_slower import limit_slow_downs
from kit.compare.notes import read_run
from kit.profile.cell import Variant
from kit.profile.schema import Threads, ThreadsOnCpus
from kit.profile.store import read_profile


def threads(*placement, requested=2, cpus=2):
    """Threads that computed: pairs of how many, and the CPUs of each."""
    placed = [ThreadsOnCpus(threads=count, cpus=list(allowed)) for count, allowed in placement]
    return Threads(
        requested=requested, reported=requested, reason=None, cpus=list(range(cpus)), placement=placed or None
    )


ON_ONE, ON_BOTH, EACH_ITS_OWN = threads((2, [0])), threads((2, [0, 1])), threads((1, [0]), (1, [1]))


@pytest.mark.parametrize(
    ("known", "bound"),
    [
        (ON_ONE, (2, 1)),  # GOMP_CPU_AFFINITY=0
        (ON_BOTH, None),
        (EACH_ITS_OWN, None),  # OMP_PROC_BIND=true
        (threads(), None),  # a profile of before
        (threads((1, [0])), None),  # it computes alone
        (threads((5, [0, 1])), None),  # what hands work over computes, too
        (threads((5, [1])), (2, 1)),
        (threads((3, [0]), requested=1), None),
        (threads((2, [0]), (1, [0, 1, 2]), requested=4, cpus=4), (3, 2)),
        # Each has two CPUs, and all of them together three: one has to wait.
        (threads((2, [0, 1]), (2, [1, 2]), requested=4, cpus=4), (4, 3)),
        # The first that are given CPUs have to move for the last.
        (threads((1, [0, 1]), (1, [0, 2]), (1, [0]), (1, [2, 3]), requested=4, cpus=4), None),
        (threads((200, range(64)), (1, [64]), requested=256, cpus=256), (201, 65)),
    ],
)
def test_on_how_many_cpus_threads_can_run_at_the_same_time(known, bound):
    assert bound_threads(known) == bound


def member(backend, known, step_ms=2.0, **more):
    return b.member(backend, step_ms, launch={"threads": known}, **more)


def rows_of(*members, **more):
    profile = b.profile(b.group("mlp train", *members), rounds=8, **more)
    comparison = compare_within("p", profile)
    return {row.name: row for row in comparison.rows}, comparison


def test_a_cell_whose_threads_share_a_cpu_gets_no_verdict_and_nothing_is_the_fastest(tmp_path):
    profile = b.profile(b.group("mlp train", member("torch", ON_ONE, 300.0), member("jax", ON_BOTH)), rounds=8)
    comparison = compare_within("p", profile)
    jax = next(row for row in comparison.rows if row.name == "jax")
    assert (jax.versus, jax.kept_apart, comparison.groups[0].leaders) == (None, "bound_threads", None)
    assert [note.what.values["bound"] for note in comparison.notes if note.what.code == "bound_threads"] == [
        "torch 2 threads on 1 CPU"
    ]
    assert limit_slow_downs(comparison, 5.0).exit_code == 4
    b.write(tmp_path / "p.json", profile)
    shown = invoke("compare", tmp_path / "p.json")
    assert "not compared: bound threads" in shown.output and "fastest" not in shown.output


def test_the_others_are_compared_with_each_other():
    rows, comparison = rows_of(
        member("torch", ON_BOTH), member("jax", ON_BOTH, 1.0), member("tensorflow", ON_ONE, 99.0)
    )
    assert rows["jax"].versus.verdict == "faster" and rows["tensorflow"].versus is None
    leaders = comparison.groups[0].leaders
    assert [*leaders.tied, *dict(leaders.slower_than_fastest)] == ["jax", "torch"]


@pytest.mark.parametrize("known", [ON_ONE, ON_BOTH, threads()])
def test_cells_that_are_alike_or_did_not_record_it_are_compared(known):
    rows, comparison = rows_of(member("torch", known), member("jax", known, 1.0))
    assert rows["jax"].versus.verdict == "faster" and comparison.groups[0].leaders is not None


def test_a_variant_may_bind_its_threads_on_purpose():
    variants = [Variant(name="free"), Variant(name="bound", env={"GOMP_CPU_AFFINITY": "0"})]
    members = [member("torch", ON_BOTH, variant="free"), member("torch", ON_ONE, 99.0, variant="bound")]
    rows, _ = rows_of(*members, variants=variants, compare=["variant"])
    assert rows["bound"].versus.verdict == "slower"


def test_two_runs_are_kept_apart_in_the_same_way():
    runs = []
    for name, known in (("a", ON_BOTH), ("b", ON_ONE)):
        runs.append(read_run(name, b.profile(b.group("mlp train", member("torch", known)), id=name, label=name)))
    comparison = compare(runs[:1], runs[1:], explain=True)
    (later,) = (row for row in comparison.rows if not row.is_baseline)
    assert [(mismatch.kind, mismatch.values) for mismatch in later.blocked] == [
        ("bound_threads", [("a CPU each", ["a"]), ("2 threads on 1 CPU", ["b"])])
    ]


def test_a_file_with_more_placed_threads_than_computed_is_refused(tmp_path):
    known = msgspec.structs.replace(ON_ONE, used=1)
    b.write(tmp_path / "p.json", b.profile(b.group("mlp train", member("torch", known))))
    with pytest.raises(Exception, match=r"Expected at most 1 threads, not 2 - at `\$.cells\[0\].launches\[0\].threads"):
        read_profile(tmp_path / "p.json")

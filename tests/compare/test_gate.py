import pytest
from profile_builder import MS, build_cell, build_identity, build_launch, build_profile, build_result, six_cells

from kit.compare.comparison import compare
from kit.compare.gate import NotComparableError
from kit.profile.launch import Failure, Threads

ONE_CPU = Threads(requested=1, reported=1, reported_reason=None, cpus=[0])
BLOCKING = {
    "data": ({"data": "synthetic"}, "data synthetic against mnist"),
    "data set": ({"data_sha256": "f" * 64}, "data mnist ffffffff against mnist dddddddd"),
    "threads": ({"threads": ONE_CPU}, "threads 1 against 2"),
    "planted": ({"planted_slowdown_pct": 3.0}, "planted slow-down 3 % against none"),
    "parity": ({"loss_shift": 0.2}, "different arithmetic (parity): its first losses are not the baseline's"),
}


def two(first, second, *, force=False, **fields):
    second = build_profile(second, **({"id": "run-2"} | fields))
    return compare([("a", build_profile(first)), ("b", second)], force=force)


@pytest.mark.parametrize("name", BLOCKING)
def test_what_blocks_every_cell_ends_the_comparison_with_one_line(name):
    fields, words = BLOCKING[name]
    with pytest.raises(NotComparableError) as caught:
        two(six_cells(), six_cells(**fields))
    assert caught.value.exit_code == 4
    assert f"no common cell can be compared: {words}; " in str(caught.value)
    assert "or compare all the same with --force" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", BLOCKING)
def test_force_compares_and_says_what_it_passed_over(name):
    fields, words = BLOCKING[name]
    comparison = two(six_cells(), six_cells(**fields), force=True)
    forced = [row for row in comparison.rows if row.profile == "b"]
    assert {row.forced for row in forced} == {words}
    assert all(row.versus is not None and row.versus.verdict == "same" for row in forced)
    assert {row.forced for row in comparison.rows if row.profile == "a"} == {None}
    (note,) = (note for note in comparison.notes if note.startswith("FORCED"))
    assert note.startswith(f"FORCED: {words} (b: mlp/tensorflow/")


@pytest.mark.parametrize("name", BLOCKING)
def test_one_blocked_cell_says_so_in_its_row_and_the_others_are_compared(name):
    fields, words = BLOCKING[name]
    other = build_result(build_cell("torch", "mlp"), [2 * MS, 2.01 * MS], **fields)
    rest = [result for result in six_cells() if result.key != other.key]
    rows = [row for row in two(six_cells(), [other, *rest]).rows if row.profile == "b"]
    blocked = [row for row in rows if row.versus is None]
    assert [row.cell.key for row in blocked] == [other.key]
    assert blocked[0].no_verdict == f"not compared: {words}"
    assert len(rows) == 6


def test_everything_that_blocks_is_named():
    with pytest.raises(NotComparableError, match=r"threads 1 against 2; planted slow-down 3 % against none; let both"):
        two(six_cells(), six_cells(threads=ONE_CPU, planted_slowdown_pct=3.0))


def test_cells_that_are_blocked_for_other_reasons_are_counted():
    second = [*six_cells(threads=ONE_CPU)[:3], *six_cells(data="synthetic")[3:]]
    with pytest.raises(NotComparableError, match=r"threads 1 against 2 \(and 1 more in other cells\); let both"):
        two(six_cells(), second)


def test_threads_are_the_machines_own_on_other_hardware():
    comparison = two(six_cells(), six_cells(threads=ONE_CPU), identity=build_identity("Other CPU"))
    assert all(row.versus is not None for row in comparison.rows if row.profile == "b")
    assert any(note == "Could explain a difference: threads: 2 (a), 1 (b)." for note in comparison.notes)


def test_other_hardware_and_other_versions_block_nothing():
    identity = build_identity("Other CPU", kernel="6.6.0", packages={"torch": "3.0", "tensorflow": "3.0", "jax": "1.0"})
    comparison = two(six_cells(), six_cells(), identity=identity)
    assert {row.versus.verdict for row in comparison.rows if row.profile == "b"} == {"same"}


def test_what_a_profile_did_not_record_blocks_nothing():
    comparison = two(six_cells(threads=None), six_cells())
    assert all(row.versus is not None for row in comparison.rows if row.profile == "b")


def test_a_failed_launch_does_not_count_as_run_with_other_threads():
    good = build_result(build_cell("torch"), [2 * MS, 2.01 * MS, 2.02 * MS])
    mixed = build_result(build_cell("torch"), [2 * MS, 2.01 * MS, 2.02 * MS])
    killed = Failure(phase="steady", reason="killed by signal 9")
    mixed.launches.append(build_launch(mixed.cell, 3, threads=ONE_CPU, failure=killed))
    assert two([good], [mixed]).rows[1].versus is not None


def test_no_cell_in_common_names_the_nearest():
    cells = [build_result(build_cell("torch", batch=64, precision="bfloat16"), [MS, MS])]
    with pytest.raises(NotComparableError, match=r"nearest, in b, batch 64 against 128, precision bfloat16 against"):
        two([build_result(build_cell("torch"), [MS, MS])], cells)


def test_force_makes_no_pair_of_cells_that_are_none():
    with pytest.raises(NotComparableError, match="nearest, in b, batch 64 against 128; compare runs of the same suite"):
        two(
            [build_result(build_cell("torch"), [MS, MS])],
            [build_result(build_cell("torch", batch=64), [MS, MS])],
            force=True,
        )


def test_within_one_profile_force_compares_backends_that_differ():
    results = [*six_cells()[:2], *six_cells(loss_shift=0.2)[2:3]]
    refused, forced = (compare([("run", build_profile(results))], force=force).rows[2] for force in (False, True))
    assert (refused.versus, refused.forced) == (None, None)
    assert "different arithmetic (parity)" in refused.no_verdict
    assert forced.versus.verdict == "faster"
    assert "different arithmetic (parity)" in forced.forced

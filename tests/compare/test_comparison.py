import subprocess
import sys

import msgspec
import pytest
from profile_builder import MS, build_cell, build_failed, build_identity, build_profile, build_result, six_cells

from kit.compare.comparison import UnknownBaselineError, compare
from kit.compare.gate import NotComparableError
from kit.compare.labels import distinct_labels
from kit.compare.regression import slower_rows
from kit.profile.launch import Evaluation
from kit.report.footnotes import Footnotes
from kit.report.verdict_words import verdict_words


def backends(results=None, baseline=None, **fields):
    return compare([("run", build_profile(results or six_cells(), **fields))], baseline)


def two(first, second, baseline=None, **fields):
    fields = {"id": "run-2"} | fields
    return compare([("a", build_profile(first)), ("b", build_profile(second, **fields))], baseline)


def row_of(comparison, backend, workload="mlp", profile=None):
    return next(
        row
        for row in comparison.rows
        if (row.cell.backend, row.cell.workload) == (backend, workload) and profile in (None, row.profile)
    )


def test_one_profile_compares_its_backends_with_the_first_of_the_catalogue():
    comparison = backends()
    assert (comparison.kind, comparison.baseline) == ("backends", "tensorflow")
    assert [(row.cell.workload, row.cell.backend) for row in comparison.rows] == [
        (workload, backend) for workload in ("mlp", "cnn") for backend in ("tensorflow", "torch", "jax")
    ]
    torch = row_of(comparison, "torch").versus
    assert (torch.verdict, torch.paired, torch.launches) == ("faster", True, 10)
    assert torch.time_ratio == pytest.approx(0.5, rel=1e-3)
    assert torch.time_ratio_low < 0.5 < torch.time_ratio_high
    assert [row.is_baseline for row in comparison.rows] == [True, False, False] * 2
    assert row_of(comparison, "tensorflow").versus is None


def test_any_backend_may_be_the_baseline():
    comparison = backends(baseline="torch")
    assert row_of(comparison, "tensorflow").versus.verdict == "slower"
    assert row_of(comparison, "jax").versus.verdict == "same"


def test_an_unknown_baseline_lists_the_choices_in_one_line():
    with pytest.raises(UnknownBaselineError, match=r"'paddle'.*: tensorflow, torch, jax$") as caught:
        backends(baseline="paddle")
    assert caught.value.exit_code == 2
    with pytest.raises(UnknownBaselineError, match=r"'c'.*: a, b$"):
        two(six_cells(), six_cells(), baseline="c")


def test_rows_come_in_the_order_of_workloads_then_tasks_then_backends():
    results = [build_result(build_cell("torch", w, t), [MS, MS]) for t in ("train", "infer") for w in ("cnn", "mlp")]
    comparison = backends(results[::1])
    assert [(row.cell.workload, row.cell.task) for row in comparison.rows] == [
        ("cnn", "train"),
        ("cnn", "infer"),
        ("mlp", "train"),
        ("mlp", "infer"),
    ]


def test_the_default_compile_mode_is_the_baseline_of_its_backend():
    modes = [build_result(build_cell("torch", compile_mode=mode), [MS, MS]) for mode in ("compile", "eager")]
    comparison = backends(modes)
    assert [(row.cell.compile_mode, row.is_baseline) for row in comparison.rows] == [
        ("eager", True),
        ("compile", False),
    ]


def test_failed_and_unsteady_cells_keep_their_row_and_say_why():
    results = [
        *six_cells(),
        build_failed(build_cell("tensorflow", "lstm"), "killed by signal 9"),
        build_result(build_cell("torch", "lstm"), [None, None]),
        build_result(build_cell("jax", "lstm"), [MS, MS]),
    ]
    comparison = backends(results)
    assert row_of(comparison, "tensorflow", "lstm").problem == "failed in first_step: killed by signal 9"
    assert "no steady state" in row_of(comparison, "torch", "lstm").problem
    assert row_of(comparison, "jax", "lstm").no_verdict == "the baseline has no steady number"
    assert len(comparison.rows) == 9


def test_a_single_launch_is_unresolved():
    versus = row_of(backends(six_cells(launches=1)), "torch").versus
    assert (versus.verdict, versus.time_ratio) == ("unresolved", None)


def test_other_data_is_not_compared_within_a_profile():
    results = [
        build_result(build_cell("tensorflow"), [MS, MS]),
        build_result(build_cell("jax"), [MS, MS], data="synthetic"),
    ]
    jax = row_of(backends(results), "jax")
    assert jax.versus is None
    assert "synthetic" in jax.no_verdict


def test_several_profiles_compare_the_same_cell_with_the_first_profile():
    slower = six_cells(medians_ms={"tensorflow": 4.4, "torch": 2.0, "jax": 1.5})
    comparison = two(six_cells(), slower)
    assert (comparison.kind, comparison.baseline) == ("profiles", "a")
    verdicts = {b: row_of(comparison, b, profile="b").versus.verdict for b in ("tensorflow", "torch", "jax")}
    assert verdicts == {"tensorflow": "slower", "torch": "same", "jax": "faster"}
    assert row_of(comparison, "torch", profile="b").versus.paired is False
    assert [row.profile for row in comparison.rows] == ["a", "b"] * 6
    turned = two(six_cells(), slower, baseline="b")
    assert row_of(turned, "tensorflow", profile="a").versus.verdict == "faster"
    assert [row.profile for row in turned.rows] == ["b", "a"] * 6


def test_regressions_are_those_slower_by_more_than_allowed():
    comparison = two(six_cells(), six_cells(medians_ms={"tensorflow": 4.4, "torch": 2.0, "jax": 1.5}))
    assert [row.cell.backend for row in slower_rows(comparison, 5)] == ["tensorflow", "tensorflow"]
    assert slower_rows(comparison, 15) == []


def test_a_cell_that_only_one_profile_has_keeps_its_row():
    comparison = two(six_cells(), [*six_cells()[:3], build_result(build_cell("torch", "lstm"), [MS, MS])])
    assert len(comparison.rows) == 10
    assert row_of(comparison, "torch", "lstm").no_verdict == "no baseline for this cell"
    cnn = ", ".join(row.cell.key for row in comparison.rows if row.cell.workload == "cnn")
    assert f"Only in a: {cnn}." in comparison.notes
    assert f"Only in b: {build_cell('torch', 'lstm').key}." in comparison.notes


def test_of_many_cells_without_a_partner_six_are_named():
    alone = [build_result(build_cell("torch", batch=n), [MS, MS]) for n in range(1, 9)]
    (note,) = (note for note in two([*six_cells(), *alone], six_cells()).notes if note.startswith("Only in"))
    assert note.count("mlp/torch/") == 6
    assert note.endswith("/x1 and 2 more.")


def test_cells_of_all_but_the_baseline_are_named_together():
    extra = [build_result(build_cell("torch", "lstm"), [MS, MS])]
    profiles = [("a", build_profile(six_cells())), *((x, build_profile([*six_cells(), *extra])) for x in ("b", "c"))]
    notes = compare(profiles).notes
    assert [note for note in notes if note.startswith("Only in")] == [f"Only in b, c: {extra[0].key}."]


def test_one_profile_names_no_cell_without_a_partner():
    assert not [note for note in backends(six_cells()[1:]).notes if note.startswith("Only in")]


def test_profiles_with_nothing_in_common_are_refused():
    with pytest.raises(NotComparableError, match="no cell of a is in another profile") as caught:
        two(six_cells(), [build_result(build_cell("torch", "lstm"), [MS, MS])])
    assert caught.value.exit_code == 4
    assert "\n" not in str(caught.value)


def test_profiles_on_different_data_are_refused():
    with pytest.raises(NotComparableError, match=r"synthetic.*mnist.*--data"):
        two(six_cells(), six_cells(data="synthetic"))


def test_an_empty_profile_is_a_table_without_rows():
    comparison = compare([("run", build_profile([]))])
    assert (comparison.rows, comparison.baseline) == ([], None)
    assert comparison.notes


def test_what_differs_is_named():
    identity = build_identity(kernel="6.6.0", packages={"torch": "2.1", "jax": "0.10", "tensorflow": "2.21"})
    notes = two(six_cells(), six_cells(), identity=identity, seed=7).notes
    assert "Could explain a difference: kernel: 6.1.0 (a), 6.6.0 (b)." in notes
    assert "Could explain a difference: torch: 2.0 (a), 2.1 (b)." in notes
    assert "Also differs: seed: 0 (a), 7 (b)." in notes
    assert not any("jax" in note for note in notes)
    assert not any("n = 1" in note for note in notes)


def test_an_environment_variable_that_changes_numbers_is_named():
    identity = build_identity()
    software = msgspec.structs.replace(identity.software, environment={"XLA_FLAGS": "--xla_fast=true"})
    notes = two(six_cells(), six_cells(), identity=msgspec.structs.replace(identity, software=software)).notes
    assert "Could explain a difference: XLA_FLAGS: none (a), --xla_fast=true (b)." in notes
    assert not any("are the same in all profiles" in note for note in notes)


def test_cells_with_other_losses_get_no_verdict_and_fail_no_gate():
    results = six_cells(medians_ms={"tensorflow": 2.0, "torch": 4.0, "jax": 4.0})[:2]
    odd = build_result(build_cell("jax"), [4.4 * MS * (1 + r / 1000) for r in range(10)], loss_shift=0.2)
    comparison = backends([*results, odd])
    assert row_of(comparison, "torch").versus.verdict == "slower"
    jax = row_of(comparison, "jax")
    assert jax.versus is None
    assert "different arithmetic (parity)" in jax.no_verdict
    assert [row.cell.backend for row in slower_rows(comparison, 5)] == ["torch"]
    assert [row.parity.agrees for row in comparison.rows] == [True, True, False]


def test_between_profiles_it_is_the_pair_that_counts():
    def odd():
        return build_result(build_cell("jax"), [2 * MS, 2.01 * MS], loss_shift=0.2)

    same_oddness = two([*six_cells()[:2], odd()], [*six_cells()[:2], odd()])
    assert row_of(same_oddness, "jax", profile="b").versus is not None
    new_oddness = two(six_cells()[:3], [*six_cells()[:2], odd()])
    assert "parity" in row_of(new_oddness, "jax", profile="b").no_verdict


def accuracy_notes(*updates):
    results = [
        build_result(build_cell(backend), [MS, MS], evaluation=Evaluation(accuracy=0.9, samples=10000, updates=count))
        for backend, count in zip(("tensorflow", "torch"), updates, strict=True)
    ]
    return [note for note in backends(results).notes if note.startswith("Accurac")]


def test_accuracies_say_how_much_training_they_are_after():
    assert accuracy_notes(2000, 2000) == ["Accuracy after 2,000 updates."]
    assert accuracy_notes(500, 2000) == ["Accuracies are after 500 to 2,000 updates: do not compare them."]
    assert "unknown amounts" in accuracy_notes(None, 2000)[0]
    synthetic = backends(six_cells(data="synthetic")).notes
    assert not any(note.startswith("Accurac") for note in synthetic)


def test_the_same_machine_and_software_is_said_to_be_the_same():
    notes = two(six_cells(), six_cells()).notes
    assert any("are the same in all profiles" in note for note in notes)
    assert any("more than once" in note for note in two(six_cells(), six_cells(), id="run-1").notes)


def test_two_machines_are_n_of_one_each():
    notes = two(six_cells(), six_cells(), identity=build_identity("Other CPU")).notes
    assert any("2 machines are n = 1 each" in note for note in notes)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (lambda: six_cells(launches=3), "3 launches a cell: fewer than 10 is a look, not a verdict."),
        (lambda: six_cells(data="synthetic"), "SYNTHETIC DATA"),
        (lambda: six_cells()[:3] + six_cells(data="synthetic")[3:], "MIXED DATA"),
        (six_cells, "Parity: the first 20 losses of 6 cells agree"),
        (lambda: six_cells()[:1], "Parity was not shown"),
        (lambda: [*six_cells()[:2], build_result(build_cell("jax"), [MS, MS], loss_shift=0.2)], "PARITY FAILED"),
        (lambda: six_cells(recompiles=2), "Marked launches: 60 of 60 (recompiled 60)"),
    ],
)
def test_notes_say_what_must_be_known(results, words):
    assert any(words in note for note in backends(results()).notes)


def test_labels_are_short_and_distinct(tmp_path):
    paths = [
        tmp_path / "x" / "run.json",
        tmp_path / "y" / "run.json",
        tmp_path / "y" / "run.json",
        tmp_path / "other.json",
    ]
    labels = distinct_labels(paths)
    assert labels[:3] == ["x/run", "y/run", "y/run#2"]
    assert distinct_labels([tmp_path / "a.json", tmp_path / "b.json"]) == ["a", "b"]


def test_comparing_imports_neither_a_framework_nor_the_slow_libraries():
    program = (
        "import sys\n"
        "import kit.compare.comparison, kit.report.text, kit.report.profile_text, kit.stats.difference\n"
        "from kit.stats.difference import welch_difference\n"
        "welch_difference([1.0, 2.0], [2.0, 3.0])\n"
        "slow = {'ruptures', 'scipy.stats', 'tensorflow', 'torch', 'jax', 'pandas'}\n"
        "sys.exit(str(slow & sys.modules.keys()) if slow & sys.modules.keys() else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_paired_verdict_says_on_how_many_rounds_it_rests():
    """Eleven steady launches a side, in only two rounds both."""
    early = [MS * (1 + 0.001 * (n % 3)) if n < 11 else None for n in range(20)]
    late = [1.2 * MS * (1 + 0.001 * (n % 2)) if n >= 9 else None for n in range(20)]
    comparison = backends([build_result(build_cell("tensorflow"), early), build_result(build_cell("torch"), late)])
    row = row_of(comparison, "torch")
    assert (row.launches, row.versus.launches, row.versus.paired) == (11, 2, True)
    assert "1 verdict from fewer than 10 common rounds: a look, not a verdict." in comparison.notes
    assert verdict_words(row, Footnotes()).endswith("in 2 common rounds")
    nothing = [None] * 11 + late[11:]
    row = row_of(
        backends([build_result(build_cell("tensorflow"), early), build_result(build_cell("torch"), nothing)]), "torch"
    )
    assert (row.versus.paired, row.versus.time_ratio) == (True, None)
    notes = Footnotes()
    verdict_words(row, notes)
    assert notes.lines() == ["¹ a difference needs at least two rounds in which both are steady"]


def test_launches_that_would_tell_count_those_that_will_not_be_steady():
    noisy = [MS * (1 + 0.05 * (-1) ** n) for n in range(10)]
    half = [value for median in noisy for value in (median, None)]
    slower = [1.03 * MS * (1 + 0.05 * (-1) ** (n // 2)) for n in range(10)]
    half_slower = [value for median in slower for value in (median, None)]
    wanted = [
        row_of(
            two([build_result(build_cell(), first)], [build_result(build_cell(), second)]), "torch", profile="b"
        ).versus.launches_to_settle
        for first, second in ((noisy, slower), (half, half_slower))
    ]
    assert wanted[1] == 2 * wanted[0]


def test_a_forced_comparison_of_other_data_does_not_say_that_it_was_not_made():
    notes = compare(
        [("a", build_profile(six_cells())), ("b", build_profile(six_cells(data="synthetic"), id="b"))], force=True
    ).notes
    assert "MIXED DATA: some rows ran on SYNTHETIC data, others on MNIST." in notes

"""Cycles that others disturbed: what is planted in the others comes out, and nothing that is not known is left out."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import profile_builder as b
import pytest
from kit_process import invoke
from msgspec import structs

import kit
from kit.audit.audit import findings_of
from kit.audit.subject import MeasuredRun
from kit.cli.compare_and_audit import run_comparison
from kit.compare import clean
from kit.compare.clean import DEVICE_OTHERS
from kit.compare.compare import compare, compare_within
from kit.compare.notes import ON_CYCLES, read_run
from kit.compare.runs import run_of
from kit.compare.suite_table import suite_table
from kit.profile.fields import reason
from kit.profile.schema import Fit, Threads
from kit.report.headline_and_notes import note_line
from kit.report.verdicts_in_words import ab_answers
from kit.stats.modes_and_trends import percentile_ns

MS, BESIDE = b.MS, partial(b.beside_others, 0.5)
THREADS = partial(Threads, requested=2, reported=None, reason=None, cpus=[0, 1])


def planted(*members, **fields):
    return b.profile(b.group("g", *members), **fields)


def compared(built, **more):
    """Rows of the only group by name."""
    (group,) = compare_within("p", built, **more).groups
    return {row.name: row for row in group.rows}


def cycles_of(built):
    """Backend -> of each round the cycles that count."""
    return {
        launches[0].cell.backend: [set(launch.counting.cycle) for launch in launches]
        for launches in run_of("p", built).table.by_cell.values()
    }


def kit_compare(folder, built, *words):
    path = b.write(folder / "a.json", built)
    result = invoke("compare", str(path), *words)
    assert result.exception is None
    return result.stdout


def five_of_twelve(number):
    return np.random.default_rng(number).permutation(12)[:5].tolist()


def in_rounds(*numbers):
    return lambda number: range(12) if number in numbers else ()


def test_a_disturbed_cycle_is_left_out_for_every_cell_of_its_group_and_round():
    torch = b.member("torch", change=BESIDE(lambda number: (1, 4)))
    jax = b.member("jax", change=BESIDE(lambda number: (7,) if number else ()))
    built = planted(torch, jax, rounds=2)
    expected = [set(range(12)) - {1, 4}, set(range(12)) - {1, 4, 7}]
    assert cycles_of(built) == {"torch": expected, "jax": expected}
    assert all(len(launch.blocks.cycle) == 12 for result in built.cells for launch in result.launches)


def test_blocks_say_what_others_took_whether_they_count_and_which_mode_they_are_in(tmp_path):
    def change(launch):
        BESIDE(lambda number: (1, 4) if number == 0 else range(10) if number == 1 else ())(launch)
        launch.blocks.counters[DEVICE_OTHERS] = [int(launch.round == 0 and cycle == 7) for cycle in range(12)]

    built = planted(b.member("torch", change=change), b.member("jax"), rounds=3)
    columns = kit.load(b.write(tmp_path / "a.json", built)).to_columns("blocks")
    names = ("cell", "round", "cycle", "others", "disturbed_by", "clean", "counts", "slow")
    blocks = [dict(zip(names, row, strict=True)) for row in zip(*(columns[name] for name in names), strict=True)]
    torch = {(block["round"], block["cycle"]): block for block in blocks if "torch" in block["cell"]}
    disturbed = {place: block["disturbed_by"] for place, block in torch.items() if block["disturbed_by"]}
    assert disturbed == {(1, 2): "cpus", (1, 5): "cpus", (1, 8): "device"} | {(2, 1 + at): "cpus" for at in range(10)}
    assert all((block["others"] > 0.1) == (disturbed.get(place) == "cpus") for place, block in torch.items())
    for block in blocks:  # a cycle is one for both cells, and two clean ones do not make a round
        place = block["round"], block["cycle"]
        assert block["clean"] == (place not in disturbed)
        assert block["counts"] == (block["clean"] and block["round"] != 2)
        assert block["slow"] is None


@pytest.mark.parametrize("profiles", [20, 21])
def test_marks_are_there_however_many_profiles_are_compared(tmp_path, profiles):
    for number in range(profiles):
        built = planted(b.member("torch", change=b.beside_others(0.3)), rounds=3, id=f"run-{number}")
        b.write(tmp_path / f"p{number:02d}.json", built)
    document = json.loads(invoke("compare", tmp_path, "--json").stdout)
    rows = [row for group in document["groups"] for row in group["rows"]]
    assert [[mark["code"] for mark in row["marks"]] for row in rows] == [["contended"]] * len(rows)
    refused = invoke("compare", tmp_path, "--metric", "fit_score")
    assert "fit_score was not measured" in str(refused.exception)


@pytest.mark.parametrize("seed", range(2))
def test_a_ratio_comes_back_whatever_one_cell_suffers_in_disturbed_cycles(tmp_path, seed):
    torch = b.member("torch", 3.0, change=BESIDE(five_of_twelve, slow=10.0))
    built = planted(b.member("jax", 2.0, change=BESIDE(five_of_twelve)), torch, seed=seed)
    documents = [json.loads(kit_compare(tmp_path, built, "--json", *words)) for words in ((), ("--all-cycles",))]
    assert [document["rule"] for document in documents] == ["rounds-4", "rounds-4-all-cycles"]
    clean, every = (row for each in documents for row in each["groups"][0]["rows"] if row["name"] == "torch")
    assert clean["versus"]["verdict"] == "slower"
    assert clean["versus"]["low"] < 1.5 < clean["versus"]["high"] < 1.1 * clean["versus"]["low"]
    assert (clean["numbers"]["cycles"], clean["numbers"]["contention_pct"]) == (8 * 7, None)
    assert clean["numbers"]["raw_step_ns"] == pytest.approx(3e6, rel=0.3), "of drift, and of no cycle of 30 ms"
    # All cycles: as where nobody counted what others took.
    for launch in (launch for result in built.cells for launch in result.launches):
        del launch.blocks.counters["machine.busy_ns"]
    before = compared(built)["torch"]
    assert every["numbers"]["cycles"] == before.value("cycles") == 8 * 12
    assert every["numbers"]["step_ns"] == pytest.approx(before.value("step_ns"))
    assert every["versus"]["high"] == pytest.approx(before.versus.high)


@pytest.mark.parametrize(
    ("ran", "disturbed", "counts"), [(12, 9, True), (12, 10, False), (3, 1, False), (2, 0, True), (2, 1, False)]
)
def test_a_round_counts_with_three_clean_cycles_or_all(ran, disturbed, counts):
    torch = b.member("torch", 2.0, change=BESIDE(lambda number: range(disturbed) if number == 2 else ()))
    rows = compared(planted(torch, b.member("jax", 3.0), rounds=4, cycles=ran))
    assert {row.value("rounds") for row in rows.values()} == {4 if counts else 3}
    assert rows["jax"].versus.count == rows["jax"].value("launches") == (4 if counts else 3)


def always_beside(launch):
    """Others take another share in each of four rounds, and steps take the longer."""
    share = (0.6, 0.3, 0.5, 0.45)[launch.round % 4]
    b.beside_others(share, slow=1 / (1 - share))(launch)


@pytest.mark.parametrize("other", [{"backend": "jax"}, {"backend": "torch", "batch": 256}])
def test_without_a_clean_round_figures_are_of_the_least_disturbed_one(tmp_path, other):
    members = [b.member(step_ms=ms, change=always_beside, **cell) for ms, cell in ((2.0, {}), (9.0, other))]
    built = planted(*members, rounds=4, compare=("backend", "batch"))
    rows = list(compared(built).values())
    for result, row in zip(built.cells, rows, strict=True):
        blocks = result.launches[1].blocks
        assert row.value("raw_step_ns") == pytest.approx(np.median(np.divide(blocks.duration_ns, blocks.steps)))
        assert (row.value("launches"), row.value("contention_pct")) == (1, pytest.approx(30, abs=0.1))
    versus, is_like = rows[1].versus, other["backend"] == "torch"
    raw_ns = [row.value("raw_step_ns") for row in rows]
    assert [row.value("step_ns") for row in rows] == pytest.approx(raw_ns)
    assert versus.count == 4
    assert (versus.verdict, versus.contention_pct) == ("unresolved", pytest.approx(45, abs=5))
    every = list(compared(built, all_cycles=True).values())
    assert every[1].versus.verdict == ("slower" if is_like else "unresolved")
    if is_like:  # a ratio that has a verdict and the steps beside it are the same
        step_ns = [row.value("step_ns") for row in every]
        assert step_ns[1] == pytest.approx(step_ns[0] * every[1].versus.ratio * 2)
    shown = kit_compare(tmp_path, built)
    assert shown.count(" ms c ") == 2 and "disturbed 48 of 48 cycles" in " ".join(shown.split())
    assert {finding.code for finding in findings_of(read_run("", built))} == {"contention"}


@pytest.mark.parametrize("differing", [{"variant": "new"}, {"batch": 256}, {"task": "infer"}])
def test_sentence_table_and_gate_claim_nothing_of_cycles_that_do_not_count(tmp_path, differing):
    """An interval of disturbed cycles alone called the same code 5.2 [0.2, 10.5] % slower."""
    members = [b.member(step_ms=ms, change=always_beside, **cell) for ms, cell in ((2.0, {}), (9.0, differing))]
    path = b.write(tmp_path / "run.json", planted(*members, rounds=9, compare=tuple(differing)))
    (line,) = ab_answers(run_comparison(path), 5.0, None) or [" not known: unresolved (contended)"]
    assert line.endswith(" not known: unresolved (contended)")
    gate = invoke("compare", path, "--fail-if-slower", "5")
    assert gate.return_value == 5 and "would decide" not in gate.stderr
    table = invoke("compare", path).stdout
    assert "unresolved (contended)" in table and "fastest" not in table and "slower" not in table
    assert "the table shows the steps of the least disturbed round" in " ".join(table.split())
    assert invoke("compare", path, "--fail-if-slower", "5", "--all-cycles").return_value == 1


@pytest.mark.parametrize(("used", "verdict"), [(2, "slower"), (1, "unresolved")])
def test_a_variant_that_sets_threads_is_unlike_its_default_whatever_its_axis_says(used, verdict):
    """Two threads wait for each other beside another program, and one does not: 11 × "faster" was 1.35 × slower."""
    members = [
        b.member(step_ms=ms, variant=name, change=always_beside, launch={"threads": THREADS(used=count)})
        for name, ms, count in (("default", 2.0, 2), ("one-thread", 9.0, used))
    ]
    rows = compared(planted(*members, rounds=4, compare=("variant",)), all_cycles=True)
    versus = next(row.versus for row in rows.values() if row.versus is not None)
    assert (versus.verdict, versus.contention_pct is None) == (verdict, used == 2)


def test_a_run_without_a_clean_round_has_no_verdict_against_another_run():
    """Blocks of one run meet others together, and those of two runs do not."""
    runs = [
        read_run(name, planted(b.member(step_ms=2.0, change=change), rounds=4, seed=seed, id=name))
        for seed, (name, change) in enumerate((("before", b.beside_others(0)), ("after", always_beside)))
    ]
    versus = next(row.versus for row in compare(runs[:1], runs[1:]).groups[0].rows if row.versus is not None)
    assert versus.verdict == "unresolved" and versus.contention_pct == pytest.approx(30, abs=1)


@pytest.mark.parametrize(("share", "verdict"), [(0.03, "slower"), (0.08, "unresolved"), (0.3, "unresolved")])
def test_unlike_cells_without_a_clean_round_have_no_verdict(share, verdict):
    # One that always takes 8 % is in no single block: it adds up.
    members = [b.member(name, ms, change=b.beside_others(share)) for name, ms in (("torch", 2.0), ("jax", 3.0))]
    assert compared(planted(*members))["jax"].versus.verdict == verdict
    assert compared(planted(*members), all_cycles=True)["jax"].versus.verdict == (
        "unresolved" if share == 0.3 else "slower"
    )


def test_the_least_disturbed_round_is_one_that_the_cell_has_and_of_cells_that_did_not_suffer_the_same():
    torch = b.member("torch", change=always_beside, failed_rounds={1: reason("killed", signal=9)})
    rows = compared(planted(torch, b.member("jax", change=b.beside_others(0.2)), b.member("tensorflow"), rounds=4))
    others_pct = {name: row.value("contention_pct") for name, row in rows.items()}
    assert others_pct == {"torch": pytest.approx(45, abs=0.1), "jax": pytest.approx(20, abs=0.1), "tensorflow": 0.0}
    assert {row.value("launches") for row in rows.values()} == {1}


def test_a_part_of_a_group_without_a_clean_round_leaves_the_other_part_as_it_is():
    base, torch, jax = (b.member(name, ms) for name, ms in (("tensorflow", 2.0), ("torch", 3.0), ("jax", 4.0)))
    first = b.group("g#1", base, torch)
    second = b.group("g#2", *(replace(member, change=b.beside_others(0.5, slow=9.0)) for member in (base, jax)))
    quiet, rows = compared(b.profile(first)), compared(b.profile(first, second))
    for name in ("tensorflow", "torch"):
        assert rows[name].value("step_ns") == pytest.approx(quiet[name].value("step_ns"), rel=0.2)
        assert rows[name].value("contention_pct") is None
    assert rows["torch"].versus.verdict == "slower"
    assert (rows["jax"].versus.verdict, rows["jax"].value("rounds")) == ("unresolved", 1)


def test_a_step_and_a_median_are_the_same_in_every_view():
    jax = b.member("jax", 3.0, change=BESIDE(five_of_twelve, slow=3.0))
    built = planted(b.member("tensorflow", 2.0, noise=0.1), jax, b.member("torch", 4.0, sd=0.1))
    bys = ("step_ns", "latency_ns")
    views = [compared(built, baseline=name, by=by) for name in ("jax", "torch", None) for by in bys]
    assert [rows["torch"].versus is None for rows in views] == [False, False, True, True, False, False]
    for name in views[0]:
        assert len({(rows[name].value("step_ns"), rows[name].value("latency_ns")) for rows in views}) == 1


# Most blocks are slow, and few of the steps: a median over blocks would be above the 95th percentile of steps.
@pytest.mark.parametrize(("share", "cycles"), [(0.05, range(8)), (0.5, range(8)), (0.5, range(12))])
def test_a_percentile_is_never_below_the_median_and_of_the_cycles_that_count(share, cycles):
    built = planted(b.member("torch", 2.0, change=b.beside_others(share, lambda number: cycles, slow=60.0)), rounds=4)
    (result,) = built.cells
    steps_ns = [np.repeat(launch.blocks.median_ns, launch.blocks.steps) for launch in result.launches]
    result.p95_ns, result.p99_ns = (percentile_ns(np.concatenate(steps_ns), percent) for percent in (95, 99))
    assert (result.p95_ns < 4e6) == (len(cycles) < 12), "the truth that is planted"
    (row,), (every,) = compared(built).values(), compared(built, all_cycles=True).values()
    # Where the median of the steps was not recorded, percentiles are over all cycles.
    assert row.value("p95_ns") == (result.p95_ns if share < 0.1 else None)
    assert row.value("latency_ns") <= result.p95_ns
    assert every.value("latency_ns") <= every.value("p95_ns") == result.p95_ns
    result.p50_ns, result.p95_ns, result.p99_ns = 2_000_000, 2_100_000, None
    result.all_cycles_ns = [2_500_000, 10_000_000, 11_000_000]
    for all_cycles, expected in ((False, [2e6, 2.1e6, None]), (True, [2.5e6, 10e6, 11e6])):
        (row,) = compared(built, all_cycles=all_cycles).values()
        assert [row.value("latency_ns"), row.value("p95_ns"), row.value("p99_ns")] == expected


# What was busy in blocks on some CPUs, and what the cell with its threads used, in milliseconds; the kernel counts in
# ticks of 10.
@pytest.mark.parametrize(
    ("cpus", "threads", "span_ms", "counters", "is_disturbed"),
    [
        (2, 2, 50, {"busy": 64, "cpu": 60}, False),
        (2, 2, 50, {"busy": 100, "cpu": 50}, True),
        (2, 2, 250, {"busy": 500, "cpu": 480}, False),
        (2, 2, 250, {"busy": 500, "cpu": 440}, True),
        (2, 2, 250, {"busy": 500, "cpu": 100, "children": 380}, False),  # workers of its own data loader
        (2, 2, 250, {"busy": 400, "cpu": 480}, False),  # a negative difference
        (2, 2, 250, {"busy": 400, "cpu": 480, "steal": 60}, True),
        (2, 2, 250, {"busy": None, "cpu": 100}, False),
        (2, 2, 250, {"busy": 500, "cpu": None, "steal": None}, False),
        (2, 2, 250, {"busy": 500}, False),
        (2, 2, 250, {}, False),
        (4, 1, 250, {"busy": 500, "cpu": 250}, False),  # a neighbor on one of the three CPUs that the cell leaves
        (4, 1, 250, {"busy": 1000, "cpu": 150}, True),
        (64, 2, 250, {"busy": 2500, "cpu": 500}, False),  # a quota of two CPUs on a large host, with other tenants
    ],
)
def test_others_took_busy_time_that_is_not_the_cells_own_while_no_cpu_was_idle(
    cpus, threads, span_ms, counters, is_disturbed
):
    names = {name: f"machine.{name}_ns" if name in ("busy", "steal") else f"process.{name}_ns" for name in counters}

    def change(launch):
        launch.threads = Threads(requested=threads, reported=threads, reason=None, cpus=list(range(cpus)))
        launch.blocks.span_ns = [span_ms * MS] * 12
        launch.blocks.counters = {names[name]: [value and value * MS] * 12 for name, value in counters.items()}

    built = planted(b.member("torch", change=change), rounds=3)
    row, (launch, *_) = compared(built)["torch"], run_of("p", built).table
    assert {block.disturbed_by for block in launch.rows()} == {"cpus" if is_disturbed else None}
    assert (row.value("rounds"), row.value("contention_pct") is not None) == ((1, True) if is_disturbed else (3, False))


def test_cycles_in_which_others_took_most_go_until_they_took_little_of_the_rest():
    def change(launch):
        capacity_ns = 2 * np.array(launch.blocks.span_ns)
        taken = np.array([0.08] * 8 + [0.0] * 4)
        launch.blocks.counters["process.cpu_ns"] = (0.9 * capacity_ns).astype(int).tolist()
        launch.blocks.counters["machine.busy_ns"] = ((0.9 + taken) * capacity_ns).astype(int).tolist()

    (launch,) = run_of("p", planted(b.member("torch", change=change), rounds=1)).table
    left = set(launch.counting.cycle)
    assert {8, 9, 10, 11} <= left
    assert len(left) == 10, "six cycles of 8 % and four of nothing have a mean below 5 %"
    reasons = {block.cycle: block.disturbed_by for block in launch.rows()}
    assert reasons == {cycle: None if cycle in left else "cpus_mean" for cycle in range(12)}


@pytest.mark.parametrize("task", ["train", "fit"])
def test_a_further_reason_is_an_entry_that_blocks_rounds_and_notes_have(monkeypatch, task):
    hot = {"mlp/torch"}
    monkeypatch.setitem(
        clean.DISTURBANCES,
        "heat",
        lambda launch: [any(name in launch.cell.key for name in hot) for _ in launch.blocks.cycle],
    )
    run = read_run("p", planted(b.member("torch", task=task), b.member("jax", task=task), rounds=3))
    torch, jax = ([block for launch in launches for block in launch.rows()] for launches in run.table.by_cell.values())
    assert {(block.disturbed_by, block.clean) for block in torch} == {("heat", False)}
    assert {(block.disturbed_by, block.clean) for block in jax} == {(None, False)}
    (note,) = (note.what for note in run.notes if note.what.code in ON_CYCLES)
    assert (note.code, note.values["reasons"], note.values["groups"]) == ("no_round_counts", "heat", 1)
    assert "heat" in note_line(next(note for note in run.notes if note.what.code == "no_round_counts"))


@pytest.mark.parametrize(("blocks", "counts"), [(slice(0, 2), True), (slice(None), False)])
def test_ticks_of_short_blocks_may_stray_but_not_in_all_of_them(blocks, counts):
    def change(launch):
        launch.blocks.span_ns = [50 * MS] * 12
        busy_ns = np.full(12, 60 * MS)
        busy_ns[blocks] = 80 * MS  # two ticks more, of ten
        launch.blocks.counters = {"machine.busy_ns": busy_ns.tolist(), "process.cpu_ns": [60 * MS] * 12}

    built = planted(b.member("torch", change=change), rounds=3)
    assert compared(built)["torch"].value("rounds") == (3 if counts else 1)


@pytest.mark.parametrize("task", ["train", "fit"])
@pytest.mark.parametrize(
    ("share", "cpus", "device_others", "counts"),
    [(0.4, 0.2, 0, True), (0.8, 0.35, 0, False), (0.0, 0.2, 1, False), (0.0, 0.2, None, True)],
)
def test_an_accelerators_cell_needs_a_cpu_and_its_board(task, share, cpus, device_others, counts):
    def change(launch):
        b.beside_others(share, in_rounds(*range(1, 8)), cpus=cpus)(launch)
        launch.blocks.counters[DEVICE_OTHERS] = [device_others if launch.round else 0] * 12

    (row,) = compared(planted(b.member("torch", device="gpu", task=task, change=change))).values()
    assert row.value("rounds") == (8 if counts else 1)
    assert f"{DEVICE_OTHERS} per step" not in vars(b.shown(row))


def test_unlike_cells_get_no_verdict_from_a_board_that_others_computed_on():
    def change(launch):
        launch.blocks.counters[DEVICE_OTHERS] = [1] * 12

    built = planted(*(b.member(name, ms, device="gpu", change=change) for name, ms in (("torch", 2.0), ("jax", 1.0))))
    versus = compared(built)["jax"].versus
    assert (versus.verdict, versus.ratio, versus.contention_pct is None) == (
        "unresolved",
        pytest.approx(0.5, abs=0.05),
        False,
    )


def test_cells_that_ran_one_after_another_have_no_cycle_in_common():
    torch = b.member("torch", 2.0, change=BESIDE(five_of_twelve, slow=10.0))
    built = planted(torch, b.member("jax", 3.0), turns="sequential", rounds=4, drift=0.0)
    every = set(range(12))
    assert cycles_of(built) == {"torch": [every - set(five_of_twelve(n)) for n in range(4)], "jax": [every] * 4}
    versus = compared(built)["jax"].versus
    assert versus.low < 1.5 < versus.high


def test_a_disturbed_fits_time_does_not_count_and_its_score_does():
    figures = ["train_time_s", "accuracy"]

    def row_of(*slow_rounds):
        def change(launch):
            confusion = [[90, 10] if launch.round in slow_rounds else [70, 30], [0, 0]]
            launch.fit = Fit(epochs=1, updates=9, reference_ns=[2e6] * 13, test_ns=MS, confusion=confusion)
            BESIDE(in_rounds(*slow_rounds), slow=9.0)(launch)

        built = planted(b.member(task="fit", change=change, launch={"turns": "sequential"}), rounds=3, drift=0.0)
        table = suite_table("t", ["backend"], figures, [("a", built)]).values[0][0]
        (row,) = compare_within("a", built).groups[0].rows
        assert row.value("fit_score") == pytest.approx(table["accuracy"].value), "one name, one number"
        assert row.value("fit_repeats") == len(built.cells[0].launches)
        return table

    quiet, some, every = row_of(), row_of(1), row_of(0, 1, 2)
    quiet_s = quiet["train_time_s"].value
    assert [row["train_time_s"].value / quiet_s for row in (some, every)] == pytest.approx([1, 9], rel=0.05)
    assert [row["train_time_s"].contention_pct is None for row in (quiet, some, every)] == [True, True, False]
    assert some["accuracy"].value == pytest.approx((0.7 + 0.9 + 0.7) / 3)


@pytest.mark.parametrize(("drawing", "shown_j"), [((0, 1, 2), 10), ((0,), 100), ((2,), 10)])
@pytest.mark.parametrize("disturbed", [(0,), (0, 1, 2)])
def test_joules_of_a_round_that_does_not_count_are_used_only_where_no_other_has_any(disturbed, drawing, shown_j):
    def change(launch):
        energy = b.energy(10.0 if launch.round else 100.0, samples=1, block_ns=10 * b.S)
        launch.energy = energy if launch.round in drawing else []
        b.beside_others(0.3 if launch.round else 0.5, in_rounds(*disturbed))(launch)

    (row,) = compared(planted(b.member("torch", change=change), rounds=3)).values()
    assert row.value("energy_per_sample_j") == pytest.approx(shown_j)


def test_the_audit_sees_the_cycles_that_count_and_contention_all_that_finished():
    failed = {0: reason("killed", signal=9)}
    torch = b.member("torch", failed_rounds=failed, change=BESIDE(five_of_twelve, cpus=1.0))
    built = planted(torch, b.member("jax"), rounds=4)
    ((member, _),) = MeasuredRun("", built).groups
    assert [len(launch.counting.cycle) for launch in member.launches.values()] == [7, 7, 7]
    assert [len(launch.blocks.cycle) for launch in member.launches.values()] == [12, 12, 12]
    (finding,) = (finding for finding in findings_of(read_run("", built)) if "torch" in finding.cell_key)
    assert (finding.code, finding.severity) == ("cycles_left_out", "note")
    assert (finding.values["cycles"], finding.values["left_out"]) == (48, 15)
    assert {finding.code for finding in findings_of(read_run("", built, all_cycles=True))} == {"contention"}


def test_what_another_cpu_was_busy_with_takes_nothing_from_one_thread():
    """Clean cycles, the mark of a launch and the verdict between unlike cells follow one rule."""

    def on_one_thread(launch):
        b.beside_others(0.5, cpus=1.0)(launch)
        launch.threads = Threads(requested=1, reported=1, reason=None, cpus=[0, 1])

    members = [b.member(name, ms, change=on_one_thread) for name, ms in (("torch", 4.0), ("jax", 2.0))]
    rows = compared(planted(*members))
    assert rows["jax"].versus.verdict == "faster"
    assert not any(
        row.value("contention_pct") or "contended" in [mark.code for mark in row.marks] for row in rows.values()
    )


@pytest.mark.parametrize("metric", ["compile_ns", "start_ns", "cpu_per_sample_ns"])
def test_beside_others_no_time_of_unlike_cells_has_a_verdict(metric):
    """Compilations and CPU time take longer beside others, too, and unlike cells unlike much longer."""

    def beside(times, cpus):
        def change(launch):
            b.beside_others(0.5, cpus=cpus)(launch)
            launch.phases = [structs.replace(phase, duration_ns=times * phase.duration_ns) for phase in launch.phases]

        return change

    busy = planted(b.member("torch", 2.0, change=beside(1, 1.9)), b.member("jax", 2.0, change=beside(3, 1.0)))
    (row,) = (row for row in compared(busy, by=metric).values() if not row.is_baseline)
    assert (row.versus.verdict, row.versus.contention_pct is None) == ("unresolved", False)

"""Planted differences within a run: ratios, verdicts, modes, who is the fastest, and the numbers of a row."""

import profile_builder as b
import pytest

import kit
from kit.audit.finding import Finding
from kit.compare.compare import compare_within
from kit.compare.fail_if_slower import limit_slow_downs
from kit.compare.metrics import details, value
from kit.compare.notes import read_run
from kit.profile.schema import PART, Fit, Phase
from kit.report.verdicts_in_words import group_sentences


def compared(*groups, **fields):
    """The first group of a run; members stand for one group."""
    how = {name: fields.pop(name) for name in ("baseline", "by", "findings") if name in fields}
    if isinstance(groups[0], b.Member):
        groups = (b.group("g", *groups),)
    return compare_within("p", b.profile(*groups, **fields), **how)


def group_of(*members, **fields):
    return compared(*members, **fields).groups[0]


def rows_of(*members, **fields):
    return {row.name: row for row in group_of(*members, **fields).rows}


def steps(**steps_ms):
    return [b.member(name, ms) for name, ms in steps_ms.items()]


def note_codes(comparison):
    return {note.what.code for note in comparison.notes}


def test_planted_ratios_and_verdicts_come_out_through_the_machines_drift():
    rows = rows_of(*steps(tensorflow=4.0, torch=6.0, jax=2.0), drift=0.4)
    assert rows["tensorflow"].is_baseline and rows["tensorflow"].versus is None
    for name, ratio, verdict in (("torch", 1.5, "slower"), ("jax", 0.5, "faster")):
        versus = rows[name].versus
        assert (versus.verdict, versus.count) == (verdict, 8)
        assert versus.ratio == pytest.approx(ratio, rel=0.03)
        assert versus.low < versus.ratio < versus.high


def test_intervals_cover_the_planted_ratio():
    plans = [
        b.group(f"g{n}", b.member("tensorflow", 4.0, f"n{n}"), b.member("torch", 4.4, f"n{n}")) for n in range(120)
    ]
    groups = compared(*plans, rounds=6, cycles=6, seed=3).groups
    versus = [row.versus for group in groups for row in group.rows if row.versus is not None]
    covered = sum(interval.low <= 1.1 <= interval.high for interval in versus)
    assert covered >= 106  # of 120 at 95 %: fewer come by chance once in a thousand times


def test_the_fastest_is_named_only_with_a_verdict():
    clear, level = (group_of(*steps(tensorflow=4.0, torch=ms, jax=2.0)) for ms in (3.0, 2.01))
    assert [row.name for row in clear.rows] == ["jax", "torch", "tensorflow"]
    assert clear.leaders.tied == ["jax"]
    assert dict(clear.leaders.slower_than_fastest) == pytest.approx({"torch": 1.5, "tensorflow": 2.0}, rel=0.05)
    assert set(level.leaders.tied) == {"jax", "torch"}
    assert [name for name, _ in level.leaders.slower_than_fastest] == ["tensorflow"]
    assert group_of(*steps(torch=2.0, jax=2.0)).leaders is None


def test_a_cell_with_two_modes_that_is_not_shown_to_be_slower_is_not_beaten():
    torch = b.member("torch", 4.0, slow=1.8, slow_rounds=[1, 3, 4, 6])
    leaders = group_of(b.member("tensorflow", 9.0), torch, b.member("jax", 5.0, sd=0.002), drift=0.02).leaders
    assert set(leaders.tied) == {"torch", "jax"}
    assert [name for name, _ in leaders.slower_than_fastest] == ["tensorflow"]
    # Slower in both modes, by so much more in one that the mean is not shown to be slower: neither beaten nor level.
    torch = b.member("torch", 4.0, slow=9.0, slow_rounds=[1])
    members = (b.member("tensorflow", 4.5), torch, b.member("jax", 3.0, sd=0.002))
    leaders = group_of(*members, drift=0.02, rounds=5).leaders
    assert leaders.tied == ["jax"] and [name for name, _ in leaders.slower_than_fastest] == ["tensorflow"]
    assert [name for name, *_ in leaders.modes] == ["torch"]


def bimodal(fast_ratio, seed=0, **more):
    moody = b.member("torch", 4.0 * fast_ratio, slow=1.8, slow_rounds=[1, 3, 4, 6, 7])
    return compared(b.member("jax", 4.0), moody, drift=0.02, seed=seed, **more)


@pytest.mark.parametrize(("fast_ratio", "least", "most"), [(1.0, 0, 3), (1.1, 48, 60)])
def test_a_bimodal_cell_is_called_slower_only_where_its_fast_mode_is(fast_ratio, least, most):
    groups = [bimodal(fast_ratio, seed).groups[0] for seed in range(60)]
    assert all(row.versus.modes for group in groups for row in group.rows if row.versus is not None)
    assert least <= sum(group.leaders is not None for group in groups) <= most


def test_the_mean_of_a_bimodal_cell_has_no_verdict():
    (row,) = (row for row in bimodal(2.0).groups[0].rows if row.versus is not None)
    assert row.versus.low > 1 and row.versus.modes == pytest.approx((2.0, 3.6), rel=0.06)
    assert row.versus.verdict == "unresolved"
    for rounds in (8, 24):
        limit = limit_slow_downs(bimodal(1.0, rounds=rounds), 3)
        assert limit.unresolved and not limit.more_rounds, "no number of rounds would decide"


def parts(slowed=1.0, **of_second_baseline):
    """A sweep in two parts that share batch 1; the machine is `slowed` in the second."""
    first = [b.member("torch", ms, batch=batch) for batch, ms in ((1, 1.0), (2, 1.5), (4, 2.0), (8, 4.0))]
    base = b.member("torch", slowed, batch=1, **of_second_baseline)
    later = [b.member("torch", slowed * ms, batch=batch) for batch, ms in ((16, 7.0), (32, 14.4))]
    plans = b.group("k", *first), b.group("k#2", base, *later)
    return {row.cell.batch: row for row in group_of(*plans, compare=["batch"], drift=0.02).rows}


def test_a_group_in_parts_is_one_table_and_its_members_are_judged_as_they_are_shown():
    rows = parts(slowed=1.4)
    assert [row.is_baseline for row in rows.values()] == [True, *[False] * 5]
    assert rows[1].value("launches") == 16, "of both parts"
    samples_ns = {batch: row.value("sample_ns") for batch, row in rows.items()}
    assert samples_ns[16] / samples_ns[8] == pytest.approx(7.0 / 8.0, rel=0.03)
    assert samples_ns[32] / samples_ns[1] == pytest.approx(rows[32].versus.ratio) == pytest.approx(14.4 / 32, rel=0.05)


def test_modes_of_one_part_say_nothing_of_another():
    modes = {batch: row.versus and row.versus.modes for batch, row in parts(slow=1.8, slow_rounds=[1, 3, 4, 6]).items()}
    assert [modes[batch] for batch in (1, 2, 4, 8)] == [None] * 4
    assert modes[16] == pytest.approx((7.0 / 1.8 / 16, 7.0 / 16), rel=0.06)


def swept(*steps_ms, rounds=8, **more):
    members = [b.member("torch", ms, batch=2**number, **more) for number, ms in enumerate(steps_ms)]
    return group_of(*members, compare=["batch"], rounds=rounds)


def test_a_sweep_recommends_the_smallest_point_that_nearly_has_the_best_throughput():
    group = swept(1.0, 1.2, 1.6, 3.14)
    assert [row.versus and row.versus.verdict for row in group.rows] == [None, "faster", "faster", "faster"]
    advice = group.recommendation
    assert (advice.best, advice.smallest) == ("batch 8", "batch 4")
    assert advice.low < 1.019 < advice.high
    advice = swept(1.0, 1.2, 1.6, 2.8).recommendation
    assert (advice.best, advice.smallest, advice.ratio) == ("batch 8", "batch 8", None)


def test_a_sweep_says_what_its_best_point_is_not_shown_to_beat():
    group = swept(1.0, 1.2, 1.6, 3.0, sd=0.05)
    assert (group.recommendation.best, group.recommendation.unresolved) == ("batch 8", ["batch 4"])
    assert group.recommendation.smallest is None, "batch 4 may be within 5 %"
    assert group_sentences(group, {})[0].endswith("not resolved against batch 4.")
    assert swept(1.0, 1.2, rounds=2).recommendation is None, "no point is shown to win"


def test_numbers_are_what_was_measured():
    launch = {"sensors": b.sampled(clock=(2000.0, 2400.0, "MHz")), "energy": b.energy(11.0, samples=10_000)}
    torch = b.member("torch", 2.0, sd=0, noise=0, stall=0.25, launch=launch, counters={"odd": 7.0})
    numbers = vars(b.shown(rows_of(torch, drift=0)["torch"]))
    planted = {
        "step_ns": 2e6 * 1.25, "latency_ns": 2e6, "samples_per_s": 128 / (2e-3 * 1.25), "compile_ns": 150e6,
        "cpus": 1.9, "odd per step": 7.0, "energy_per_sample_j": 11.0 / 10 * 11 / 10_000,
        "clock mean MHz": 2000.0, "clock max MHz": 2400.0, "process_shared": False,
    }  # fmt: skip
    assert {name: numbers[name] for name in planted} == pytest.approx(planted, rel=0.01)
    assert numbers["start_ns"] is None, "it was not measured"


def test_the_columns_of_a_row_never_disagree_whatever_the_baseline_is():
    # Long steps in some blocks: of medians torch is the faster one, of whole times jax is.
    members = (b.member("tensorflow", 4.0), b.member("torch", 3.0, stall=0.4), b.member("jax", 3.5))
    shown = []
    for baseline in ("tensorflow", "jax", "torch"):
        rows = rows_of(*members, drift=0.5, baseline=baseline)
        steps_ns = {name: row.value("step_ns") for name, row in rows.items()}
        assert [*rows] == ["jax", "tensorflow", "torch"] == sorted(rows, key=steps_ns.get)
        per_s = [128e9 / row.value("samples_per_s") for row in rows.values()]
        assert per_s == pytest.approx([*steps_ns.values()])
        # With another baseline steps stay as they are: medians over cycles of ratios are not transitive.
        rel = 1e-6 if baseline == "tensorflow" else 0.01
        for name, row in rows.items():
            ratio = steps_ns[name] / steps_ns[baseline]
            assert row.versus is None or ratio == pytest.approx(row.versus.ratio, rel=rel)
        shown.append(steps_ns)
    assert shown[0] == shown[1] == shown[2]


def test_a_row_of_fewer_rounds_is_shown_as_in_the_rounds_that_its_baseline_saw():
    # The machine is three times as slow in the rounds that torch lost: its raw step knows nothing of them.
    lost = {number: b.DEAD[number] for number in (0, 1, 2)}
    members = b.member("jax", 4.0, slow=3.0, slow_rounds=(0, 1, 2)), b.member("torch", 4.0, failed_rounds=lost)
    rows = rows_of(*members, drift=0.02)
    assert (rows["torch"].versus.count, rows["torch"].value("failed")) == (5, 3)
    assert rows["torch"].value("step_ns") / rows["jax"].value("step_ns") == pytest.approx(1.0, rel=0.03)
    assert rows["torch"].value("raw_step_ns") / rows["jax"].value("raw_step_ns") < 0.8


def test_one_sequential_round_does_not_unpair_the_others():
    def alone_once(launch):
        launch.turns = "sequential" if launch.round == 3 else "blocks"

    paired, once = (
        group_of(*(b.member(name, 4.0, change=change) for name in ("torch", "jax")), drift=0.8).rows
        for change in (None, alone_once)
    )
    widths = [next(row.versus.high / row.versus.low for row in rows if row.versus) for rows in (paired, once)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_marks_of_a_row_say_what_disturbed_how_many_of_its_launches():
    def throttle(launch):
        if launch.round < 3:
            launch.blocks.counters["cgroup.throttled_ns"] = [span // 2 for span in launch.blocks.span_ns]
        launch.recompiles = b.Compilations(count=2, graph_breaks=3)

    rows = rows_of(b.member("torch", 2.0), b.member("jax", 2.0, change=throttle))
    marks = {mark.code: mark.values for mark in rows["jax"].marks}
    assert marks["throttled"] == {"launches": 3, "share_pct": pytest.approx(25, abs=0.1)}  # of two CPUs
    assert (marks["recompiled"]["launches"], marks["graph_breaks"]["count"]) == (8, 3)
    assert not rows["torch"].marks


def test_the_blocks_of_a_slow_mode_say_so(tmp_path):
    slow = b.member("torch", 4.0, slow=1.8, slow_rounds=[1, 3, 4, 6])
    built = b.profile(b.group("mlp", *steps(jax=4.0), slow), rounds=8, cycles=4, drift=0.02)
    columns = kit.load(b.write(tmp_path / "a.json", built)).to_columns("blocks")
    of_rounds = {
        (name.split("/")[1], number, slow)
        for name, number, slow in zip(*map(columns.get, ("cell", "round", "slow")), strict=True)
    }
    expected = {("torch", 1 + number, number in (1, 3, 4, 6)) for number in range(8)}
    assert of_rounds == expected | {("jax", 1 + number, None) for number in range(8)}


def test_losses_of_two_devices_of_one_run_are_each_held_to_their_own_others():
    def codes(device):
        other = b.member("torch", 1.0, device=device, launch={"parity": b.losses(1e-4)}, variant="other")
        return note_codes(compared(b.member("torch", 2.0), other, compare=["device", "variant"]))

    assert "parity_differs" in codes("cpu")
    assert "parity_differs" not in codes("gpu")


def test_of_findings_of_one_kind_the_gravest_of_each_variable_is_kept():
    torch, jax = b.member("torch"), b.member("jax")
    findings_of_both = [
        Finding(
            code="variable_binds_one", severity=severity, values={"variable": name}, group=key, cell_key=torch.cell.key
        )
        for key in ("g", f"g{PART}1")
        for name, severity in (("OMP_NUM_THREADS", "warning"), ("KMP_BLOCKTIME", "note"))
    ]
    assert group_of(torch, jax, findings=findings_of_both).findings == findings_of_both[:2]


def test_there_is_no_break_even_with_a_cell_that_differs_in_more():
    def break_evens(**more):
        eager = b.member("torch", 4.0, compile_mode="eager", launch=b.compiling(0.1))
        compiled = b.member("torch", 3.0, compile_mode="compile", launch=b.compiling(2.1), **more)
        rows = group_of(eager, compiled, compare=["compile_mode"], drift=0.02).rows
        return [row.break_even for row in rows if row.break_even]

    (pays,) = break_evens()
    assert (pays.outcome, pays.steps) == ("pays", pytest.approx(2000, rel=0.1))
    assert not break_evens(batch=7)


def sharing_processes(*, reused_from=9):
    """Two groups whose cells of each mode share a process: each group is its first in every other round.

    A later program of a process compiles in a fifth of the time; from `reused_from` on rounds compile nothing.
    """

    def change(launch):
        is_first = (launch.group == "mlp") == (launch.round % 2 == 0)
        is_compiled = "/compile/" in launch.cell_key
        compile_ns = round((2.1e9 if is_compiled else 0.1e9) * (1.0 if is_first else 0.2))
        launch.process = f"{is_compiled}#{launch.round}"
        begin_ns = 0 if is_first else 10**10
        launch.phases = [
            Phase(name="compile", begin_ns=begin_ns, duration_ns=compile_ns),
            Phase(name="first_step", begin_ns=begin_ns + compile_ns, duration_ns=10**7),
        ]
        launch.reused_compilation = launch.round >= reused_from

    modes = (("eager", 4.0), ("compile", 3.0))
    groups = [
        b.group(name, *(b.member("torch", ms, name, compile_mode=mode, change=change) for mode, ms in modes))
        for name in ("mlp", "cnn")
    ]
    return b.profile(*groups, compare=["compile_mode"], drift=0.02)


def test_how_a_program_starts_is_told_by_rounds_in_which_it_was_the_first_of_its_process():
    built = sharing_processes()
    for group in compare_within("p", built).groups:
        (point,) = [row.break_even for row in group.rows if row.break_even]
        assert (point.outcome, point.steps) == ("pays", pytest.approx(2000, rel=0.1))
    for group in read_run("p", built).groups:
        compiled, eager = sorted(group.samples.values(), key=lambda sample: sample.name)
        assert (value(compiled, "compile_ns"), value(eager, "compile_ns")) == (2.11e9, 0.11e9)
        assert details(compiled)["phase compile_ns"] == 2.1e9
        assert not compiled.was_never_first


def test_where_later_rounds_reuse_compilations_the_first_round_tells_how_each_cell_starts():
    groups = read_run("p", sharing_processes(reused_from=1)).groups
    known = {
        group.key: value(sample, "compile_ns")
        for group in groups
        for sample in group.samples.values()
        if sample.name == "compile"
    }
    assert known == {"mlp": 2.11e9, "cnn": 0.43e9}


@pytest.mark.parametrize(
    ("row", "record"),
    [
        ("compile", {"ran": b.WhatRan(runs={"operation": 79})}),
        ("compile", {"recompiles": b.Compilations(count=0, before=0), "ran": None}),
        ("eager", {"ran": b.WhatRan(runs={"inductor": 1, "operation": 79})}),
    ],
)
def test_a_mode_that_did_not_run_has_a_mark_and_a_note_and_no_break_even(row, record):
    launches = {"eager": b.compiling(0.1), "compile": b.compiling(2.1)}
    launches[row] |= record
    members = [b.member("torch", 4.0, compile_mode=mode, launch=launch) for mode, launch in launches.items()]
    built = b.profile(b.group("g", *members), compare=["compile_mode"], drift=0.02)
    comparison = compare_within("p", built)
    rows = {known.name: known for known in comparison.groups[0].rows}
    assert not any(known.break_even for known in rows.values())
    assert {"not_compiled", "compiled_nonetheless"} & {mark.code for mark in rows[row].marks}
    (shown,) = [note for note in comparison.notes if note.what.code == "mode_differs"]
    assert f"/{row}/" in shown.what.values["cell"]


def test_a_fits_whole_time_is_ranked_and_shown_as_it_is_judged():
    def fit(launch):
        if launch.failure is None:
            launch.fit = Fit(epochs=1, updates=9, reference_ns=[2e6] * 13, test_ns=10**8)

    # The third round is a slow one, in which torch lost its fit: of raw times torch would be the faster one.
    slow = {"slow": 4.0, "slow_rounds": (2,), "sd": 0.001, "noise": 0.001}
    plain = slow | {"task": "fit", "feed": "host", "launch": {"turns": "sequential"}, "change": fit}
    members = b.member("tensorflow", 2.0, **plain), b.member("torch", 2.4, failed_rounds={2: b.DEAD[2]}, **plain)
    first, second = group_of(*members, rounds=3, drift=0.0, by="latency_ns").rows
    assert (first.name, second.name) == ("tensorflow", "torch")
    assert second.versus.ratio == pytest.approx(1.2, rel=0.02)
    assert second.value("step_ns") / first.value("step_ns") == pytest.approx(1.2, rel=0.02)
    assert second.value("fit_total_ns") > first.value("fit_total_ns")


def test_a_family_is_the_comparisons_with_the_baseline_and_the_fastest_two():
    members = steps(a=5.0, b=4.0, c=3.0, d=2.0, e=1.0)
    for baseline, comparisons in ((None, 5), ("e", 4)):
        rows = group_of(*members, baseline=baseline).rows
        assert {row.versus.comparisons for row in rows if row.versus is not None} == {comparisons}


def test_beside_a_baseline_without_a_number_the_others_are_still_one_family():
    members = [b.member("dead", failed_rounds=b.DEAD), *(b.member(name, 2.0, sd=0.02) for name in "abcdef")]
    named = [group_of(*members, seed=seed).leaders is not None for seed in range(20)]
    assert sum(named) <= 4


@pytest.mark.parametrize("turns", ["blocks", "sequential"])
def test_only_who_has_two_modes_or_is_still_warming_up_is_marked(turns):
    def marked(code, *members, **more):
        return [name for name, row in rows_of(*members, **more).items() if code in [mark.code for mark in row.marks]]

    slow = b.member("torch", 4.0, slow=1.8, slow_rounds=[1, 3, 4, 6])
    assert marked("two_modes", *steps(jax=4.0, tensorflow=8.0), slow, turns=turns, drift=0.02) == ["torch"]
    assert marked("trending", *steps(tensorflow=4.0, torch=5.0), b.member("jax", 2.0, trend=-0.2)) == ["jax"]

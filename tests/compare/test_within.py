import profile_builder as b
import pytest

from kit.audit.audit import findings_of as audit
from kit.audit.finding import Finding
from kit.compare.compare import compare_within
from kit.compare.conclusions import leaders_of, limit_slow_downs
from kit.compare.contrast import cycle_log_ratios, log_ratios
from kit.compare.metrics import METRICS
from kit.compare.sample import read_run
from kit.errors import KitError
from kit.profile.launch import Fit, Phase
from kit.profile.schema import PART
from kit.profile.store import read_profile
from kit.report.answer import answer
from kit.report.conclusions import group_sentences
from kit.stats.estimate import Estimate

# Of the two pairs with the baseline one has an interval that leaves out 1, and an adjusted p above 0.05.
NOT_SIGNIFICANT_SEED = 5


def compared(profile, **more):
    return compare_within("p", profile, **more)


def rows_of(profile, **more):
    return {row.name: row for group in compared(profile, **more).groups for row in group.rows}


def test_planted_ratios_and_verdicts_come_out_through_the_machines_drift():
    members = (b.member(name, ms) for name, ms in (("tensorflow", 4.0), ("torch", 6.0), ("jax", 2.0)))
    rows = rows_of(b.profile(b.group("g", *members), drift=0.4))
    assert rows["tensorflow"].is_baseline and rows["tensorflow"].versus is None
    assert rows["torch"].versus.verdict == "slower" and rows["jax"].versus.verdict == "faster"
    for name, ratio in (("torch", 1.5), ("jax", 0.5)):
        versus = rows[name].versus
        assert versus.ratio == pytest.approx(ratio, rel=0.03)
        assert versus.low < versus.ratio < versus.high
        assert versus.count == 8


def test_intervals_cover_the_planted_ratio():
    steps_ms = {"tensorflow": 4.0, "torch": 4.4}
    plans = [b.group(f"g{n}", *(b.member(name, ms, f"n{n}") for name, ms in steps_ms.items())) for n in range(120)]
    comparison = compared(b.profile(*plans, rounds=6, cycles=6, seed=3))
    versus = [row.versus for group in comparison.groups for row in group.rows if row.versus is not None]
    covered = sum(interval.low <= 1.1 <= interval.high for interval in versus)
    assert covered >= 106  # of 120 at 95 %: fewer come by chance once in a thousand times


def test_rows_are_sorted_by_speed_and_the_fastest_is_named_only_with_a_verdict():
    def of_torch(ms):
        members = b.member("tensorflow", 4.0), b.member("torch", ms, sd=0.03), b.member("jax", 2.0)
        return compared(b.profile(b.group("g", *members))).groups[0]

    clear, level = of_torch(3.0), of_torch(2.01)
    assert [row.name for row in clear.rows] == ["jax", "torch", "tensorflow"]
    assert clear.leaders.tied == ["jax"]
    assert dict(clear.leaders.slower_than_fastest) == pytest.approx({"torch": 1.5, "tensorflow": 2.0}, rel=0.05)
    assert set(level.leaders.tied) == {"jax", "torch"}
    assert [name for name, _ in level.leaders.slower_than_fastest] == ["tensorflow"]


def test_who_has_two_modes_and_is_not_shown_to_be_slower_is_not_told_apart():
    torch = b.member("torch", 4.0, slow=1.8, slow_rounds=[1, 3, 4, 6])
    members = (b.member("tensorflow", 9.0), torch, b.member("jax", 5.0, sd=0.002))
    (group,) = compared(b.profile(b.group("g", *members), drift=0.02)).groups
    assert set(group.leaders.tied) == {"torch", "jax"}
    assert [name for name, _ in group.leaders.slower_than_fastest] == ["tensorflow"]
    # Slower in both modes, by so much more in one that the mean is not shown to be slower: neither beaten nor level.
    torch = b.member("torch", 4.0, slow=9.0, slow_rounds=[1])
    members = (b.member("tensorflow", 4.5), torch, b.member("jax", 3.0, sd=0.002))
    (group,) = compared(b.profile(b.group("g", *members), drift=0.02, rounds=5)).groups
    assert group.leaders.tied == ["jax"] and [name for name, _ in group.leaders.slower_than_fastest] == ["tensorflow"]
    assert [name for name, *_ in group.leaders.modes] == ["torch"]


def bimodal(fast_ratio, seed=0, **more):
    moody = b.member("torch", 4.0 * fast_ratio, slow=1.8, slow_rounds=[1, 3, 4, 6, 7])
    return compared(b.profile(b.group("g", b.member("jax", 4.0), moody), drift=0.02, seed=seed, **more))


@pytest.mark.parametrize(("fast_ratio", "least", "most"), [(1.0, 0, 3), (1.1, 48, 60)])
def test_a_bimodal_cell_is_called_slower_only_where_its_fast_mode_is(fast_ratio, least, most):
    compared_60 = [bimodal(fast_ratio, seed).groups[0] for seed in range(60)]
    assert all(row.versus.modes for group in compared_60 for row in group.rows if row.versus is not None)
    assert least <= sum(group.leaders is not None for group in compared_60) <= most


def test_the_mean_of_a_bimodal_cell_has_no_verdict():
    (row,) = (row for row in bimodal(2.0).groups[0].rows if row.versus is not None)
    assert row.versus.low > 1 and row.versus.modes == pytest.approx((2.0, 3.6), rel=0.06)
    assert row.versus.verdict == "unresolved"


@pytest.mark.parametrize("rounds", [8, 24])
def test_no_number_of_rounds_is_said_to_decide_a_bimodal_cell(rounds):
    limit = limit_slow_downs(bimodal(1.0, rounds=rounds), 3)
    assert limit.unresolved and not limit.more_rounds


def test_modes_of_one_part_say_nothing_of_another():
    batches = [b.member("torch", 4.0 + number, batch=2**number) for number in range(6)]
    # The baseline has two modes in the second part alone.
    moody = b.member("torch", 4.0, batch=1, slow=1.8, slow_rounds=[1, 3, 4, 6])
    parts = b.profile(b.group("k", *batches[:4]), b.group("k#2", moody, *batches[4:]), compare=["batch"], drift=0.02)
    modes = {row.cell.batch: row.versus and row.versus.modes for row in compared(parts).groups[0].rows}
    assert [modes[batch] for batch in (1, 2, 4, 8)] == [None] * 4
    assert modes[16] == pytest.approx((2.0 / 1.8 / 16, 2.0 / 16), rel=0.06)


def test_nobody_is_the_fastest_of_cells_that_are_alike():
    group = compared(b.profile(b.group("g", b.member("torch", 2.0), b.member("jax", 2.0)))).groups[0]
    assert group.leaders is None
    assert next(row for row in group.rows if not row.is_baseline).versus.verdict in ("unresolved", "same")


def test_a_group_in_parts_is_one_table_with_one_baseline_and_its_members_are_compared_across_parts():
    batches = [b.member("torch", 1.0 + 0.5 * number, batch=2**number) for number in range(6)]
    parts = b.profile(b.group("k", *batches[:4]), b.group("k#2", batches[0], *batches[4:]), compare=["batch"])
    (group,) = compared(parts).groups
    assert len(group.rows) == 6
    assert [row.is_baseline for row in group.rows].count(True) == 1
    # `batch 16` is in the other part than `batch 8`: both against the shared baseline.
    ratios = {row.name: row.versus.ratio for row in group.rows if row.versus}
    assert ratios["batch 16"] == pytest.approx(3.0 / 16, rel=0.05)
    assert ratios["batch 8"] == pytest.approx(2.5 / 8, rel=0.05)
    assert {row.name: row.value("launches") for row in group.rows}["batch 1"] == 16  # of both parts


def swept(*steps_ms, rounds=8, **more):
    members = [b.member("torch", ms, batch=2**number, **more) for number, ms in enumerate(steps_ms)]
    return compared(b.profile(b.group("k", *members), compare=["batch"], rounds=rounds)).groups[0]


def test_a_sweep_is_in_its_order_and_compared_by_time_per_sample():
    group = swept(1.0, 1.2, 1.6, 3.1)  # per sample: 1, 0.6, 0.4, 0.39
    assert [row.name for row in group.rows] == ["batch 1", "batch 2", "batch 4", "batch 8"]
    assert [row.versus and row.versus.verdict for row in group.rows] == [None, "faster", "faster", "faster"]
    first_ns = group.rows[0].value("sample_ns")
    assert [row.value("sample_ns") / first_ns for row in group.rows] == pytest.approx([1, 0.6, 0.4, 0.3875], rel=0.05)
    assert group.leaders is None


def test_a_sweep_recommends_the_smallest_point_that_nearly_has_the_best_throughput():
    advice = swept(1.0, 1.2, 1.6, 3.14).recommendation
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
    numbers = rows_of(b.profile(b.group("g", torch), drift=0))["torch"]
    numbers, details = b.shown(numbers), vars(b.shown(numbers))
    assert numbers.step_ns == pytest.approx(2e6 * 1.25)  # the stalls are in it
    assert numbers.latency_ns == pytest.approx(2e6)
    assert numbers.samples_per_s == pytest.approx(128 / (2e-3 * 1.25), rel=1e-3)
    assert numbers.compile_ns == 150e6
    assert numbers.cpus == pytest.approx(1.9, rel=1e-3)
    assert details["odd per step"] == pytest.approx(7.0, rel=0.01)
    assert numbers.energy_per_sample_j == pytest.approx(11.0 / 10 * 11 / 10_000)  # the window's power
    assert (details["clock mean MHz"], details["clock max MHz"]) == (2000.0, 2400.0)
    assert not numbers.process_shared
    assert numbers.start_ns is None, "it was not measured"


def test_the_columns_of_a_row_never_disagree_and_stand_in_the_order_of_what_is_judged():
    # Long steps in some blocks: of medians torch is the faster one, of whole times jax is.
    members = (b.member("tensorflow", 4.0), b.member("torch", 3.0, stall=0.4), b.member("jax", 3.5))
    shown = []
    for baseline in ("tensorflow", "jax", "torch"):
        rows = compared(b.profile(b.group("g", *members), drift=0.5), baseline=baseline).groups[0].rows
        steps_ns = [row.value("step_ns") for row in rows]
        assert steps_ns == sorted(steps_ns)
        assert [row.name for row in rows] == ["jax", "tensorflow", "torch"]
        assert [128e9 / row.value("samples_per_s") for row in rows] == pytest.approx(steps_ns)
        base_ns = next(row.value("step_ns") for row in rows if row.is_baseline)
        for row in rows:
            # With another baseline steps stay as they are: medians over cycles of ratios are not transitive.
            rel = 1e-6 if baseline == "tensorflow" else 0.01
            assert row.versus is None or row.value("step_ns") / base_ns == pytest.approx(row.versus.ratio, rel=rel)
        shown.append({row.name: row.value("step_ns") for row in rows})
    assert shown[0] == shown[1] == shown[2]


def test_a_row_of_fewer_rounds_is_shown_as_in_the_rounds_that_its_baseline_saw():
    # The machine is three times as slow in the rounds that torch lost: its own level knows nothing of them.
    dead = dict.fromkeys((0, 1, 2), b.reason("out_of_memory", signal="SIGKILL"))
    slow = {"slow": 3.0, "slow_rounds": (0, 1, 2)}
    members = b.member("jax", 4.0, **slow), b.member("torch", 4.0, failed_rounds=dead)
    rows = rows_of(b.profile(b.group("g", *members), drift=0.02))
    assert rows["torch"].value("step_ns") / rows["jax"].value("step_ns") == pytest.approx(1.0, rel=0.03)
    assert rows["torch"].value("raw_step_ns") / rows["jax"].value("raw_step_ns") < 0.8


def test_points_of_a_split_sweep_are_judged_as_they_are_shown():
    # In the second part the machine was 40 % slower: the baseline beside them tells.
    first = [b.member("torch", ms, batch=batch) for batch, ms in ((1, 1.0), (2, 1.5), (4, 2.0), (8, 4.0))]
    slower = [b.member("torch", 1.4 * ms, batch=batch) for batch, ms in ((1, 1.0), (16, 7.0), (32, 14.4))]
    parts = b.profile(b.group("k", *first), b.group("k#2", *slower), compare=["batch"], drift=0.02)
    (group,) = compared(parts).groups
    samples_ns = {row.cell.batch: row.value("sample_ns") for row in group.rows}
    assert samples_ns[16] / samples_ns[8] == pytest.approx(7.0 / 8.0, rel=0.03)
    assert group.recommendation.best == "batch 16"
    by_ratio = {row.cell.batch: row.versus.ratio for row in group.rows if row.versus}
    assert samples_ns[32] / samples_ns[1] == pytest.approx(by_ratio[32])


def test_latency_is_judged_when_asked_for():
    members = (b.member("tensorflow", 4.0), b.member("torch", 3.0, stall=0.6))
    by_step, by_latency = (rows_of(b.profile(b.group("g", *members)), by=by) for by in ("step_ns", "latency_ns"))
    assert (by_step["torch"].versus.verdict, by_latency["torch"].versus.verdict) == ("slower", "faster")
    latency_ns = [by_latency[name].value("latency_ns") for name in ("torch", "tensorflow")]
    assert latency_ns[0] / latency_ns[1] == pytest.approx(by_latency["torch"].versus.ratio, rel=0.01)
    for name, row in by_step.items():
        same = b.shown(by_latency[name])
        assert (row.value("step_ns"), row.value("latency_ns")) == (same.step_ns, same.latency_ns)


def test_a_later_program_of_a_process_says_that_it_began_warm():
    def built_at(begin_ns, *names):
        phases = [Phase(name=name, begin_ns=begin_ns, duration_ns=10**9) for name in (*names, "build", "first_step")]
        return {"process": "shared", "phases": phases}

    train = b.member("torch", 2.0, launch=built_at(0, "start", "import"))
    infer = b.member("torch", 1.0, task="infer", launch=built_at(10**10, "start", "import"))
    alone = b.member("torch", 1.0, task="fit")
    comparison = compared(b.profile(b.group("g", train), b.group("h", infer), b.group("i", alone)))
    numbers = {row.cell.task: b.shown(row) for group in comparison.groups for row in group.rows}
    assert [numbers[task].process_shared for task in ("train", "infer", "fit")] == [True, True, False]
    assert (numbers["train"].start_ns, numbers["train"].warm_start) == (4e9, False)
    assert (numbers["infer"].start_ns, numbers["infer"].warm_start) == (2e9, True)
    assert "warm_start" in [note.what.code for note in comparison.notes]


def test_one_sequential_round_does_not_unpair_the_others():
    def alone_once(launch):
        launch.turns = "sequential" if launch.round == 3 else "blocks"

    members = (b.member(name, 4.0, change=alone_once) for name in ("torch", "jax"))
    profile = b.profile(b.group("g", *members))
    pair = read_run("p", profile).samples.values()
    assert list(log_ratios(METRICS["step_ns"], *pair)) == list(range(8))
    assert list(cycle_log_ratios(METRICS["step_ns"], *pair)) == [0, 1, 2, 4, 5, 6, 7]


def test_an_interval_that_leaves_out_1_but_for_the_other_comparisons_is_said_so():
    members = b.member("tensorflow", 4.0), b.member("torch", 4.12, sd=0.03), b.member("jax", 4.0, sd=0.05)
    rows = rows_of(b.profile(b.group("g", *members), seed=NOT_SIGNIFICANT_SEED))
    versus = rows["torch"].versus
    assert versus.low > 1 and versus.verdict == "unresolved" and versus.comparisons == 2
    assert "not significant in 2 tests" in answer(rows["torch"])


def test_a_failed_launch_is_counted_with_its_reason_and_the_others_rounds_stand():
    dead = b.reason("out_of_memory", signal="SIGKILL")
    torch = b.member("torch", 8.0, failed_rounds={2: dead})
    jax = b.member("jax", 2.0, failed_rounds=dict.fromkeys(range(8), dead))
    comparison = compared(b.profile(b.group("g", b.member("tensorflow", 4.0), torch, jax)))
    rows = {row.name: row for row in comparison.groups[0].rows}
    assert (rows["torch"].value("launches"), rows["torch"].value("failed")) == (7, 1)
    assert rows["torch"].versus.verdict == "slower" and rows["torch"].versus.count == 7
    assert rows["jax"].versus is None and rows["jax"].failure == dead
    assert comparison.groups[0].rows[-1].name == "jax"
    assert [note.because for note in comparison.notes if note.what.code == "launches_failed"] == [dead]


def test_whole_turns_are_not_paired_by_cycle_and_said():
    comparison = compared(b.profile(b.group("g", b.member("torch", 2.0), b.member("jax", 4.0)), turns="sequential"))
    versus = next(row.versus for row in comparison.groups[0].rows if row.versus)
    assert versus.ratio == pytest.approx(2.0, rel=0.1)
    assert "sequential" in [note.what.code for note in comparison.notes]


@pytest.mark.parametrize("paired", ["blocks", "sequential"])
def test_two_modes_are_named_with_both_ratios(paired):
    slow = b.member("torch", 4.0, slow=1.8, slow_rounds=[1, 3, 4, 6])
    members = b.member("jax", 4.0), slow, b.member("tensorflow", 8.0)
    rows = rows_of(b.profile(b.group("g", *members), turns=paired, drift=0.02))
    if paired == "blocks":
        assert rows["torch"].versus.modes == pytest.approx((1.0, 1.8), rel=0.06)
    assert "two_modes" in [mark.code for mark in rows["torch"].marks]
    assert "two_modes" not in [mark.code for name in ("jax", "tensorflow") for mark in rows[name].marks]


def test_who_was_still_warming_up_is_marked_and_the_others_are_not():
    members = (b.member("tensorflow", 4.0), b.member("torch", 5.0), b.member("jax", 2.0, trend=-0.2))
    rows = rows_of(b.profile(b.group("g", *members)))
    assert [name for name, row in rows.items() if "trending" in [mark.code for mark in row.marks]] == ["jax"]
    rows = rows_of(b.profile(b.group("g", *members[:2])))
    assert not [mark for row in rows.values() for mark in row.marks]


def test_what_disturbed_launches_is_marked_with_how_many():
    def throttle(launch):
        if launch.round < 3:
            launch.blocks.counters["cgroup.throttled_ns"] = [span // 2 for span in launch.blocks.span_ns]
        launch.recompiles = b.Compilations(count=2, graph_breaks=3)

    rows = rows_of(b.profile(b.group("g", b.member("torch", 2.0), b.member("jax", 2.0, change=throttle))))
    marks = {mark.code: mark.values for mark in rows["jax"].marks}
    # Of two CPUs.
    assert marks["throttled"] == {"launches": 3, "share_pct": pytest.approx(25, abs=0.1)}
    assert marks["recompiled"]["launches"] == 8
    assert marks["graph_breaks"]["count"] == 3
    assert not rows["torch"].marks


def test_the_baseline_can_be_chosen_and_one_that_is_not_there_is_refused():
    profile = b.profile()
    rows = [row for group in compared(profile, baseline="jax").groups for row in group.rows if row.is_baseline]
    assert [row.name for row in rows] == ["jax", "jax"]
    with pytest.raises(KitError, match="torch"):
        compared(profile, baseline="theano")


def test_variants_are_named_by_variant_and_titled_by_what_they_share():
    plain, other = b.member("jax", 4.0, "cnn"), b.member("jax", 2.0, "cnn", variant="tcmalloc")
    (group,) = compared(b.profile(b.group("g", plain, other), compare=["variant"])).groups
    assert [row.name for row in group.rows] == ["tcmalloc", "default"]
    assert group.title == ["cnn train", "jax"]


def test_versions_are_named_where_variants_differ_in_them():
    versions = {"old": "1", "new": "2"}
    both = (b.member("jax", 2.0, variant=name, launch={"backend_version": versions[name]}) for name in versions)
    notes = compared(b.profile(b.group("g", *both), compare=["variant"])).notes
    assert {"backend": "jax", "listed": "old 1, new 2"} in [note.what.values for note in notes]


def test_notes_say_what_must_be_known():
    few = compared(b.profile(rounds=3, data="synthetic", interrupted=True))
    assert {"preliminary", "data_synthetic", "interrupted", "energy_no_sensor"} <= {n.what.code for n in few.notes}
    enough = compared(b.profile(rounds=8))
    assert {note.what.code for note in enough.notes} == {"parity_equal", "energy_no_sensor", "cpu_seconds"}


def test_float32_on_a_tpu_is_said_to_be_nobodys_default():
    def codes(**cell):
        return {note.what.code for note in compared(b.profile(b.group("g", b.member("jax", 2.0, **cell)))).notes}

    assert "float32_on_tpu" in codes(device="tpu")
    assert "float32_on_tpu" not in codes(device="gpu") | codes(device="tpu", precision="default")


def test_losses_of_two_devices_of_one_run_are_each_held_to_their_own_others():
    def codes(device):
        losses = [2.3 / (1 + step) * (1 + 1e-4) for step in range(20)]
        parity = b.Parity(losses=losses, weights_sha256="a" * 64, batches_sha256="b" * 64)
        other = b.member("torch", 1.0, device=device, launch={"parity": parity}, variant="other")
        plan = b.group("g", b.member("torch", 2.0), other)
        return {note.what.code for note in compared(b.profile(plan, compare=["device", "variant"])).notes}

    assert "parity_differs" in codes("cpu")
    assert "parity_differs" not in codes("gpu")


def test_who_computes_other_losses_is_named():
    def shifted(launch):
        losses = [loss * 1.01 for loss in launch.parity.losses]
        launch.parity = b.Parity(losses=losses, weights_sha256="a" * 64, batches_sha256="b" * 64)

    odd = b.member("jax", 2.0, change=shifted)
    notes = compared(b.profile(b.group("g", b.member("torch", 2.0), b.member("tensorflow", 2.0), odd))).notes
    assert [n.what.values["cell"] for n in notes if n.what.code == "parity_differs"] == [odd.cell.key]


def test_findings_stand_under_the_group_they_are_of():
    faults = {"process.minor_faults": 87_341.0, "process.user_ns": 50e6, "process.system_ns": 50e6}
    profile = b.profile(
        b.group("g", b.member("torch", 50.0), b.member("jax", 90.0, counters=faults)),
        b.group("h", b.member("torch", 1.0, task="infer")),
    )
    first, second = compared(profile, findings=audit(read_run("p", profile))).groups
    assert [finding.code for finding in first.findings] == ["page_faults"] and not second.findings


def test_of_findings_of_one_kind_the_gravest_of_each_variable_is_kept():
    built = b.profile(b.group("g", b.member("torch"), b.member("jax")))
    findings_of_both = [
        Finding(code="variable_binds_one", severity=severity, values={"variable": name}, group=group, cell_key=key)
        for key in [built.cells[0].key]
        for group in ("g", f"g{PART}1")
        for name, severity in (("OMP_NUM_THREADS", "warning"), ("KMP_BLOCKTIME", "note"))
    ]
    kept = compared(built, findings=findings_of_both).groups[0].findings
    assert kept == findings_of_both[:2]


def test_a_workload_with_parameters_is_itself_when_it_is_read_again(tmp_path):
    members = [b.member("torch", 2.0, "transformer", parameters={"width": 64, "depth": depth}) for depth in (1, 2)]
    b.write(tmp_path / "a.json", b.profile(b.group("g", *members), compare=["depth"]))
    profile = read_profile(tmp_path / "a.json")
    assert [result.key == result.cell.key for result in profile.cells] == [True, True]
    (group,) = compared(profile).groups
    assert [row.name for row in group.rows] == ["depth 1", "depth 2"]
    assert group.title == ["transformer train", "torch"]


def test_rows_are_in_the_order_of_what_is_judged():
    batches = [b.member("torch", 1.0, batch=1), b.member("torch", 2.0, batch=100), b.member("jax", 3.0, batch=1)]
    group = compared(b.profile(b.group("g", *batches), compare=["backend", "batch"])).groups[0]
    assert [(row.cell.backend, row.cell.batch) for row in group.rows] == [("torch", 100), ("torch", 1), ("jax", 1)]
    assert group.leaders.tied == ["torch batch 100"]


def modes(*members, **fields):
    return b.profile(b.group("g", *members), compare=["compile_mode"], drift=0.02, **fields)


def compiling(compile_ns, step_ms, mode, **more):
    phases = [Phase(name="compile", begin_ns=0, duration_ns=compile_ns)]
    return b.member("torch", step_ms, compile_mode=mode, launch={"phases": phases}, **more)


@pytest.mark.parametrize("dear_first", [False, True])
def test_break_even_is_of_the_mode_that_compiles_for_longer(dear_first):
    both = [compiling(10**8, 4.0, "eager"), compiling(2_100_000_000, 3.0, "compile")]
    (row,) = (row for row in rows_of(modes(*both[:: -1 if dear_first else 1])).values() if row.break_even)
    assert row.break_even.of_baseline is dear_first
    assert row.break_even.outcome == "pays" and row.break_even.steps == pytest.approx(2000, rel=0.1)


def test_there_is_no_break_even_with_a_cell_that_differs_in_more():
    other = compiling(2_100_000_000, 3.0, "compile", batch=7)
    profile = b.profile(b.group("g", compiling(10**8, 4.0, "eager"), other), compare=["compile_mode", "batch"])
    assert not any(row.break_even for row in rows_of(profile).values())


def fitting(backend, accuracies):
    def score(launch):
        right = round(1000 * accuracies[launch.round])
        confusion = [[right, 1000 - right], [0, 0]]
        launch.fit = Fit(epochs=1, updates=9, reference_ns=[2e6] * 13, test_ns=10**8, confusion=confusion)

    return b.member(backend, 2.0, task="fit", feed="host", launch={"turns": "sequential"}, change=score)


@pytest.mark.parametrize(
    ("other", "verdict"),
    [([0.901, 0.909, 0.895], "same"), ([0.78, 0.94, 0.85], "unresolved"), ([0.80, 0.811, 0.79], "lower")],
)
def test_scores_agree_only_where_their_interval_says_so(other, verdict):
    profile = b.profile(b.group("g", fitting("tensorflow", [0.9, 0.91, 0.895]), fitting("torch", other)), rounds=3)
    assert rows_of(profile)["torch"].score_difference.verdict == verdict


def test_a_fits_whole_time_is_ranked_and_shown_as_it_is_judged():
    # The third round is a slow one, in which torch lost its fit: of raw times torch would be the faster one.
    slow = {"slow": 4.0, "slow_rounds": (2,), "sd": 0.001, "noise": 0.001}
    score = fitting("tensorflow", [0.9] * 3).change
    members = [
        b.member(name, ms, task="fit", feed="host", launch={"turns": "sequential"}, change=score, **slow, **more)
        for name, ms, more in (
            ("tensorflow", 2.0, {}),
            ("torch", 2.4, {"failed_rounds": {2: b.reason("out_of_memory", signal="SIGKILL")}}),
        )
    ]
    members[1].change = lambda launch: score(launch) if launch.failure is None else None
    rows = compared(b.profile(b.group("g", *members), rounds=3, drift=0.0), by="latency_ns").groups[0].rows
    assert [row.name for row in rows] == ["tensorflow", "torch"]
    assert rows[1].versus.ratio == pytest.approx(1.2, rel=0.02)
    assert rows[1].value("step_ns") / rows[0].value("step_ns") == pytest.approx(1.2, rel=0.02)
    assert rows[1].value("fit_total_ns") > rows[0].value("fit_total_ns")


def test_a_launch_that_failed_before_its_first_step_makes_no_start_warm():
    phases = [Phase(name=name, begin_ns=5, duration_ns=10**9) for name in ("start", "import", "build", "first_step")]
    held = {"process": "shared", "phases": phases}
    dead = dict.fromkeys(range(8), b.reason("out_of_memory", signal="SIGKILL"))
    infer = b.member("torch", 1.0, task="infer", failed_rounds=dead, launch={"process": "shared", "phases": []})
    comparison = compared(b.profile(b.group("g", b.member("torch", 2.0, launch=held)), b.group("h", infer)))
    numbers = b.shown(comparison.groups[0].rows[0])
    assert (numbers.start_ns, numbers.warm_start) == (4e9, False)


def test_latencies_of_batches_are_not_divided_by_them():
    members = (b.member("torch", 1.0, batch=1), b.member("torch", 5.0, batch=100))
    rows = compared(b.profile(b.group("g", *members), compare=["batch"]), by="latency_ns").groups[0].rows
    assert rows[1].versus.ratio == pytest.approx(5.0, rel=0.03)
    assert rows[1].value("latency_ns") / rows[0].value("latency_ns") == pytest.approx(rows[1].versus.ratio, rel=0.01)


def beside_a_busy_program(launch):
    """Half of two CPUs is taken by others, and none is idle."""
    counters, spans_ns = launch.blocks.counters, launch.blocks.span_ns
    counters["process.cpu_ns"] = list(spans_ns)
    counters["machine.busy_ns"] = [2 * span_ns for span_ns in spans_ns]
    counters["machine.steal_ns"] = [0] * len(spans_ns)


@pytest.mark.parametrize(("other", "is_judged"), [({}, False), ({"batch": 64}, True)])
def test_unlike_members_beside_a_busy_program_have_no_verdict(other, is_judged):
    backend = "torch" if other else "jax"
    members = [
        b.member("torch", 1.0, change=beside_a_busy_program),
        b.member(backend, 9.0, change=beside_a_busy_program, **other),
    ]
    group = compared(b.profile(b.group("g", *members))).groups[0]
    versus = next(row.versus for row in group.rows if row.versus is not None)
    assert (versus.verdict == "slower", group.leaders is not None) == (is_judged, is_judged)
    assert limit_slow_downs(compared(b.profile(b.group("g", *members))), 3).exit_code == (1 if is_judged else 5)


def test_a_family_is_the_comparisons_with_the_baseline_and_the_fastest_two():
    members = [b.member(name, ms) for name, ms in zip("abcde", (5.0, 4.0, 3.0, 2.0, 1.0), strict=True)]
    rows = rows_of(b.profile(b.group("g", *members)))
    assert {row.versus.comparisons for row in rows.values() if row.versus is not None} == {5}
    chosen = compared(b.profile(b.group("g", *members)), baseline="e").groups[0].rows
    assert {row.versus.comparisons for row in chosen if row.versus is not None} == {4}


def test_beside_a_baseline_without_a_number_the_others_are_still_one_family():
    dead = dict.fromkeys(range(8), b.reason("out_of_memory", signal="SIGKILL"))
    members = [b.member("dead", failed_rounds=dead), *(b.member(name, 2.0, sd=0.02) for name in "abcdef")]
    named = [compared(b.profile(b.group("g", *members), seed=seed)).groups[0].leaders is not None for seed in range(20)]
    assert sum(named) <= 4


@pytest.mark.parametrize(("contention_pct", "is_slower"), [(None, True), (45.0, False)])
def test_a_cell_with_two_modes_that_others_disturbed_is_not_called_slower(contention_pct, is_slower):
    class Disturbed:
        metric = METRICS["step_ns"]

        def versus(self, key, other):
            known = {"ratio": 1.5, "p_adjusted": 0.001, "modes": (1.2, 1.9), "contention_pct": contention_pct}
            return Estimate(verdict="unresolved", **known)

        def is_slower_in_both_modes(self, key, other):
            return True

    leaders = leaders_of(["a", "b"], Disturbed(), {"a": "a", "b": "b"})
    assert (leaders is not None) == is_slower

import msgspec
import profile_builder as b
import pytest

from kit.compare.comparability import NotComparableError
from kit.compare.compare import compare_runs, reduce_run
from kit.compare.conclusions import limit_slow_downs
from kit.compare.sample import RunTimes
from kit.errors import KitError
from kit.profile.facts import FACTS, Fact, kind_of
from kit.profile.launch import Fit
from kit.profile.schema import ProgramSource
from kit.report.comparison import comparison_report
from kit.report.sentences import sentence

ORDERS = {
    "runs_apart", "runs_in_turn", "runs_in_one_order", "runs_overlap", "runs_without_time", "clock_set_back",
    "other_host",
}  # fmt: skip


def run(label, ms=2.0, *, seed=0, drift=0.0, **more):
    """One run of one cell; the machine's level is the run's own."""
    level = {"sd": 0.002, "noise": 0.002} | more.pop("member", {})
    more["label"] = more.pop("given_label", "")
    fields = {"id": label, "seed": seed, "drift": drift, "rounds": 3, "cycles": 4} | more
    return reduce_run(
        label, b.profile(b.group("mlp train", b.member("torch", ms, **level)), **{"rounds": 3, "cycles": 4} | fields)
    )


def alternating(before, after):
    """The same runs at other times: A B A B, ten minutes apart."""
    for side, runs in enumerate((before, after)):
        for number, a_run in enumerate(runs):
            yield b.at_times(a_run, 600.0 * (2 * number + side), 600.0 * (2 * number + side) + 300, None)


def compared(runs, against=(), **more):
    return compare_runs(runs, against, **more)


def versus_of(comparison):
    return next(row.versus for group in comparison.groups for row in group.rows if not row.is_baseline)


def test_single_runs_are_told_apart_beyond_what_runs_of_one_machine_differ_by():
    for ms, verdict in ((2.2, "unresolved"), (3.0, "slower"), (1.0, "faster")):
        comparison = compared([run("before"), run("after", ms, seed=1)])
        versus = versus_of(comparison)
        assert (versus.verdict, versus.unit, versus.count) == (verdict, "session", 1)
        assert versus.low < versus.ratio < versus.high and versus.ratio == pytest.approx(ms / 2, rel=0.02)
        (note,) = [note.what for note in comparison.notes if note.what.code == "spread_assumed"]
        assert (note.values["few"], note.values["rows"]) == (1, 1)


def test_three_runs_a_side_that_alternate_give_a_verdict_on_the_spread_of_pairs():
    before = [run(f"b{n}", 2.0 * (1 + 0.01 * n), seed=n) for n in range(3)]
    after = [run(f"a{n}", 2.4 * (1 + 0.01 * n), seed=9 + n) for n in range(3)]
    runs = list(alternating(before, after))
    comparison = compared(runs[:3], runs[3:])
    versus = versus_of(comparison)
    assert (versus.unit, versus.count, versus.is_spread_assumed) == ("pair", 3, False)
    assert [note.what.values["pairs"] for note in comparison.notes if note.what.code == "runs_in_one_order"] == [3]
    # The same runs, one side after the other, have the difference of two sessions in them.
    apart = versus_of(compared(before, after))
    assert (apart.unit, apart.count, apart.verdict) == ("session", 1, "unresolved") and apart.high > versus.high
    assert versus.verdict == "slower" and versus.low < 1.2 < versus.high
    assert [side.profiles for side in comparison.headlines] == [3, 3]
    # Runs that spread by as much as they differ settle nothing.
    wild = [run(f"w{n}", ms, seed=20 + n) for n, ms in enumerate((1.8, 2.4, 3.0))]
    runs = list(alternating(before, wild))
    assert versus_of(compared(runs[:3], runs[3:])).verdict == "unresolved"


def test_without_against_runs_of_another_identity_are_the_later_side():
    old = [run(f"b{n}", seed=n, identity=b.identity(kernel="6.1")) for n in range(3)]
    new = [run(f"a{n}", 3.0, seed=5 + n, identity=b.identity(kernel="6.6")) for n in range(3)]
    old, new = (list(alternating(old, new))[at : at + 3] for at in (0, 3))
    comparison = compared([old[0], new[0], old[1], new[1], old[2], new[2]])
    assert len(comparison.headlines) == 2 and versus_of(comparison).verdict == "slower"
    assert [mismatch.kind for mismatch in comparison.mismatches] == ["kernel"]


def test_a_variable_that_only_one_side_had_is_named():
    logs = b.identity(facts={"environment.TORCH_LOGS": "all", "environment_set_by.TORCH_LOGS": "user"})
    read = compared([run("before")], [run("after", identity=logs)])
    assert [mismatch.name for mismatch in read.mismatches] == ["environment.TORCH_LOGS"]


def test_the_baseline_is_chosen_by_label():
    runs = [run("x", 2.0), run("y", 4.0)]
    for baseline in ("y", "y.json"):
        assert versus_of(compared(runs, baseline=baseline)).ratio == pytest.approx(0.5, rel=0.05)
    with pytest.raises(KitError, match="x"):
        compared(runs, baseline="z")


def labels(comparison):
    return [side.label for side in comparison.headlines]


def test_runs_of_one_label_are_a_side_that_is_called_by_it():
    before = [run(f"b{n}", seed=n, given_label="before") for n in range(3)]
    after = [run(f"a{n}", 3.0, seed=5 + n, given_label="after") for n in range(3)]
    comparison = compared([before[0], after[0], before[1], after[1], before[2], after[2]])
    assert labels(comparison) == ["before", "after"] and versus_of(comparison).verdict == "slower"
    assert [side.profiles for side in comparison.headlines] == [3, 3]
    assert [row.name for row in comparison.groups[0].rows] == ["torch · before", "torch · after"]
    assert labels(compared([*before, *after], baseline="after"))[0] == "after"


def test_one_label_of_two_kernels_is_two_sides():
    here = [run(f"h{n}", seed=n, given_label="box") for n in range(2)]
    there = run("there", seed=5, given_label="box", identity=b.identity(kernel="6.6"))
    assert labels(compared([*here, there])) == ["box (h0 and 1 more)", "box (there)"]
    # Where it tells nothing apart, files do; and where there is none.
    assert labels(compared(here)) == ["box (h0)", "box (h1)"]
    assert labels(compared([run("plain"), here[0]])) == ["plain", "box"]


def blocked_run(kind, **more):
    launch = {
        "data": b.DataUsed(name="mnist", sha256="f" * 64, pool_batches=16),
        "threads": b.Threads(requested=1, reported=1, reason=None, cpus=[0]),
        "arithmetic": b.Parity(losses=[1.0] * 20, weights_sha256="a" * 64, batches_sha256="b" * 64),
    }
    field = "parity" if kind == "arithmetic" else kind
    member = {"change": fitted(2)} if kind == "epochs" else {"launch": {field: launch[kind]}}
    return run("after", seed=1, member=member, **more)


def fitted(epochs, **more):
    def change(launch):
        launch.fit = Fit(epochs=epochs, updates=9, reference_ns=[], test_ns=None, **more)

    return change


def test_a_part_of_a_fit_is_not_compared_with_a_whole_one():
    part = fitted(1, epoch_updates=90)
    with pytest.raises(NotComparableError, match="9 of 90 updates"):
        compared([run("before", member={"change": fitted(1)}), run("after", seed=1, member={"change": part})])


@pytest.mark.parametrize("kind", ["data", "threads", "arithmetic", "epochs"])
def test_what_answers_another_question_is_kept_apart_unless_forced(kind):
    before = run("before", member={"change": fitted(1)} if kind == "epochs" else {})
    with pytest.raises(NotComparableError) as refused:
        compared([before, blocked_run(kind)])
    assert refused.value.exit_code == 4
    forced = compared([before, blocked_run(kind)], force=True)
    row = next(row for row in forced.groups[0].rows if not row.is_baseline)
    assert row.versus is not None and [mismatch.kind for mismatch in row.blocked] == [kind]
    assert forced.mismatches[0].grade == "incompatible"


@pytest.mark.parametrize(
    ("away", "machine", "compares"), [(1e-4, "Other", True), (1e-4, "", False), (0.01, "Other", False)]
)
def test_losses_of_unlike_hardware_may_lie_further_apart(away, machine, compares):
    losses = [2.3 / (1 + step) * (1 + away) for step in range(20)]
    launch = {"parity": b.Parity(losses=losses, weights_sha256="a" * 64, batches_sha256="b" * 64)}
    identity = {"identity": b.identity(machine)} if machine else {}
    both = [run("before"), run("after", seed=1, member={"launch": launch}, **identity)]
    if compares:
        assert versus_of(compared(both)) is not None
    else:
        with pytest.raises(NotComparableError, match="losses"):
            compared(both)


def test_other_threads_on_other_hardware_only_warn():
    other = blocked_run("threads", identity=b.identity("Other"))
    assert versus_of(compared([run("before"), other])) is not None


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (b.member("torch", 2.0, "cnn"), "measure x with --workload mlp"),
        (b.member("torch", 2.0, batch=64, precision="bfloat16"), "measure x with --batch 128 --dtype float32"),
        (b.member("torch", 2.0, threads=1), "threads by default in .*; measure x without --threads"),
        (b.member("torch", 2.0, "cnn", "infer", batch=1, precision="bfloat16"), "cnn/torch"),
    ],
)
def test_runs_without_a_common_cell_are_refused_whatever_is_forced(other, says):
    with pytest.raises(NotComparableError, match=says):
        compared([run("before"), reduce_run("x", b.profile(b.group("of x", other)))], force=True)


def test_runs_of_other_parameters_are_told_which_to_measure():
    first, other = (
        reduce_run(
            label, b.profile(b.group("g", b.member(workload="dblstm", parameters={"layers": 2, "units": units})))
        )
        for label, units in (("a", 64), ("b", 128))
    )
    with pytest.raises(NotComparableError, match="units 64 in a, 128 in b; measure b with --parameter units=64"):
        other.id = "b"
        compared([first, other])


@pytest.mark.parametrize("kind", ["warp_core", "warp_core.*"])
def test_a_fact_of_whole_runs_keeps_all_cells_apart_by_its_entry_alone(kind, monkeypatch):
    monkeypatch.setitem(FACTS, kind, Fact("incompatible", "warp core", option="one --core"))
    kind_of.cache_clear()
    name = kind.replace("*", "0")
    runs = [run(label, identity=b.identity(facts={name: label})) for label in ("cold", "hot")]
    with pytest.raises(
        NotComparableError, match=r"warp core .*hot in hot and .*cold in cold; measure both with one --core"
    ):
        compared(runs)
    forced = compared(runs, force=True)
    assert [mismatch.kind for mismatch in forced.mismatches] == [kind]
    assert [mismatch.kind for row in forced.groups[0].rows for mismatch in row.blocked] == [kind]
    hot = [run(label, identity=b.identity(facts={name: "hot"})) for label in "ab"]
    assert versus_of(compared(hot)) is not None
    kind_of.cache_clear()


def test_one_blocked_cell_does_not_keep_the_others_apart():
    other = {"launch": {"data": b.DataUsed(name="mnist", sha256="f" * 64, pool_batches=16)}}
    plans = [[b.group("g", b.member("torch", 2.0), b.member("jax", 2.0, **more))] for more in ({}, other)]
    runs = [reduce_run(str(n), b.profile(*plan, id=str(n))) for n, plan in enumerate(plans)]
    rows = {row.cell.backend: row for row in compared(runs).groups[0].rows if not row.is_baseline}
    assert rows["torch"].versus is not None and rows["jax"].versus is None and rows["jax"].blocked


@pytest.mark.parametrize(
    ("change", "kind", "grade"),
    [
        ({"identity": b.identity(kernel="6.6")}, "kernel", "warns"),
        ({"identity": b.identity(facts={"software.package.torch": "2.1"})}, "software.package.*", "warns"),
        ({"cycles": 8}, "plan", "warns"),
        ({"suite": "own"}, "suite", "noted"),
    ],
)
def test_what_differs_is_named_and_graded(change, kind, grade):
    comparison = compared([run("before"), run("after", seed=1, **change)])
    assert [(mismatch.kind, mismatch.grade) for mismatch in comparison.mismatches] == [(kind, grade)]
    assert [labels for _, labels in comparison.mismatches[0].values] == [["before"], ["after"]]


def test_gauges_that_always_vary_a_little_are_no_difference():
    def with_load(label, load):
        built = b.profile(b.group("g", b.member("torch", 2.0)), id=label)
        built.state = b.StateSpan(before=b.changed(built.state.before, {"load_1min": load}), after=None)
        return reduce_run(label, built)

    assert not compared([with_load("a", 0.2), with_load("b", 0.6)]).mismatches
    (mismatch,) = compared([with_load("a", 0.2), with_load("b", 2.6)]).mismatches
    assert mismatch.kind == "load_1min"


def test_a_run_that_is_given_twice_counts_once_and_is_said():
    before, after = [run(f"b{n}", 2.0 + n / 100, seed=n) for n in range(3)], run("a", 2.5)
    once, twice = (compared(before, later) for later in ([after], [after, after, after]))
    assert versus_of(twice) == versus_of(once)
    assert "same_run" in [note.what.code for note in twice.notes]
    with pytest.raises(NotComparableError, match="more than once"):
        compared([after, after])


def test_the_order_in_which_runs_were_measured_is_said():
    def code(times, raw_s=(None,) * 4):
        runs = [run(f"r{number}", seed=number) for number in range(4)]
        timed = [
            b.at_times(a_run, begin_s, None if begin_s is None else begin_s + 300, raw)
            for a_run, begin_s, raw in zip(runs, times, raw_s, strict=True)
        ]
        comparison = compared(timed[:2], timed[2:])
        # Whatever the order is, both sides are compared.
        assert versus_of(comparison).low is not None
        codes = {note.what.code for note in comparison.notes} & ORDERS
        assert all(sentence(note.what) in str(comparison_report(comparison, {}).notes) for note in comparison.notes)
        return codes

    assert code([0, 600, 1200, 1800]) == code([1200, 1800, 0, 600]) == {"runs_apart"}
    assert code([0, 1200, 600, 1800]) == {"runs_in_one_order"}
    assert code([0, 1800, 600, 1200]) == {"runs_in_turn"}
    assert code([0, 1200, 100, 1300]) == {"runs_overlap"}
    assert code([0, 1200, None, 1800]) == {"runs_without_time"}
    # The third ran last by the clock since the machine's boot, and first by the wall's.
    assert code([10_000, 10_600, 8_000, 11_800], [5_000, 5_600, 6_200, 6_800]) == {"clock_set_back"}
    # After a boot that clock begins anew.
    assert code([10_000, 20_600, 10_600, 21_800], [9_000, 300, 9_600, 1_500]) == {"runs_in_one_order"}


def test_two_machines_of_like_hardware_share_no_state():
    """Their clocks since the boot, and runs at the same time, say nothing of each other."""
    here, there = (
        [run(f"{name}{day}", ms, seed=day, identity=b.identity(hostname_sha256=name * 64)) for day in range(3)]
        for name, ms in (("a", 2.0), ("b", 2.6))
    )
    for up_days in ((100, 2), (2, 100)):
        (a, c) = (
            [
                b.at_times(each, day * 86_400.0, day * 86_400.0 + 300, (up + day) * 86_400.0)
                for day, each in enumerate(runs)
            ]
            for runs, up in zip((here, there), up_days, strict=True)
        )
        comparison = compared(a, c)
        assert (versus_of(comparison).verdict, versus_of(comparison).unit) == ("slower", "session")
        assert {note.what.code for note in comparison.notes} & ORDERS == {"other_host"}


def test_a_profile_says_when_it_was_measured():
    profile = b.profile(b.group("g", b.member("torch", 2.0)), created="2026-11-22T01:00:00+00:00")
    # A clock that was set back meanwhile gives no end before the begin.
    assert RunTimes.of(profile)[:2] == (1795309200, 1795309200)
    profile.state = b.StateSpan(
        before=profile.state.before,
        after=msgspec.structs.replace(profile.state.before, taken="2026-11-22T01:05:00+00:00"),
    )
    assert RunTimes.of(profile)[:2] == (1795309200, 1795309500)
    # A run that is planned in the second in which the one before ends begins with its first state.
    later = msgspec.structs.replace(profile.state.before, taken="2026-11-22T01:00:00.750000+00:00")
    profile.state = b.StateSpan(before=later, after=profile.state.after)
    assert RunTimes.of(profile).begin_s == 1795309200.75
    profile.created = "spring"
    assert RunTimes.of(profile).begin_s is None


def test_a_row_that_is_gone_does_not_pass_a_limit():
    both = b.group("g", b.member("torch", 2.0), b.member("jax", 2.0))
    more = [reduce_run(f"m{n}", b.profile(both, id=f"m{n}", seed=n)) for n in range(3)]
    gone = limit_slow_downs(compared(more, [run(f"a{n}", seed=n) for n in range(3)]), 50)
    assert gone.exit_code == 5 and any("jax" in row for row in gone.unresolved)


def test_another_program_under_the_same_name_is_said():
    runs = []
    for label, sha256 in (("before", "a" * 64), ("after", "b" * 64)):
        profile = b.profile(b.group("mine train", b.member("program", 2.0)), id=label, rounds=3, cycles=4)
        source = ProgramSource(path="/mine.py", function="program", takes_task=False, sha256=sha256)
        profile.suite = msgspec.structs.replace(profile.suite, programs={"mine": source})
        runs.append(reduce_run(label, profile))
    (mismatch,) = [mismatch for mismatch in compared(runs).mismatches if mismatch.kind == "program.*"]
    assert (mismatch.name, mismatch.grade) == ("program.mine", "warns")


def test_a_sweep_of_several_runs_is_in_its_order_and_its_last_column_has_a_header():
    def sweep(label, *batches):
        plan = b.group("k", *(b.member("torch", 2.0, batch=batch) for batch in batches))
        return reduce_run(label, b.profile(plan, id=label, compare=["batch"], rounds=3, cycles=4))

    (group,) = compared([sweep("a", 3, 100), sweep("b", 100, 4, 20)]).groups
    assert [row.cell.batch for row in group.rows] == [3, 4, 20, 100, 100]
    comparison = compared([run("a"), run("b")], baseline="a")
    assert comparison_report(comparison, {}).tables[0].columns[-1].title == "against a"

"""Runs of one machine: what alternates, what may not be compared, and what else differs between two sides."""

import msgspec
import profile_builder as b
import pytest

from kit.compare.comparability import NotComparableError
from kit.compare.compare import compare
from kit.compare.notes import read_run
from kit.compare.runs import RunTimes
from kit.errors import KitError
from kit.profile.facts import FACTS, Fact, kind_of
from kit.profile.program_source import ProgramSource
from kit.profile.schema import Fit
from kit.report.comparison_report import comparison_report
from kit.report.reasons_in_words import sentence

ORDERS = {
    "runs_apart", "runs_in_turn", "runs_in_one_order", "runs_overlap", "runs_without_time", "clock_set_back",
    "other_host",
}  # fmt: skip
OTHER_DATA = b.DataUsed(name="mnist", sha256="f" * 64, pool_batches=16)


def run(label, ms=2.0, *, seed=0, given_label="", member=None, **more):
    """One run of one cell; the machine's level is the run's own."""
    torch = member or b.member("torch", ms, sd=0.002, noise=0.002)
    fields = {"id": label, "seed": seed, "label": given_label, "drift": 0.0, "rounds": 3, "cycles": 4} | more
    return read_run(label, b.profile(b.group("mlp train", torch), **fields))


def runs_of(name, levels_ms, seed=0, **more):
    return [run(f"{name}{n}", ms, seed=seed + n, **more) for n, ms in enumerate(levels_ms)]


def with_launch(label="after", **launch):
    """A run whose launches have these fields, or are changed."""
    change = launch.pop("change", None)
    identity = {"identity": launch.pop("identity")} if "identity" in launch else {}
    return run(label, seed=1, member=b.member("torch", 2.0, sd=0.002, launch=launch, change=change), **identity)


def alternating(before, after):
    """The same runs at other times: A B A B, ten minutes apart."""
    for side, runs in enumerate((before, after)):
        begins_s = [600.0 * (2 * number + side) for number in range(len(runs))]
        yield [b.at_times(a_run, at_s, at_s + 300, None) for a_run, at_s in zip(runs, begins_s, strict=True)]


def versus_of(comparison):
    return next(row.versus for group in comparison.groups for row in group.rows if not row.is_baseline)


def kinds(comparison):
    return [mismatch.kind for mismatch in comparison.mismatches]


def test_three_runs_a_side_that_alternate_give_a_verdict_on_the_spread_of_pairs():
    before, after = runs_of("b", (2.0, 2.02, 2.04)), runs_of("a", (2.4, 2.424, 2.448), 9)
    comparison = compare(*alternating(before, after))
    versus = versus_of(comparison)
    assert (versus.unit, versus.count, versus.is_spread_assumed) == ("pair", 3, False)
    assert versus.verdict == "slower" and versus.low < 1.2 < versus.high
    assert [note.what.values["pairs"] for note in comparison.notes if note.what.code == "runs_in_one_order"] == [3]
    # The same runs, one side after the other, have the difference of two sessions in them.
    apart = versus_of(compare(before, after))
    assert (apart.unit, apart.count, apart.verdict) == ("session", 1, "unresolved") and apart.high > versus.high
    # Runs that spread by as much as they differ settle nothing.
    wild = runs_of("w", (1.8, 2.4, 3.0), 20)
    assert versus_of(compare(*alternating(before, wild))).verdict == "unresolved"


def test_sides_are_the_runs_of_one_label_or_identity():
    old, new = {"identity": b.identity(kernel="6.1")}, {"identity": b.identity(kernel="6.6")}
    for before, after in ((old, new), ({"given_label": "before"}, {"given_label": "after"})):
        sides = alternating(runs_of("b", [2.0] * 3, **before), runs_of("a", [3.0] * 3, 5, **after))
        comparison = compare([a_run for pair in zip(*sides, strict=True) for a_run in pair])
        assert [side.profiles for side in comparison.headlines] == [3, 3]
        assert versus_of(comparison).verdict == "slower"


def labels(*runs, **more):
    return [side.label for side in compare(runs, **more).headlines]


def test_a_side_is_called_by_its_label_where_that_tells_it_apart_and_else_by_its_file():
    before, after = run("b", given_label="before"), run("a", given_label="after")
    assert labels(before, after) == ["before", "after"]
    assert labels(before, after, baseline="after") == labels(before, after, baseline="a.json") == ["after", "before"]
    with pytest.raises(KitError, match="choose from b, a"):
        labels(before, after, baseline="z")
    here = runs_of("h", (2.0, 2.0), given_label="box")
    there = run("there", seed=5, given_label="box", identity=b.identity(kernel="6.6"))
    assert labels(*here, there) == ["box (h0 and 1 more)", "box (there)"]
    assert labels(*here) == ["box (h0)", "box (h1)"]
    assert labels(run("plain"), here[0]) == ["plain", "box"]


def fitted(epochs, **more):
    return lambda launch: setattr(launch, "fit", Fit(epochs=epochs, updates=9, reference_ns=[], test_ns=None, **more))


@pytest.mark.parametrize(
    ("kind", "plain", "other", "says"),
    [
        ("data", {}, {"data": OTHER_DATA}, "data"),
        ("epochs", {"change": fitted(1)}, {"change": fitted(2)}, "epochs"),
        ("epochs", {"change": fitted(1)}, {"change": fitted(1, epoch_updates=90)}, "9 of 90 updates"),
    ],
)
def test_what_answers_another_question_is_kept_apart_unless_forced(kind, plain, other, says):
    runs = [with_launch("before", **plain), with_launch(**other)]
    with pytest.raises(NotComparableError, match=says):
        compare(runs)
    forced = compare(runs, force=True)
    row = next(row for row in forced.groups[0].rows if not row.is_baseline)
    assert row.versus is not None and [mismatch.kind for mismatch in row.blocked] == [kind]
    assert forced.mismatches[0].grade == "incompatible"


@pytest.mark.parametrize(
    ("away", "machine", "compares"), [(1e-4, "Other", True), (1e-4, "", False), (0.01, "Other", False)]
)
def test_losses_of_unlike_hardware_may_lie_further_apart(away, machine, compares):
    identity = {"identity": b.identity(machine)} if machine else {}
    runs = [run("before"), with_launch(parity=b.losses(away), **identity)]
    if compares:
        assert versus_of(compare(runs)) is not None
    else:
        with pytest.raises(NotComparableError, match="losses"):
            compare(runs)


def test_other_threads_keep_runs_apart_on_one_kind_of_hardware_alone():
    fewer = b.Threads(requested=1, reported=1, reason=None, cpus=[0])
    assert versus_of(compare([run("before"), with_launch(threads=fewer, identity=b.identity("Other"))])) is not None
    with pytest.raises(NotComparableError, match="threads is 1 in after and 2 in before"):
        compare([run("before"), with_launch(threads=fewer)])


@pytest.mark.parametrize("kind", ["warp_core", "warp_core.*"])
def test_a_fact_of_whole_runs_keeps_all_cells_apart_by_its_entry_alone(kind, monkeypatch):
    monkeypatch.setitem(FACTS, kind, Fact("incompatible", "warp core", option="one --core"))
    kind_of.cache_clear()
    name = kind.replace("*", "0")
    runs = [run(label, identity=b.identity(facts={name: label})) for label in ("cold", "hot")]
    says = r"warp core .*hot in hot and .*cold in cold; measure both with one --core"
    with pytest.raises(NotComparableError, match=says):
        compare(runs)
    forced = compare(runs, force=True)
    assert kinds(forced) == [kind] == [blocked.kind for row in forced.groups[0].rows for blocked in row.blocked]
    hot = [run(label, identity=b.identity(facts={name: "hot"})) for label in "ab"]
    assert versus_of(compare(hot)) is not None
    kind_of.cache_clear()


def test_one_blocked_cell_does_not_keep_the_others_apart():
    plans = [
        b.group("g", b.member("torch", 2.0), b.member("jax", 2.0, launch=more)) for more in ({}, {"data": OTHER_DATA})
    ]
    runs = [read_run(str(n), b.profile(plan, id=str(n))) for n, plan in enumerate(plans)]
    rows = {row.cell.backend: row for row in compare(runs).groups[0].rows if not row.is_baseline}
    assert rows["torch"].versus is not None and rows["jax"].versus is None and rows["jax"].blocked


@pytest.mark.parametrize(
    ("first", "other", "says"),
    [
        ({}, {"workload": "cnn"}, "measure x with --workload mlp"),
        ({}, {"threads": 1}, "threads by default in .*; measure x without --threads"),
        ({}, {"workload": "cnn", "task": "infer", "batch": 1, "precision": "bfloat16"}, "cnn/torch"),
        (
            {"parameters": {"layers": 2, "units": 64}},
            {"parameters": {"layers": 2, "units": 128}},
            "units 64 in a, 128 in x; measure x with --parameter units=64",
        ),
    ],
)
def test_runs_without_a_common_cell_are_refused_whatever_is_forced(first, other, says):
    runs = [run(label, member=b.member("torch", **cell)) for label, cell in (("a", first), ("x", other))]
    with pytest.raises(NotComparableError, match=says):
        compare(runs, force=True)


LOGS = {"environment.TORCH_LOGS": "all", "environment_set_by.TORCH_LOGS": "user"}


@pytest.mark.parametrize(
    ("change", "kind", "grade"),
    [
        ({"identity": b.identity(kernel="6.6")}, "kernel", "warns"),
        ({"identity": b.identity(facts={"software.package.torch": "2.1"})}, "software.package.*", "warns"),
        ({"identity": b.identity(facts=LOGS)}, "environment.*", "warns"),
        ({"cycles": 8}, "plan", "warns"),
        ({"suite": "own"}, "suite", "noted"),
    ],
)
def test_what_differs_is_named_and_graded(change, kind, grade):
    comparison = compare([run("before"), run("after", seed=1, **change)])
    assert [(mismatch.kind, mismatch.grade) for mismatch in comparison.mismatches] == [(kind, grade)]
    assert sorted(where for _, where in comparison.mismatches[0].values) == [["after"], ["before"]]


def test_another_program_under_the_same_name_is_named():
    runs = []
    for label, sha256 in (("before", "a" * 64), ("after", "b" * 64)):
        built = b.profile(b.group("mine train", b.member("program", 2.0)), id=label, rounds=3, cycles=4)
        source = ProgramSource(path="/mine.py", function="program", takes_task=False, sha256=sha256)
        built.suite = msgspec.structs.replace(built.suite, programs={"mine": source})
        runs.append(read_run(label, built))
    assert ("program.mine", "warns") in [(each.name, each.grade) for each in compare(runs).mismatches]


def test_gauges_that_always_vary_a_little_are_no_difference():
    def with_load(label, load):
        built = b.profile(b.group("g", b.member("torch", 2.0)), id=label)
        built.state = b.StateSpan(before=b.changed(built.state.before, {"load_1min": load}), after=None)
        return read_run(label, built)

    assert not compare([with_load("a", 0.2), with_load("b", 0.6)]).mismatches
    assert kinds(compare([with_load("a", 0.2), with_load("b", 2.6)])) == ["load_1min"]


@pytest.mark.parametrize(
    ("begins_s", "raw_s", "code"),
    [
        ([0, 600, 1200, 1800], [], "runs_apart"),
        ([1200, 1800, 0, 600], [], "runs_apart"),
        ([0, 1200, 600, 1800], [], "runs_in_one_order"),
        ([0, 1800, 600, 1200], [], "runs_in_turn"),
        ([0, 1200, 100, 1300], [], "runs_overlap"),
        ([0, 1200, None, 1800], [], "runs_without_time"),
        # The third ran last by the clock since the machine's boot, and first by the wall's.
        ([10_000, 10_600, 8_000, 11_800], [5_000, 5_600, 6_200, 6_800], "clock_set_back"),
        # After a boot that clock begins anew.
        ([10_000, 20_600, 10_600, 21_800], [9_000, 300, 9_600, 1_500], "runs_in_one_order"),
    ],
)
def test_the_order_in_which_two_runs_of_each_side_were_measured_is_noted(begins_s, raw_s, code):
    timed = [
        b.at_times(a_run, begin_s, None if begin_s is None else begin_s + 300, raw)
        for a_run, begin_s, raw in zip(runs_of("r", [2.0] * 4), begins_s, raw_s or [None] * 4, strict=True)
    ]
    comparison = compare(timed[:2], timed[2:])
    (note,) = (note.what for note in comparison.notes if note.what.code in ORDERS)
    assert note.code == code and sentence(note) in str(comparison_report(comparison, {}).notes)
    assert versus_of(comparison).low is not None, "whatever the order is, both sides are compared"


def test_two_machines_of_like_hardware_share_no_state():
    """Their clocks since the boot, and runs at the same time, say nothing of each other."""
    day_s = 86_400.0
    for up_days in ((100, 2), (2, 100)):
        sides = (
            [
                b.at_times(a_run, day * day_s, day * day_s + 300, (up + day) * day_s)
                for day, a_run in enumerate(runs_of(host, [ms] * 3, identity=b.identity(hostname_sha256=host * 64)))
            ]
            for host, ms, up in zip("ab", (2.0, 2.6), up_days, strict=True)
        )
        comparison = compare(*sides)
        assert (versus_of(comparison).verdict, versus_of(comparison).unit) == ("slower", "session")
        assert {note.what.code for note in comparison.notes} & ORDERS == {"other_host"}


def test_a_profile_says_when_it_was_measured():
    built = b.profile(b.group("g", b.member("torch", 2.0)), created="2026-11-22T01:00:00+00:00")
    # A clock that was set back meanwhile gives no end before the begin.
    assert RunTimes.of(built)[:2] == (1795309200, 1795309200)
    # A run that is planned in the second in which the one before ends begins with its first state.
    before, after = (
        msgspec.structs.replace(built.state.before, taken=f"2026-11-22T01:{at}+00:00") for at in ("00:00.75", "05:00")
    )
    built.state = b.StateSpan(before=before, after=after)
    assert RunTimes.of(built)[:2] == (1795309200.75, 1795309500)
    built.created = "spring"
    assert RunTimes.of(built).begin_s is None

"""What a comparison may not depend on: which side is first, the unit of time, the order of cells, other groups."""

import copy
import math

import profile_builder as b
import pytest
from metered import metered_run
from msgspec.structs import replace

from kit.compare.compare import compare, compare_within
from kit.compare.notes import read_run
from kit.profile.schema import Fit

OPPOSITE = {"slower": "faster", "faster": "slower", "more": "less", "less": "more"}
TIMES = ("begin_ns", "span_ns", "duration_ns", "median_ns")


def drawing(power_w):
    def change(launch):
        drawn_j = 10 * power_w * (1 + 0.002 * (launch.round * round(power_w) % 7))
        launch.energy = b.energy(drawn_j, window_ns=10 * b.S, block_ns=10 * b.S, error_fraction=0.01)

    return change


def fitting(launch):
    launch.fit = Fit(epochs=1, updates=9, reference_ns=[2e6] * 13, test_ns=10**8)


def some(number):
    return [(number + step) % 12 for step in range(5)]


def run(*members, **fields):
    """PyTorch at 4 ms and JAX at 3, with what each has beside that; and further members."""
    torch, jax, *more = members or ({}, {})
    first = [b.member(name, ms, **member) for name, ms, member in (("torch", 4.0, torch), ("jax", 3.0, jax))]
    return lambda: b.profile(b.group("g", *first, *more), **fields)


def alike(**member):
    return run(member, member)


FITS = {"task": "fit", "feed": "host", "change": fitting, "launch": {"turns": "sequential"}}
# Frameworks at different and at equal speed, with two modes, a trend, failures, neighbors, joules, fits and a sweep.
RUNS = {
    "plain": run({}, {}, b.member("tensorflow", 4.01)),
    "modes": run({"slow": 1.8, "slow_rounds": [1, 3, 4]}, {"trend": -0.2}),
    "failed": run({"failed_rounds": {0: b.DEAD[0]}}, {}, b.member("tensorflow", failed_rounds=b.DEAD)),
    "disturbed": alike(change=b.beside_others(0.5, some)),
    "contended": alike(change=b.beside_others(0.4)),
    "joules": run({"change": drawing(90.0)}, {"change": drawing(50.0)}),
    "metered": metered_run,
    "fits": alike(**FITS),
    "alone": run(turns="sequential"),
    "sweep": lambda: b.profile(
        b.group("g", *(b.member("torch", 1.0 + n, batch=2**n) for n in range(4))), compare=["batch"]
    ),
}


def rows_of(built, **how):
    (group,) = compare_within("p", built, **how).groups
    return {row.cell.key: row for row in group.rows}


def is_inverse(one_way, back):
    assert back.verdict == OPPOSITE.get(one_way.verdict, one_way.verdict)
    if one_way.ratio is not None:
        assert math.log(back.ratio) == pytest.approx(-math.log(one_way.ratio), abs=1e-9)
    if one_way.low is not None:
        assert (back.low, back.high) == pytest.approx((1 / one_way.high, 1 / one_way.low))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("metric", ["step_ns", "latency_ns", "compile_ns", "cpu_per_sample_ns"])
def test_members_swapped_have_the_inverse_ratio_and_the_opposite_verdict(name, metric):
    built = RUNS[name]()
    (group,) = built.groups
    first, second = group.cells[:2]
    pair = replace(built, groups=[replace(group, cells=[first, second])], cells=built.cells[:2])
    there = rows_of(pair, by=metric)[second].versus
    back = rows_of(replace(pair, groups=[replace(group, cells=[second, first], baseline=second)]), by=metric)[
        first
    ].versus
    is_inverse(there, back)


def side_of(number, ms):
    """Three runs of a side, each ten minutes after one of the other side."""
    for index in range(3):
        member = b.member("torch", ms * (1 + index / 100), sd=0.002)
        name, at_s = f"{number}{index}", 600.0 * (2 * index + number)
        built = b.profile(b.group("g", member), drift=0.0, rounds=3, id=name, seed=10 * number + index)
        yield b.at_times(read_run(name, built), at_s, at_s + 300, None)


@pytest.mark.parametrize("other_ms", [2.0, 2.6])
def test_runs_swapped_have_the_inverse_ratio_and_the_opposite_verdict(other_ms):
    sides = [*side_of(0, 2.0)], [*side_of(1, other_ms)]
    there, back = (
        next(row.versus for row in compare(*both).groups[0].rows if not row.is_baseline)
        for both in (sides, sides[::-1])
    )
    is_inverse(there, back)


def times_longer(built, factor):
    """The same run on a machine that takes so many times as long for everything."""
    longer = copy.deepcopy(built)
    for launch in (launch for result in longer.cells for launch in result.launches):
        blocks = launch.blocks
        for field in TIMES:
            setattr(blocks, field, [factor * ns for ns in getattr(blocks, field)])
        blocks.counters = {
            name: [factor * value for value in values] if name.endswith("_ns") else values
            for name, values in blocks.counters.items()
        }
        launch.phases = [replace(phase, duration_ns=factor * phase.duration_ns) for phase in launch.phases]
        if launch.fit is not None:
            references = [factor * ns for ns in launch.fit.reference_ns]
            launch.fit = replace(launch.fit, reference_ns=references, test_ns=factor * launch.fit.test_ns)
    return longer


@pytest.mark.parametrize("name", [name for name in RUNS if name not in ("joules", "metered")])
def test_steps_scaled_scale_times_and_change_no_ratio(name):
    built = RUNS[name]()
    plain, longer = rows_of(built), rows_of(times_longer(built, 3))
    assert [*plain] == [*longer]
    for key, row in plain.items():
        for metric in ("step_ns", "latency_ns", "compile_ns", "fit_total_ns"):
            value = row.value(metric)
            assert longer[key].value(metric) == (value if value is None else pytest.approx(3 * value))
        versus, other = row.versus, longer[key].versus
        assert (versus is None) == (other is None)
        if versus is not None:
            assert other.verdict == versus.verdict
            assert (other.ratio, other.low) == (pytest.approx(versus.ratio), pytest.approx(versus.low))


@pytest.mark.parametrize("name", RUNS)
def test_cells_permuted_and_cells_beside_them_change_nothing(name):
    built = RUNS[name]()
    plain = rows_of(built)
    (group,) = built.groups
    order = [group.cells[0], *group.cells[:0:-1]]
    turned = replace(built, cells=built.cells[::-1], groups=[replace(group, cells=order)])
    others = b.profile(b.group("other", b.member("torch", 9.0, "rnn", **b.EXACT)), rounds=3)
    beside = replace(built, cells=[*built.cells, *others.cells], groups=[*built.groups, *others.groups])
    for changed in (turned, beside):
        first, *_ = compare_within("p", changed).groups
        rows = {row.cell.key: row for row in first.rows}
        assert rows.keys() == plain.keys()
        for key, row in plain.items():
            assert vars(b.shown(rows[key])) == vars(b.shown(row))
            assert rows[key].versus == row.versus

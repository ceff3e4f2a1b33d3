"""A cell against itself: spread, false alarms, coverage, and how long 3 % takes; the same launches by rivals' rules.

    python tests/bench/bench_self.py [--rounds 60] [--task train] [--backend jax --workload mlp] [--out bench/self.json]
    python tests/bench/bench_self.py --from bench/self.json [--from bench/more.json]    judge again, measure nothing

Without options: mlp in TensorFlow and PyTorch, train and infer. Two like members, the variants `a` and `b`, N rounds of
12 cycles; train and infer share a process. The profile stays; an interrupted run goes on with the same --out.

    SD           of the round's log-ratio over rounds, with its 95 % interval (chi-squared)
    false alarm  a verdict of disjoint rounds of k that says "faster" or "slower", with the exact binomial interval
    covered      intervals of disjoint rounds of k that include 1
    3 % told     one side scaled by exactly 1.03, random subsets of k of the rounds: share that says so, the right way
                 round. Subsets of more than half of the rounds are much alike: the share is then that of few trials.
    minutes      of k rounds of this cell alone: phases of both launches (a shared start counts in full), and blocks
"""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path

import numpy as np
import rival_rules
from measuring import Interval, case_parser, chosen_cells, launches_of, name_of, printed, run_rounds
from msgspec.structs import replace
from scipy import stats

from kit.compare.metrics import METRICS
from kit.compare.ratios import log_ratios
from kit.compare.runs import run_of
from kit.profile.cell import Variant
from kit.profile.store import launch_id, read_profile, read_steps
from kit.stats.estimate import RULE, judge, over

SCALED = 1.03
SETS = (3, 4, 5, 8)
RIVALS = {
    "pyperf, every step": rival_rules.pyperf,
    "pyperf, 3 values a launch": rival_rules.pyperf_as_it_runs,
    "pytest-benchmark median:5%": rival_rules.pytest_benchmark,
    "torch Compare": rival_rules.torch_compare,
}
TRIALS = 1000
ENOUGH = 0.9
# Of a launch's own phases: "steady" is its blocks, and the proofs are made in the first round only.
NOT_OF_EVERY_ROUND = ("steady", "parity")


class SelfCell:
    """What the rounds hold of one cell; `logs`, `steps` and `seconds` have an entry for each round."""

    def __init__(self, profile, steps, group):
        launches = launches_of(profile, group)
        a, b = ({launch.round: launch for launch in launches[key] if launch.gave_number} for key in group.cells)
        samples = run_of("", profile, all_cycles=True).samples
        ratios = log_ratios(METRICS["step_ns"], *(samples[key] for key in group.cells))
        self.name = name_of(next(result.cell for result in profile.cells if result.key == group.cells[0]))
        self.logs = list(ratios.values())
        self.steps = [tuple(timed_steps(launch, steps) for launch in (a[number], b[number])) for number in ratios]
        self.seconds = [round_s(a[number], b[number]) for number in ratios]

    def disjoint(self, k):
        """Return the rounds, k by k; what is left over is in none."""
        return [slice(at, at + k) for at in range(0, len(self.logs) - k + 1, k)]


def timed_steps(launch, steps):
    """Return the timed steps of a launch, float nanoseconds."""
    at, blocks = 1 + launch.warmup_steps, []
    raw_steps = steps[launch_id(launch)]
    for lead_in, timed in zip(launch.blocks.lead_in, launch.blocks.steps, strict=True):
        blocks.append(raw_steps[at + lead_in : at + lead_in + timed])
        at += lead_in + timed
    return np.concatenate(blocks).astype(np.float64)


def round_s(*launches):
    """Return the seconds that a round of these two takes, but for the start of their interpreters."""
    phases = sum(
        phase.duration_ns for launch in launches for phase in launch.phases if phase.name not in NOT_OF_EVERY_ROUND
    )
    begin = min(launch.blocks.begin_ns[0] for launch in launches)
    end = max(launch.blocks.begin_ns[-1] + launch.blocks.span_ns[-1] for launch in launches)
    return (phases + end - begin) / 1e9


def says(logs):
    """Return the kit's verdict of rounds."""
    return judge([over(logs)])[0].verdict


def share(hits, trials):
    """Return a count with its exact binomial interval (Clopper and Pearson 1934), in percent."""
    if not trials:
        return "–"
    low, high = stats.binomtest(hits, trials).proportion_ci(method="exact")
    return f"{hits}/{trials} [{100 * low:.1f}, {100 * high:.1f}] %"


def spread(logs):
    """Return the SD of the rounds' log-ratios with its interval, in percent."""
    sd, df = statistics.stdev(logs), len(logs) - 1
    low, high = (sd * math.sqrt(df / stats.chi2.ppf(p, df)) for p in (0.975, 0.025))
    return f"{100 * sd:.2f} [{100 * low:.2f}, {100 * high:.2f}] %"


def told(logs, k, draw):
    """Return the share of random subsets of k rounds in which 3 % are told; each side is the slower one in half."""
    hits = 0
    for trial in range(TRIALS):
        sign = 1 if trial % 2 else -1
        hits += says([sign * log + math.log(SCALED) for log in draw.sample(logs, k)]) == "slower"
    return hits / TRIALS


def print_told(cells):
    print(f"\n3 % told, {TRIALS} subsets of k rounds")
    for cell in cells:
        draw, shares = random.Random(0), {}
        for k in range(3, len(cell.logs) + 1):
            shares[k] = told(cell.logs, k, draw)
            if shares[k] >= ENOUGH:
                break
        minutes = statistics.median(cell.seconds) / 60
        shown = ", ".join(f"{k}: {100 * share:.0f}" for k, share in shares.items())
        k = max(shares, default=0)
        reached = (
            f"nine in ten with {k} rounds = {k * minutes:.1f} min" if shares.get(k, 0) >= ENOUGH else "not reached"
        )
        print(f"  {cell.name}: {reached} ({60 * minutes:.1f} s a round); % by k: {shown}")


def print_verdicts(cells):
    rows = [("disjoint rounds of k", "k", "false alarms", "1 covered")]
    for k in SETS:
        counts = []
        for cell in cells:
            sets = [cell.logs[part] for part in cell.disjoint(k)]
            differences = [over(logs) for logs in sets]
            alarms = sum(says(logs) in ("faster", "slower") for logs in sets)
            covered = sum(difference.low <= 1 <= difference.high for difference in differences)
            counts.append((alarms, covered, len(sets)))
            rows.append((cell.name, k, share(alarms, len(sets)), share(covered, len(sets))))
        alarms, covered, trials = map(sum, zip(*counts, strict=True))
        rows.append(("all cells", k, share(alarms, trials), share(covered, trials)))
    printed(rows)


def print_rivals(cells):
    """One side as it is, then scaled: what each rule says of all steps of k disjoint rounds."""
    rows = [("all cells, by rule", "k", "A/A told apart", "3 % told")]
    for k in (1, *SETS):
        sets = [(cell, part) for cell in cells for part in cell.disjoint(k)]
        for name, rule in ({f"kit {RULE}": None} | RIVALS).items():
            alarms = hits = 0
            for cell, part in sets:
                a, b = zip(*cell.steps[part], strict=True)
                logs = cell.logs[part]
                plain = says(logs) if rule is None else rule(a, b)
                scaled = (
                    says([x + math.log(SCALED) for x in logs]) if rule is None else rule([x * SCALED for x in a], b)
                )
                alarms += plain in ("faster", "slower")
                hits += scaled == "slower"
            rows.append((name, k, share(alarms, len(sets)), share(hits, len(sets))))
    printed(rows)


def measure(arguments):
    cells = [
        replace(cell, variant=name)
        for cell in chosen_cells(arguments, backend=["tensorflow", "torch"], workload=["mlp"])
        for name in "ab"
    ]
    run_rounds(arguments.out, cells, [Variant(name=name) for name in "ab"], arguments.rounds, arguments.cycles)
    return [arguments.out]


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--cycles", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path("bench/self.json"))
    parser.add_argument("--from", dest="judged", type=Path, action="append", help="judge this profile; repeatable")
    arguments = parser.parse_args()
    cells = []
    for path in arguments.judged or measure(arguments):
        profile = read_profile(path)
        steps = read_steps(path, profile)
        cells += [SelfCell(profile, steps, group) for group in profile.groups]
    rows = [("A/A", "rounds", "SD over rounds [95 %]", "ratio of all [95 %]")]
    for cell in cells:
        whole = over(cell.logs)
        ratio = Interval(whole.ratio, whole.low, whole.high)
        rows.append((cell.name, len(cell.logs), spread(cell.logs), ratio))
    printed(rows)
    print()
    print_verdicts(cells)
    print_told(cells)
    print()
    print_rivals(cells)


if __name__ == "__main__":
    main()

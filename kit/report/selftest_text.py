"""What a self-test found, for a reader: two tables of rules, real launches and simulated ones, and the host's band."""

from __future__ import annotations

from rich.text import Text

from kit.compare.counted import counted
from kit.profile.self_test import LaunchCount, RuleTally, SelfTestAnswer, Tally
from kit.report.grid import grid
from kit.report.plain import NONE, one_line
from kit.report.quantity import percent, signed_percent
from kit.report.terminal import to_string, wrapped
from kit.stats.binomial import share_interval
from kit.stats.verdict import LAUNCHES_FOR_VERDICT

AA_KINDS = ("shuffled", "apart")
INDENT = "  "


def render(answer: SelfTestAnswer, *, kept_in: str | None = None, color: bool = False) -> str:
    """Lay the answer out.

    Args:
        answer: to show.
        kept_in: the file that now holds the host's band; null: it was not kept.
        color: with ANSI colours for a terminal.
    """
    lines = [Text(one_line(f"{answer.cell_key} on {answer.cpu}"), style="bold")]
    lines += [Text(INDENT + line) for line in _measured(answer)]
    if _has_rules(answer):
        lines += _table("Real launches", answer.rules, simulated=False)
        lines += _table("Simulated launches", answer.rules, simulated=True)
        lines += _plants(answer)
    lines += [Text(), Text("Host's band", style="bold cyan")]
    lines += [Text(INDENT + line) for line in _band(answer, kept_in)]
    lines += [Text()] if _has_rules(answer) else []
    lines += [line for note in _notes(answer) for line in wrapped(f"· {note}", "dim")]
    return to_string(lines, color=color)


def _has_rules(answer: SelfTestAnswer) -> bool:
    """Whether there were launches enough to put any question."""
    return any(rule.real for rule in answer.rules)


def _measured(answer: SelfTestAnswer) -> list[str]:
    rows = [["launches", "finished", "steady", "slower by"]]
    rows += [
        [
            _kind_name(count),
            str(count.finished),
            str(count.steady),
            _ratio(count),
        ]
        for count in answer.launches
    ]
    lines = grid(rows, [False, True, True, False])
    if answer.took_s is not None:
        failed = f", {answer.failed} failed" if answer.failed else ""
        lines.append(f"in {answer.took_s / 60:.1f} min{failed}")
    if answer.noise is not None:
        noise = answer.noise
        lines.append(
            f"launch medians spread by {percent(noise.launch_spread)} and resemble the one before by "
            f"{noise.launch_resemblance:.2f}; steps of a launch by {percent(noise.step_spread)} and "
            f"{noise.step_autocorrelation:.2f}"
        )
    return lines


def _kind_name(count: LaunchCount) -> str:
    return f"+{count.planted_slowdown_pct:g} %" if count.planted_slowdown_pct else "unslowed"


def _ratio(count: LaunchCount) -> str:
    if count.measured is None:
        return ""
    ratio = count.measured
    shown = f"{signed_percent(ratio.value)} %"
    if ratio.low is None or ratio.high is None:
        return shown
    return f"{shown} [{signed_percent(ratio.low)}, {signed_percent(ratio.high)}] in {counted(ratio.launches, 'round')}"


def _table(title: str, rules: list[RuleTally], *, simulated: bool) -> list[Text]:
    kinds = list(rules[0].simulated if simulated else rules[0].real)
    if not kinds:
        return []
    plants = [kind for kind in kinds if kind not in AA_KINDS]
    rows = [
        ["", "false alarms", "", *(["found", *[""] * (len(plants) - 1)] if plants else [])],
        ["rule", *kinds],
    ]
    for rule in rules:
        tallies = rule.simulated if simulated else rule.real
        alarms = [_alarms(tallies[kind], interval=simulated) for kind in AA_KINDS]
        found = [_found(tallies[kind]) for kind in plants]
        rows.append([rule.rule, *alarms, *found])
    heads, *body = grid(rows, [False, *[True] * len(kinds)], INDENT)
    return [
        Text(),
        Text(title, style="bold cyan"),
        Text(heads, style="dim"),
        Text(body[0], style="dim"),
        *(Text(line, style="" if rule.ours else "dim") for line, rule in zip(body[1:], rules, strict=True)),
    ]


def _alarms(tally: Tally | None, *, interval: bool) -> str:
    """``12/200 6.0 %``, and the interval of the share where the draws are independent."""
    if tally is None:
        return NONE
    count = tally.faster + tally.slower
    shown = _share(count, tally)
    if not interval:
        return shown
    low, high = share_interval(count, tally.comparisons)
    return f"{shown} [{100 * low:.1f}, {100 * high:.1f}]"


def _found(tally: Tally | None) -> str:
    return NONE if tally is None else _share(tally.slower, tally)


def _share(count: int, tally: Tally) -> str:
    return f"{count}/{tally.comparisons} {percent(count / tally.comparisons)}"


def _plants(answer: SelfTestAnswer) -> list[Text]:
    """What the kit says of the planted slow-downs, verdict by verdict."""
    ours = [rule for rule in answer.rules if rule.ours]
    plants = [kind for kind in ours[0].real if kind not in AA_KINDS]
    if not plants:
        return []
    rows = [["rule", *plants]]
    for rule in ours:
        for name, tallies in (("real", rule.real), ("simulated", rule.simulated)):
            rows.append([f"{rule.rule}, {name}", *(_verdicts(tallies.get(kind)) for kind in plants)])
    head, *body = grid(rows, [False, *[True] * len(plants)], INDENT)
    return [
        Text(),
        Text("What the kit said of the planted slow-downs: slower / unresolved / same / faster", style="bold cyan"),
        Text(head, style="dim"),
        *map(Text, body),
    ]


def _verdicts(tally: Tally | None) -> str:
    if tally is None:
        return NONE
    return f"{tally.slower} / {tally.unresolved} / {tally.same} / {tally.faster}"


def _band(answer: SelfTestAnswer, kept_in: str | None) -> list[str]:
    if answer.host_band is None:
        return [one_line(f"none: {answer.no_band}")]
    parts = [
        f"{percent(band, 2)} {kind}"
        for kind, band in (
            ("shuffled", answer.band_shuffled),
            ("apart", answer.band_apart),
            ("expected of two runs", answer.band_expected),
        )
        if band is not None
    ]
    lines = [
        f"{percent(answer.host_band.band, 2)}: what 95 % of comparisons of the cell with itself should stay within; "
        f"the widest of {', '.join(parts)}"
    ]
    if kept_in is not None:
        lines.append(one_line(f"kept in {kept_in} for `kit run` and `kit compare`"))
    return lines


def _notes(answer: SelfTestAnswer) -> list[str]:
    if not _has_rules(answer):
        return []
    side = counted(answer.launches_a_side, "launch")
    return [
        "Shuffled: sides that took turns, as cells of one run do. Apart: one side ran first, as of two runs. "
        f"Real ones have {side} a side, simulated ones {LAUNCHES_FOR_VERDICT}. A slow-down is compared with unslowed "
        f"launches of the same rounds, {LAUNCHES_FOR_VERDICT} a side where as many are steady.",
        "Real comparisons draw from the same launches again and again: their counts are no independent draws. The band "
        "is at least what 95 % of these very comparisons stayed within, so few of them can fall outside it.",
        "Simulated launches have the spread and resemblance seen in the unslowed ones, and no drift beyond that; "
        "intervals are 95 %.",
        "pytest-benchmark's check knows no faster; half of its errors go unseen.",
    ]
